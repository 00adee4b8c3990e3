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
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.numbers import require_room
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Function, arguments, call
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.chains import spectral_radius
from steadytd.mdp.problem import Problem
from steadytd.theory.reading import Steps, clocks_of, memory_parts, trace_parts

CYCLE = 10_000  # steps of a clock's cycle that are examined
LARGE = 600  # pairs beyond which eigenvalues and solutions are found by iteration
ROUNDING = 1e-9  # a spectral radius this close to 1 counts as 1
SOLVED, TRIES = 1e-13, 2000  # relative residual, and iterations, of such a solution

Facts = dict[str, float]


class Moving(NamedTuple):
    """A memory or trace: `parts(facts)` is its multiple m and what is added, `asked` the facts."""

    parts: Callable[[Facts], tuple[float, float]]
    asked: tuple[str, ...]

    @staticmethod
    def of(read: Callable[..., tuple[float, float]], learner: Learner, name: str) -> Moving:
        """One of a learner's."""
        function: Function | None = {**learner.law.memory, **learner.law.traces}[name]
        assert function is not None
        return Moving(partial(read, learner, name), arguments(function))


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
    moving = [Moving.of(memory_parts, learner, F) for F in law.memory if _grows(learner, F)]
    if learner.traced:
        moving += [Moving.of(trace_parts, learner, z) for z in law.traces if z not in law.windows]
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
        multiple, added = steps.each(Moving.of(memory_parts, learner, name))
        mean = steps.steady(multiple, steps.gather(added * often[steps.before]))
        if mean is None:
            return None
        squares = 2.0 * multiple * added * mean[steps.before] + added**2 * often[steps.before]
        square = steps.steady(multiple**2, steps.gather(squares))
        if square is None:
            return None
        first, second = mean, square
    trace = next(iter(law.traces))
    decay, scale = steps.each(Moving.of(trace_parts, learner, trace))
    # the newest weight depends on this step alone, so F of this step may stand beside it
    arriving = steps.gather(often[steps.before])
    among = often[steps.before] / arriving[steps.after]
    newest = steps.gather(scale**2 * among * second[steps.after])
    window = learner.window(trace) if trace in law.windows else 0
    total = steps.steady(decay**2, newest, window) if learner.traced else newest
    weight = float(steps.gather(scale * among * first[steps.after]).sum())
    if total is None or weight <= 0.0:
        return None
    return float(np.sqrt(total.sum() * m.share) / weight)


class StepPairs:
    """All pairs of transitions that can follow each other in the long run, with their facts.

    `first` and `second` are the transition and the action of each, `before` and `after` their pairs
    (s, a) and (s', a'). They are sorted by `before`, then by `after`, each combination once.
    """

    def __init__(self, problem: Problem, policy: int) -> None:
        m = problem.moments(policy)
        s, a, t, table, p = Steps.of(m, m.visited.astype(np.float64))
        number = s * problem.n_actions + a
        _, actions = np.unique(number, return_index=True)  # one transition for each pair (s, a)
        begin = np.searchsorted(s[actions], t)
        count = np.searchsorted(s[actions], t, side="right") - begin
        self.first = np.repeat(np.arange(len(t)), count)
        within = np.arange(len(self.first)) - np.repeat(np.cumsum(count) - count, count)
        self.second = np.repeat(begin, count) + within
        self.before, self.after = number[self.first], number[actions][self.second]
        self.probability = p[self.first] * m.mu[s, a][actions][self.second]
        self.carried = table[:, [STEP_FACTS.index(then) for then in CARRIED.values()]]
        self.own = table[actions]
        self.pairs = problem.n_states * problem.n_actions

    @staticmethod
    @cached(8)
    def of(problem: Problem, policy: int) -> StepPairs:
        """All of a problem's, for one target policy."""
        return StepPairs(problem, policy)

    def each(self, moving: Moving) -> tuple[Floats, Floats]:
        """The multiple and what is added, for every pair: found once for what is asked of it."""
        then = [name for name in CARRIED if name in moving.asked]
        now = [name for name in STEP_FACTS if name in moving.asked]
        earlier, of_first = _kinds(self.carried[:, [list(CARRIED).index(n) for n in then]])
        present, of_second = _kinds(self.own[:, [STEP_FACTS.index(n) for n in now]])
        kinds = of_first[self.first] * len(present) + of_second[self.second]
        used = np.arange(len(earlier) * len(present))
        if len(used) > len(kinds):
            used, kinds = np.unique(kinds, return_inverse=True)
        rows = np.hstack([earlier[used // len(present)], present[used % len(present)]])
        found = [moving.parts(dict(zip([*then, *now], row, strict=True))) for row in rows.tolist()]
        multiple, added = np.array(found, dtype=np.float64).T
        return multiple[kinds], added[kinds]

    def gather(self, values: Floats) -> Floats:
        """The sum over the first transitions, for every pair (s', a') of the second."""
        return np.bincount(self.after, self.probability * values, self.pairs).astype(np.float64)

    def onwards(self, multiple: Floats) -> Any:
        """The sparse matrix with p(s'|s, a) mu(a'|s') times a multiple at [(s, a), (s', a')]."""
        begin = np.searchsorted(self.before, np.arange(self.pairs + 1))
        return _square(self.probability * multiple, self.after.copy(), begin)

    def steady(self, multiple: Floats, added: Floats, window: int = 0) -> Floats | None:
        """The solution of y = sum p m y + added; with a window, its first terms only.

        None if it is not found.
        """
        from scipy.sparse.linalg import LinearOperator, bicgstab

        K = self.onwards(multiple).T.tocsr()
        if window:
            found = np.zeros(self.pairs)
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in range(window):
                    found = K @ found + added
            return found
        if self.pairs <= LARGE:
            return np.asarray(np.linalg.solve(np.eye(self.pairs) - K.toarray(), added))
        rest = LinearOperator(K.shape, matvec=lambda y: y - K @ y, dtype=np.float64)
        y, failed = bicgstab(rest, added, rtol=SOLVED, maxiter=TRIES)
        return None if failed else np.asarray(y)

    def growth(self, moving: Moving) -> float:
        """The spectral radius of K, restricted to what is reached from where something is added."""
        from scipy.sparse.csgraph import breadth_first_order

        multiple, added = self.each(moving)
        K = self.onwards(multiple**2)
        K.eliminate_zeros()
        sources = np.unique(self.after[added != 0.0])
        if not len(sources):
            return 0.0
        begin = np.append(K.indptr, K.nnz + len(sources))  # one more node leads to all sources
        heads = np.append(K.indices, sources)
        graph = _square(np.ones(len(heads)), heads, begin)
        order = breadth_first_order(graph, self.pairs, return_predecessors=False)
        reached = np.sort(order[1:])
        if len(reached) == self.pairs:
            return _spectral_radius(K)
        return _spectral_radius(K[reached][:, reached])


def _square(entries: Floats, columns: Longs, begin: Longs) -> Any:
    from scipy.sparse import csr_array

    return csr_array((entries, columns, begin), shape=(len(begin) - 1, len(begin) - 1))


def _kinds(facts: Floats) -> tuple[Floats, Longs]:
    """The different rows, and which of them each row is."""
    varies = (facts != facts[:1]).any(axis=0)
    if not varies.any():
        return facts[:1], np.zeros(len(facts), dtype=np.int64)
    if varies.sum() == 1:  # sorting numbers is much faster than sorting rows
        _, one, kind = np.unique(facts[:, varies][:, 0], return_index=True, return_inverse=True)
        return facts[one], kind.astype(np.int64)
    different, kind = np.unique(facts, axis=0, return_inverse=True)
    return different, kind.reshape(-1).astype(np.int64)


def _spectral_radius(K: Any) -> float:
    """Of a sparse matrix without negative entries."""
    from scipy.sparse.linalg import ArpackError

    if not K.nnz:
        return 0.0
    if K.shape[0] > LARGE:
        try:
            return spectral_radius(K)
        except ArpackError:  # such as that of a matrix without cycles
            require_room(
                f"the variance of {K.shape[0]:,} pairs (s, a)", 16.0 * K.shape[0] ** 2, "use fewer"
            )
    return float(np.abs(np.linalg.eigvals(K.toarray())).max())
