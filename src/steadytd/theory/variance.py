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

from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Function, arguments
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream
from steadytd.theory.exact import clocks_of

CYCLE = 10_000  # steps of a clock's cycle that are looked at
LARGE = 600  # pairs beyond which only the largest eigenvalue is computed
ROUNDING = 1e-9  # a spectral radius this close to 1 counts as 1
ENDS = ("reward", "gamma_next", "gamma_carried")  # of the second step: no trace asks for them


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
    traces = [f for z, f in law.traces.items() if learner.traced and z not in law.windows]
    own = {name: f for name, f in law.memory.items() if f is not None and _grows(learner, name)}
    growths = [0.0]
    if traces or own:
        steps = StepPairs.of(problem, policy)
        growths += [steps.growth(_memory_parts(f, name, learner)) for name, f in own.items()]
        growths += [steps.growth(_trace_parts(f, learner)) for f in traces]
    return Variance(max(growths))


def _grows(learner: Learner, name: str) -> bool:
    """Whether a memory can grow by chance.

    Not if it has a window, if it is a clock, or if a clock restarts it: somewhere in the clock's
    cycle nothing of the old value is left.
    """
    law, clocks = learner.law, clocks_of(learner.law)
    if name in law.windows or name in clocks:
        return False
    function = law.memory[name]
    assert function is not None
    asked = set(arguments(function))
    if not asked & set(clocks):
        return True
    facts = dict.fromkeys(asked - set(learner.values) - set(law.memory), 1.0)
    memory = dict.fromkeys(law.memory, 0.0)
    for _ in range(CYCLE):
        memory |= {c: _call(f, facts, learner, memory) for c, f in clocks.items()}
        zero, one = (_call(function, facts, learner, {**memory, name: F}) for F in (0.0, 1.0))
        if zero == one:
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
    own = [(name, function) for name, function in law.memory.items() if function is not None]
    unknown = len(own) > 1 or (own and (learner.traced or not m.everywhere)) or law.windows
    if unknown or not law.traces:
        return None
    if not variance(problem, learner, policy).finite:
        return float("inf")
    steps = StepPairs.of(problem, policy)
    often = (m.d[:, None] * m.mu).reshape(-1)
    first = second = often
    for name, function in own:
        found = steps.each(_memory_parts(function, name, learner))
        first = steps.steady(found[0], steps.gather(found[1] * often[steps.before]))
        added = 2.0 * found[0] * found[1] * first[steps.before]
        added += found[1] ** 2 * often[steps.before]
        second = steps.steady(found[0] ** 2, steps.gather(added))
    trace = next(iter(law.traces.values()))
    decay, scale = steps.each(_trace_parts(trace, learner))
    # the newest weight depends on this step alone, so F of this step may stand beside it
    arriving = steps.gather(often[steps.before])
    among = often[steps.before] / arriving[steps.after]
    newest = steps.gather(scale**2 * among * second[steps.after])
    squares = steps.steady(decay**2, newest) if learner.traced else newest
    mean = float(steps.gather(scale * among * first[steps.after]).sum())
    return float(np.sqrt(squares.sum() * m.share) / mean) if mean > 0.0 else None


class StepPairs(NamedTuple):
    """All pairs of transitions that can follow each other in the long run, with their facts."""

    before: Ints  # the pair (s, a) of the first
    after: Ints  # the pair (s', a') of the second
    probability: Floats  # p(s'|s, a) mu(a'|s')
    facts: list[dict[str, float]]  # the different ones
    kind: Ints  # which of them a pair of transitions has
    pairs: int

    @staticmethod
    @cached(8)
    def of(problem: Problem, policy: int) -> StepPairs:
        """All of a problem's, for one target policy."""
        stream, m = FiniteStream(problem), problem.moments(policy)
        table = stream.transitions[policy].facts
        lasting = m.visited[stream.s]
        _, first = np.unique(stream.s * problem.n_actions + stream.a, return_index=True)
        actions = first[lasting[first]]  # one transition for each pair (s, a)
        ends = np.flatnonzero(lasting)
        begin = np.searchsorted(stream.s[actions], stream.s_next[ends])
        count = np.searchsorted(stream.s[actions], stream.s_next[ends], side="right") - begin
        before = np.repeat(ends, count)
        within = np.arange(len(before)) - np.repeat(np.cumsum(count) - count, count)
        after = actions[np.repeat(begin, count) + within]
        names = [*CARRIED, *(n for n in STEP_FACTS if n not in ENDS)]
        columns = [table[before, STEP_FACTS.index(then)] for then in CARRIED.values()]
        columns += [table[after, STEP_FACTS.index(name)] for name in names[len(CARRIED) :]]
        different, kind = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        number = stream.s * problem.n_actions + stream.a
        return StepPairs(
            before=number[before],
            after=number[after],
            probability=problem.P[stream.s, stream.a, stream.s_next][before]
            * problem.mu[stream.s, stream.a][after],
            facts=[dict(zip(names, map(float, row), strict=True)) for row in different],
            kind=kind.reshape(-1).astype(np.int32),
            pairs=problem.n_states * problem.n_actions,
        )

    def each(self, parts: Function) -> Floats:
        """What `parts(facts)` gives for every pair of transitions: one row for each part."""
        return np.array([parts(facts) for facts in self.facts], dtype=np.float64).T[:, self.kind]

    def gather(self, values: Floats) -> Floats:
        """The sum over the first transitions, for every pair (s', a') of the second."""
        found = np.zeros(self.pairs)
        np.add.at(found, self.after, self.probability * values)
        return found

    def steady(self, multiple: Floats, added: Floats) -> Floats:
        """The solution of y = sum p m y + added."""
        K = np.eye(self.pairs)
        np.add.at(K, (self.after, self.before), -multiple * self.probability)
        return np.asarray(np.linalg.solve(K, added))

    def growth(self, parts: Function) -> float:
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


def _memory_parts(function: Function, name: str, learner: Learner) -> Function:
    """m and c of F <- m F + c, with the learner's other memory at 1."""
    others = dict.fromkeys(learner.law.memory, 1.0)

    def parts(facts: dict[str, float]) -> tuple[float, float]:
        zero, one = (_call(function, facts, learner, {**others, name: F}) for F in (0.0, 1.0))
        return one - zero, zero

    return parts


def _trace_parts(function: Function, learner: Learner) -> Function:
    """decay and scale of z <- decay z + scale x, with the learner's memory at 1."""
    memory = dict.fromkeys(learner.law.memory, 1.0)
    return lambda facts: _call(function, facts, learner, memory)


def _call(
    function: Function, facts: dict[str, float], learner: Learner, memory: dict[str, float]
) -> Any:
    numbers = {k: v if not isinstance(v, str) else np.nan for k, v in learner.values.items()}
    products = dict.fromkeys(learner.law.products, 0.0)  # of a trace: of second order in alpha
    scope = {**products, **numbers, **facts, **memory}
    return function(*(scope[name] for name in arguments(function)))
