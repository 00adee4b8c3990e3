"""The learning curve before any run: expected error at every step, bias and variance apart.

With the moments of `exact`, collected in one vector u = (p, m, S) over all states, a step is linear
in u, and for a learner whose step is linear in its step size a polynomial in it:

    u <- (R_0 + alpha_t R_1 + alpha_t^2 R_2) u.

From u follow the mean values and their second moments, and with ||.|| the norm of the error

    error^2 = E || v_hat - v ||^2 = bias^2 + spread^2,
    bias = || E[v_hat] - v ||,     spread^2 = E || v_hat - E[v_hat] ||^2.

A constant step size takes powers of one matrix, a decaying one takes all steps one by one. Where
what a learner remembers takes few values, u is that of the larger chain in `histories`. Of all
moments only those count that are reached from the start, which symmetries make few. Nothing is
approximated but for rounding.

Where the moments do not close (with most traces, with averages, or for a system that is solved) or
are too many, the curve is estimated from runs, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.sparse import coo_array, csr_array

from steadytd.base.arrays import Floats, Longs
from steadytd.base.display import Displayable
from steadytd.base.errors import InputError
from steadytd.base.numbers import about, count, number, whole
from steadytd.base.parallel import single_threaded
from steadytd.engine.active import make_block
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.mdp.problem import Problem
from steadytd.streams.finite import FiniteStream
from steadytd.theory import dynamics
from steadytd.theory.cure import Setting
from steadytd.theory.exact import LINEAR, Maps
from steadytd.theory.histories import Chain

if TYPE_CHECKING:
    import polars as pl

POINTS = 200  # of a curve
MOST_MOMENTS = 6000  # numbers in u
MOST_PARTS = 6_000_000  # of the matrices of a step
STRONG = 0.03  # of the strongest direction outside a space: a weak one is known less exactly
ROUNDING = 1e-14  # relative part of a difference that is rounding
MOST_DENSE = 1500  # those that are left on the space that is reached: matrices are multiplied
MOST_REDUCED = 300  # of that space; without a small one, all numbers are kept
INSIDE = 1e-7  # relative part of a vector outside a space that is rounding
MOST_STEPS = 200_000  # of a decaying step size, taken one by one
QUICK_MOMENTS, QUICK_STEPS = 1000, 20_000  # of curves beside others: about half a second each
LEAST_MOVE, MOST_MOVE = 1e-3, 1e3  # by all steps, and by one, of a step size that is tried
TRIED = 8  # step sizes on a grid in every power of ten, before the best is refined
REFINED = 3  # minima on the grid, the lowest ones: each may be near the least of all
FINE = 1e-3  # of the best step size's logarithm, to base 10
RUNS, FEWER_POINTS = 200, 50  # of a curve that is estimated
MOST_SIMULATED = 100_000  # steps of such a run
LOOKS = 2000  # at the run that shows the spread
INSTEAD = "run it instead: st.run(problem, [learner], steps=..., seeds=200)"


COLUMNS = ("error", "spread", "bias", "stderr")


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Displayable):
    """Expected error, spread and bias of a learner after so many steps.

    They are exact if `runs` is 0, and else estimated from so many runs: then `stderr` is the
    standard error of `error`. `error` is the root of the mean squared error over runs, error^2 =
    bias^2 + spread^2. `limit` is the error of the fixed point, None where no stable one is known.
    """

    problem: str
    learner: Learner
    step: Longs
    error: Floats
    spread: Floats
    bias: Floats
    stderr: Floats
    limit: float | None
    runs: int = 0

    def __repr__(self) -> str:
        return f"<learning curve of {self.learner} on {self.problem}: {self.text}>"

    @property
    def table(self) -> pl.DataFrame:
        """The columns `step`, `error`, `spread`, `bias`, `stderr`."""
        import polars as pl

        return pl.DataFrame({name: getattr(self, name) for name in ("step", *COLUMNS)})

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
        """The curve in two sentences: when it is near its limit, and where it ends."""
        found = f"{self._verdict}."
        if np.isfinite(self.error[-1]):
            end = (
                f"{k} {number(float(getattr(self, k)[-1]))}" for k in ("error", "bias", "spread")
            )
            found += f" After {count(int(self.step[-1]), 'step')}: {', '.join(end)}."
        if self.runs:
            stderr = number(float(self.stderr[-1]), 2)
            found += (
                f" Estimated from {self.runs} runs; the last error's standard error is {stderr}."
            )
        return found

    @property
    def _verdict(self) -> str:
        if not np.isfinite(self.error[-1]):
            steps = count(int(self.step[-1]), "step")
            return f"the error grows beyond all numbers within {steps}"
        if self.limit is None:
            return "no stable fixed point is known"
        reached = self.reaches()
        if reached == 0:
            return "the error begins and stays at most 10 % above its fixed point's"
        level = f"10 % above its fixed point's, {number(self.limit)},"
        if self.limit <= 1e-9 * float(self.error[0]):
            level = "a tenth of the first"
        if reached is None:
            return f"the error is still more than {level.removesuffix(',')}"
        return f"the error falls to {level} after {about(reached, 'step')}"

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON; numbers that are not finite are null."""
        columns = {
            name: [float(x) if np.isfinite(x) else None for x in getattr(self, name)]
            for name in COLUMNS
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
    """The vector u of all moments of a learner on a problem, and the matrices of a step."""

    @staticmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(
        problem: Problem, learner: Learner, policy: int, most: int = MOST_MOMENTS
    ) -> MomentRecursion | None:
        """None where the moments do not close, overflow, or are more than `most`."""
        k = learner.law.basis(problem.moments(policy).row_space).shape[1]
        each = 1 + k + k * (k + 1) // 2
        if not k or "alpha" not in learner.values or problem.n_states * each > most:
            return None
        pairs = 2 * most // each  # about half of them are alike
        unit, half = (
            Chain.of(problem, learner.replace(alpha=a), policy, pairs) for a in (1.0, 0.5)
        )
        linear = unit is not None and half is not None and _halved(unit.maps, half.maps)
        chain = unit if linear else unit and Chain.of(problem, learner, policy, pairs)
        if chain is None or chain.maps.n_states * each > most:
            return None
        if len(chain.maps.p) * each**2 > MOST_PARTS:
            return None
        found = MomentRecursion(problem, learner, policy, chain, linear)
        finite = all(np.isfinite(numbers).all() for numbers in (found.start, *found.powers))
        return found if finite and len(found.start) <= MOST_DENSE else None

    def __init__(
        self, problem: Problem, learner: Learner, policy: int, chain: Chain, linear: bool
    ) -> None:
        m = problem.moments(policy)
        self.Q, self.n_states, self.linear = m.row_space, chain.maps.n_states, linear
        y = learner.law.basis(self.Q).T @ learner.first_y(problem.w0)
        self.k = len(y)
        rows, columns = np.tril_indices(self.k)
        first = np.concatenate([[1.0], y, (y[:, None] * y)[rows, columns]])
        begin = np.bincount(chain.first, problem.start, self.n_states)
        self.values, self.v = m.compared @ self.Q, m.v_pi
        self.weights = problem.error_weights(policy)
        own = 1 + np.arange(self.k) // self.Q.shape[1]  # which vector; kinds differ in their units
        kind = np.concatenate([[0], own, len(y) + own[rows] * len(y) + own[columns]])
        start, powers = np.outer(begin, first).reshape(-1), _matrices(chain.maps, linear)
        moved = float(np.linalg.norm(chain.maps.B - np.eye(self.k), 2, axis=(1, 2)).max())
        self.unit = 1.0 / moved if moved else 1.0  # a step size at which a step changes y by y
        self.space = _reached(powers, start, np.tile(kind, self.n_states))
        if self.space is None:
            self.start, self.powers = start, [R.toarray() for R in powers]
        else:
            self.start = self.space @ start
            self.powers = [self.space @ (R @ self.space.T) for R in powers]

    def step(self, alpha: float) -> Floats:
        """The matrix of one step with this step size, or with the own one if it is not linear."""
        return np.asarray(sum(alpha**i * R for i, R in enumerate(self.powers)))

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

    def decaying(self, alphas: Floats, factors: Floats, steps: Longs) -> Floats:
        """u after these numbers of steps of sizes alpha factor_0, alpha factor_1, ...

        [step, alpha, u], for several first step sizes alpha at once.
        """
        all_three = np.vstack(self.powers)
        u = np.repeat(self.start[:, None], len(alphas), axis=1)
        found, wanted = {0: u.T}, set(steps.tolist())
        for t, factor in enumerate(factors.tolist(), start=1):
            a, b, c = (all_three @ u).reshape(3, *u.shape)
            size = factor * alphas
            u = a + size * (b + size * c)
            if t in wanted:
                found[t] = u.T
        return np.array([found[t] for t in steps.tolist()])

    def ends(self, alphas: Floats, steps: int, learner: Learner) -> Floats:
        """The error after so many steps, for each of these step sizes and the learner's decay."""
        at, (power, delay) = np.array([steps]), learner.schedule
        with np.errstate(over="ignore", invalid="ignore"):
            if power:
                u = self.decaying(alphas, step_factors(0, steps, power, delay), at)[0]
            else:
                u = np.array([self.constant(alpha, at)[0] for alpha in alphas.tolist()])
        found: Floats = self.errors(u)[0]
        return found

    @np.errstate(over="ignore", invalid="ignore")
    def errors(self, u: Floats) -> Floats:
        """Error, spread and bias of moments [point, u]; its standard error is 0."""
        u = u if self.space is None else u @ self.space
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
        parts = np.stack([bias + variance, variance, bias, np.zeros(len(u))])
        found: Floats = np.sqrt(parts)
        found[~np.isfinite(found)] = np.inf
        return found


def _halved(one: Maps, half: Maps) -> bool:
    """Whether half the step size makes half the change."""
    if one.B.shape != half.B.shape:
        return False
    apart = np.abs(half.B - (np.eye(one.B.shape[1]) + one.B) / 2.0).max(initial=0.0)
    apart += np.abs(half.c - one.c / 2.0).max(initial=0.0)
    return bool(apart <= LINEAR * (1.0 + np.abs(one.B).max(initial=0.0)))


def _matrices(maps: Maps, linear: bool) -> list[csr_array]:
    """R_0, R_1 and R_2, from the maps at alpha = 1; of what is not linear in alpha R alone."""
    one = np.eye(maps.B.shape[1])

    def scaled(alpha: float) -> csr_array:
        lift = maps._replace(B=one + alpha * (maps.B - one), c=alpha * maps.c).lift()
        n = np.arange(lift.shape[1])
        rows = (maps.t[:, None] * len(n) + n)[:, :, None]
        columns = (maps.s[:, None] * len(n) + n)[:, None, :]
        size = maps.n_states * len(n)
        parts = (maps.p[:, None, None] * lift).ravel()
        where = [np.broadcast_to(i, lift.shape).ravel() for i in (rows, columns)]
        return coo_array((parts, where), shape=(size, size)).tocsr()

    if not linear:
        return [scaled(1.0)]
    zero, plus, minus = (scaled(a) for a in (0.0, 1.0, -1.0))
    size = abs(plus) + abs(minus)
    parts = [zero, (plus - minus) / 2.0, (plus + minus) / 2.0 - zero]
    return [R.multiply(abs(R) > ROUNDING * size).tocsr() for R in parts]


def _reached(powers: list[csr_array], start: Floats, kind: Longs) -> Floats | None:
    """The least space with `start` that no R leaves, as rows; None if it is not small.

    Symmetries of a problem make it so. Moments of different kinds have different units, so that
    each row has moments of one kind.
    """
    if not all(np.isfinite(R.data).all() for R in powers):
        return None
    kinds, sizes = kind == np.unique(kind)[:, None], [abs(R) for R in powers]
    space = np.zeros((0, len(start)))
    outside = _apart(start, np.abs(start), kinds)
    while len(space) <= MOST_REDUCED:
        for _ in range(2):  # the second time for what rounding left
            outside = outside - outside @ space.T @ space
        outside = outside[np.linalg.norm(outside, axis=1) > INSIDE]
        if not len(outside):
            return space
        new = []
        for own in kinds:
            rows, known = outside[:, own], space[:, own]
            found, triangle, _ = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
            strength = np.abs(np.diag(triangle))
            rows = found.T[strength > max(INSIDE, STRONG * strength[0])]
            new.append(np.zeros((len(rows), len(start))))
            new[-1][:, own] = scipy.linalg.qr((rows - rows @ known.T @ known).T, mode="economic")[
                0
            ].T
        space = np.vstack([space, *new])
        images = [
            _apart(R @ row, size @ np.abs(row), kinds)
            for R, size in zip(powers, sizes, strict=True)
            for row in np.vstack(new)
        ]
        outside = np.vstack([outside, *images])
    return None


def _apart(vector: Floats, size: Floats, kinds: Floats) -> Floats:
    """The parts of a vector by kind, of length 1; `size` says next to what one is rounding."""
    parts = vector * kinds
    lengths, sizes = (np.linalg.norm(x, axis=1) for x in (parts, size * kinds))
    there = lengths > INSIDE * sizes
    return np.asarray(parts[there] / lengths[there, None])


class Simulation:
    """Runs of learners on streams of their own."""

    def __init__(self, problem: Problem, policy: int) -> None:
        self.stream, self.rows = FiniteStream.of(problem), sparse_rows(problem.Phi)
        self.active = self.stream.active[policy]
        self.transitions = self.stream.transitions[policy]
        m = problem.moments(policy)
        self.Phi, self.v, self.share = m.compared, m.v_pi, problem.error_weights(policy)

    def run(self, learner: Learner, first: Floats, steps: Longs, seed: int) -> Floats:
        """The weights, from `first` on, after these numbers of steps."""
        block, position = make_block([learner], first), self.stream.begin(seed)
        found = np.empty((len(steps), len(first)))
        for i, (before, step) in enumerate(pairwise([0, *steps.tolist()])):
            events, position = self.stream.take(position, step - before)
            factor = step_factors(before, len(events), *learner.schedule)
            if self.active is not None:
                events, factor = events[self.active[events]], factor[self.active[events]]
            block.advance(events, factor, self.transitions, self.rows)
            found[i] = block.reported[:, 0]
        return found

    def errors(self, weights: Floats) -> Floats:
        """Error, spread, bias and standard error of weights [run, step, :]."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = weights @ self.Phi.T
            mean = values.mean(axis=0)
            spread = np.sqrt(((values - mean) ** 2).mean(axis=0) @ self.share)
            bias = np.sqrt((mean - self.v) ** 2 @ self.share)
            error = np.hypot(bias, spread)
            of_squares = ((values - self.v) ** 2 @ self.share).std(axis=0, ddof=1) / RUNS**0.5
            stderr = of_squares / np.where(error > 0.0, 2.0 * error, 1.0)
        found = np.stack([error, spread, bias, stderr])
        found[~np.isfinite(found)] = np.inf
        return found


@single_threaded
def exact_curve(
    problem: Problem, learner: Learner, steps: int, policy: int = 0, *, quick: bool = False
) -> LearningCurve | None:
    """The expected errors of a learner from w0 on, where they are exact; `quick`: in a moment."""
    most, longest = (QUICK_MOMENTS, QUICK_STEPS) if quick else (MOST_MOMENTS, MOST_STEPS)
    recursion, (power, delay) = MomentRecursion.of(problem, learner, policy, most), learner.schedule
    if recursion is None:
        return None
    points, alpha = _points(steps, POINTS), float(learner.values["alpha"])
    with np.errstate(over="ignore", invalid="ignore"):
        if power == 0.0:
            u = recursion.constant(alpha, points)
        elif steps <= longest and recursion.linear:
            factors = step_factors(0, steps, power, delay)
            u = recursion.decaying(np.array([alpha]), factors, points)[:, 0]
        elif quick:
            return None
        else:
            raise InputError(
                f"with a decaying step size the learning curve is known for at most "
                f"{MOST_STEPS:,} steps of a learner that is linear in alpha; got {steps:,} "
                f"of {learner}: ask for fewer steps, or leave out the decay."
            )
    return _curve(problem, learner, policy, points, recursion.errors(u), runs=0)


@single_threaded
def learning_curve(
    problem: Problem, learner: Learner, steps: int, policy: int = 0
) -> LearningCurve:
    """The expected errors of a learner from w0 on; see `LearningCurve`."""
    steps = whole("steps", steps, 1)
    exact = exact_curve(problem, learner, steps, policy)
    if exact is not None:
        return exact
    if steps > MOST_SIMULATED:
        raise InputError(
            f"the learning curve of {learner} on {problem.name} is not known exactly, and "
            f"estimated for at most {MOST_SIMULATED:,} steps; got {steps:,}: ask for fewer, "
            f"or {INSTEAD}."
        )
    points = _points(steps, FEWER_POINTS)
    simulation = Simulation(problem, policy)
    each = [simulation.run(learner, problem.w0, points, seed) for seed in range(RUNS)]
    errors = simulation.errors(np.stack(each))
    return _curve(problem, learner, policy, points, errors, runs=RUNS)


def _points(steps: int, many: int) -> Longs:
    return np.unique(np.append(0, np.geomspace(1, steps, many).round().astype(np.int64)))


def _curve(
    problem: Problem, learner: Learner, policy: int, points: Longs, columns: Floats, runs: int
) -> LearningCurve:
    m, limit = problem.moments(policy), None
    try:
        stable = dynamics.is_stable(problem, learner, policy)
        off = m.compared @ dynamics.fixed_point(problem, learner, policy) - m.v_pi
        limit = float(np.sqrt(problem.error_weights(policy) @ off**2)) if stable else None
    except InputError:  # without a closed form
        pass
    error, spread, bias, stderr = columns
    return LearningCurve(problem.name, learner, points, error, spread, bias, stderr, limit, runs)


@single_threaded
def spread_of_a_run(problem: Problem, learner: Learner, steps: int, policy: int = 0) -> float:
    """How far the values of one run that begins at the fixed point are from it.

    The root mean square over the last nine tenths of its steps; infinite if it overflows. An
    estimate of the spread where moments are not known. It knows no burst that has not come.
    """
    simulation = Simulation(problem, policy)
    first = dynamics.fixed_point(problem, learner, policy)
    points = np.linspace(steps // 10, steps, LOOKS).astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        away = simulation.run(learner, first, points, 0) - first
        values = away @ Setting.of(problem, policy).measured[:, :-1].T
        found = float(np.sqrt((values**2).sum(axis=1).mean()))
    return found if np.isfinite(found) else float("inf")


@single_threaded
def best_alpha(problem: Problem, learner: Learner, steps: int, policy: int = 0) -> float:
    """The first step size with the least expected error after so many steps, to four digits.

    The learner's decay is kept, if it has one. The error is exact for every step size. It is taken
    on a grid from step sizes so small that nothing is learned to those at which single steps
    overshoot; then its lowest minima are refined. If learning does nothing but harm, the smallest
    step size is the best.
    """
    steps = whole("steps", steps, 1)
    recursion = MomentRecursion.of(problem, learner, policy)
    if recursion is None or not recursion.linear or (learner.schedule[0] and steps > MOST_STEPS):
        raise InputError(
            f"the best step size of {learner} on {problem.name} is not known: its moments do not "
            "close, are too many, or its step is not linear in alpha; give alpha a number, and "
            "compare curves of several."
        )
    low, high = np.log10(recursion.unit * np.array([LEAST_MOVE / steps, MOST_MOVE]))
    grid = np.linspace(low, high, int(np.ceil(TRIED * (high - low))) + 1)
    error = recursion.ends(10.0**grid, steps, learner)
    beside = np.pad(error, 1, constant_values=np.inf)
    lowest = np.flatnonzero((error <= beside[:-2]) & (error <= beside[2:]))
    found = []
    for i in lowest[np.argsort(error[lowest], kind="stable")][:REFINED].tolist():
        ends = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        while ends[1] - ends[0] > FINE:
            finer = np.linspace(*ends, 9)
            own = recursion.ends(10.0**finer, steps, learner)
            at = int(np.argmin(own))
            ends = finer[max(at - 1, 0)], finer[min(at + 1, 8)]
        found.append((float(own[at]), float(10.0 ** finer[at])))
    return float(f"{min(found)[1]:.4g}")
