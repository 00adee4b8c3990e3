"""Blocks of lanes: learners of one law that see the same stream, advanced together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs, on_cache_line, read_only
from steadytd.engine.facts import CARRIED, GAMMA
from steadytd.engine.law import Law
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel, law_error
from steadytd.engine.step.layouts.lanes import loop_source
from steadytd.engine.step.program import Program, lane_params, step_program

SEGMENT = 1024  # steps between two checks for divergence, at least
CACHE_BYTES = 24 * 1024  # of a usual first-level cache of 32: what a block may take
BESIDE = 8  # numbers of a lane beside its vectors, about: hyper-parameters, inner products
FEWEST, MOST = 32, 256  # lanes of a block


class Transitions(NamedTuple):
    """What can happen in a step: event e goes from row[e] to row_next[e] with facts[e].

    `facts` is a table of `facts.fact_table`.
    """

    row: Ints
    row_next: Ints
    facts: Floats


class Goal(NamedTuple):
    """What an error is measured against: sqrt(sum_i weight_i (row_i . w - target_i)^2).

    Several errors at once: their rows one after the other, and in `ends` where each error's end.
    """

    rows: Rows
    weight: Floats
    target: Floats
    ends: Longs | None = None

    @property
    def bounds(self) -> Longs:
        """The end of each error's rows; without `ends` there is one error."""
        return np.array([len(self.weight)]) if self.ends is None else self.ends

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the compiled loops take: the fields of `kernels.GoalRows`, and the bounds."""
        return _all_read_only(*self.rows, self.weight, self.target, self.bounds)

    def measured(self, w: Floats, diverged: Longs) -> Floats:
        """The errors [measures, lanes] of weights [d, lanes]."""
        from steadytd.engine.step.kernels import GoalRows, measure_all

        *rows, bounds = self.arrays
        errors = np.empty((len(bounds), len(diverged)))
        measure_all(read_only(np.ascontiguousarray(w)), GoalRows(*rows), bounds, diverged, errors)
        return errors


NO_GOAL = Goal(sparse_rows(np.zeros((0, 0))), np.zeros(0), np.zeros(0))


class Block:
    """The state of some learners of one law: vectors, traces, memory and what a step carries over.

    All learners of a block share the law, the path (with or without trace vectors), the windows
    and the step-size schedule; see `group_key`. A trace or memory with a window of n steps stands
    n times in Z or M, one after the other: as it is, without its oldest step, and so on.
    """

    unused: ClassVar[float] = 0.0  # a weight of a diverged lane whose feature never occurred

    def __init__(self, learners: Sequence[Settings], w0: Floats) -> None:
        """Start every learner at weights `w0[d]`, other vectors at zero or where the law says."""
        self.learners = list(learners)
        self.law = law = learners[0].law
        averaged = learners[0].averaged
        d, lanes = len(w0), len(learners)
        self._allocate(len(law.vectors) + averaged, d, lanes, len(law.memory))
        if w0.any():  # else there is nothing to fill, and memory that is never used is never taken
            self.V[0] = w0[:, None]
            self.V[-1 if averaged else 0] = w0[:, None]
        for vector, param in law.starts.items():
            multiples = [float(x.values[param]) for x in learners]
            self.V[law.vectors.index(vector)] = np.outer(w0, multiples)
        params = [[x.values[p] for x in learners] for p in lane_params(law)]
        self.params = on_cache_line((len(params), lanes))
        self.params[:] = np.array(params, dtype=np.float64)

    def _allocate(self, vectors: int, d: int, lanes: int, memory: int) -> None:
        first = self.learners[0]
        long, kept = (
            max((first.window(name) for name in names), default=1)
            for names in (self.law.traces, self.law.memory)
        )
        lists = bool(self.law.each)  # of entries; see `Lanes.arrays`
        shapes = [
            (vectors, d, lanes),
            (len(self.law.traces) * first.traced + 3 * lists, long * d, lanes),
            (memory + lists, kept * lanes),
            (len(CARRIED),),  # gamma = 0: the first step begins an episode
        ]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        self.state = on_cache_line((int(ends[-1]),))
        self.backup = np.empty_like(self.state)
        parts = np.split(self.state, ends[:-1])
        self.V, self.Z, self.M, self.carry = (
            part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
        )
        self.diverged: Longs = np.full(lanes, -1, dtype=np.int64)
        self.step = 0
        self.kernel = kernel(self.law, first.traced, first.averaged, type(self).source)

    @classmethod
    def program(cls, law: Law, traced: bool, averaged: bool) -> Program:
        """What one step of such a block does."""
        return step_program(law, traced, averaged)

    @classmethod
    def source(cls, law: Law, traced: bool, averaged: bool) -> str:
        """The source of the loop that advances such a block."""
        return loop_source(law, traced, averaged)

    @property
    def saved(self) -> dict[str, NDArray[Any]]:
        """The whole state."""
        names = ("V", "Z", "M", "carry", "diverged")
        return {name: getattr(self, name) for name in names}

    @property
    def w(self) -> Floats:
        """The present weights [d, lanes]."""
        return np.asarray(self.V[0])

    @property
    def reported(self) -> Floats:
        """The weights that count [d, lanes]: the present ones, or their mean over all steps."""
        return np.asarray(self.V[-1]) if self.learners[0].averaged else self.w

    def memory(self, name: str) -> Floats:
        """A number that every lane keeps [lanes]."""
        return np.asarray(self.M[list(self.law.memory).index(name), : len(self.learners)])

    def entries_at(self, features: Ints) -> Floats:
        """The present weights of some features [features, lanes]."""
        return np.asarray(self.w[features])

    @property
    def first_divergence(self) -> Longs:
        """The step after which each lane left the finite range, or -1."""
        return self.diverged

    def cut(self) -> None:
        """The last step was the last of an episode that was cut off: the next one begins another.

        For cuts that are known only after the step; see `facts` for the rule.
        """
        self.carry[GAMMA] = 0.0

    def resume(self, step: int) -> None:
        """Go on from `step`, the state's arrays having been filled."""
        self.step = step

    def advance(
        self,
        events: Ints,
        factor: Floats,
        transitions: Transitions,
        rows: Rows,
        points: Longs | None = None,
        goal: Goal = NO_GOAL,
    ) -> Floats:
        """Take the steps `events`; return the error [points, lanes] at the given step numbers.

        `points` are absolute step numbers (errors are those after that many updates) from the
        present step to the last of these events, in ascending order. A goal with `ends` gives
        errors [points, measures, lanes].
        """
        at = np.zeros(0, dtype=np.int64) if points is None else points - self.step
        errors = np.empty((len(at), len(goal.bounds), len(self.learners)))
        try:
            steps = _all_read_only(events, factor, *transitions, *rows)
            self._take(steps, at, goal, errors)
        except MemoryError:
            raise
        except Exception as error:  # compiled code raises nothing: the law cannot be compiled
            if self.law.in_library:  # then it is our mistake
                raise
            raise law_error(self.law, error) from None
        self.step += len(events)
        return errors[:, 0] if goal.ends is None else errors

    def _take(
        self, steps: tuple[NDArray[Any], ...], points: Longs, goal: Goal, errors: Floats
    ) -> None:
        """Take the steps; the errors after `points` of them (ascending) go to `errors`."""
        n = len(steps[0])
        segment = max(SEGMENT, 32 * self.V.shape[1])
        checks = np.append(np.arange(segment, n, segment, dtype=np.int64), n)
        stops = np.unique(np.concatenate((points, checks)))
        records: Bools = np.zeros(len(stops), dtype=np.bool_)
        records[np.searchsorted(stops, points)] = True
        self.kernel(
            (
                self.state, self.backup, self.V, self.Z, self.M, self.carry, self.params,
                self.diverged,
            ),
            steps,
            goal.arrays,
            (*_all_read_only(stops, records), errors, self.step),
        )  # fmt: skip


def _all_read_only(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return tuple(map(read_only, arrays))


def group_key(learner: Settings) -> tuple[Any, ...]:
    """Learners with the same key may share a block."""
    return learner.law, learner.traced, learner.averaged, learner.windows, *learner.schedule


def lanes_per_block(learner: Settings, features: int) -> int:
    """How many lanes keep a block's vectors in the first-level cache, within sensible limits."""
    traces = sum(learner.window(name) for name in learner.law.traces) if learner.traced else 0
    vectors = len(learner.law.vectors) + traces
    return int(np.clip(CACHE_BYTES // (8 * (vectors * features + BESIDE)), FEWEST, MOST))
