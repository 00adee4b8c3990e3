"""Choosing `eta` and `ratio` when a learner says "auto" and the model is known.

`eta` is the stable penalty, up to the theorem's bound (or 1), whose fixed point has the least
error: more than the bound is never needed and only pulls the values to zero. Just above the
threshold there usually is a pole and the error is large; but only the error is looked at, so where
its least value lies close to a pole or a crossing, the choice does too.

`ratio` adds no bias, so it is chosen for speed: the smallest power of two that is at least twice
the stabilising ratio and reaches nine tenths of the rate at which the slowest mode can decay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.optimize

from steadytd.core.arrays import Floats
from steadytd.core.errors import InputError
from steadytd.core.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.theory import dynamics
from steadytd.theory.threads import single_threaded
from steadytd.theory.thresholds import Pencil, bounds

GRID = np.linspace(0.0, 1.0, 241) ** 2  # penalties tried, as shares of the largest: dense near 0
RATIOS = 2.0 ** np.arange(-6, 11)
LARGE_RANK = 60  # from here on only every fourth ratio is tried: eigenvalues take their time
ENOUGH = 0.9  # of the best rate: the rest costs a much larger second step size


def resolve(problem: Problem, learner: Learner, policy: int = 0) -> Learner:
    """The learner with every "auto" replaced by the number that the model asks for."""
    chosen = learner
    for name in learner.automatic:
        if name == "eta":
            chosen = chosen.replace(eta=best_penalty(problem, chosen.replace(eta=0.0), policy))
        elif name == "ratio":
            chosen = chosen.replace(ratio=best_ratio(problem, chosen.replace(ratio=1.0), policy))
        else:
            raise InputError(f"{learner.name}: {name}=auto is not offered; give a number.")
    return chosen


@lru_cache(maxsize=256)
@single_threaded
def best_penalty(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """The stable eta with the least error of the learner's fixed point.

    If the error does not depend on eta (no rewards), the bound sqrt(gamma_max c_max) - 1 is taken:
    it suffices, and it is clear of the threshold. The exception is a penalty outside the trace:
    A_lam + eta G may need more than A_0 + eta G, so there it is at least twice the threshold.
    """
    m = problem.moments(policy)
    weights, values = problem.error_weights(policy), m.v_pi
    Q = m.row_space
    system, stable = _path(problem, learner, policy, Q)

    def error(eta: float) -> float:
        M, g = system(float(eta))
        try:
            w = Q @ np.linalg.solve(M, g)
        except np.linalg.LinAlgError:
            return np.inf
        return float(np.sqrt(weights @ (problem.Phi @ w - values) ** 2))

    calm, largest = max(0.0, bounds(m)["sqrt_kappa"]), max(1.0, bounds(m)["paper"])
    if learner.traced and learner.values.get("penalty") == "outside":
        calm = max(calm, 2.0 * stabilising_ratio(problem, learner, policy))
        largest = max(largest, calm)
    grid = GRID * largest  # at least twice the threshold, so that a good part of it is stable
    errors = np.array([error(eta) for eta in grid])
    order = np.argsort(errors, kind="stable")
    allowed = next((int(i) for i in order if stable(grid[i])), None)
    if allowed is None:
        raise InputError(
            f"{learner.name}: no eta up to {grid[-1]:g} makes the mean update stable on "
            f"{problem.name}; use another learner."
        )
    flat = [error(eta) for eta in grid[::20] if stable(eta)]
    if max(flat) - min(flat) <= 1e-9 * (1.0 + float(np.sqrt(weights @ values**2))):
        return calm
    low, high = grid[max(allowed - 1, 0)], grid[min(allowed + 1, len(grid) - 1)]
    found = scipy.optimize.minimize_scalar(
        error, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    better = stable(float(found.x)) and found.fun < errors[allowed]
    return float(found.x) if better else float(grid[allowed])


def _path(
    problem: Problem, learner: Learner, policy: int, Q: Floats
) -> tuple[Callable[[float], tuple[Floats, Floats]], Callable[[float], bool]]:
    """M and g on the row space, and stability, as functions of eta; at lam = 0 from one pencil."""
    if not learner.traced:
        pencil = Pencil.of(problem.moments(policy))
        return lambda eta: (pencil.A(eta), pencil.b), pencil.is_stable

    def system(eta: float) -> tuple[Floats, Floats]:
        e = dynamics.expectation(problem, learner.replace(eta=eta), policy)
        return Q.T @ e.M @ Q, Q.T @ e.g

    def stable(eta: float) -> bool:
        return bool((np.linalg.eigvals(system(float(eta))[0]).real > 0.0).all())

    return system, stable


def stabilising_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """max(0, -lambda_min(G^-1 sym A_lam)): TDC with a larger ratio is stable on one time scale."""
    m = problem.moments(policy)
    Q = m.row_space
    A = Q.T @ m.A(float(learner.values.get("lam", 0.0))) @ Q
    return max(0.0, Pencil(Q=Q, A0=A, G=Q.T @ m.G @ Q, b=Q.T @ m.b()).eta_pd)


@lru_cache(maxsize=256)
@single_threaded
def best_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """The smallest power of two, at least twice the stabilising ratio, that is fast enough."""
    least = 2.0 * stabilising_ratio(problem, learner, policy)
    tried = RATIOS if len(problem.moments(policy).row_space.T) <= LARGE_RANK else RATIOS[::4]
    candidates = [float(r) for r in tried if r >= least] or [float(2.0 ** np.ceil(np.log2(least)))]
    rates = [
        float(dynamics.decay_rates(problem, learner.replace(ratio=r), policy).real.min())
        for r in candidates
    ]
    enough = ENOUGH * max(rates)
    return next(r for r, rate in zip(candidates, rates, strict=True) if rate >= enough)
