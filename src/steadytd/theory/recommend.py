"""Every learner on one problem side by side, and which one to use.

There is one recommendation, for one stated reason: finite variance, then the least error, then
speed. Without the cures it is one of the laws that the certificate compares. With them every cure
takes part, and the choice is another only where a cure has an error that is lower by more than 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from steadytd.theory.almost_sure import AlmostSure, almost_sure
from steadytd.theory.analysis import LearnersOn, compared
from steadytd.theory.cure import CLOSE, Cure, Iteration
from steadytd.theory.cures import LARGE_RANK, NOISIEST, best_first, is_too_noisy
from steadytd.theory.dynamics import decay_rates, fixed_rate
from steadytd.theory.exact import MeanSquare
from steadytd.theory.learning_curve import spread_of_a_run
from steadytd.theory.variance import noise

CODE = "recommended"
LEAST, FASTEST = "least_error", "fastest"  # the reasons
WELL_BELOW = 10.0  # alpha is a power of ten, at least so many times below its limit,
QUIET = 0.1  # and its spread at most this share of the error, or of the values' size
HUNDREDFOLD = 100.0  # by so much a mode has grown, or shrunk, at the horizon
TRIES = 4  # step sizes at which a run is followed, each a tenth of the one before
SHORTEST = 200_000  # steps of such a run
LONG = 1e6  # steps to the horizon from which on solving directly is better
NO_CURE = "No cure with acceptable noise lowers the error by more than 5 % within a million steps."
NOISY = 10.0  # times TD's noise, from which on the text says what that costs


def overview(c: LearnersOn) -> list[dict[str, Any]]:
    """Name, parameters, stability, variance, error of the fixed point, largest step size if known.

    With "auto" where it is offered, and for large problems only the learners that are compared:
    the others' matrices are several times as large as the problem. A learner without closed form
    on this problem (COP-TD and its kin where states are inactive) is left out.
    """
    rows = []
    average = c.problem.average_reward
    for law in map(algorithm, names()) if c.rank <= LARGE_RANK else compared(average):
        if law.action_values or law.average_reward != average or undecided(law):
            continue
        learner = c.resolved(law, **automatic(law))
        try:
            c.expectation(learner)
        except InputError:
            continue
        unknown = law.block is not None or law.first_order  # the mean of large steps is another
        row: dict[str, Any] = {
            "learner": law.name,
            "params": _params(learner),
            "stable": c.is_stable(learner),
            "finite_variance": c.variance(learner).finite,
            "variance_growth": c.variance(learner).growth,
            "largest_alpha": None if unknown else c.largest_alpha(learner),
        } | _single_runs(c, learner)
        try:
            w = c.fixed_point(learner)
        except InputError:
            row |= {"error": None, "values": None}
        else:
            values = None if c.moments.sparse else (c.moments.compared @ w).tolist()
            row |= {"error": c.error(w), "values": values}
            if average:
                row["rate"] = fixed_rate(c.problem, learner, c.policy)
        rows.append(row)
    return rows


def _single_runs(c: LearnersOn, learner: Learner) -> dict[str, Any]:
    """The third verdict, where it does not follow from the second: at what step size, and why.

    Of a stable mean with finite variance single runs settle, too, at small enough step sizes.
    """
    needed = c.is_stable(learner) and not c.variance(learner).finite
    found = _followed(c, learner) if needed else None
    return {
        "almost_sure": None if found is None else found.stable,
        "exponent": None if found is None else [found.exponent, found.low, found.high],
        "exponent_alpha": None if found is None else found.alpha,
    }


def adaptive() -> str:
    """A sentence for the laws that learn step sizes, which the overview leaves out."""
    laws = [law for law in map(algorithm, names()) if law.adapts]
    if not laws:
        return ""
    named = ", ".join(law.name for law in laws)
    of = ", ".join(dict.fromkeys(law.adapts for law in laws))
    return (
        f"Not in the table, since they learn a step size for every feature: {named}. While step "
        f"sizes are small and constant, the mean update is that of {of} with a step size per "
        "feature: the same fixed point. On-policy it leads there; off-policy there is no guarantee."
    )


def undecided(law: Law) -> bool:
    """Whether a law has a hyper-parameter that nobody but the user can choose."""
    return any(param.default is None and not param.auto for param in law.params.values())


def automatic(law: Law) -> dict[str, object]:
    """The hyper-parameters of a law that offer "auto", set to it."""
    return {name: AUTO for name, param in law.params.items() if param.auto}


@dataclass(frozen=True, eq=False)
class Option:
    """A learner, or a cure at its best value, that could be recommended, with what decides it.

    `counted` is the error that decides: on a knife edge the one with a penalty that is off by a
    factor of two, else the error itself. Its modes decay at `rates` times alpha, and its mean
    contracts below `mean_alpha`. `speed` is the rate of the slowest mode times that: how much of
    the mode a step can take away, whatever the size of the updates. Of an iteration with a fixed
    step size, `inner` is the number of its steps.
    """

    name: str
    params: dict[str, Any]
    error: float
    counted: float
    finite_variance: bool
    speed: float
    rates: Complexes
    mean_alpha: float
    noises: Callable[[], float | None] = lambda: None
    moments: Callable[[], MeanSquare | None] = lambda: None
    inner: float = 0.0
    almost_surely: Callable[[], AlmostSure | None] = lambda: None

    @property
    def settles(self) -> bool:
        """Whether single runs do, although the variance is infinite."""
        found = self.almost_surely()
        return found is not None and found.stable is True

    @property
    def noise(self) -> float:
        """That of the updates, 1 where it is not known."""
        return self.noises() or 1.0

    @property
    def bounded_speed(self) -> float:
        """The speed at the largest step size that keeps second moments bounded, where known."""
        moments = self.moments()
        return self.speed * (1.0 if moments is None else moments.largest_alpha / self.mean_alpha)


def candidates(c: LearnersOn) -> list[Option]:
    """The stable ones among the laws that are compared, with automatic parameters."""
    knife = c.penalties.knife_edge is not None
    found = []
    for law in compared(c.problem.average_reward):
        learner = c.resolved(law, **automatic(law))
        if not c.is_stable(learner):
            continue
        error = zeroed(c.error(c.fixed_point(learner)), c.scale)
        off = knife and "eta" in law.params
        rates = decay_rates(c.problem, learner, c.policy)
        # what is slower than rounding shows gets the least rate that it does show
        rates = np.where(rates.real > 0.0, rates, np.finfo(float).eps * np.abs(rates).max())
        found.append(
            Option(
                law.name, _params(learner), error,
                c.penalties.off_by_two(c.best_eta) if off else error,
                c.variance(learner).finite, float(rates.real.min()) * c.largest_alpha(learner),
                rates, c.largest_alpha(learner), partial(noise, c.problem, learner, c.policy),
                partial(c.mean_square, learner), almost_surely=partial(_followed, c, learner),
            )
        )  # fmt: skip
    return found


def _followed(c: LearnersOn, learner: Learner) -> AlmostSure | None:
    """The exponent of a learner, well below the largest step size of its mean."""
    if learner.law.block is not None:
        return None
    alpha = _well_below(c.largest_alpha(learner))
    return almost_sure(c.problem, learner.replace(alpha=alpha), c.policy)


def _params(learner: Learner) -> dict[str, Any]:
    """The hyper-parameters of its own law."""
    return {name: value for name, value in learner.values.items() if name in learner.law.params}


def _at_best(t: Cure) -> Option:
    """A cure at its best value."""
    best, error = t.best or 0.0, t.best_error or 0.0
    return Option(
        t.name, {**t.settings, t.amount: best}, error, error, t.has_finite_variance(best),
        t.rate(best), t.rates(best), t.largest_alpha(best), partial(t.noise, best),
        lambda: t.moments, best if isinstance(t, Iteration) else 0.0,
    )  # fmt: skip


def equally_good(c: LearnersOn, possible: list[Option]) -> list[Option]:
    """The options of least error; those of infinite variance only if all have it.

    Then those whose single runs settle come first.
    Error is within 5 % of the least, or 1e-9 of the values' size, if it is equally good.
    """
    calm = [p for p in possible if p.finite_variance]
    calm = calm or [p for p in possible if p.settles] or possible
    slack = CLOSE * min(p.counted for p in calm) + SAME * c.scale
    return [p for p in calm if p.counted <= slack]


def choice(good: list[Option]) -> tuple[Option, bool]:
    """The fastest of equally good ones, and whether it is so with bounded second moments.

    Speeds are compared at step sizes with bounded second moments if these are known for all of
    them, else at step sizes with a stable mean. The first of those that differ by rounding only.
    """
    bounded = all(p.moments() is not None for p in good)
    speeds = [p.bounded_speed if bounded else p.speed for p in good]
    enough = (1.0 - SAME) * max(speeds)
    return next(p for p, speed in zip(good, speeds, strict=True) if speed >= enough), bounded


def horizon(modes: ArrayLike, alpha: float) -> float:
    """After how many mean updates the last mode has changed a hundredfold.

    A mode at rate l is multiplied by 1 - alpha l. The last one to shrink to a hundredth counts, or
    if some grow, the first one to be a hundred times as large.
    """
    x = alpha * np.asarray(modes, dtype=np.complex128)
    with np.errstate(divide="ignore"):  # a mode may be gone after one step
        change = float((0.5 * np.log1p(np.abs(x) ** 2 - 2.0 * x.real)).max())
    return max(1.0, float(np.ceil(np.log(HUNDREDFOLD) / abs(change)))) if change else float("inf")


class Use(NamedTuple):
    """An option at a step size well below its limit, the steps to its horizon, and why it is used.

    The limit is that of bounded second moments where these are known, else that of the mean. Then
    a run shows how `quiet` it is, and `first` was the first step size to be tried. A direct solver
    has no step size: then it is that of the learner that it is `instead_of`.
    """

    option: Option
    alpha: float
    horizon: float
    limit: float
    reason: str = LEAST
    why: str = ""
    instead_of: str = ""
    first: float = 0.0
    quiet: Quiet | None = None


class Quiet(NamedTuple):
    """How far from the fixed point the values of a run of so many steps are."""

    spread: float
    steps: int


def _at_alpha(c: LearnersOn, option: Option, beside: Use | None = None) -> Use:
    """An option with its step size.

    Where the second moments of a cure are not known, its step size is no larger than that of the
    learner beside it, times the ratio of the squares of their noise.
    """
    limit, moments = option.mean_alpha, option.moments()
    if option.inner:  # its step size is fixed, and its matrix is of all inner steps
        return Use(option, limit, option.inner * horizon(option.rates, 1.0), limit)
    if moments is not None:
        alpha, limit = _quiet(c, option.error, moments), moments.largest_alpha
    else:
        as_quiet = limit if beside is None else WELL_BELOW * beside.first * beside.option.noise**2
        alpha = _well_below(min(limit, as_quiet), option.noise)
    return Use(option, alpha, horizon(option.rates, alpha), limit, first=alpha)


def _quiet(c: LearnersOn, error: float, moments: MeanSquare) -> float:
    """The largest power of ten, well below the limit, at which a long run is quiet."""
    alpha = _well_below(moments.largest_alpha)
    while moments.spread(alpha) > _loud(c, error) and alpha > SAME * moments.largest_alpha:
        alpha /= 10.0
    return alpha


def _loud(c: LearnersOn, error: float) -> float:
    return QUIET * max(error, c.error(np.zeros(c.problem.n_features))) + SAME * c.scale


def _in_a_run(c: LearnersOn, use: Use) -> Use:
    """Where second moments are not known: a power of ten at which one run is quiet.

    A stable mean, and traces of finite variance, do not tell how far a run strays.
    """
    option = use.option
    if option.inner or option.moments() is not None:
        return use
    learner = c.resolved(option.name, **option.params)
    for alpha in use.alpha / 10.0 ** np.arange(TRIES):
        ahead = horizon(option.rates, alpha)
        steps = int(np.clip(ahead, SHORTEST, LONG))
        spread = spread_of_a_run(c.problem, learner.replace(alpha=float(alpha)), steps, c.policy)
        use = use._replace(alpha=float(alpha), horizon=ahead, quiet=Quiet(spread, steps))
        if spread <= _loud(c, option.error):
            break
    return use


def _well_below(limit: float, scatter: float = 1.0) -> float:
    """A power of ten well below a limit, by the square of the noise where that is not in it."""
    known = max(1.0, scatter) if np.isfinite(scatter) else 1.0
    return float(10.0 ** np.floor(np.log10(limit / known**2 / WELL_BELOW)))


def recommended(c: LearnersOn, cures: Sequence[Cure] = ()) -> Finding | None:
    """The one learner to use, with its one reason, its step size and its horizon."""
    possible = candidates(c)
    if not possible:
        return None
    use = _learner(c, possible)
    calm = (t for t in cures if t.row["rate"] and t.row["finite_variance"] and not is_too_noisy(t))
    equal = best_first([t for t in calm if _at_alpha(c, _at_best(t), use).horizon <= LONG])
    if equal and use.option.error > CLOSE * min(map(_error, equal)) + SAME * c.scale:
        return _finding(c, _cure(c, equal, use), cures, equal)
    if cures:
        use = use._replace(why=f"{use.why} {NO_CURE}")
    return _finding(c, use, cures)


def _error(t: Cure) -> float:
    return t.best_error or 0.0


def _learner(c: LearnersOn, possible: list[Option]) -> Use:
    """One of the learners that are compared, or the direct solver with the same fixed point."""
    good = equally_good(c, possible)
    best, bounded = choice(good)
    use, option = _in_a_run(c, _at_alpha(c, best)), best
    if use.horizon > LONG and algorithm(best.name).role.solver:
        penalty = {k: v for k, v in best.params.items() if k == "eta"}
        solver = c.resolved(algorithm(best.name).role.solver, **penalty)
        error = zeroed(c.error(c.fixed_point(solver)), c.scale)  # less rounding
        option = replace(best, name=solver.name, params=_params(solver), error=error)
    shown = f"{number(option.error)}{_off(c, best)}"
    finite = " with finite variance" if best.finite_variance else ""
    if len(good) == 1:
        why = f"of the learners{finite} its fixed point has the least error, {shown}"
    else:
        why = (
            f"of the {len(good)} learners{finite} and the least error ({shown}, within 5 %) it is "
            f"the fastest {'with bounded second moments' if bounded else 'in the mean'}"
        )
    others = "; ".join(
        f"{p.name} {number(p.error)}{_off(c, p)}"
        f"{'' if p.finite_variance else f', infinite variance{_but(p)}'}"
        for p in possible
        if p is not best
    )
    why += f" (others: {others})" if others else ""
    why += "" if best.finite_variance else f"; all have infinite variance{_but(best)}"
    if option is not best:
        use = use._replace(instead_of=best.name)
        why += (
            f". It is solved directly: at alpha = {number(use.alpha)}, {best.name} would have 1 % "
            f"of its slowest mode left after {about(use.horizon, 'step')}"
        )
    return use._replace(option=option, reason=LEAST if len(good) == 1 else FASTEST, why=f"{why}.")


def _but(p: Option) -> str:
    found = p.almost_surely()
    if found is None or found.stable is None:
        return ""
    return f"{', but ' if found.stable else ', and '}{found.text}"


def _off(c: LearnersOn, p: Option) -> str:
    return f", {off_by_two(c)}" if p.counted > p.error else ""


def _cure(c: LearnersOn, equal: list[Cure], beaten: Use) -> Use:
    """The first of the cures of least error."""
    best = _at_best(equal[0])
    error = number(best.error)
    why = f"of the cures with acceptable noise its fixed point has the least error, {error}"
    if len(equal) > 1:
        why = (
            f"of the {len(equal)} cures with acceptable noise and the least error "
            f"({error}, within 5 %) it is the fastest at equal noise"
        )
    plain = equal[0].setting.td_noise
    why += (
        f" ({beaten.option.name}: {number(beaten.option.error)}). The noise of its updates is "
        f"{number(best.noise, 3)}; that of TD is {number(plain, 3)}."
    )
    if best.noise >= NOISY * plain:
        times = number((best.noise / plain) ** 2, 2)
        why += f" It takes {times} times as many steps to average it out."
    reason = LEAST if len(equal) == 1 else FASTEST
    return _at_alpha(c, best, beaten)._replace(reason=reason, why=why)


def _too_loud(cures: Sequence[Cure], error: float) -> str:
    """The cures of less error that are too noisy."""
    loud = (t for t in cures if t.row["finite_variance"] and is_too_noisy(t) and _error(t) < error)
    names = ", ".join(f"{t.title} {number(t.best_error)}" for t in loud)
    return (
        f" Too noisy, with over {number(NOISIEST)} times the noise of TD: {names}." if names else ""
    )


def _finding(c: LearnersOn, use: Use, cures: Sequence[Cure], equal: Sequence[Cure] = ()) -> Finding:
    """In words; `equal` are the cures of least error, if one of them is used."""
    zero, option, moments = (
        c.error(np.zeros(c.problem.n_features)),
        use.option,
        use.option.moments(),
    )
    numbers = {
        "learner": option.name, "params": option.params, "reason": use.reason,
        "error": option.error, "error_of_zero": zero, "finite_variance": option.finite_variance,
        "speed": option.speed if equal else option.bounded_speed,
        "instead_of": use.instead_of or None, "alpha": use.alpha,
        "decay_steps": int(use.horizon) if use.horizon <= LARGEST_COUNT else None,
    }  # fmt: skip
    if equal:
        numbers |= {"noise": option.noise, "equal": [t.title for t in equal[1:]]}
    text = use.why + _too_loud(cures, option.error)
    if 0.0 < zero <= option.error:
        text += f" Predicting zero everywhere has {number(zero)}."
    at_alpha = f" Its mean is stable below alpha = {number(use.limit, 3)}."
    if use.quiet is not None and not use.instead_of:
        numbers |= {"run_spread": use.quiet.spread, "run_steps": use.quiet.steps}
        at_alpha += (
            f" At alpha = {number(use.alpha)} the values of a run of {use.quiet.steps:,} steps are "
            f"{number(use.quiet.spread, 2)} away from those of the fixed point, in the root mean "
            "square."
        )
    elif moments is None:
        at_alpha = f"{at_alpha[:-1]}; its spread is not known."
    if moments is not None:
        spread = zeroed(moments.spread(use.alpha), c.scale)
        numbers |= {"mean_square_alpha": use.limit, "spread": spread}
        at_alpha = (
            f" Its mean square is bounded up to alpha = {number(use.limit, 3)}. At alpha = "
            f"{number(use.alpha)} the values of a long run are {number(spread, 2)} away from "
            "those of the fixed point, in the root mean square."
        )
    settings = [
        f"{k} = {v if isinstance(v, str) else number(v)}"
        for k, v in option.params.items()
        if k != "lam" or v
    ]
    if not use.instead_of:
        settings.append(f"alpha = {number(use.alpha)}")
        text += (
            f"{at_alpha} At alpha = {number(use.alpha)} its mean has 1 % of its slowest mode left "
            f"after {about(use.horizon, 'step')}."
        )
    parameters = f" with {', '.join(settings)}" if settings else ""
    return Finding("recommended", text=f"use {option.name}{parameters}: {text}", numbers=numbers)


def off_by_two(c: LearnersOn) -> str:
    """The error of the automatic penalty if it is off by a factor of two, where that is stable."""
    worst, half = c.penalties.off_by_two(c.best_eta), c.penalties.stable(c.best_eta / 2.0)
    return f"up to {number(worst)} " + (
        "if eta is half or twice as large" if half
        else "if eta is twice as large (half of it is unstable)"
    )  # fmt: skip
