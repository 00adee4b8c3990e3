"""The stream of a finite problem: which transition happens at which step.

A seed's stream depends on the problem's transition probabilities, its behaviour policy, its start
distribution and the seed, and on nothing else: not on learners, threads, or how many steps are
asked for at a time. `docs/streams.md` specifies it to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Ints
from steadytd.base.numbers import one_seed
from steadytd.engine.block import Transitions
from steadytd.engine.facts import fact_table
from steadytd.mdp.action_values import Task
from steadytd.mdp.cached import cached


class FiniteStream:
    """All possible transitions of a problem in the order (s, a, s'), and how to draw them."""

    def __init__(self, task: Task) -> None:
        problem = task.base
        m = problem.moments()
        self.s, self.a, self.s_next, p = m.transitions(np.ones(problem.n_states))
        self.probability = problem.mu[self.s, self.a] * p
        self.row_next: Ints = self.s_next.astype(np.int32)
        self.first: Ints = np.searchsorted(self.s, range(problem.n_states + 1)).astype(np.int32)
        self.many = np.diff(self.first).astype(np.float64)
        self.cumulative = np.empty(len(self.s))
        self.guide: Ints = np.empty(len(self.s), dtype=np.int32)
        for begin, end in zip(self.first[:-1], self.first[1:], strict=True):
            cumulative = np.cumsum(self.probability[begin:end])
            cumulative[-1] = 1.0
            buckets = np.arange(end - begin) / (end - begin) - 1e-12
            self.cumulative[begin:end] = cumulative
            self.guide[begin:end] = begin + np.searchsorted(cumulative, buckets, side="right")
        self.transitions = [self._transitions(task, k) for k in range(problem.n_policies)]
        self.active = [self._active(task, k) for k in range(problem.n_policies)]
        self.start = np.cumsum(problem.start)
        self.start[np.flatnonzero(problem.start)[-1] :] = 1.0

    @staticmethod
    @cached(1)
    def of(task: Task) -> FiniteStream:
        """The stream of a problem (cached)."""
        return FiniteStream(task)

    def _transitions(self, task: Task, policy: int) -> Transitions:
        m = task.base.moments(policy)
        s, a, s_next = self.s, self.a, self.s_next
        pi, mu = m.pi[s, a], m.mu[s, a]
        low, high = m.peaks
        facts = fact_table(
            reward=m.r[s, a, s_next], gamma_next=m.gamma[s, a, s_next], rho=pi / mu, pi=pi, mu=mu,
            interest=m.interest[s], peak_min=low, peak_max=high,
        )  # fmt: skip
        row, row_next = (rows.astype(np.int32) for rows in task.rows(s, a, s_next, policy))
        return Transitions(row, row_next, facts)

    def _active(self, task: Task, policy: int) -> Bools | None:
        """Which transitions begin in a state that is active for a policy; None if all do."""
        active = np.broadcast_to(task.base.active, (task.n_policies, task.base.n_states))[policy]
        return None if active[self.s].all() else active[self.s]

    def begin(self, seed: int) -> Position:
        """The stream of a seed before its first step."""
        from steadytd.engine.step.kernels import mix, uniform

        key = np.uint64(mix(np.uint64(one_seed(seed))))
        state = int(np.searchsorted(self.start, uniform(key, 0), side="right"))
        return Position(key, 0, state)

    def take(self, position: Position, count: int) -> tuple[Ints, Position]:
        """The transitions of the next `count` steps, and the position after them."""
        from steadytd.engine.step.kernels import Successors, walk

        events: Ints = np.empty(count, dtype=np.int32)
        arrays = self.first, self.many, self.guide, self.cumulative, self.row_next
        state = walk(position.key, position.step, position.state, Successors(*arrays), events)
        return events, Position(position.key, position.step + count, int(state))


class Position(NamedTuple):
    """A place in a seed's stream: the seed's key, the steps taken, the present state."""

    key: np.uint64
    step: int
    state: int
