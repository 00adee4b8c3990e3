"""Every learner on one problem side by side, and which one to use.

There is one recommendation, for one stated reason: finite variance, then the least error, then
speed. Without the cures it is one of the laws that the certificate compares. With them every cure
takes part, and the choice is another only where a cure has an error that is lower by more than 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.errors import InputError
from steadytd.base.finding import Finding
from steadytd.base.numbers import LARGEST_COUNT, about, number
from steadytd.engine.law import AUTO, Law
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, names
from steadytd.mdp.scales import SAME, Complexes, zeroed
from steadytd.theory.analysis import Analysis
from steadytd.theory.cure import CLOSE, Cure, Iteration
from steadytd.theory.cures import LARGE_RANK, NOISIEST, best_first, is_too_noisy
from steadytd.theory.dynamics import decay_rates
from steadytd.theory.exact import MeanSquare
from steadytd.theory.variance import noise

CODE = "recommended"
LEAST, FASTEST = "least_error", "fastest"  # the reasons
WELL_BELOW = 10.0  # alpha is a power of ten, at least so many times below its limit,
QUIET = 0.1  # and its spread at most this share of the error, or of the values' size
HUNDREDFOLD = 100.0  # by so much a mode has grown, or shrunk, at the horizon
LONG = 1e6  # steps to the horizon from which on solving directly is better
NO_CURE = "No cure with acceptable noise lowers the error by more than 5 % within a million steps."
NOISY = 10.0  # times TD's noise, from which on the text says what that costs


def overview(c: Analysis) -> list[dict[str, Any]]:
    """Name, parameters, stability, variance, error of the fixed point, largest step size if known.

    With "auto" where it is offered, and for large problems only the learners that are compared:
    the others' matrices are several times as large as the problem. A learner without closed form
    on this problem (COP-TD and its kin where states are inactive) is left out.
    """
    rows = []
    for law in map(algorithm, names()) if c.pencil.rank <= LARGE_RANK else compared():
        if law.action_values or undecided(law):
            continue
        learner = c.resolved(law, **automatic(law))
        try:
            c.expectation(learner)
        except InputError:
            continue
        unknown = law.block is not None or law.first_order  # the mean of large steps is another
        row: dict[str, Any] = {
            "learner": law.name,
            "params": {k: v for k, v in learner.values.items() if k in law.params},
            "stable": c.is_stable(learner),
            "finite_variance": c.variance(learner).finite,
            "variance_growth": c.variance(learner).growth,
            "largest_alpha": None if unknown else c.largest_alpha(learner),
        }
        try:
            w = c.fixed_point(learner)
        except InputError:
            row |= {"error": None, "values": None}
        else:
            row |= {"error": c.error(w), "values": (c.moments.Phi @ w).tolist()}
        rows.append(row)
    return rows


def compared() -> list[Law]:
    """The registered laws that the certificate compares and may recommend, in their order."""
    laws = [law for law in map(algorithm, names()) if law.standing.place]
    return sorted(laws, key=lambda law: law.standing.place)


def undecided(law: Law) -> bool:
    """Whether a law has a hyper-parameter that nobody but the user can choose."""
    return any(param.default is None and not param.auto for param in law.params.values())


def automatic(law: Law) -> dict[str, object]:
    """The hyper-parameters of a law that offer "auto", set to it."""
    return {name: AUTO for name, param in law.params.items() if param.auto}


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
    knife = c.penalties.knife_edge is not None
    found = []
    for law in compared():
        learner = c.resolved(law, **automatic(law))
        if c.is_stable(learner):
            heavy = not c.variance(learner).finite
            error = zeroed(c.error(c.fixed_point(learner)), c.scale)
            counted = c.penalties.off_by_two(c.best_eta) if knife and "eta" in law.params else error
            speed = float(_modes(c, learner).real.min()) * c.largest_alpha(learner)
            found.append(Candidate(learner, error, speed, heavy, counted))
    return found


def _modes(c: Analysis, learner: Learner) -> Complexes:
    """The rates of a stable learner; what is slower than rounding shows gets the least one."""
    rates = decay_rates(c.problem, learner, c.policy)
    least = float(np.finfo(float).eps * np.abs(rates).max())
    return np.where(rates.real > 0.0, rates, least)


def equally_good(c: Analysis, possible: list[Candidate]) -> list[Candidate]:
    """The candidates of least error; those of infinite variance only if all have it.

    Error is within 5 % of the least, or 1e-9 of the values' size, if it is equally good.
    """
    calm = [p for p in possible if not p.infinite_variance] or possible
    slack = CLOSE * min(p.counted for p in calm) + SAME * c.scale
    return [p for p in calm if p.counted <= slack]


def choice(c: Analysis, possible: list[Candidate]) -> Candidate:
    """Of the equally good ones the fastest.

    Speeds are compared at step sizes with bounded second moments if these are known for all of
    them, else at step sizes with a stable mean.
    """
    good = equally_good(c, possible)
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


def horizon(modes: ArrayLike, alpha: float) -> float:
    """After how many mean updates the last mode has changed a hundredfold.

    A mode at rate l is multiplied by 1 - alpha l. The last one to shrink to a hundredth counts, or
    if some grow, the first one to be a hundred times as large.
    """
    x = alpha * np.asarray(modes, dtype=np.complex128)
    with np.errstate(divide="ignore"):  # a mode may be gone after one step
        change = float((0.5 * np.log1p(np.abs(x) ** 2 - 2.0 * x.real)).max())
    return max(1.0, float(np.ceil(np.log(HUNDREDFOLD) / abs(change)))) if change else float("inf")


class Step(NamedTuple):
    """A step size well below its limit, with the number of steps to the horizon at it.

    The limit is that of bounded second moments where `moments` are known, else that of the mean.
    """

    alpha: float
    horizon: float
    limit: float
    moments: MeanSquare | None
    noise: float


@dataclass(frozen=True)
class Use:
    """What is recommended, and why.

    A direct solver has no step size: then `step` is of the learner that it is `instead_of`.
    """

    name: str
    params: dict[str, Any]
    error: float
    reason: str
    why: str
    speed: float
    finite: bool
    step: Step
    instead_of: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


def recommended(c: Analysis, cures: Sequence[Cure] = ()) -> Finding | None:
    """The one learner to use, with its one reason, its step size and its horizon."""
    possible = candidates(c)
    if not possible:
        return None
    use = _learner(c, choice(c, possible), possible)
    calm = (t for t in cures if t.row["rate"] and t.row["finite_variance"] and not is_too_noisy(t))
    equal = best_first([t for t in calm if _cure_step(c, t, use).horizon <= LONG])
    if equal and use.error > CLOSE * min(t.best_error or 0.0 for t in equal) + SAME * c.scale:
        use = _cure(c, equal, use)
    elif cures:
        use = replace(use, why=f"{use.why} {NO_CURE}")
    return _finding(c, use, cures)


def _learner(c: Analysis, best: Candidate, possible: list[Candidate]) -> Use:
    """One of the learners that are compared, or the direct solver with the same fixed point."""
    good = equally_good(c, possible)
    learner, error, step = best.learner, best.error, _learner_step(c, best)
    if step.horizon > LONG:
        same = {k: v for k, v in learner.values.items() if k == "eta"}
        learner = c.resolved(learner.algorithm.standing.solver, **same)
        error = zeroed(c.error(c.fixed_point(learner)), c.scale)  # less rounding
    shown = f"{number(error)}{_off(c, best)}"
    finite = "" if best.infinite_variance else " with finite variance"
    if len(good) == 1:
        why = f"of the learners{finite} its fixed point has the least error, {shown}"
    else:
        known = all(in_mean_square(c, p).bounded for p in good)
        where = "with bounded second moments" if known else "in the mean"
        why = (
            f"of the {len(good)} learners{finite} and the least error ({shown}, within 5 %) it is "
            f"the fastest {where}"
        )
    others = "; ".join(
        f"{p.learner.name} {number(p.error)}{_off(c, p)}"
        f"{', infinite variance' if p.infinite_variance else ''}"
        for p in possible
        if p.learner is not best.learner
    )
    why += f" (others: {others})" if others else ""
    why += "; all have infinite variance" if best.infinite_variance else ""
    instead = ""
    if learner is not best.learner:
        instead = best.learner.name
        why += (
            f". It is solved directly: at alpha = {number(step.alpha)}, {instead} would have 1 % "
            f"of its slowest mode left after {about(step.horizon, 'step')}"
        )
    return Use(
        learner.name, {k: v for k, v in learner.values.items() if k in learner.law.params}, error,
        LEAST if len(good) == 1 else FASTEST, f"{why}.", best.speed, not best.infinite_variance,
        step, instead,
    )  # fmt: skip


def _off(c: Analysis, p: Candidate) -> str:
    return f", {off_by_two(c)}" if p.counted > p.error else ""


def _cure(c: Analysis, equal: list[Cure], beaten: Use) -> Use:
    """The first of the cures of least error."""
    best, *others = equal
    cure, take, error = best, best.best or 0.0, best.best_error or 0.0
    if others:
        why = (
            f"of the {len(equal)} cures with acceptable noise and the least error "
            f"({number(error)}, within 5 %) it is the fastest at equal noise"
        )
    else:
        why = (
            "of the cures with acceptable noise its fixed point has the least error, "
            f"{number(error)}"
        )
    step, plain = _cure_step(c, best, beaten), cure.setting.td_noise
    why += (
        f" ({beaten.name}: {number(beaten.error)}). The noise of its updates is "
        f"{number(step.noise, 3)}; that of TD is {number(plain, 3)}."
    )
    if step.noise >= NOISY * plain:
        times = number((step.noise / plain) ** 2, 2)
        why += f" It takes {times} times as many steps to average it out."
    return Use(
        cure.name, {**cure.settings, cure.amount: take}, error, FASTEST if others else LEAST, why,
        best.row["rate"] or 0.0, bool(best.row["finite_variance"]), step,
        numbers={"noise": step.noise, "equal": [t.title for t in others]},
    )  # fmt: skip


def _learner_step(c: Analysis, best: Candidate) -> Step:
    learner = best.learner
    scatter, limit = noise(c.problem, learner, c.policy) or 1.0, c.largest_alpha(learner)
    moments = c.mean_square(learner)
    alpha = _well_below(limit, scatter) if moments is None else _quiet(c, best.error, moments)
    return _step(_modes(c, learner), alpha, limit, moments, scatter)


def _cure_step(c: Analysis, t: Cure, beside: Use) -> Step:
    """The step size of a cure.

    Where its second moments are not known, it is no larger than that of the learner beside it,
    times the ratio of the squares of their noise.
    """
    best, moments = t.best or 0.0, t.moments
    scatter, limit, modes = t.noise(best) or 1.0, t.largest_alpha(best), t.rates(best)
    if isinstance(t, Iteration):  # its step size is fixed, and its matrix is of `best` steps
        return Step(limit, best * horizon(modes, 1.0), limit, None, scatter)
    as_quiet = WELL_BELOW * beside.step.alpha * beside.step.noise**2
    alpha = _well_below(min(limit, as_quiet), scatter)
    if moments is not None:
        alpha = _quiet(c, t.best_error or 0.0, moments)
    return _step(modes, alpha, limit, moments, scatter)


def _step(
    modes: Complexes, alpha: float, limit: float, moments: MeanSquare | None, scatter: float
) -> Step:
    largest = limit if moments is None else moments.largest_alpha
    return Step(alpha, horizon(modes, alpha), largest, moments, scatter)


def _too_loud(cures: Sequence[Cure], error: float) -> str:
    """The cures of less error that are too noisy."""
    loud = [
        t
        for t in cures
        if t.row["finite_variance"] and is_too_noisy(t) and (t.best_error or 0.0) < error
    ]
    names = ", ".join(f"{t.title} {number(t.best_error)}" for t in loud)
    return (
        f" Too noisy, with over {number(NOISIEST)} times the noise of TD: {names}." if loud else ""
    )


def _quiet(c: Analysis, error: float, moments: MeanSquare) -> float:
    """The largest power of ten, well below the limit, at which a long run is quiet."""
    alpha = _well_below(moments.largest_alpha)
    loud = QUIET * max(error, c.error(np.zeros(c.problem.n_features))) + SAME * c.scale
    while moments.spread(alpha) > loud and alpha > SAME * moments.largest_alpha:
        alpha /= 10.0
    return alpha


def _well_below(limit: float, scatter: float = 1.0) -> float:
    """A power of ten well below a limit, by the square of the noise where that is not in it."""
    known = max(1.0, scatter) if np.isfinite(scatter) else 1.0
    return float(10.0 ** np.floor(np.log10(limit / known**2 / WELL_BELOW)))


def _finding(c: Analysis, use: Use, cures: Sequence[Cure]) -> Finding:
    zero, step = c.error(np.zeros(c.problem.n_features)), use.step
    numbers = {
        "learner": use.name, "params": use.params, "reason": use.reason, "error": use.error,
        "error_of_zero": zero, "finite_variance": use.finite, "speed": use.speed,
        "instead_of": use.instead_of or None, "alpha": step.alpha,
        "decay_steps": int(step.horizon) if step.horizon <= LARGEST_COUNT else None,
        **use.numbers,
    }  # fmt: skip
    text = use.why + _too_loud(cures, use.error)
    text += f" Predicting zero everywhere has {number(zero)}." if 0.0 < zero <= use.error else ""
    at_alpha = (
        f" Its mean is stable below alpha = {number(step.limit, 3)}; its spread is not known."
    )
    if step.moments is not None:
        spread = zeroed(step.moments.spread(step.alpha), c.scale)
        numbers |= {"mean_square_alpha": step.limit, "spread": spread}
        at_alpha = (
            f" Its mean square is bounded up to alpha = {number(step.limit, 3)}. At alpha = "
            f"{number(step.alpha)} the values of a long run are {number(spread, 2)} away from "
            "those of the fixed point, in the root mean square."
        )
    at_alpha += (
        f" At alpha = {number(step.alpha)} its mean has 1 % of its slowest mode left after "
        f"{about(step.horizon, 'step')}."
    )
    settings = [
        f"{k} = {v if isinstance(v, str) else number(v)}"
        for k, v in use.params.items()
        if k != "lam" or v
    ]
    if not use.instead_of:
        settings.append(f"alpha = {number(step.alpha)}")
        text += at_alpha
    parameters = f" with {', '.join(settings)}" if settings else ""
    return Finding("recommended", text=f"use {use.name}{parameters}: {text}", numbers=numbers)


def off_by_two(c: Analysis) -> str:
    """The error of the automatic penalty if it is off by a factor of two, where that is stable."""
    worst, half = c.penalties.off_by_two(c.best_eta), c.penalties.stable(c.best_eta / 2.0)
    return f"up to {number(worst)} " + (
        "if eta is half or twice as large" if half
        else "if eta is twice as large (half of it is unstable)"
    )  # fmt: skip
