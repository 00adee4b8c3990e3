"""Blocks whose traces cost O(active features) per step; see `loop.scaled` and docs/engine.md.

The path of a learner depends on the number of features alone, never on lanes or threads, so that
a run, a study, a log and an online learner give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Ints, Longs, on_cache_line, read_only
from steadytd.engine.block import NO_GOAL, Block, Goal, Transitions
from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Law
from steadytd.engine.rows import Rows
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel
from steadytd.engine.step.layouts.active import Active
from steadytd.engine.step.program import Program, carried_products, check, lower, only_active
from steadytd.engine.step.state import EPOCH, LISTED, FeaturePlaces, Outline, Scaled, Span, Undo

MANY = 128  # features from which on a trace is kept scaled


def is_scaled(learner: Settings, features: int) -> bool:
    """Whether the learner's traces are kept scaled on a problem with so many features."""
    many = learner.traced and not learner.averaged and features >= MANY
    return many and only_active(learner.law)


@cache
def active_program(law: Law) -> Program:
    """The program of a law at the cost of the active features."""
    return check(carried_products(lower(law)))


class ScaledBlock(Block):
    """As `Block`, with the state of `state.Scaled`: V and Z are not the vectors themselves."""

    saved: ClassVar[tuple[str, ...]] = ("V", "Z", *Scaled._fields[1:], "diverged")
    unused: ClassVar[float] = np.nan

    def _allocate(self, vectors: int, d: int, lanes: int, memory: int) -> None:
        law = self.law
        traces, names = list(law.traces), list(law.vectors)
        program = active_program(law)
        self._sizes = len(program.pairs), len(traces), len(program.products), memory
        self.own = _state(vectors, d, lanes, self._sizes)
        table, self.A, self.I, self.S, self.C, self.B, self.P = self.own[:7]
        self.M, self.carry, self.at, self.listed, self.counts = self.own[7:]
        self.V, self.Z = np.split(table.transpose(1, 0, 2), [vectors])
        places = {name: (1, i) for i, name in enumerate(names)}
        places |= {name: (0, i) for i, name in enumerate(traces)}
        self.plan = Outline(
            _table([(places[v][1], places[z][1]) for v, z in program.pairs], 2),
            _table([(*places[a], places[z][1]) for a, z in program.products], 3),
        )
        self._grows = any(v in law.writes[v] for v in names)
        self._log = self._make_log(0, 0)
        self._shown: tuple[Goal, Ints, Ints] | None = None
        self.diverged: Longs = np.full(lanes, -1, dtype=np.int64)
        self.step = 0
        self.kernel = kernel(law, True, False, type(self).source)

    @classmethod
    def program(cls, law: Law, traced: bool, averaged: bool) -> Program:
        """What one step of such a block does."""
        return active_program(law)

    @classmethod
    def source(cls, law: Law, traced: bool, averaged: bool) -> str:
        """The source of the loop that advances such a block."""
        return Active(active_program(law)).source("with scaled traces")

    def _make_log(self, capacity: int, rows: int) -> Undo:
        """Room to note so many features and rows of a feature table."""
        vectors, d, lanes = self.V.shape
        return Undo(
            on_cache_line((capacity, vectors + len(self.Z), lanes)),
            np.zeros(capacity, dtype=np.int32),
            np.zeros(capacity, dtype=np.int32),
            np.zeros(d, dtype=np.int64),
            np.zeros(rows, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
            _state(vectors, 0, lanes, self._sizes),
        )

    @cached_property
    def _arrays(self) -> list[NDArray[Any]]:
        """What the loop works on, in the order of its arguments."""
        layout, lanes = Active(active_program(self.law)), len(self.learners)
        parts: dict[str, Any] = self.own._asdict() | {
            "params": self.params,
            "scratch": on_cache_line((len(layout.scratch()), lanes)),
        }
        return [parts[part] if i < 0 else parts[part][i] for part, i in layout.places().values()]

    @property
    def w(self) -> Floats:
        """The present weights [d, lanes] (a copy); NaN in a lane that has diverged."""
        return self.vector(0)

    @property
    def shown(self) -> Floats:
        """The weights that count."""
        return self.w

    def vector(self, number: int) -> Floats:
        """One of the law's vectors [d, lanes], as it would be were it not kept scaled."""
        found = self.V[number] * self.B[number]
        some = self.listed[: self.counts[LISTED]]
        found[some] = self._entries(number, some)
        found[:, self.diverged >= 0] = np.nan
        return np.asarray(found)

    def entries_at(self, features: Ints) -> Floats:
        """The present weights of some features [features, lanes]: the others are not looked at."""
        found = self._entries(0, features)
        found[:, self.diverged >= 0] = np.nan
        return found

    def _entries(self, number: int, features: Ints) -> Floats:
        from steadytd.engine.step.history import vector_entries

        entries = np.empty((len(features), len(self.learners)))
        vector_entries(self.own, self.plan, number, read_only(features), entries)
        return entries

    def trace(self, number: int) -> Floats:
        """One of the law's traces [d, lanes]."""
        from steadytd.engine.step.history import trace_entries

        found = np.zeros_like(self.Z[number])
        trace_entries(self.own, number, found)
        return np.asarray(found)

    def advance(
        self,
        events: Ints,
        factor: Floats,
        transitions: Transitions,
        rows: Rows,
        points: Longs | None = None,
        goal: Goal = NO_GOAL,
    ) -> Floats:
        """As `Block.advance`."""
        stops, records = self._stops(len(events), points)
        self._make_room(rows, len(events))
        inputs: tuple[NDArray[Any], ...] = (events, factor, *transitions, *rows)
        steps = tuple(map(read_only, inputs))
        errors = np.empty((int(records.sum()), len(goal.bounds), len(self.learners)))
        begin = recorded = 0
        for stop, record in zip(stops.tolist(), records.tolist(), strict=True):
            self._advance_to(stop, begin, steps)
            begin = stop
            if record:
                self._measure(goal, errors[recorded])
                recorded += 1
        self.step += len(events)
        return errors[:, 0] if goal.ends is None else errors

    def _advance_to(self, stop: int, begin: int, steps: tuple[NDArray[Any], ...]) -> None:
        """Take the steps from `begin` up to `stop`, and find out after which a lane diverges.

        Where a lane has left the finite range in a stretch, this is repeated in pieces of FINE
        steps, and the piece in which the lane leaves one step at a time.
        """
        from steadytd.engine.step.driver import FINE
        from steadytd.engine.step.history import begin_stretch, go_back, leaves

        event, _, row, row_next, _, *table = steps
        own, log, level, until = self.own, self._log, 0, 0
        while begin < stop:
            end = min(begin + (stop, FINE, 1)[level], stop)
            if level < 2:
                span = Span(event, row, row_next, begin, end)
                begin_stretch(own, log, span, FeaturePlaces(*table[:4]))
            end = self.kernel(*self._arrays, self.carry, *steps, self.step, begin, end)
            exact = end == begin + 1
            mark = self.step + end if exact else -1
            if leaves(own, self.plan, log, self.diverged, mark) and not exact:
                go_back(own, log)
                level, until = level + 1, end
                continue
            self._settle(end)
            begin = end
            if level == 2 and end == until:
                level = 1

    def _settle(self, steps: int) -> None:
        """What is done between two stretches."""
        from steadytd.engine.step.history import rescale, settle

        if self._grows:
            rescale(self.own, self.plan)
        if (self.step + steps) % EPOCH == 0:
            settle(self.own, self.plan)

    def _measure(self, goal: Goal, out: Floats) -> None:
        """The errors at the present weights."""
        from steadytd.engine.step.kernels import Sought, measure_all

        if self._shown is None or self._shown[0] is not goal:
            found, inverse = np.unique(goal.rows.feature, return_inverse=True)
            self._shown = goal, found.astype(np.int32), inverse.astype(np.int32)
        _, some, places = self._shown
        rows = goal.rows._replace(feature=places)
        wanted: tuple[NDArray[Any], ...] = (*rows, goal.weight, goal.target)
        sought = Sought(*map(read_only, wanted))
        measure_all(
            read_only(self._entries(0, some)), sought, read_only(goal.bounds), self.diverged, out
        )

    def _make_room(self, rows: Rows, steps: int) -> None:
        """Let the log hold all features that a stretch can change."""
        most = 2 * min(steps, EPOCH) * int(rows.length.max(initial=0))
        capacity = min(self.V.shape[1], most)
        if len(self._log.feature) < capacity or len(self._log.row) < len(rows.first):
            self._log = self._make_log(capacity, len(rows.first))

    def _checks(self, n: int) -> Longs:
        """Where the history is settled: a matter of the step alone, not of the call."""
        return np.arange(EPOCH - self.step % EPOCH, n, EPOCH, dtype=np.int64)


def _state(vectors: int, d: int, lanes: int, sizes: tuple[int, int, int, int]) -> Scaled:
    """The state before the first step."""
    pairs, traces, products, memory = sizes
    rows = EPOCH + 2
    own = Scaled(
        T=on_cache_line((d, vectors + traces, lanes)),
        A=on_cache_line((pairs, rows, lanes)),
        I=on_cache_line((traces, rows, lanes)),
        S=on_cache_line((pairs, lanes)),
        C=on_cache_line((traces, lanes)),
        B=on_cache_line((vectors, lanes)),
        P=on_cache_line((products, lanes)),
        M=on_cache_line((memory, lanes)),
        carry=on_cache_line((len(CARRIED),)),
        at=np.full(d, -1, dtype=np.int32),
        listed=np.zeros(d, dtype=np.int32),
        counts=np.zeros(2 + traces, dtype=np.int64),
    )
    own.I[:, 0], own.C[:], own.B[:] = 1.0, 1.0, 1.0
    return own


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> Longs:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
