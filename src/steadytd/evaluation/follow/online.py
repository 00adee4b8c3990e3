"""First-order learners, followed over the log's stream as lanes of the compiled engine.

A truncated episode bootstraps and then another one begins, so what a step carries to the next
(gamma, the previous ratio) has to be cleared there: a step from nowhere to nowhere, with features
0, ratio 0 and discount 0, is put in between for learners that carry anything. The few laws which
such a step would change are advanced episode by episode instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.engine.block import Transitions, make_block
from steadytd.engine.law import CARRIED, STEP_FACTS, arguments
from steadytd.engine.learner import Learner
from steadytd.engine.rows import Rows
from steadytd.engine.vectors import LANES
from steadytd.evaluation.collect.accumulate import Prepared
from steadytd.evaluation.collect.room import memory_of
from steadytd.evaluation.follow.lanes import LaneRows, Lanes, Shape
from steadytd.logs.log import LogBatch

SNAPSHOTS = 200  # of the weights over the last half of the rows, whose mean is reported
STILL = {"cop_td", "discounted_cop_td", "gem_etd", "rotd"}  # laws that an empty step would change


@dataclass(frozen=True)
class Member:
    """A learner for one target; `column` is where its weights of rows stand.

    `shape` says how it is a lane beside others; None: the general engine follows it.
    """

    learner: Learner
    target: int
    column: int
    averaging: bool
    shape: Shape | None = None


@dataclass(frozen=True)
class Outcome:
    """Where an online learner has ended for one target; `diverged` is a step, or None."""

    learner: Learner
    target: int
    weights: Floats
    diverged: int | None


def _outcome(learner: Learner, target: int, w: Floats, diverged: int | None) -> Outcome:
    """A learner that has diverged has no weights: NaN."""
    known = np.array(w) if diverged is None else np.full_like(w, np.nan)
    return Outcome(learner, target, known, diverged)


@dataclass
class Lane:
    """One learner for one target, its running state, and the mean of its snapshots."""

    learner: Learner
    target: int
    features: int
    averaging: bool
    total: Floats = field(init=False)
    snapshots: int = 0
    taken: int = 0

    def __post_init__(self) -> None:
        self.block = make_block([self.learner], np.zeros(self.features))
        self.total = np.zeros(self.features)

    @property
    def weights(self) -> Floats:
        """What the learner reports: the mean of its snapshots, or its weights as they are."""
        if self.averaging and self.snapshots:
            return self.total / self.snapshots
        return np.array(self.block.shown[:, 0])

    def outcome(self) -> Outcome:
        """Where the lane has ended."""
        return _outcome(self.learner, self.target, self.weights, self.diverged)

    @property
    def diverged(self) -> int | None:
        """The step after which the weights were no longer finite, or None."""
        step = int(self.block.first_divergence[0])
        return step if step >= 0 else None

    @property
    def carries(self) -> bool:
        """Whether one step hands something to the next."""
        law = self.learner.law
        asked = {name for function in law.functions for name in arguments(function)}
        return (
            self.learner.traced
            or bool(law.memory)
            or (bool(asked & set(CARRIED)) and not law.traces)
        )

    def advance(self, table: Table, facts: Floats, rows: int) -> None:
        """Go over a batch; `rows` is the number of rows of the whole log."""
        if self.diverged is not None:
            return
        parts = [table.events]
        if self.carries and len(table.restarts):
            if self.learner.name in STILL:
                parts = np.split(table.events, table.restarts)
            else:
                parts = [np.insert(table.events, table.restarts, table.nowhere)]
        for i, part in enumerate(parts):
            if i > 0 or table.restart_first:
                self.block.carry[:] = 0.0
            self._run(part, table, facts, rows)

    def _run(self, events: Ints, table: Table, facts: Floats, rows: int) -> None:
        transitions = Transitions(table.row, table.row_next, facts)
        gap = max(1, rows // (2 * SNAPSHOTS))
        lo = 0
        while lo < len(events):
            hi = len(events)
            if self.averaging:
                hi = min(hi, lo + gap - self.taken % gap)
            part = events[lo:hi]
            self.block.advance(part, self._factors(len(part)), transitions, table.rows)
            self.taken += hi - lo
            if self.averaging and self.taken % gap == 0 and 2 * self.taken > rows:
                self.total += self.block.w[:, 0]
                self.snapshots += 1
            lo = hi

    def _factors(self, count: int) -> Floats:
        """alpha_t / alpha; in one go, which may differ from a run's in the last bit."""
        power, delay = self.learner.schedule
        if power == 0.0:
            return np.ones(count)
        steps = self.taken + np.arange(count)
        return np.asarray((1.0 + steps / delay) ** -power)


@dataclass(frozen=True)
class Table:
    """A batch as the engine takes it, with one more row of zeros: nowhere."""

    rows: Rows
    row: Ints
    row_next: Ints
    events: Ints
    restarts: Longs  # rows that begin an episode after a truncated one, but for the first row
    restart_first: bool
    nowhere: int

    @staticmethod
    def of(batch: LogBatch, X: Floats, discount_before: float) -> Table:
        """The table of a batch; X is its features with a row of zeros at the end.

        `discount_before` is that of the last row before the batch.
        """
        n, d = len(batch), X.shape[1]
        m = len(X) - 1
        value = X.reshape(-1)
        first = np.arange(m + 1, dtype=np.int64) * d
        length = np.full(m + 1, d, dtype=np.int64)
        rows = Rows(first, length, first, np.arange(d, dtype=np.int32), value)
        index = np.arange(n, dtype=np.int32)
        before = np.append(discount_before, batch.discount[:-1])
        restarts = np.flatnonzero(batch.first & (before > 0.0))
        return Table(
            rows=rows,
            row=np.append(index, np.int32(m)),
            row_next=np.append(batch.row_next, np.int32(m)).astype(np.int32),
            events=index,
            restarts=restarts[restarts > 0],
            restart_first=bool(len(restarts) and restarts[0] == 0),
            nowhere=n,
        )

    def facts(self, batch: LogBatch, target: int, peaks: tuple[float, float]) -> Floats:
        """The facts of every event for one target, and those of the step to nowhere."""
        n = len(batch)
        assert batch.behavior_prob is not None
        mu, pi = batch.behavior_prob, batch.target_prob[target]
        known: Bools = mu > 0.0
        result = np.empty((n + 1, len(STEP_FACTS)))
        rho = np.divide(pi, mu, out=np.zeros(n), where=known)
        for i, column in enumerate((batch.reward, batch.discount, rho, pi, mu, 1.0, *peaks)):
            result[:n, i] = column
        result[n] = (0.0, 0.0, 0.0, 1.0, 1.0, 0.0, *peaks)
        return result


class SideBySide:
    """Lanes of one kind for many targets, with the means of their snapshots; see `lanes`."""

    def __init__(self, members: Sequence[Member], features: int) -> None:
        first = members[0].column - members[0].column % LANES
        self.members = {one.column - first: one for one in members}
        lanes = {j: (m.learner, m.shape) for j, m in self.members.items() if m.shape is not None}
        self.lanes = Lanes(lanes, first, features)
        self.total = np.zeros_like(self.lanes.W)
        self.diverged: dict[int, int] = {}
        self.snapshots = self.taken = 0

    def advance(self, p: Prepared, X: Floats, rows: int) -> None:
        """Go over a batch; `rows` is the number of rows of the whole log."""
        gap = max(1, rows // (2 * SNAPSHOTS))
        m = memory_of(p.weight), p.weight.array.shape[1], self.lanes.first
        lo = 0
        while lo < p.n:
            hi = min(p.n, lo + gap - self.taken % gap)
            self.lanes.advance(LaneRows(lo, hi, X, p.row_next, p.discount, p.reward, *m))
            self.taken += hi - lo
            self._check()
            if self.taken % gap == 0 and 2 * self.taken > rows:
                self.total += self.lanes.W
                self.snapshots += 1
            lo = hi

    def _check(self) -> None:
        finite = np.isfinite(self.lanes.W).all(axis=0)
        if finite.all():
            return
        for j in np.flatnonzero(~finite).tolist():
            self.diverged[j] = self.taken
            self.lanes.alpha[j] = 0.0
            self.lanes.W[:, j] = self.lanes.H[:, j] = 0.0

    def outcomes(self) -> list[Outcome]:
        """Where every lane has ended."""
        found = []
        for j, one in self.members.items():
            mean = one.averaging and self.snapshots
            w = self.total[:, j] / self.snapshots if mean else self.lanes.W[:, j]
            found.append(_outcome(one.learner, one.target, w, self.diverged.get(j)))
        return found


def side_by_side(members: Sequence[Member], features: int) -> list[SideBySide]:
    """The members that can be lanes, in as few groups as possible.

    A group's members are of one kind, and their columns stand in different places of one eight.
    """
    groups: dict[tuple[bool, int], list[list[Member]]] = {}
    for one in members:
        if one.shape is None:
            continue
        alike = groups.setdefault((one.shape.corrected, one.column // LANES), [])
        free = (g for g in alike if all(other.column != one.column for other in g))
        group = next(free, None)
        if group is None:
            alike.append([one])
        else:
            group.append(one)
    return [SideBySide(group, features) for alike in groups.values() for group in alike]


def lanes_by_target(lanes: Sequence[Lane]) -> dict[int, list[Lane]]:
    """The lanes of each target, which share the facts of a batch."""
    result: dict[int, list[Lane]] = {}
    for lane in lanes:
        result.setdefault(lane.target, []).append(lane)
    return result
