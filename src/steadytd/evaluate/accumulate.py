"""Adds up the sums of a log, batch by batch: one matrix product per chunk for all targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from steadytd.core.arrays import Bools, Floats, Ints, Longs
from steadytd.evaluate import scan
from steadytd.evaluate.plan import Plan
from steadytd.evaluate.statistics import BINS, KEPT_ROWS, RATIO_SUMS, SUMMED, Statistics
from steadytd.streams.log import LogBatch

CHUNK_BYTES = 1_000_000  # of the weighted features of a chunk: they should stay in the cache
FEWEST_ROWS, MOST_ROWS = 512, 4096


class Piece:
    """The sums of one block in one part of the log: place `i` of the accumulator's arrays."""

    def __init__(self, room: dict[str, Floats], i: int, block: int, continues: bool) -> None:
        self.block, self.continues = block, continues
        self.counts, self.G, self.x, self.x_start = (
            room[name][i] for name in ("counts", "G", "x", "x_start")
        )
        self.systems, self.weighted, self.ratios = (
            room[name][i] for name in ("systems", "weighted", "ratios")
        )
        self.numerator, self.denominator, self.ended = (
            room[name][i] for name in ("numerator", "denominator", "ended")
        )


def room_for(plan: Plan) -> dict[str, Floats]:
    """Zeros for the sums of all blocks; the system gives memory only to those that are used."""
    n, T, K, d, H = (
        plan.blocks, len(plan.targets), len(plan.systems), plan.features, plan.horizon,
    )  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "counts": (4,),
        "G": (d, d),
        "x": (d,),
        "x_start": (d,),
        "systems": (T, K, d, d + 1),
        "weighted": (T, d + 1),
        "ratios": (T, len(RATIO_SUMS)),
        "numerator": (T, H),
        "denominator": (T, H),
        "ended": (T, H),
    }
    return {name: np.zeros((n, *shapes[name])) for name in SUMMED}


@dataclass
class Prepared:
    """The rows of a batch with what does not depend on features.

    `weight[i, t K + k]` is rho M of target t and system k, `trajectory[t, i]` the discounted
    product of ratios up to row i.
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
    weight: Floats
    trajectory: Floats
    rho: Floats
    stretches: list[tuple[int, int, Piece]] = field(default_factory=list)

    @staticmethod
    def of(batch: LogBatch, n: int, plan: Plan) -> Prepared:
        """Room for the first n rows of a batch."""
        assert batch.behavior_prob is not None
        T = len(plan.targets)
        return Prepared(
            n=n,
            row_next=np.ascontiguousarray(batch.row_next[:n]),
            reward=np.ascontiguousarray(batch.reward[:n], dtype=np.float64),
            discount=np.ascontiguousarray(batch.discount[:n], dtype=np.float64),
            behavior=np.ascontiguousarray(batch.behavior_prob[:n], dtype=np.float64),
            target=np.ascontiguousarray(batch.target_prob[:, :n], dtype=np.float64),
            first=np.ascontiguousarray(batch.first[:n]),
            numbers=np.ascontiguousarray(batch.rows[:n]),
            gamma=np.empty(n),
            weight=np.empty((n, plan.columns)),
            trajectory=np.empty((T, n)),
            rho=np.empty((T, n)),
        )


class Accumulator:
    """The sums of consecutive batches; all episodes of a part, from its first row on."""

    def __init__(self, plan: Plan) -> None:
        T, K, d = len(plan.targets), len(plan.systems), plan.features
        self.plan = plan
        self.room = room_for(plan)
        self.pieces: list[Piece] = []
        self.place = np.zeros(4)
        self.state = np.zeros((T, 3 + K))
        self.z = np.zeros((T, K, d))
        self.histogram = np.zeros((T, BINS), dtype=np.int64)
        self.largest = np.zeros(T)
        self.largest_row = np.full(T, -1, dtype=np.int64)
        self.violations = np.zeros(T, dtype=np.int64)
        self.violating = np.full((T, KEPT_ROWS), -1, dtype=np.int64)
        self.emphatic = np.array([s.emphatic for s in plan.systems])
        self.lam = np.array([s.lam for s in plan.systems])
        self.beta = np.array([-1.0 if s.beta is None else s.beta for s in plan.systems])
        columns = plan.columns * d + T
        self.chunk = int(np.clip(CHUNK_BYTES // (8 * columns), FEWEST_ROWS, MOST_ROWS))
        self.U = np.empty((self.chunk, columns))
        self.V = np.empty((self.chunk, d + 1))

    def add(self, batch: LogBatch, X: Floats, rows: int | None = None) -> None:
        """Add a batch whose observations have the features X (or its first `rows` rows only)."""
        self.add_rows(self.prepare(batch, rows), X)

    def prepare(self, batch: LogBatch, rows: int | None = None) -> Prepared:
        """All that needs no features: ratios, weights and the blocks of the rows, in order."""
        plan, T = self.plan, len(self.plan.targets)
        p = Prepared.of(batch, len(batch) if rows is None else min(rows, len(batch)), plan)
        before = self.place.copy()
        step, block = np.empty(p.n, dtype=np.int64), np.empty(p.n, dtype=np.int64)
        discounted = np.empty(p.n)
        scan.along(
            p.first, p.discount, p.numbers, max(plan.rows, 1), plan.blocks, self.place,
            p.gamma, discounted, step, block,
        )  # fmt: skip
        cut = self._cuts(p.first, p.discount, discounted, before)
        for lo, hi in _stretches(block):
            if p.first[lo]:
                self._end_episode()
            piece = self._piece(int(block[lo]), bool(p.first[lo]))
            for t in range(T):
                scan.ratios(
                    lo, hi, p.target[t], p.behavior, p.first, p.gamma, discounted, step, p.reward,
                    self.emphatic, self.lam, self.beta, t * len(plan.systems),
                    p.weight, p.trajectory[t], p.rho[t], self.state[t], piece.ratios[t],
                    piece.numerator[t], piece.denominator[t], piece.ended[t], self.histogram[t],
                )  # fmt: skip
            begins = np.flatnonzero(p.first[lo:hi]) + lo
            piece.counts += (hi - lo, len(begins), (cut[lo:hi] > 0.0).sum(), cut[lo:hi].sum())
            p.stretches.append((lo, hi, piece))
        self._extremes(p)
        return p

    def add_rows(self, p: Prepared, X: Floats) -> None:
        """Add the sums over features of a prepared batch."""
        for lo, hi, piece in p.stretches:
            piece.x_start += X[np.flatnonzero(p.first[lo:hi]) + lo].sum(axis=0)
            for i in range(lo, hi, self.chunk):
                end = min(i + self.chunk, hi)
                U, V = self.U[: end - i], self.V[: end - i]
                scan.fill(i, end, X, p.row_next, p.discount, p.reward, p.weight, p.trajectory, U, V)
                self._traces(i, end, X, p, U)
                self._add(piece, U, V, X[i:end])

    def _add(self, piece: Piece, U: Floats, V: Floats, X: Floats) -> None:
        sums = (V.T @ U).T
        T, K, d, _ = piece.systems.shape
        piece.systems += sums[: T * K * d].reshape(piece.systems.shape)
        piece.weighted += sums[T * K * d :]
        piece.G += X.T @ X
        piece.x += np.ones(len(X)) @ X

    def _traces(self, lo: int, hi: int, X: Floats, p: Prepared, U: Floats) -> None:
        """Put the trace in place of the weighted features where lam > 0."""
        d, K = self.plan.features, len(self.plan.systems)
        for t in range(len(self.plan.targets)):
            for k, system in enumerate(self.plan.systems):
                if system.lam > 0.0:
                    j = t * K + k
                    part, emphasis = U[:, j * d : (j + 1) * d], p.weight[:, j]
                    scan.traces(
                        lo, hi, X, p.gamma, p.rho[t], emphasis, system.lam, self.z[t, k], part
                    )

    def _piece(self, block: int, at_start: bool) -> Piece:
        if not self.pieces or self.pieces[-1].block != block:
            self.pieces.append(Piece(self.room, len(self.pieces), block, not at_start))
        return self.pieces[-1]

    def _end_episode(self) -> None:
        """Count the episode under way in the piece that it belongs to, before another begins."""
        if self.pieces:
            last = self.pieces[-1]
            for t in range(len(self.plan.targets)):
                scan.finish(self.state[t], last.ratios[t], last.ended[t])

    def _cuts(self, first: Bools, discount: Floats, discounted: Floats, before: Floats) -> Floats:
        """At the first row of an episode: the discount left where the one before it was cut."""
        left = np.append(before[1], discounted[:-1] * discount[:-1])
        begun = np.append(before[2] > 0.0, np.ones(len(first) - 1, dtype=bool))
        return np.where(first & begun, left, 0.0)

    def _extremes(self, p: Prepared) -> None:
        missing = p.behavior <= 0.0
        for t in range(len(p.rho)):
            at = int(np.argmax(p.rho[t]))
            if p.rho[t, at] > self.largest[t]:
                self.largest[t], self.largest_row[t] = p.rho[t, at], p.numbers[at]
            if missing.any():
                found = np.flatnonzero(missing & (p.target[t] > 0.0))
                self.violations[t] += len(found)
                room = np.flatnonzero(self.violating[t] < 0)[: len(found)]
                self.violating[t, room] = p.numbers[found[: len(room)]]

    def statistics(self) -> Statistics:
        """All sums; the episode under way ends here. The pass is over: nothing can be added."""
        self._end_episode()
        last = self.pieces[-1]
        if self.place[2] > 0.0 and self.place[1] > 0.0:
            last.counts[2:] += (1.0, self.place[1])
        self.place[2] = 0.0
        used = {name: array[: len(self.pieces)] for name, array in self.room.items()}
        return Statistics(
            block=np.array([p.block for p in self.pieces]),
            continues=np.array([p.continues for p in self.pieces]),
            **used,
            histogram=self.histogram,
            largest_row=self.largest_row,
            violations=self.violations,
            violating=self.violating,
        )


def _stretches(block: Longs) -> Iterator[tuple[int, int]]:
    """Rows lo..hi of the same block, one stretch after the other."""
    ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]
    lo = 0
    for hi in ends:
        yield lo, hi
        lo = hi
