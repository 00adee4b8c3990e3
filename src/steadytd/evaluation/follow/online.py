"""First-order learners, followed over the log's stream as lanes of the compiled engine.

A truncated episode bootstraps and then another one begins: `engine.facts` has the rule. Nothing
here depends on how the log is divided into batches and parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steadytd.base.arrays import Floats, Ints
from steadytd.engine.block import Transitions
from steadytd.engine.choose import make_block
from steadytd.engine.facts import fact_table
from steadytd.engine.learner import Learner
from steadytd.engine.rows import Rows, dense_rows
from steadytd.engine.schedule import factors
from steadytd.engine.step.vectors import LANES
from steadytd.evaluation.collect.accumulate import Prepared
from steadytd.evaluation.follow.lanes import LaneRows, Lanes, Looks, Shape
from steadytd.logs.log import LogBatch

SNAPSHOTS = 200  # of the weights over the last half of the rows, whose mean is reported


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
class Followed:
    """Where an online learner has ended for one target; `diverged` is a step, or None."""

    learner: Learner
    target: int
    weights: Floats
    diverged: int | None


def _outcome(learner: Learner, target: int, w: Floats, step: int, diverged: int | None) -> Followed:
    """A learner that has diverged has no weights: NaN.

    So has one whose weights are finite after the last `step`, but too large for a mean.
    """
    if diverged is None and np.isfinite(w).all():
        return Followed(learner, target, np.array(w), None)
    return Followed(
        learner, target, np.full_like(w, np.nan), step if diverged is None else diverged
    )


@dataclass
class Follower:
    """One learner for one target, its running state, and the mean of its snapshots."""

    learner: Learner
    target: int
    features: int
    averaging: bool
    total: Floats = field(init=False)
    snapshots: int = 0

    def __post_init__(self) -> None:
        self.block = make_block([self.learner], np.zeros(self.features))
        self.total = np.zeros(self.features)

    @property
    def weights(self) -> Floats:
        """What the learner reports: the mean of its snapshots, or its weights as they are."""
        if self.averaging and self.snapshots:
            return self.total / self.snapshots
        return np.array(self.block.shown[:, 0])

    def outcome(self) -> Followed:
        """Where the lane has ended."""
        return _outcome(self.learner, self.target, self.weights, self.block.step, self.diverged)

    @property
    def diverged(self) -> int | None:
        """The step after which the weights were no longer finite, or None."""
        step = int(self.block.first_divergence[0])
        return step if step >= 0 else None

    def advance(self, table: Table, facts: Floats, rows: int) -> None:
        """Go over a batch; `rows` is the number of rows of the whole log."""
        if self.diverged is not None:
            return
        if table.begins:
            self.block.cut()
        transitions = Transitions(table.events, table.row_next, facts)
        gap = max(1, rows // (2 * SNAPSHOTS))
        lo, n = 0, len(table.events)
        while lo < n:
            before = self.block.step
            hi = min(n, lo + gap - before % gap) if self.averaging else n
            factor = factors(before, hi - lo, *self.learner.schedule)
            self.block.advance(table.events[lo:hi], factor, transitions, table.rows)
            taken = self.block.step
            if self.averaging and taken % gap == 0 and 2 * taken > rows:
                with np.errstate(over="ignore"):  # see _outcome
                    self.total += self.block.w[:, 0]
                self.snapshots += 1
            lo = hi


@dataclass(frozen=True)
class Table:
    """A batch as the engine takes it: step i goes from row i to row_next[i]."""

    rows: Rows
    events: Ints
    row_next: Ints
    carried: Floats  # the discount that each row hands to the next: 0 before another episode
    begins: bool  # the first row begins an episode

    @staticmethod
    def of(batch: LogBatch, X: Floats) -> Table:
        """The table of a batch with features X."""
        return Table(
            rows=dense_rows(X),
            events=np.arange(len(batch), dtype=np.int32),
            row_next=batch.row_next.astype(np.int32),
            carried=np.where(np.append(batch.first[1:], False), 0.0, batch.discount),
            begins=bool(batch.first[0]),
        )

    def facts(self, batch: LogBatch, target: int, peaks: tuple[float, float]) -> Floats:
        """The facts of every row for one target."""
        assert batch.behavior_prob is not None
        mu, pi = batch.behavior_prob, batch.target_prob[target]
        return fact_table(
            reward=batch.reward, gamma_next=batch.discount, gamma_carried=self.carried,
            rho=np.divide(pi, mu, out=np.zeros(len(mu)), where=mu > 0.0), pi=pi, mu=mu,
            peak_min=peaks[0], peak_max=peaks[1],
        )  # fmt: skip


class SideBySide:
    """Lanes of many targets, with the means of their snapshots; see `lanes`."""

    def __init__(self, members: Sequence[Member], features: int) -> None:
        self.members = members
        lanes = [(m.learner, m.shape, m.column) for m in members if m.shape is not None]
        self.lanes = Lanes(lanes, features)
        self.snapshots = self.taken = 0

    def advance(self, p: Prepared, X: Floats, rows: int) -> None:
        """Go over a batch; `rows` is the number of rows of the whole log."""
        gap, begin = max(1, rows // (2 * SNAPSHOTS)), rows // 2 + 1
        batch = LaneRows(0, p.n, X, p.row_next, p.discount, p.reward, p.weight.array)
        self.lanes.advance(batch, Looks(gap, begin, self.taken))
        self.taken += p.n
        self.snapshots = max(self.taken // gap - (begin - 1) // gap, 0)

    def outcomes(self) -> list[Followed]:
        """Where every lane has ended."""
        self.lanes.stop_diverged(self.taken)
        found = []
        for j, one in enumerate(self.members):
            mean = one.averaging and self.snapshots
            w = self.lanes.total[:, j] / self.snapshots if mean else self.lanes.W[:, j]
            at = int(self.lanes.diverged[j])
            found.append(_outcome(one.learner, one.target, w, self.taken, at if at >= 0 else None))
        return found


def side_by_side(members: Sequence[Member], features: int) -> list[SideBySide]:
    """The members that can be lanes, in as few groups as possible: a group has eight."""
    lanes = [one for one in members if one.shape is not None]
    return [SideBySide(lanes[i : i + LANES], features) for i in range(0, len(lanes), LANES)]


def lanes_by_target(lanes: Sequence[Follower]) -> dict[int, list[Follower]]:
    """The lanes of each target, which share the facts of a batch."""
    result: dict[int, list[Follower]] = {}
    for lane in lanes:
        result.setdefault(lane.target, []).append(lane)
    return result
