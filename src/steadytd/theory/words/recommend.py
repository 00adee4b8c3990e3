"""Which learner to use: the least error first, then finite variance and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steadytd.base.finding import Finding
from steadytd.engine.learner import Learner
from steadytd.theory.analysis import CLOSE, SOME, Analysis, zeroed
from steadytd.theory.choose import knife_edge
from steadytd.theory.dynamics import decay_rates
from steadytd.theory.words.overview import automatic, compared

LIMIT, ALPHA, SPREAD = "mean_square_alpha", "spread_alpha", "spread"
WELL_BELOW = 10.0  # the spread is told at a power of ten, at least so many times below the limit
SLOW = 1e-3  # contraction per step from which on steps are so many that solving directly is better


@dataclass(frozen=True)
class Candidate:
    """A learner that could be recommended, with what decides it.

    `speed` is the rate of the slowest mode times the largest stable step size: how much of that
    mode a step can take away. It does not depend on the size of the learner's updates. `counted`
    is the error that decides: on a knife edge the one with a penalty that is off by a factor of
    two, else the error itself.
    """

    learner: Learner
    error: float
    speed: float
    infinite_variance: bool
    counted: float


def candidates(c: Analysis) -> list[Candidate]:
    """The stable ones among the laws that are compared, with automatic parameters."""
    knife = knife_edge(c.problem, c.penalties, c.policy) is not None
    found = []
    for law in compared():
        learner = c.resolved(law, **automatic(law))
        rate = float(decay_rates(c.problem, learner, c.policy).real.min())
        if rate > 0.0:
            heavy = not c.variance(learner).finite
            error = zeroed(c.error(c.fixed_point(learner)), c.norm(c.moments.v_pi))
            counted = c.errors.off(c.best_eta) if knife and "eta" in law.params else error
            speed = rate * c.largest_alpha(learner)
            found.append(Candidate(learner, error, speed, heavy, counted))
    return found


def choice(c: Analysis, possible: list[Candidate]) -> Candidate:
    """The least error; among equally good ones the fastest. Infinite variance only if all have it.

    Error is within 5 % of the least, or 1e-9 of the values' size, if it is equally good.
    """
    calm = [p for p in possible if not p.infinite_variance] or possible
    slack = CLOSE * min(p.counted for p in calm) + SOME * (1.0 + c.norm(c.moments.v_pi))
    return max((p for p in calm if p.counted <= slack), key=lambda p: p.speed)


def recommended(c: Analysis) -> Finding | None:
    """The choice, or the direct solver with the same fixed point where the choice is slow."""
    possible = candidates(c)
    if not possible:
        return None
    best = choice(c, possible)
    bounded = _mean_square(c, best)
    learner, why = best.learner, f"error of the fixed point {best.error:.4g}"
    if best.counted > best.error:
        why += f", up to {best.counted:.4g} if eta is off by a factor of two"
    if best.speed < SLOW:
        same = {k: v for k, v in learner.values.items() if k == "eta"}
        learner = c.resolved(learner.algorithm.standing.solver, **same)
        why += (
            f", solved directly, since {best.learner.name} would take {1.0 / best.speed:.2g} steps "
            "or more to get closer by a factor e"
        )
    others = "; ".join(
        f"{p.learner.name} {p.error:.4g}{', infinite variance' if p.infinite_variance else ''}"
        for p in possible
        if p is not best
    )
    zero = c.error(np.zeros(c.problem.n_features))
    why += f" (others: {others})" if others else ""
    why += (
        "; its traces have infinite variance, like those of all others"
        if best.infinite_variance
        else ""
    )
    why += f"; predicting zero everywhere has {zero:.4g}" if 0.0 < zero <= best.error else ""
    if bounded and learner is best.learner:
        why += (
            f". Its mean is stable, its mean square bounded up to alpha = {bounded[LIMIT]:.3g}: at "
            f"alpha = {bounded[ALPHA]:g} its error is {best.error:.4g} +- {bounded[SPREAD]:.2g}, "
            "the root mean square distance from the fixed point"
        )
    params = {k: v for k, v in learner.values.items() if k in learner.law.params}
    shown = ", ".join(
        f"{k} = {v:.4g}" for k, v in params.items() if k != "lam" and not isinstance(v, str)
    )
    return Finding(
        "recommended",
        text=f"use {learner.name}{f' with {shown}' if shown else ''}: {why}.",
        numbers={
            "learner": learner.name,
            "params": params,
            "error": best.error,
            "speed": best.speed,
            "error_of_zero": zero,
            "finite_variance": not best.infinite_variance,
            **bounded,
        },
    )


def _mean_square(c: Analysis, best: Candidate) -> dict[str, float]:
    """The largest step size for bounded second moments, and the spread well below it."""
    found = c.mean_square(best.learner)
    if found is None or found.largest_alpha == 0.0:
        return {}
    alpha = 10.0 ** np.floor(np.log10(found.largest_alpha / WELL_BELOW))
    spread = zeroed(found.spread(float(alpha)), c.norm(c.moments.v_pi))
    return {LIMIT: found.largest_alpha, ALPHA: float(alpha), SPREAD: spread}
