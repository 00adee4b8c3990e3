"""Adds up the sums of a log, batch by batch: one product of matrices for all targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.evaluation.collect import scan
from steadytd.evaluation.collect.action_sums import ActionRows, ActionSums
from steadytd.evaluation.collect.action_sums import shapes as action_shapes
from steadytd.evaluation.collect.cuts import Cuts
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.products import Share, shares, up
from steadytd.evaluation.collect.ratios import Ratios, Steps
from steadytd.evaluation.collect.room import Padded, Room, memory_of
from steadytd.evaluation.collect.rows.active import Active, Features, active_of
from steadytd.evaluation.collect.rows.table import BatchRows, RowKeeper, empty_table
from steadytd.evaluation.collect.scan import Places, Weighted
from steadytd.evaluation.collect.statistics import (
    ACTION_SUMS,
    KEPT_ROWS,
    RATIO_SUMS,
    SUMMED,
    Statistics,
    widest,
)
from steadytd.evaluation.collect.vectors import LANES
from steadytd.logs.log import LogBatch

CHUNK_BYTES = 300_000  # of the weighted features of a chunk: they should stay in the cache
FEWEST_ROWS, MOST_ROWS = 200, 2000
BY_STEP = ("numerator", "denominator", "ended")
FEW = 128  # features: with more, the product of matrices of BLAS is faster than our own


class BlockSums:
    """The sums of one block in one part of the log: place `i` of the accumulator's arrays."""

    def __init__(self, room: dict[str, Floats], i: int, block: int, continues: bool) -> None:
        self.place, self.block, self.continues = i, block, continues
        self.counts, self.G, self.x, self.x_start = (
            room[name][i] for name in ("counts", "G", "x", "x_start")
        )
        self.systems, self.mass, self.behavior = (
            room[name][i] for name in ("systems", "mass", "behavior")
        )
        self.weighted, self.cut, self.ratios = (
            room[name][i] for name in ("weighted", "cut", "ratios")
        )
        self.numerator, self.denominator, self.ended = (
            room[name][i] for name in ("numerator", "denominator", "ended")
        )
        self.q = {name: room[name][i] for name in ACTION_SUMS}

    def add(self, systems: Floats, weighted: Floats) -> None:
        """Add sums [columns, d, d + 2] and [ratios, lams, d + 2] of some rows."""
        T, K, d, n = self.systems.shape
        by_target = systems[:-1].reshape(K, T, d, d + 2).swapaxes(0, 1)
        self.systems += by_target[..., :n]
        self.mass += by_target[..., n]
        self.behavior += systems[-1, :, :n]
        self.weighted += weighted


def room_for(plan: Plan) -> dict[str, Floats]:
    """Zeros for the sums of all blocks; the system gives memory only to those that are used."""
    n, T, K, H = plan.blocks, len(plan.targets), len(plan.systems), plan.horizon
    d = plan.summed
    shapes: dict[str, tuple[int, ...]] = {
        "counts": (4,),
        "G": (d, d),
        "x": (plan.features,),
        "x_start": (plan.features,),
        "systems": (T, K, d, d + 1),
        "mass": (T, K, d),
        "behavior": (d, d + 1),
        "weighted": (plan.ratios, len(plan.lams), d + 2),
        "cut": (T, len(plan.lams), d + 1),
        "ratios": (T, len(RATIO_SUMS)),
        **action_shapes(plan.by_action, plan.features),
    }
    room = {name: np.zeros((n, *shapes[name])) for name in SUMMED if name not in BY_STEP}
    for name in BY_STEP:  # steps first: those that no episode has stay untouched, in one piece
        room[name] = np.zeros((H, n, T)).transpose(1, 2, 0)
    return room


@dataclass
class Prepared:
    """The rows of a batch with what does not depend on features.

    `weight[i, k T + t]` is rho M of system k and target t, `rho[i, t]` the ratio; behind the last
    of either stands a 1, which is the behaviour's.
    """

    n: int
    row_next: Ints
    reward: Floats
    discount: Floats
    behavior: Floats
    target: Floats
    first: Bools
    numbers: Longs
    gamma: Floats
    weight: Padded
    rho: Padded
    every: bool  # every row is a start
    probs: Floats | None  # [m, policies, actions], and
    taken: Longs | None  # the logged actions, for the Q-form
    stretches: list[tuple[int, int, BlockSums]] = field(default_factory=list)

    @staticmethod
    def of(batch: LogBatch, n: int, plan: Plan, room: Room) -> Prepared:
        """Room for the first n rows of a batch."""
        assert batch.behavior_prob is not None
        return Prepared(
            n=n,
            row_next=np.ascontiguousarray(batch.row_next[:n]),
            reward=np.ascontiguousarray(batch.reward[:n], dtype=np.float64),
            discount=np.ascontiguousarray(batch.discount[:n], dtype=np.float64),
            behavior=np.ascontiguousarray(batch.behavior_prob[:n], dtype=np.float64),
            target=np.ascontiguousarray(batch.target_prob[:, :n], dtype=np.float64),
            first=np.ascontiguousarray(batch.first[:n]),
            numbers=np.ascontiguousarray(batch.rows[:n]),
            gamma=room.array("gamma", (n,)),
            weight=room.padded("weight", (n, plan.columns)),
            rho=room.padded("rho", (n, plan.ratios)),
            every=plan.where == "states",
            probs=batch.probs,
            taken=np.asarray(batch.action, dtype=np.int64) if plan.by_action else None,
        )

    def steps(self, places: Places) -> Steps:
        """The rows as the loop over ratios takes them."""
        written = map(memory_of, (self.weight, self.rho))
        return Steps(
            self.target, self.behavior, self.first, places.gamma, self.reward, places.discounted,
            places.step, *written,
        )  # fmt: skip

    def by_action(self, X: Floats) -> ActionRows:
        """The rows with features X as the Q-form takes them."""
        assert self.probs is not None and self.taken is not None
        return ActionRows(
            X, self.probs, self.row_next, self.discount, self.reward, self.taken, self.first,
            self.gamma, self.rho.array,
        )  # fmt: skip

    def kept(self, plan: Plan, active: Active) -> BatchRows:
        """The rows as they are kept."""
        T = len(plan.targets)
        emphatic = [k for k, system in enumerate(plan.systems) if system.emphatic]
        columns = [k * T + t for k in emphatic for t in range(T)]
        places = [np.full(hi - lo, piece.place, dtype=np.int32) for lo, hi, piece in self.stretches]
        return BatchRows(
            np.concatenate(places), self.first, self.reward, self.discount, self.gamma,
            self.rho.array[:, :T], self.weight.array[:, columns], self.row_next, active,
        )  # fmt: skip

    def weighted(self, X: Floats) -> Weighted:
        """The rows with features X as the loops over weighted features take them."""
        return Weighted(
            X, self.row_next, self.discount, self.reward, self.gamma, self.first,
            memory_of(self.weight), self.weight.array.shape[1],
            memory_of(self.rho), self.rho.array.shape[1], self.every,
        )  # fmt: skip


class Accumulator:
    """The sums of consecutive batches; all episodes of a part, from its first row on.

    At most so many `threads` can make them side by side.
    """

    def __init__(self, plan: Plan, threads: int = 1) -> None:
        T, K, d = len(plan.targets), len(plan.systems), plan.summed
        self.plan = plan
        self.keeper = RowKeeper() if plan.keeps_rows else None
        self.room = room_for(plan)
        self.pieces: list[BlockSums] = []
        self.place = np.zeros(4)
        self.ratios = Ratios(plan)
        self.z = np.zeros((T, K, d))
        self.largest = np.zeros(T)
        self.largest_row = np.full(T, -1, dtype=np.int64)
        self.violations = np.zeros(T, dtype=np.int64)
        self.violating = np.full((T, KEPT_ROWS), -1, dtype=np.int64)
        self.extent = np.array([np.inf, -np.inf, 0.0, 0.0])
        self.cuts = Cuts(plan)
        self.shares = shares(plan, threads) if few(plan) and not plan.keeps_rows else []
        self.by_action = ActionSums(plan.by_action, plan.features) if plan.by_action else None
        self.lams, self.c = np.array(plan.lams), np.zeros((len(plan.lams), plan.ratios))
        columns = plan.columns * d + self.c.size
        self.chunk = int(np.clip(CHUNK_BYTES // (8 * max(columns, 1)), FEWEST_ROWS, MOST_ROWS))
        self.chunk += 8 - self.chunk % 64  # rows of U a power of two apart would share cache lines
        self.Y, self.U = np.empty((d, self.chunk)), np.empty((columns, self.chunk))
        self.V = np.empty((self.chunk, d + 2))

    def add(self, batch: LogBatch, X: Features) -> None:
        """Add a batch whose observations have the features X."""
        self.add_rows(self.prepare(batch, Room()), X)

    def prepare(self, batch: LogBatch, room: Room) -> Prepared:
        """All that needs no features: ratios, weights and the blocks of the rows, in order.

        What is prepared stands in `room` until that is used again.
        """
        plan = self.plan
        p = Prepared.of(batch, len(batch), plan, room)
        before = self.place.copy()
        places = Places(
            p.gamma, room.array("discounted", (p.n,)),
            room.array("step", (p.n,), np.int64), room.array("block", (p.n,), np.int64),
        )  # fmt: skip
        rows = max(plan.rows, 1)
        scan.along(p.first, p.discount, p.numbers, rows, plan.blocks, self.place, places)
        begins, steps = np.flatnonzero(p.first), p.steps(places)
        cut = self._cuts(begins, p.discount, places.discounted, before)
        for lo, hi in _stretches(places.block):
            if p.first[lo]:
                self._end_episode()
            piece = self._piece(int(places.block[lo]), bool(p.first[lo]))
            self.ratios.take(lo, hi, steps, piece)
            here = slice(*np.searchsorted(begins, (lo, hi)))
            piece.counts += (hi - lo, len(begins[here]), (cut[here] > 0.0).sum(), cut[here].sum())
            p.stretches.append((lo, hi, piece))
        self._extremes(p)
        longest = float(places.step.max()) + 1.0
        seen = p.reward.min(), p.reward.max(), p.discount.max(), longest
        self.extent = widest([self.extent, np.array(seen)])
        return p

    def add_rows(self, p: Prepared, X: Features) -> None:
        """Add the sums over features of a prepared batch; active ones only where rows are kept."""
        for work in self.works(p, X):
            work()

    def works(self, p: Prepared, X: Features) -> list[Callable[[], None]]:
        """The same as works that share nothing: each may go from batch to batch by itself."""
        found: list[Callable[[], None]] = [partial(self._add_rows, p, X)]
        if self.shares and not isinstance(X, Active):
            rows = p.weighted(X)
            found += [partial(self._add_share, one, p, rows) for one in self.shares]
        return found

    def _add_rows(self, p: Prepared, X: Features) -> None:
        """Add the sums that are not those of a share."""
        if self.keeper is not None:
            self._keep(p, active_of(X))
        elif not isinstance(X, Active):
            self._add_sums(p, X)
        if self.by_action is not None and not isinstance(X, Active):
            rows_by_action = p.by_action(X)
            for lo, hi, piece in p.stretches:
                self.by_action.add(lo, hi, piece, rows_by_action)

    def _add_share(self, share: Share, p: Prepared, rows: Weighted) -> None:
        for lo, hi, piece in p.stretches:
            share.add(lo, hi, rows, self.plan, piece)

    def _keep(self, p: Prepared, active: Active) -> None:
        assert self.keeper is not None
        self.keeper.add(p.kept(self.plan, active))
        for lo, hi, piece in p.stretches:
            begins = np.flatnonzero(p.first[lo:hi]) + lo
            piece.x += active.added(np.arange(lo, hi), self.plan.features)
            piece.x_start += active.added(begins, self.plan.features)

    def _add_sums(self, p: Prepared, X: Floats) -> None:
        rows = p.weighted(X)
        ends = self.cuts.begin(p.first, p.discount)
        for lo, hi, piece in p.stretches:
            self.cuts.take(lo, hi, rows, ends, piece.cut)
            piece.x_start += X[np.flatnonzero(p.first[lo:hi]) + lo].sum(axis=0)
            if not self.shares:
                self._add(lo, hi, piece, p, rows)

    def _add(self, lo: int, hi: int, piece: BlockSums, p: Prepared, rows: Weighted) -> None:
        """Add the sums of a stretch, chunk by chunk, for any number of features and with traces."""
        X, d, columns = rows.X, self.plan.features, self.plan.columns
        L, R = self.c.shape
        piece.G += X[lo:hi].T @ X[lo:hi]
        piece.x += np.ones(hi - lo) @ X[lo:hi]
        for i in range(lo, hi, self.chunk):
            end = min(i + self.chunk, hi)
            scan.fill(i, end, rows, self.Y, self.U, self.V)
            self._traces(i, end, X, p)
            scan.decayed(i, end, rows, self.lams, self.c, self.U[columns * d :])
            sums = self.U[:, : end - i] @ self.V[: end - i]
            weighted = sums[columns * d :].reshape(L, R, d + 2).swapaxes(0, 1)
            piece.add(sums[: columns * d].reshape(columns, d, d + 2), weighted)

    def _traces(self, lo: int, hi: int, X: Floats, p: Prepared) -> None:
        """Put the trace in place of the weighted features where lam > 0."""
        d, T = self.plan.features, len(self.plan.targets)
        here = slice(lo, hi)
        for k, system in enumerate(self.plan.systems):
            if system.lam > 0.0:
                decay = p.rho.array[here, :T] * p.gamma[here, None] * system.lam
                for t in range(T):
                    j = k * T + t
                    part, z = self.U[j * d : (j + 1) * d], self.z[t, k]
                    scan.traces(X[here], decay[:, t], p.weight.array[here, j], z, part)

    def _piece(self, block: int, at_start: bool) -> BlockSums:
        if not self.pieces or self.pieces[-1].block != block:
            self.pieces.append(BlockSums(self.room, len(self.pieces), block, not at_start))
        return self.pieces[-1]

    def _end_episode(self) -> None:
        """Count the episode under way in the piece that it belongs to, before another begins."""
        if self.pieces:
            self.ratios.end_episode(self.pieces[-1])

    def _cuts(self, begins: Longs, discount: Floats, discounted: Floats, before: Floats) -> Floats:
        """For each first row of an episode: the discount left where the one before it was cut."""
        left = discounted[begins - 1] * discount[begins - 1]
        if len(begins) and begins[0] == 0:
            left[0] = before[1] if before[2] > 0.0 else 0.0
        return left

    def _extremes(self, p: Prepared) -> None:
        largest = np.max([piece.ratios[:, 3] for _, _, piece in p.stretches], axis=0)
        for t in np.flatnonzero(largest > self.largest).tolist():
            at = int(np.argmax(p.rho.array[:, t]))
            self.largest[t], self.largest_row[t] = p.rho.array[at, t], p.numbers[at]
        if p.behavior.min() <= 0.0:
            for t in range(len(p.target)):
                found = np.flatnonzero((p.behavior <= 0.0) & (p.target[t] > 0.0))
                self.violations[t] += len(found)
                room = np.flatnonzero(self.violating[t] < 0)[: len(found)]
                self.violating[t, room] = p.numbers[found[: len(room)]]

    def statistics(self) -> Statistics:
        """All sums; the episode under way ends here. The pass is over: nothing can be added."""
        self._end_episode()
        self.cuts.end()
        if self.by_action is not None:
            self.by_action.flush()
        last = self.pieces[-1]
        if self.place[2] > 0.0 and self.place[1] > 0.0:
            last.counts[2:] += (1.0, self.place[1])
        self.place[2] = 0.0
        used = {name: array[: len(self.pieces)] for name, array in self.room.items()}
        return Statistics(
            block=np.array([p.block for p in self.pieces]),
            continues=np.array([p.continues for p in self.pieces]),
            **used,
            histogram=self.ratios.histogram,
            largest_row=self.largest_row,
            violations=self.violations,
            violating=self.violating,
            extent=self.extent,
            table=empty_table() if self.keeper is None else self.keeper.table(),
        )


def few(plan: Plan) -> bool:
    """Whether `Products` is the faster way: few features, and half of its eight weights in use.

    It makes its traces from the weights, which are the ratios unless a system is emphatic.
    """
    traced = any(system.lam > 0.0 and system.emphatic for system in plan.systems)
    used = (plan.columns - 1) / up(plan.columns - 1, LANES)
    return plan.features <= FEW and used >= 0.5 and not traced


def _stretches(block: Longs) -> Iterator[tuple[int, int]]:
    """Rows lo..hi of the same block, one stretch after the other."""
    ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]
    lo = 0
    for hi in ends:
        yield lo, hi
        lo = hi
