"""Choosing `eta` and `ratio` when a learner says "auto" and the model is known.

`eta` is the penalty whose fixed point has the least error among those that are clear of every pole
and every crossing (`margin.py`), up to the theorem's bound (or 1): more than the bound is never
needed and only pulls the values to zero.

`ratio` adds no bias, so it is chosen for speed: the smallest power of two that is at least twice
the stabilising ratio and reaches nine tenths of the rate at which the slowest mode can decay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.threads import single_threaded
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.theory import dynamics
from steadytd.theory.margin import Path, path_of, traced_pencil
from steadytd.theory.thresholds import bounds

GRID = np.linspace(0.0, 1.0, 241) ** 2  # penalties tried, as shares of the largest: dense near 0
ZOOM, ZOOMS = 17, 8  # then so many between the neighbours of the best, so many times
DOUBLINGS = 30  # of the largest penalty, should none up to it be clear
FLAT = 1e-9  # relative difference of errors below which they are equal
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


def best_penalty(
    problem: Problem, learner: Learner, policy: int = 0, *, clear: bool = True
) -> float:
    """The clear eta with the least error of the learner's fixed point."""
    return least_penalty(problem, path_of(problem, learner, policy), policy, clear=clear)


@lru_cache(maxsize=256)
@single_threaded
def least_penalty(problem: Problem, path: Path, policy: int = 0, *, clear: bool = True) -> float:
    """The clear eta with the least error on a path of fixed points.

    If the error does not depend on eta (no rewards), the bound sqrt(gamma_max c_max) - 1 is taken
    where it is clear, as it is without traces as far as we have seen, and else twice the largest
    troublesome penalty: a penalty outside the trace may need more than that bound.

    With `clear=False` every stable eta counts, however close to a pole or a crossing: what the
    margin costs is the difference between the two errors.
    """
    m = problem.moments(policy)
    weights, values = problem.error_weights(policy), m.v_pi
    allowed = path.is_clear if clear else path.is_stable

    def error(eta: float) -> float:
        w = path.weights(eta)
        if w is None:
            return np.inf
        return float(np.sqrt(weights @ (problem.Phi @ w - values) ** 2))

    calm, limit = max(0.0, bounds(m)["sqrt_kappa"]), max(1.0, bounds(m)["paper"])
    for _ in range(DOUBLINGS):
        grid = np.array(sorted({*(GRID * limit), *(e for e in path.edges if e <= limit)}))
        found = _least(error, allowed, grid)
        if found is not None:
            break
        limit *= 2.0
    else:
        raise InputError(
            f"no eta up to {limit / 2.0:g} is clear of the unstable ones on "
            f"{problem.name}; use another learner."
        )
    some = [error(eta) for eta in grid[::20] if allowed(eta)]
    if some and max(some) - min(some) <= FLAT * (1.0 + float(np.sqrt(weights @ values**2))):
        return calm if allowed(calm) else 2.0 * path.largest
    for _ in range(ZOOMS):
        i = int(np.searchsorted(grid, found))
        grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], ZOOM)
        grid = np.array(sorted({*grid.tolist(), found}))
        closer = _least(error, allowed, grid)
        found = found if closer is None else closer
    return found


def _least(
    error: Callable[[float], float], allowed: Callable[[float], bool], etas: Floats
) -> float | None:
    """The allowed eta with the least error (the first of equals), or None."""
    errors = np.array([error(float(eta)) for eta in etas])
    order = np.argsort(errors, kind="stable")
    return next((float(etas[i]) for i in order if allowed(float(etas[i]))), None)


def stabilising_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """max(0, -lambda_min(G^-1 sym A_lam)): TDC with a larger ratio is stable on one time scale."""
    lam = float(learner.values.get("lam", 0.0))
    return max(0.0, traced_pencil(problem.moments(policy), lam).eta_pd)


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
