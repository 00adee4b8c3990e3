"""The learning curve before any run: expected error at every step, bias and variance apart.

With the moments of `exact`, collected in one vector u = (p, m, S) over all states, a step is linear
in u, and for a learner whose step is linear in its step size a polynomial in it:

    u <- (R_0 + alpha_t R_1 + alpha_t^2 R_2) u.

From u follow the mean values and their second moments, and with ||.|| the norm of the error

    error^2 = E || v_hat - v ||^2 = bias^2 + spread^2,
    bias = || E[v_hat] - v ||,     spread^2 = E || v_hat - E[v_hat] ||^2.

A constant step size takes powers of one matrix, a decaying one takes all steps one by one. Nothing
is approximated but for rounding. Where the moments do not close (with traces, a memory, averages,
or for a system that is solved) or are too many, the curve is estimated from runs, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.base.numbers import count, number, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.active import make_block
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream
from steadytd.theory import dynamics
from steadytd.theory.exact import LINEAR, Maps
from steadytd.theory.reading import can_be_read

if TYPE_CHECKING:
    import polars as pl

POINTS = 200  # of a curve
MOST_MOMENTS = 2500  # numbers in u: a matrix of their square is multiplied
MOST_STEPS = 200_000  # of a decaying step size, taken one by one
TRIED = 25  # step sizes on a grid, before the best is refined
RUNS, FEWER_POINTS = 200, 50  # of a curve that is estimated
MOST_SIMULATED = 100_000  # steps of such a run
INSTEAD = "run it instead: st.run(problem, [learner], steps=..., seeds=200)"
SMALLEST = 1e-6  # of the mean's largest step size: where that grid begins


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Expected error, spread and bias of a learner after so many steps.

    They are exact if `runs` is 0, and else estimated from so many runs. `error` is the root of the
    mean squared error over runs, error^2 = bias^2 + spread^2. `limit` is the error of the fixed
    point, None where there is none.
    """

    problem: str
    learner: Learner
    step: Longs
    error: Floats
    spread: Floats
    bias: Floats
    limit: float | None
    runs: int = 0

    def __repr__(self) -> str:
        return f"<learning curve of {self.learner} on {self.problem}: {self.text}>"

    @property
    def table(self) -> pl.DataFrame:
        """The columns `step`, `error`, `spread`, `bias`."""
        import polars as pl

        return pl.DataFrame({n: getattr(self, n) for n in ("step", "error", "spread", "bias")})

    def reaches(self, above: float = 0.1) -> int | None:
        """The first step on the curve from which on the error stays close to its limit.

        Close is at most `above` of the limit above it; where the limit is 0, at most `above` of the
        first error. None if that does not happen within the curve.
        """
        if self.limit is None:
            return None
        start = float(self.error[0])
        exact = self.limit <= 1e-9 * start
        level = above * start if exact else (1.0 + above) * self.limit
        outside = np.flatnonzero(~(self.error <= level))
        if not outside.size:
            return int(self.step[0])
        after = int(outside[-1]) + 1
        return int(self.step[after]) if after < len(self.step) else None

    @property
    def text(self) -> str:
        """The curve in one sentence."""
        how = f" (estimated from {self.runs} runs)" if self.runs else ""
        return f"{self._verdict}{how}"

    @property
    def _verdict(self) -> str:
        steps, end = count(int(self.step[-1]), "step"), float(self.error[-1])
        if not np.isfinite(end):
            return f"the error grows beyond all numbers within {steps}"
        if self.limit is None:
            return f"error {number(end)} after {steps}; there is no fixed point"
        reached = self.reaches()
        if reached is None:
            limit = number(self.limit)
            return f"error {number(end)} after {steps}; that of the fixed point is {limit}"
        if reached == 0:
            return "the error begins and stays at most 10 % above its fixed point's"
        level = "10 % above its fixed point's"
        if self.limit <= 1e-9 * float(self.error[0]):
            level = "a tenth of the first"
        return f"the error falls to {level} after about {count(reached, 'step')}"

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON; numbers that are not finite are null."""
        columns = {
            name: [float(x) if np.isfinite(x) else None for x in getattr(self, name)]
            for name in ("error", "spread", "bias")
        }
        return {
            "problem": self.problem,
            "learner": str(self.learner),
            "step": self.step.tolist(),
            **columns,
            "limit": self.limit,
            "runs": self.runs,
            "reaches": self.reaches(),
            "text": self.text,
        }


class MomentRecursion:
    """The vector u of all moments of a learner on a problem, and the matrix of a step."""

    @staticmethod
    def fits(problem: Problem, learner: Learner, policy: int) -> bool:
        """Whether the moments close, and are not too many."""
        if not can_be_read(learner.law, learner.values) or learner.averaged:
            return False
        k = problem.moments(policy).row_space.shape[1] * len(learner.law.vectors)
        return bool(problem.n_states * (1 + k + k * (k + 1) // 2) <= MOST_MOMENTS)

    def __init__(self, problem: Problem, learner: Learner, policy: int) -> None:
        m = problem.moments(policy)
        self.Q = m.row_space
        vectors = learner.first_vectors(problem.w0)
        k = self.Q.shape[1] * len(vectors)
        y = np.concatenate([self.Q.T @ vector for vector in vectors])
        first = np.concatenate([[1.0], y, np.outer(y, y)[np.tril_indices(k)]])
        self.start = np.outer(problem.start, first).reshape(-1)
        self.k, self.n_states = k, problem.n_states
        self.values, self.v = m.Phi @ self.Q, m.v_pi
        self.weights = problem.error_weights(policy)
        self.own, every = learner, np.ones(problem.n_states)
        self.maps = Maps.of(problem, learner.replace(alpha=1.0), policy, every)
        half = Maps.of(problem, learner.replace(alpha=0.5), policy, every)
        one = np.eye(k)
        apart = np.abs(half.B - (one + self.maps.B) / 2.0).max(initial=0.0)
        apart += np.abs(half.c - self.maps.c / 2.0).max(initial=0.0)
        self.linear = bool(apart <= LINEAR * (1.0 + np.abs(self.maps.B).max(initial=0.0)))
        self.problem, self.policy = problem, policy

    @cached_property
    def _powers(self) -> tuple[Floats, Floats, Floats]:
        """R_0, R_1 and R_2."""
        zero, plus, minus = (self._scaled(a) for a in (0.0, 1.0, -1.0))
        return zero, (plus - minus) / 2.0, (plus + minus) / 2.0 - zero

    def _scaled(self, alpha: float) -> Floats:
        B = np.eye(self.k) + alpha * (self.maps.B - np.eye(self.k))
        found = self.maps._replace(B=B, c=alpha * self.maps.c).recursion()
        return found.reshape(len(self.start), -1)

    def step(self, alpha: float) -> Floats:
        """The matrix of one step with this step size."""
        if self.linear:
            zeroth, first, second = self._powers
            return np.asarray(zeroth + alpha * first + alpha**2 * second)
        own = self.own.replace(alpha=alpha)
        found = Maps.of(self.problem, own, self.policy, np.ones(self.n_states)).recursion()
        return found.reshape(len(self.start), -1)

    def constant(self, alpha: float, steps: Longs) -> Floats:
        """u after these numbers of steps, in growing order."""
        power, powers = self.step(alpha), []
        u, found = self.start, []
        gaps = [int(b - a) for a, b in pairwise([0, *steps.tolist()])]
        for _ in range(max(gaps, default=0).bit_length()):
            powers.append(power)
            power = power @ power
        for gap in gaps:
            for bit, matrix in enumerate(powers):
                if gap >> bit & 1:
                    u = matrix @ u
            found.append(u)
        return np.array(found)

    def decaying(self, alphas: Floats, steps: Longs) -> Floats:
        """u after these numbers of steps of sizes alpha_0, alpha_1, ..."""
        zeroth, first, second = self._powers
        all_three = np.vstack([zeroth, first, second])
        u, found, n = self.start, {0: self.start}, len(self.start)
        wanted = set(steps.tolist())
        for t, alpha in enumerate(alphas.tolist(), start=1):
            a, b, c = (all_three @ u).reshape(3, n)
            u = a + alpha * (b + alpha * c)
            if t in wanted:
                found[t] = u
        return np.array([found[t] for t in steps.tolist()])

    def errors(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Error, spread and bias of moments [.., u]."""
        moments = u.reshape(len(u), self.n_states, -1).sum(axis=1)
        rank = self.Q.shape[1]
        mean = moments[:, 1 : 1 + rank] @ self.values.T
        lower = moments[:, 1 + self.k :]
        rows, columns = np.tril_indices(self.k)
        own = (rows < rank) & (columns < rank)
        times = np.where(rows == columns, 1.0, 2.0)[own]
        squares = self.values[:, rows[own]] * self.values[:, columns[own]] * times
        second = lower[:, own] @ squares.T
        bias = (mean - self.v) ** 2 @ self.weights
        variance = np.maximum((second - mean**2) @ self.weights, 0.0)
        with np.errstate(invalid="ignore"):
            found = np.sqrt(np.stack([bias + variance, variance, bias]))
        found[~np.isfinite(found)] = np.inf
        return found[0], found[1], found[2]


class Simulation:
    """Runs of a learner on streams of their own, and their weights at some steps."""

    def __init__(self, problem: Problem, learner: Learner, steps: Longs, policy: int) -> None:
        stream, rows = FiniteStream(problem), sparse_rows(problem.Phi)
        active, transitions = stream.active[policy], stream.transitions[policy]
        self.weights = np.empty((RUNS, len(steps), problem.n_features))
        for run in range(RUNS):
            block, position = make_block([learner], problem.w0), stream.begin(run)
            for i, (before, step) in enumerate(pairwise([0, *steps.tolist()])):
                events, position = stream.take(position, step - before)
                factor = step_factors(before, len(events), *learner.schedule)
                if active is not None:
                    events, factor = events[active[events]], factor[active[events]]
                block.advance(events, factor, transitions, rows)
                self.weights[run, i] = block.reported[:, 0]
        m = problem.moments(policy)
        self.Phi, self.v, self.share = m.Phi, m.v_pi, problem.error_weights(policy)

    def errors(self) -> tuple[Floats, Floats, Floats]:
        """Error, spread and bias, of the runs as if there were no others."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.weights @ self.Phi.T
            mean = values.mean(axis=0)
            spread = np.sqrt(((values - mean) ** 2).mean(axis=0) @ self.share)
            bias = np.sqrt((mean - self.v) ** 2 @ self.share)
            found = np.stack([np.hypot(bias, spread), spread, bias])
        found[~np.isfinite(found)] = np.inf
        return found[0], found[1], found[2]


@single_threaded
def learning_curve(
    problem: Problem, learner: Learner, steps: int, policy: int = 0
) -> LearningCurve:
    """The expected errors of a learner from w0 on; see `LearningCurve`."""
    steps = whole("steps", steps, 1)
    power, delay = learner.schedule
    exact = MomentRecursion.fits(problem, learner, policy)
    many = POINTS if exact else FEWER_POINTS
    points = np.unique(np.append(0, np.geomspace(1, steps, many).round().astype(np.int64)))
    if exact:
        recursion = MomentRecursion(problem, learner, policy)
        alpha = float(learner.values["alpha"])
        with np.errstate(over="ignore", invalid="ignore"):
            if power == 0.0:
                u = recursion.constant(alpha, points)
            else:
                if steps > MOST_STEPS or not recursion.linear:
                    raise InputError(
                        f"with a decaying step size the learning curve is known for at most "
                        f"{MOST_STEPS:,} steps of a learner that is linear in alpha; got {steps:,} "
                        f"of {learner}: ask for fewer steps, or leave out the decay."
                    )
                u = recursion.decaying(alpha * step_factors(0, steps, power, delay), points)
            error, spread, bias = recursion.errors(u)
    else:
        if steps > MOST_SIMULATED:
            raise InputError(
                f"the learning curve of {learner} on {problem.name} is not known exactly, and "
                f"estimated for at most {MOST_SIMULATED:,} steps; got {steps:,}: ask for fewer, "
                f"or {INSTEAD}."
            )
        error, spread, bias = Simulation(problem, learner, points, policy).errors()
    try:
        w = dynamics.fixed_point(problem, learner, policy)
        found = problem.moments(policy).Phi @ w - problem.moments(policy).v_pi
        limit = float(np.sqrt(problem.error_weights(policy) @ found**2))
    except InputError:
        limit = None
    runs = 0 if exact else RUNS
    return LearningCurve(problem.name, learner, points, error, spread, bias, limit, runs)


@single_threaded
def best_alpha(problem: Problem, learner: Learner, steps: int, policy: int = 0) -> float:
    """The constant step size with the least expected error after so many steps.

    The error is exact for every step size. Its minimum is searched on a grid up to the largest step
    size of the mean (or to 1, where the mean is unstable), and refined between its neighbours.
    """
    from scipy.optimize import minimize_scalar

    steps = whole("steps", steps, 1)
    if not MomentRecursion.fits(problem, learner, policy):
        raise InputError(
            f"the best step size of {learner} on {problem.name} is not known: its moments do not "
            "close, or are too many; give alpha a number, and compare curves of several."
        )
    recursion = MomentRecursion(problem, learner, policy)
    most = dynamics.largest_alpha(problem, learner, policy)
    most = most if 0.0 < most < np.inf else 1.0

    def error(log_alpha: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            u = recursion.constant(float(np.exp(log_alpha)), np.array([steps]))
            found = float(recursion.errors(u)[0][0])
        return min(found, 1e300)

    grid = np.log(most) + np.linspace(np.log(SMALLEST), 0.0, TRIED)
    at = int(np.argmin([error(x) for x in grid]))
    around = grid[max(at - 1, 0)], grid[min(at + 1, TRIED - 1)]
    return float(np.exp(minimize_scalar(error, bounds=around, method="bounded").x))
