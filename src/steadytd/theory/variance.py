"""Is the variance of a learner's traces finite? The mean update does not tell.

A memory such as ETD's F <- gamma rho F + i, and a trace z <- decay z + scale x, are multiplied at
every step by a number m that depends on the step before and on this one. So with pairs (s, a) of
a state and the action taken there, the second moments follow a linear recursion with the matrix

    K[(s, a), (s', a')] = p(s'|s, a) mu(a'|s') m^2,

restricted to what can be reached from where something is added. Its spectral radius is the factor
by which a step multiplies the second moment: from 1 on, the variance is infinite, and single runs
stray far from their mean however stable that is. The multiples are read off the law itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import arguments, call
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.problem import Problem
from steadytd.theory.reading import Steps, clocks_of, memory_parts, trace_parts

CYCLE = 10_000  # steps of a clock's cycle that are examined
LARGE = 600  # pairs beyond which only the largest eigenvalue is computed
ROUNDING = 1e-9  # a spectral radius this close to 1 counts as 1
ENDS = ("reward", "gamma_next", "gamma_carried")  # of the second step: no trace depends on them

Facts = dict[str, float]
Parts = Callable[
    [Facts], tuple[float, float]
]  # the multiple m of a memory or trace, and what is added


class Variance(NamedTuple):
    """By what factor a step multiplies the second moment of a learner's traces and memory."""

    growth: float  # 0 where nothing is carried from step to step

    @property
    def finite(self) -> bool:
        """Whether the second moment stays bounded."""
        return self.growth < 1.0 - ROUNDING


@cached(256)
def variance(problem: Problem, learner: Learner, policy: int = 0) -> Variance:
    """The largest growth of a learner's trace vectors and its memory on a problem's stream."""
    law = learner.law
    moving = [partial(memory_parts, learner, name) for name in law.memory if _grows(learner, name)]
    if learner.traced:
        moving += [partial(trace_parts, learner, z) for z in law.traces if z not in law.windows]
    if not moving:
        return Variance(0.0)
    steps = StepPairs.of(problem, policy)
    return Variance(max(0.0, *map(steps.growth, moving)))


def _grows(learner: Learner, name: str) -> bool:
    """Whether a memory can grow by chance.

    Not if the update writes it, if it has a window, if it is a clock, or if a clock restarts it:
    somewhere in the clock's cycle nothing of the old value is left.
    """
    law, clocks = learner.law, clocks_of(learner.law)
    function = law.memory[name]
    if function is None or name in law.windows or name in clocks:
        return False
    asked = set(arguments(function))
    if not asked & set(clocks):
        return True
    facts = dict.fromkeys(asked - set(learner.values) - set(law.memory), 1.0)
    facts |= dict.fromkeys(law.memory, 0.0)
    for _ in range(CYCLE):
        facts |= {c: call(f, {**learner.values, **facts}) for c, f in clocks.items()}
        if memory_parts(learner, name, facts)[0] == 0.0:
            return False
    return True


@cached(1024)
def noise(problem: Problem, learner: Learner, policy: int = 0) -> float | None:
    """How much a learner's updates scatter because of ratios: 1 on-policy without traces.

    An update multiplies TD errors by weights: by rho, with emphasis by F rho, with traces by
    products of ratios, one for each state that is remembered. This is the root of the mean sum of
    their squares, divided by the mean of the newest. With q = d(s) mu(a|s), F <- m F + c and
    z <- m z + c F x, in the steady state and apart by pairs (s, a):

        f = sum p (m f + c q),  F2 = sum p (m^2 F2 + 2 m c f + c^2 q),  V = sum p (m^2 V) + c^2 F2.

    Infinite where the variance is; None with both a memory and a decaying trace, and for a memory
    where states are not active, since what it was before an episode is not known there.
    """
    law, m = learner.law, problem.moments(policy)
    own = [name for name, function in law.memory.items() if function is not None]
    unknown = len(own) > 1 or (own and (learner.traced or not m.everywhere))
    if unknown or not law.traces or not law.windows.keys() <= law.traces.keys():
        return None
    if not variance(problem, learner, policy).finite:
        return float("inf")
    steps = StepPairs.of(problem, policy)
    often = (m.d[:, None] * m.mu).reshape(-1)
    first = second = often
    for name in own:
        multiple, added = steps.each(partial(memory_parts, learner, name))
        first = steps.steady(multiple, steps.gather(added * often[steps.before]))
        squares = 2.0 * multiple * added * first[steps.before] + added**2 * often[steps.before]
        second = steps.steady(multiple**2, steps.gather(squares))
    trace = next(iter(law.traces))
    decay, scale = steps.each(partial(trace_parts, learner, trace))
    # the newest weight depends on this step alone, so F of this step may stand beside it
    arriving = steps.gather(often[steps.before])
    among = often[steps.before] / arriving[steps.after]
    newest = steps.gather(scale**2 * among * second[steps.after])
    window = learner.window(trace) if trace in law.windows else 0
    total = steps.steady(decay**2, newest, window) if learner.traced else newest
    mean = float(steps.gather(scale * among * first[steps.after]).sum())
    return float(np.sqrt(total.sum() * m.share) / mean) if mean > 0.0 else None


class StepPairs(NamedTuple):
    """All pairs of transitions that can follow each other in the long run, with their facts."""

    before: Ints  # the pair (s, a) of the first
    after: Ints  # the pair (s', a') of the second
    probability: Floats  # p(s'|s, a) mu(a'|s')
    facts: list[Facts]  # the different ones
    kind: Ints  # which of them a pair of transitions has
    pairs: int

    @staticmethod
    @cached(8)
    def of(problem: Problem, policy: int) -> StepPairs:
        """All of a problem's, for one target policy."""
        m = problem.moments(policy)
        s, a, t, table = Steps.of(m, m.visited.astype(np.float64))
        number = s * problem.n_actions + a
        _, actions = np.unique(number, return_index=True)  # one transition for each pair (s, a)
        begin = np.searchsorted(s[actions], t)
        count = np.searchsorted(s[actions], t, side="right") - begin
        before = np.repeat(np.arange(len(t)), count)
        within = np.arange(len(before)) - np.repeat(np.cumsum(count) - count, count)
        after = actions[np.repeat(begin, count) + within]
        names = [*CARRIED, *(n for n in STEP_FACTS if n not in ENDS)]
        columns = [table[before, STEP_FACTS.index(then)] for then in CARRIED.values()]
        columns += [table[after, STEP_FACTS.index(name)] for name in names[len(CARRIED) :]]
        different, kind = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return StepPairs(
            before=number[before],
            after=number[after],
            probability=m.P[s, a, t][before] * m.mu[s, a][after],
            facts=[dict(zip(names, map(float, row), strict=True)) for row in different],
            kind=kind.reshape(-1).astype(np.int32),
            pairs=problem.n_states * problem.n_actions,
        )

    def each(self, parts: Parts) -> Floats:
        """What `parts(facts)` gives for every pair of transitions: one row for each part."""
        return np.array([parts(facts) for facts in self.facts], dtype=np.float64).T[:, self.kind]

    def gather(self, values: Floats) -> Floats:
        """The sum over the first transitions, for every pair (s', a') of the second."""
        found = np.zeros(self.pairs)
        np.add.at(found, self.after, self.probability * values)
        return found

    def steady(self, multiple: Floats, added: Floats, window: int = 0) -> Floats:
        """The solution of y = sum p m y + added; with a window, its first terms only."""
        K = np.zeros((self.pairs + 1, self.pairs + 1))
        np.add.at(K, (self.after, self.before), multiple * self.probability)
        if not window:
            return np.asarray(np.linalg.solve(np.eye(self.pairs) - K[:-1, :-1], added))
        K[:-1, -1], K[-1, -1] = added, 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.linalg.matrix_power(K, window)[:-1, -1])

    def growth(self, parts: Parts) -> float:
        """The spectral radius of K, where `parts(facts)` is the multiple m and what is added."""
        multiple, added = self.each(parts)
        K = np.zeros((self.pairs, self.pairs))
        np.add.at(K, (self.before, self.after), multiple**2 * self.probability)
        reached = _reached(K, np.unique(self.after[added != 0.0]))
        return _spectral_radius(K[np.ix_(reached, reached)])


def _spectral_radius(K: Floats) -> float:
    if not K.any():
        return 0.0
    if len(K) > LARGE:
        from scipy.sparse import csr_array
        from scipy.sparse.linalg import eigs

        return float(np.abs(eigs(csr_array(K), k=1, return_eigenvectors=False)[0]))
    return float(np.abs(np.linalg.eigvals(K)).max())


def _reached(K: Floats, sources: Ints) -> Bools:
    """Which pairs can hold something that was added at the sources."""
    from scipy.sparse.csgraph import breadth_first_order

    graph = np.zeros((len(K) + 1, len(K) + 1))
    graph[:-1, :-1] = K > 0.0
    graph[-1, sources] = 1.0
    order = breadth_first_order(graph, len(K), directed=True, return_predecessors=False)
    found = np.zeros(len(K) + 1, dtype=bool)
    found[order] = True
    return found[:-1]
