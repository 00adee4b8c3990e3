"""Online learners on the log's stream: lanes of the engine's blocks, as in a run.

Learners of one law for one target share the facts of every row, so they stand in one block. Nothing
here depends on how the log is divided into batches and parts. A truncated episode bootstraps, and
then another one begins: its last row carries a discount of 0 on (`engine.facts` has the rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from steadytd.base.arrays import Floats, read_only
from steadytd.engine.block import Transitions
from steadytd.engine.facts import fact_table
from steadytd.engine.learner import Learner, LiveBlock
from steadytd.engine.rows import Rows, dense_rows, sparse_rows
from steadytd.engine.schedule import factors
from steadytd.evaluation.rows import RowTable
from steadytd.runs.lanes import Lane, grouped

SNAPSHOTS = 200  # of the weights over the last half of the rows, whose mean is reported

Peaks = tuple[float, float]  # the least and the largest max(pi, mu)


@dataclass(frozen=True)
class Followed:
    """Where an online learner has ended for one target; `diverged` is a step, or None."""

    learner: Learner
    target: int
    weights: Floats
    diverged: int | None


def engine_rows(rows: RowTable) -> Rows:
    """The features of a table as the engine takes them."""
    made = (sparse_rows if issparse(rows.X) else dense_rows)(rows.X)
    return Rows(*(read_only(one) for one in made))


def transitions(rows: RowTable, target: int, peaks: Peaks) -> Transitions:
    """What happens in every row for one target: step i goes from row i to row_next[i]."""
    facts = fact_table(
        reward=rows.reward, gamma_next=rows.discount,
        gamma_carried=np.where(rows.last, 0.0, rows.discount), rho=rows.rho[target],
        pi=rows.target_prob[target], mu=rows.behavior_prob,
        peak_min=peaks[0], peak_max=peaks[1],
    )  # fmt: skip
    events, row_next = np.arange(len(rows), dtype=np.int32), rows.row_next.astype(np.int32)
    return Transitions(*(read_only(one) for one in (events, row_next, facts)))


class TargetBlock:
    """Learners of one law for one target: a block, and the sums of its snapshots."""

    def __init__(self, lanes: Sequence[Lane], averaging: list[bool], d: int, rows: int) -> None:
        self.lanes, self.averaging, self.rows = lanes, averaging, rows
        self.gap = max(1, rows // (2 * SNAPSHOTS))  # rows of the log between two snapshots
        self.live = LiveBlock([lane.learner for lane in lanes], np.zeros(d))
        self.total = np.zeros((d, len(lanes)))

    def advance(self, features: Rows, transitions: Transitions) -> None:
        """Go over a table."""
        block, events = self.live.block, transitions.row
        if (block.first_divergence >= 0).all():
            return
        before, after = block.step, block.step + len(events)
        factor = read_only(factors(before, len(events), *block.learners[0].schedule))
        snapshots = self._snapshots(before, after)
        for end in dict.fromkeys([*snapshots, after]):
            part = slice(block.step - before, end - before)
            block.advance(events[part], factor[part], transitions, features)
            if end in snapshots:
                with np.errstate(over="ignore", invalid="ignore"):  # see `outcomes`
                    self.total += block.w

    def _snapshots(self, before: int, after: int) -> range:
        """The steps up to `after` at which snapshots are taken, all in the last half."""
        first = max(before, self.rows // 2) // self.gap + 1
        return range(first * self.gap, (after if any(self.averaging) else 0) + 1, self.gap)

    def outcomes(self) -> Iterator[tuple[int, Followed]]:
        """Where the lanes have ended, by their numbers.

        A learner that has diverged has no weights: NaN. So has one whose weights are finite after
        the last step, but too large for a mean.
        """
        block = self.live.block
        shown, taken = block.reported, len(self._snapshots(0, block.step))
        for j, (learner, target, number) in enumerate(self.lanes):
            mean = taken and self.averaging[j]
            w = np.array(self.total[:, j] / taken if mean else shown[:, j])
            diverged = int(block.first_divergence[j])
            if diverged < 0 and np.isfinite(w).all():
                yield number, Followed(learner, target, w, None)
            else:
                step = diverged if diverged >= 0 else block.step
                yield number, Followed(learner, target, np.full_like(w, np.nan), step)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name: the block's state, its step, and the sums of snapshots."""
        return {**self.live.state, "step": np.array(self.live.block.step), "total": self.total}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over a saved state."""
        self.live.restore(state, int(state["step"]), self.lanes[0].learner.name)
        self.total[...] = state["total"]


class Followers:
    """All online learners of an evaluation, on their way through the log.

    `learners` are those of each target, `averaging` says which report the mean of snapshots, and
    `peaks` are the extremes of max(pi, mu) for each target.
    """

    def __init__(
        self,
        learners: Sequence[Sequence[Learner]],
        averaging: Sequence[bool],
        peaks: Sequence[Peaks],
        features: int,
        rows: int,
    ) -> None:
        self.peaks, n = peaks, len(averaging)
        lanes = [
            Lane(learner, target, target * n + i)
            for target, some in enumerate(learners)
            for i, learner in enumerate(some)
        ]
        self.by_target: dict[int, list[TargetBlock]] = {}
        for some in grouped(lanes, features):
            means = [averaging[lane.number % n] for lane in some]
            block = TargetBlock(some, means, features, rows)
            self.by_target.setdefault(some[0].policy, []).append(block)

    @property
    def blocks(self) -> Iterator[TargetBlock]:
        """Those of the first target, then of the next."""
        return chain(*self.by_target.values())

    def works(self, rows: RowTable, shares: int = 1) -> list[Callable[[], None]]:
        """What is to be done with a table, as works that share nothing: some targets each."""
        if not self.by_target:
            return []
        targets, features = list(self.by_target), engine_rows(rows)
        some = [targets[i::shares] for i in range(min(shares, len(targets)))]
        return [partial(self._advance, rows, features, one) for one in some]

    def _advance(self, rows: RowTable, features: Rows, targets: Sequence[int]) -> None:
        for target in targets:
            steps = transitions(rows, target, self.peaks[target])
            for block in self.by_target[target]:
                block.advance(features, steps)

    def outcomes(self) -> list[Followed]:
        """Where they have ended: those of the first target, in order, then of the next."""
        found = {number: one for block in self.blocks for number, one in block.outcomes()}
        return [found[number] for number in sorted(found)]

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        states = enumerate(block.state for block in self.blocks)
        return {f"{i}.{name}": array for i, own in states for name, array in own.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a saved state."""
        for i, block in enumerate(self.blocks):
            block.restore({name: state[f"{i}.{name}"] for name in block.state})
