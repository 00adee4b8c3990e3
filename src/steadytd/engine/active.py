"""Learners whose step costs what the active features cost, traces included.

`ActiveLanes` is their state, for runs and for Hordes; `layouts.active` says what its arrays mean.
`ActiveBlock` is a block of a run. `make_block` chooses the kind of a block. The path of a learner
depends on the number of features alone, never on other lanes or on threads, so that a run, a study,
a log and an online learner give the same bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Ints, Longs, on_cache_line, read_only
from steadytd.engine.block import Block, Goal
from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Entries, Law
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel
from steadytd.engine.step.layouts.active import (
    COUNTS,
    LIMITS,
    NONE,
    ROWS,
    Active,
    active_source,
    asked_by_traces,
    traces_are_own,
)
from steadytd.engine.step.program import Program, active_program, at_active_features

if TYPE_CHECKING:
    from steadytd.engine.step.kernels import StoredVector  # late: this loads Numba

MANY = 128  # features from which on a run's traces are kept in this form


def is_active(learner: Settings, features: int) -> bool:
    """Whether a run keeps the learner's traces in this form on a problem with so many features."""
    costly = learner.traced or learner.law.each
    return bool(costly) and features >= MANY and fits(learner)


def fits(learner: Settings) -> bool:
    """Whether a step of the learner can be taken at the active features alone."""
    return at_active_features(learner.law) and not learner.averaged


def trace_keys(
    program: Program, learners: Sequence[Settings], facts: Sequence[tuple[int, ...]]
) -> list[tuple[Hashable, ...]]:
    """Learners with the same key have the same traces; `facts` tell which ones each sees."""
    asked, own = asked_by_traces(program), traces_are_own(program)
    params = [name for name in program.params if name in asked]
    return [
        (*seen, *(learner.values[name] for name in params), i if own else -1)
        for i, (learner, seen) in enumerate(zip(learners, facts, strict=True))
    ]


class ActiveLanes:
    """The state of some learners of one law and path: lanes in blocks, sorted by group.

    `order[lane]` is the number of the learner in that lane; the lanes that fill the last block
    repeat the last learner. Lanes with the same key have one trace: they are a group. A group that
    spans two blocks stands in both.
    """

    state: ClassVar[tuple[str, ...]] = (
        "V", "Z", "E", "row_of", "listed", "A", "I", "S", "C", "M", "counts",
    )  # fmt: skip

    def __init__(
        self,
        layout: Active,
        learners: Sequence[Settings],
        keys: Sequence[Hashable],
        lanes: int,
        w0: Floats,
        dtype: str = "float64",
    ) -> None:
        self.program, self.numbers, self.lanes = layout.program, layout.lasting_numbers(), lanes
        groups = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        group = np.array([groups[key] for key in keys])
        order = np.argsort(group, kind="stable")
        self.blocks = -(-len(order) // lanes)
        self.order = np.concatenate(
            [order, np.repeat(order[-1:], self.blocks * lanes - len(order))]
        )
        self.rank = np.argsort(order)  # the lane of each learner
        by_block = group[self.order].reshape(self.blocks, lanes)
        new = np.ones(by_block.shape, dtype=bool)
        new[:, 1:] = by_block[:, 1:] != by_block[:, :-1]
        self.begins = np.concatenate([[0], np.cumsum(new.sum(axis=1))]).astype(np.int64)
        self.group_of = np.cumsum(new, axis=1) - 1
        self.starts = np.full((self.blocks, lanes + 1), lanes, dtype=np.uintp)
        for starts, row in zip(self.starts, new, strict=True):
            starts[: row.sum()] = np.flatnonzero(row)
        self.limits = np.array(LIMITS[dtype])
        self._allocate([learners[i] for i in self.order], w0, dtype)

    def _allocate(self, learners: list[Settings], w0: Floats, dtype: str) -> None:
        program, blocks, lanes, d = self.program, self.blocks, self.lanes, len(w0)
        traces, pairs = len(program.traces), len(program.pairs)
        cells = int(self.begins[-1]) * d if traces else 0
        self.V: NDArray[Any] = on_cache_line((blocks, d, len(program.vectors), lanes), dtype)
        self.Z = on_cache_line((traces, cells))
        self.E = on_cache_line((blocks, len(Active.lists) * program.lists, d, lanes))
        self.row_of = np.full(cells, NONE, dtype=np.uint8)
        self.listed = np.zeros(cells, dtype=np.int32)
        self.A = np.zeros((blocks, pairs, ROWS + 1, lanes))  # nothing is in the last
        self.I = np.ones((blocks, traces, ROWS + 1, lanes))
        self.S = np.zeros((blocks, pairs, lanes))
        self.C = np.ones((blocks, traces, lanes))
        self.M = np.zeros((blocks, len(self.numbers), lanes))
        self.counts = np.zeros((blocks, len(COUNTS), lanes), dtype=np.int64)
        for row, name in enumerate(self.numbers):
            self.M[:, row] = name.startswith("B_")
        params = [[float(x.values[p]) for x in learners] for p in program.params]
        table = np.array(params).reshape(len(params), blocks, lanes)
        self.params = np.ascontiguousarray(table.transpose(1, 0, 2))
        if w0.any():  # else there is nothing to fill, and memory that is never used is never taken
            for lane, learner in enumerate(learners):
                b, j = divmod(lane, lanes)
                self.V[b, :, :, j] = learner.first_vectors(w0).T

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        named = {name: getattr(self, name) for name in self.state}
        return {name: array for name, array in named.items() if name != "E" or array.size}

    def arguments(self, places: Longs) -> tuple[NDArray[Any], ...]:
        """What the compiled loop works on; `places` [block, name, lane] are those of the layout."""
        fixed = self.params, places, self.starts, self.begins, self.limits
        return *(getattr(self, name) for name in self.state), *map(read_only, fixed)

    def vector(self, name: str = "w") -> StoredVector:
        """One of the law's vectors, to be read by `kernels.entries`."""
        from steadytd.engine.step.kernels import StoredVector

        program = self.program
        along = [
            (i, program.traces.index(z)) for i, (v, z) in enumerate(program.pairs) if v == name
        ]
        pairs = np.array(along, dtype=np.int64).reshape(len(along), 2)
        factor = np.ones((self.blocks, self.lanes))
        if f"B_{name}" in self.numbers:
            factor[:] = self.M[:, self.numbers.index(f"B_{name}")]
        own = self.V, self.Z, self.row_of, self.A, self.I, self.S
        rest = self.begins, self.group_of, pairs, factor
        return StoredVector(program.vectors.index(name), *map(read_only, (*own, *rest)))


class ActiveBlock(Block):
    """As `Block`, with the state of `ActiveLanes`."""

    unused: ClassVar[float] = np.nan

    def __init__(self, learners: Sequence[Settings], w0: Floats) -> None:
        self.learners, self.law = list(learners), learners[0].law
        program, lanes = active_program(self.law, True), len(learners)
        keys = trace_keys(program, learners, [()] * lanes)
        self.own = ActiveLanes(Active(program), learners, keys, lanes, w0)
        self.carry = on_cache_line((len(CARRIED),))
        self.diverged: Longs = np.full(lanes, -1, dtype=np.int64)  # by lane
        self.step = 0
        self.kernel = kernel(self.law, True, False, active_source)
        self._arguments = self.own.arguments(np.zeros((1, 0, lanes), dtype=np.int64))
        self._goal: tuple[Goal, Ints, Ints] | None = None

    @classmethod
    def program(cls, law: Law, traced: bool, averaged: bool) -> Program:
        """What one step of such a block does."""
        return active_program(law, True)

    @property
    def saved(self) -> dict[str, NDArray[Any]]:
        """The whole state."""
        return {**self.own.arrays, "carry": self.carry, "diverged": self.diverged}

    @property
    def first_divergence(self) -> Longs:
        """The step after which each learner left the finite range, or -1."""
        return np.asarray(self.diverged[self.own.rank])

    @property
    def w(self) -> Floats:
        """The present weights [d, lanes] (a copy); NaN in a lane that has diverged."""
        return self.vector("w")

    @property
    def reported(self) -> Floats:
        """The weights that count."""
        return self.w

    def vector(self, name: str) -> Floats:
        """One of the law's vectors [d, lanes]."""
        return self._entries(name, np.arange(self.own.V.shape[1], dtype=np.int32))

    def memory(self, name: str) -> Floats:
        """A number that every lane keeps [lanes]."""
        numbers = self.own.M[:, self.own.program.memory.index(name)]
        return np.asarray(numbers.reshape(-1)[self.own.rank])

    def entries_at(self, features: Ints) -> Floats:
        """The present weights of some features [features, lanes]: the others are not looked at."""
        return self._entries("w", features)

    def _entries(self, name: str, features: Ints) -> Floats:
        from steadytd.engine.step.kernels import entries

        found = np.empty((len(features), len(self.learners)))
        entries(self.own.vector(name), 0, 0, read_only(features), found)
        found[:, self.diverged >= 0] = np.nan
        return np.asarray(found[:, self.own.rank])

    def _take(
        self, steps: tuple[NDArray[Any], ...], points: Longs, goal: Goal, errors: Floats
    ) -> None:
        """Take the steps up to each point, and measure there."""
        begin, last = 0, len(steps[0])
        for i, end in enumerate([*points.tolist(), last]):
            if end > begin:
                self.kernel(
                    *self._arguments, self.diverged, self.carry, *steps, self.step, begin, end, 0, 1
                )
            begin = end
            if i < len(points):
                errors[i] = self._errors(goal)

    def _errors(self, goal: Goal) -> Floats:
        """The errors at the present weights; only those of the goal's features are read."""
        if self._goal is None or self._goal[0] is not goal:
            found, inverse = np.unique(goal.rows.feature, return_inverse=True)
            self._goal = goal, found.astype(np.int32), inverse.astype(np.int32)
        _, features, places = self._goal
        rows = goal.rows._replace(feature=places)
        return goal._replace(rows=rows).measured(self.entries_at(features), self.first_divergence)


def make_block(learners: Sequence[Settings], w0: Floats, features: int = 0) -> Block:
    """A block of the kind that the learners' law and the number of features ask for.

    `features` is that number where w0 leaves out those that never occur; see `leaves_unused`.
    """
    active = is_active(learners[0], features or len(w0))
    block: Block = (learners[0].law.block or (ActiveBlock if active else Block))(learners, w0)
    return block


def leaves_unused(learner: Settings) -> bool:
    """Whether a weight that starts at 0 and whose feature never occurs stays 0 and changes nothing.

    Then the learner may run without that feature, to the same bits. It may not where a vector is
    changed as a whole (mapped, or added to itself, or entry by entry where x is 0), or where a
    system is solved.
    """
    law = learner.law
    whole = any(part in law.vectors for parts in law.writes.values() for part in parts)
    whole |= any(
        one.over == "" and "w" in one.writes for one in law.each if isinstance(one, Entries)
    )
    return law.block is None and not law.maps and not whole


def programs(law: Law) -> dict[str, Program]:
    """What one step of a law does on each of its paths, by what the path is called."""
    kind = law.block or Block
    first = "with functions of entries" if law.each else "without trace vectors"
    found = {first: kind.program(law, False, False)}
    if law.traces:
        found = {"with trace vectors": kind.program(law, True, False)} | found
    if (law.traces or law.each) and at_active_features(law):
        found["with traces at the active features alone"] = ActiveBlock.program(law, True, False)
    return found
