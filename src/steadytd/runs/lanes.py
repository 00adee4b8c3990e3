"""Learners as lanes of one seed's stream, advanced chunk by chunk.

Where a problem has states that are not active for a target policy, that policy's learners see only
the steps in its active states: the others would change nothing, and are skipped. A learner's step
size follows the stream's steps, and its divergence is reported in them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.engine.active import leaves_unused, make_block
from steadytd.engine.block import Block, Goal, Transitions, group_key, lanes_per_block
from steadytd.engine.learner import Learner
from steadytd.engine.rows import Rows, renumbered, sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.mdp.action_values import Task
from steadytd.runs.measures import goal
from steadytd.streams.finite import FiniteStream

MANY = 1024  # features from which on those that never occur are left out
CHUNK = 32768  # steps generated at a time: few enough calls that threads do not wait for each other
LONGEST = 1 << 17  # steps generated at a time for few learners: each call costs a tenth of a ms
UPDATES = 1 << 22  # learner-updates of a chunk that is longer than CHUNK


class Lane(NamedTuple):
    """One learner for one target policy, and its place in the results."""

    learner: Learner
    policy: int
    number: int


class Tables(NamedTuple):
    """What may differ from seed to seed in a family: features, goals of each policy, w0.

    `used` are the features that these tables are about; None if they are about all.
    """

    rows: Rows
    goals: list[Goal]
    w0: Floats
    used: Longs | None = None
    packed: Tables | None = None  # the same without the features that never occur

    def best_for(self, learner: Learner) -> Tables:
        """Those without unused features, if the learner gives the same weights with them."""
        return self.packed if self.packed is not None and leaves_unused(learner) else self


@dataclass(frozen=True)
class RunSetup:
    """A problem, or a family of which each seed draws its own instance, ready to run.

    The instances of a family differ in their features alone, so they share the stream.
    """

    problem: Task
    points: Longs
    measures: tuple[str, ...] = ("value",)
    instance: Callable[[int], Task] | None = None
    stream: FiniteStream = field(init=False)
    _fixed: list[Tables] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", FiniteStream(self.problem))

    @property
    def steps(self) -> int:
        """The number of steps."""
        return int(self.points[-1])

    def tables(self, seed: int) -> Tables:
        """The tables of the instance that a seed draws."""
        if self.instance is not None:
            return _tables(self.instance(seed), self.measures)
        if not self._fixed:
            self._fixed.append(_tables(self.problem, self.measures))
        return self._fixed[0]


def _tables(problem: Task, measures: tuple[str, ...]) -> Tables:
    goals = [goal(problem, k, measures) for k in range(problem.n_policies)]
    whole = Tables(sparse_rows(problem.table), goals, problem.w0)
    return whole._replace(packed=_packed(whole))


def _packed(whole: Tables) -> Tables | None:
    """The tables without the features that never occur; None where that saves little.

    A block looks at all its weights wherever an error is recorded, and features that lie close
    together are quicker to reach.
    """
    d = len(whole.w0)
    if d < MANY:
        return None
    occurs: Bools = np.zeros(d, dtype=np.bool_)
    for rows in (whole.rows, *(one.rows for one in whole.goals)):
        occurs[rows.feature] = True
    used = np.flatnonzero(occurs)
    if 2 * len(used) > d or whole.w0[~occurs].any():
        return None
    goals = [one._replace(rows=renumbered(one.rows, used)) for one in whole.goals]
    return Tables(renumbered(whole.rows, used), goals, whole.w0[used], used)


def lanes_of(learners: Sequence[Learner], policies: int) -> list[Lane]:
    """Every learner for every target policy, a learner's policies side by side."""
    return [
        Lane(learner, policy, i * policies + policy)
        for i, learner in enumerate(learners)
        for policy in range(policies)
    ]


def grouped(lanes: Sequence[Lane], features: int) -> list[list[Lane]]:
    """The lanes in groups that advance together: one law, path, schedule and policy."""
    groups: dict[object, list[Lane]] = {}
    learner, key = None, None
    for lane in lanes:
        if lane.learner is not learner:  # a learner's policies stand side by side
            learner, key = lane.learner, group_key(lane.learner)
        groups.setdefault((key, lane.policy), []).append(lane)
    result = []
    for group in groups.values():
        size = lanes_per_block(group[0].learner, features)
        result += [group[i : i + size] for i in range(0, len(group), size)]
    return result


@dataclass
class SeedResult:
    """Some lanes of one seed: errors [points, measures, lanes], weights [lanes, d], divergence.

    `numbers` are the places of the lanes in the results.
    """

    seed: int
    numbers: list[int]
    errors: Floats
    weights: Floats
    diverged: Longs


@dataclass
class Group:
    """A block of lanes on its way through the stream."""

    lanes: list[Lane]
    tables: Tables
    features: int
    block: Block = field(init=False)
    diverged: Longs = field(init=False)

    def __post_init__(self) -> None:
        learners = [lane.learner for lane in self.lanes]
        self.block = make_block(learners, self.tables.w0, self.features)
        self.diverged = np.full(len(self.lanes), -1, dtype=np.int64)

    @property
    def weights(self) -> Floats:
        """The weights [lanes, d], those of features that never occur included."""
        weights, used = self.block.reported.T, self.tables.used
        if used is None:
            return np.asarray(weights)
        gone = self.block.first_divergence >= 0
        found = np.zeros((len(self.lanes), self.features))
        found[gone] = self.block.unused
        found[:, used] = weights
        return found

    def advance(
        self,
        events: Ints,
        positions: Longs | None,
        before: int,
        factor: Floats,
        transitions: Transitions,
        points: Longs,
    ) -> Floats:
        """Take a chunk that begins at step `before`; errors [points, measures, lanes].

        `positions` are the places in the chunk of the events that the learners see; None: all.
        """
        tables = self.tables
        own, goal = self.block.step, tables.goals[self.lanes[0].policy]
        if positions is None:
            errors = self.block.advance(events, factor, transitions, tables.rows, points, goal)
            self.diverged[:] = self.block.first_divergence
            return errors
        local, where = np.unique(
            own + np.searchsorted(positions, points - before), return_inverse=True
        )
        errors = self.block.advance(
            events, factor[positions], transitions, tables.rows, local, goal
        )
        gone = self.block.first_divergence
        new = np.flatnonzero((gone >= 0) & (self.diverged < 0))
        self.diverged[new] = before + positions[gone[new] - own - 1] + 1
        return np.asarray(errors[where])


def run_seed(
    setup: RunSetup,
    seed: int,
    groups: list[list[Lane]],
    stop: threading.Event,
    report: Callable[[int], None],
) -> SeedResult:
    """Some groups of lanes on one seed's stream. `stop` ends it at the next chunk."""
    tables = setup.tables(seed)
    running = [Group(g, tables.best_for(g[0].learner), len(tables.w0)) for g in groups]
    numbers = [lane.number for some in groups for lane in some]
    errors = np.empty((len(setup.points), len(setup.measures), len(numbers)))
    chunk = min(LONGEST, max(CHUNK, UPDATES // len(numbers)))
    position = setup.stream.begin(seed)
    while position.step < setup.steps and not stop.is_set():
        before = position.step
        events, position = setup.stream.take(position, min(chunk, setup.steps - before))
        first = 0 if before == 0 else int(np.searchsorted(setup.points, before, side="right"))
        last = int(np.searchsorted(setup.points, position.step, side="right"))
        visible = cache(partial(_visible, setup.stream, events=events))
        column = 0
        for group in running:
            learner, policy = group.lanes[0].learner, group.lanes[0].policy
            factor = step_factors(before, len(events), *learner.schedule)
            errors[first:last, :, column : column + len(group.lanes)] = group.advance(
                *visible(policy), before, factor, setup.stream.transitions[policy],
                setup.points[first:last],
            )  # fmt: skip
            column += len(group.lanes)
        report(len(events) * len(numbers))
    weights = np.concatenate([group.weights for group in running])
    diverged = np.concatenate([group.diverged for group in running])
    return SeedResult(seed, numbers, errors, weights, diverged)


def _visible(stream: FiniteStream, policy: int, events: Ints) -> tuple[Ints, Longs | None]:
    """What one policy's learners see of a chunk: the events, and their places in it (None: all)."""
    active = stream.active[policy]
    if active is None:
        return events, None
    positions = np.flatnonzero(active[events])
    return events[positions], positions
