"""Which learner to use: finite variance first, then the least error, then speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

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

    `speed` is the rate of the slowest mode times the largest step size: how much of that mode a
    step can take away. It does not depend on the size of the learner's updates. The step size is
    the largest at which the mean contracts; where `bounded` the largest at which the second
    moments stay bounded, too. `counted` is the error that decides: on a knife edge the one with a
    penalty that is off by a factor of two, else the error itself.
    """

    learner: Learner
    error: float
    speed: float
    infinite_variance: bool
    counted: float
    bounded: bool = False


def candidates(c: Analysis) -> list[Candidate]:
    """The stable ones among the laws that are compared, with automatic parameters."""
    knife = knife_edge(c.problem, c.penalties, c.policy) is not None
    found = []
    for law in compared():
        learner = c.resolved(law, **automatic(law))
        if c.is_stable(learner):
            rates = decay_rates(c.problem, learner, c.policy)
            hidden = float(np.finfo(float).eps * np.abs(rates).max())  # slower than rounding shows
            rate = float(rates.real.min()) if (rates.real > 0.0).all() else hidden
            heavy = not c.variance(learner).finite
            error = zeroed(c.error(c.fixed_point(learner)), c.scale)
            counted = c.errors.off(c.best_eta) if knife and "eta" in law.params else error
            speed = rate * c.largest_alpha(learner)
            found.append(Candidate(learner, error, speed, heavy, counted))
    return found


def choice(c: Analysis, possible: list[Candidate]) -> Candidate:
    """The least error; among equally good ones the fastest. Infinite variance only if all have it.

    Error is within 5 % of the least, or 1e-9 of the values' size, if it is equally good. Speeds
    are compared at step sizes with bounded second moments if these are known for all of the
    equally good ones, else at step sizes with a stable mean.
    """
    calm = [p for p in possible if not p.infinite_variance] or possible
    slack = CLOSE * min(p.counted for p in calm) + SOME * c.scale
    good = [p for p in calm if p.counted <= slack]
    known: list[Candidate] = []
    for p in good:
        known.append(in_mean_square(c, p))
        if not known[-1].bounded:
            return in_mean_square(c, max(good, key=lambda p: p.speed))
    return max(known, key=lambda p: p.speed)


def in_mean_square(c: Analysis, p: Candidate) -> Candidate:
    """The candidate with its speed at the largest step size that keeps second moments bounded."""
    found = c.mean_square(p.learner)
    if found is None:
        return p
    share = found.largest_alpha / c.largest_alpha(p.learner)  # at most 1
    return replace(p, speed=p.speed * share, bounded=True)


def recommended(c: Analysis) -> Finding | None:
    """The choice, or the direct solver with the same fixed point where the choice is slow."""
    possible = candidates(c)
    if not possible:
        return None
    best = choice(c, possible)
    bounded = _mean_square(c, best)
    learner, error = best.learner, best.error
    if best.speed < SLOW:
        same = {k: v for k, v in learner.values.items() if k == "eta"}
        learner = c.resolved(learner.algorithm.standing.solver, **same)
        error = zeroed(c.error(c.fixed_point(learner)), c.scale)  # less rounding
    why = f"error of the fixed point {error:.4g}"
    if best.counted > best.error:
        why += f", {off_by_two(c)}"
    if learner is not best.learner:
        why += (
            f", solved directly, since {best.learner.name} would take {1.0 / best.speed:.2g} steps "
            "or more to get closer by a factor e"
        )
    others = "; ".join(
        f"{p.learner.name} {p.error:.4g}{', infinite variance' if p.infinite_variance else ''}"
        for p in possible
        if p.learner is not best.learner
    )
    zero = c.error(np.zeros(c.problem.n_features))
    why += f" (others: {others})" if others else ""
    why += (
        "; its traces have infinite variance, like those of all others"
        if best.infinite_variance
        else ""
    )
    why += f"; predicting zero everywhere has {zero:.4g}" if 0.0 < zero <= error else ""
    if bounded and learner is best.learner:
        why += (
            f". Its mean is stable, its mean square bounded up to alpha = {bounded[LIMIT]:.3g}: at "
            f"alpha = {bounded[ALPHA]:g} the values of a long run are {bounded[SPREAD]:.2g} away "
            "from those of the fixed point, in the root mean square"
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
            "error": error,
            "speed": best.speed,
            "error_of_zero": zero,
            "finite_variance": not best.infinite_variance,
            **bounded,
        },
    )


def off_by_two(c: Analysis) -> str:
    """The error of the automatic penalty if it is off by a factor of two, where that is stable."""
    worst, half = c.errors.off(c.best_eta), c.penalties.is_stable(c.best_eta / 2.0)
    return f"up to {worst:.4g} " + (
        "if eta is half or twice as large" if half
        else "if eta is twice as large (half of it is unstable)"
    )  # fmt: skip


def _mean_square(c: Analysis, best: Candidate) -> dict[str, float]:
    """The largest step size for bounded second moments, and the spread well below it."""
    found = c.mean_square(best.learner)
    if found is None or found.largest_alpha == 0.0:
        return {}
    alpha = 10.0 ** np.floor(np.log10(found.largest_alpha / WELL_BELOW))
    spread = zeroed(found.spread(float(alpha)), c.scale)
    return {LIMIT: found.largest_alpha, ALPHA: float(alpha), SPREAD: spread}
