"""How wrong would the probabilities have to be before a decision turns?

The marginal sensitivity model, step by step: the true ratio of a row is xi rho with an unknown xi
between 1/Lambda and Lambda, which may depend on anything, also on what happens next; and true
ratios have mean 1. Every Lambda allows a range of values. The decision (is the target better than
the policy that made the log?) turns at the Lambda where the range reaches the behaviour's value.

**One step per episode.** With weights p_e = rho_e / sum rho, the least value is

    min sum_e p_e xi_e G_e   where sum_e p_e xi_e = 1, 1/Lambda <= xi_e <= Lambda,

a linear program that sorting solves: xi = Lambda for the smallest returns, 1/Lambda for the
largest. That is sharp if all states look alike. Else true ratios have mean 1 in every state, so
sum p xi Q = sum p Q in the mean for any function Q of it, and sorting the residuals G - Q gives a
higher bound. Q is the linear fit of the returns: wrong ratios cannot change what states explain.

**Several steps: a bound, as far as the features go.** The least value function that such ratios
allow satisfies V(s) = min_xi E[xi rho (r + gamma' V(s')) | s], E[xi rho | s] = 1. The minimum over
E[xi rho Y] / E[xi rho], without that constraint, is lower, and is the V with

    E[rho h(r + gamma' V(s') - V(s)) | s] = 0,    h(y) = y / Lambda for y > 0, Lambda y for y < 0.

Its operator is monotone and has the contraction of gamma', so its fixed point lies below every
value that the model allows (above: with 1/Lambda and Lambda exchanged). In the class x.w it is

    sum over rows of x rho xi(w) (r + gamma' x'.w - x.w) = 0,    xi(w) = 1/Lambda or Lambda by sign,

LSTD with rows weighted by the sign of their own errors, solved again until no sign changes (policy
iteration of the adversary). It is computed on sampled whole episodes; its change from Lambda = 1 is
added to the estimated value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.sample import LEFT, PRODUCTS, RETURN, STEPS

CURVE = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0)
MOST = 100.0  # the largest Lambda that is tried
PER_FEATURE = 10  # rows of the sample for each feature, at least
ROUNDS = 30  # solutions of the robust equations for one Lambda, at most
FIRST = 0.05  # the first log Lambda that is tried
ALIKE = 1e-9  # relative difference of values up to which it is rounding
CLOSE = 1e-4  # tolerance of log Lambda, relative and absolute

Extreme = Callable[[float, bool], float]  # of Lambda: the largest value if True, else the least


class Bound(NamedTuple):
    """The range of values when every step's ratio may be off by a factor of Lambda."""

    Lambda: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Sensitivity:
    """The factor at which the decision turns; infinite if none does, NaN if it is not known.

    If it is not `sharp`, it is a bound: the decision does not turn earlier.
    """

    target: str
    Lambda: float
    sharp: bool
    value: float
    behavior: float
    text: str
    least_and_largest: Extreme | None = field(repr=False, compare=False)
    __kept__ = ("curve",)  # in a file, which cannot hold the function

    @property
    def alike(self) -> bool:
        """Whether there is no difference, hence no decision."""
        return _alike(self.value, self.behavior)

    @cached_property
    def curve(self) -> tuple[Bound, ...]:
        """The range of values over Lambda; empty where nothing is known."""
        return self._curve()

    @single_threaded
    def _curve(self) -> tuple[Bound, ...]:
        extreme = self.least_and_largest
        if extreme is None:
            return ()
        shift = self.value - extreme(1.0, False)
        return tuple(
            Bound(Lambda, shift + extreme(Lambda, False), shift + extreme(Lambda, True))
            for Lambda in CURVE
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The numbers that the checks read: none where no Lambda turns the decision."""
        return {} if self.alike or math.isinf(self.Lambda) else {"Lambda": self.Lambda}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("target", "Lambda", "sharp", "value", "behavior", "text")
        curve = [bound._asdict() for bound in self.curve]
        return {**{name: getattr(self, name) for name in names}, "curve": curve}


def _alike(value: float, behavior: float) -> bool:
    return abs(value - behavior) <= ALIKE * max(abs(value), abs(behavior))


class EpisodeRows(NamedTuple):
    """Rows of whole episodes for one target, and the mean features of the states valued."""

    X: Floats
    change: Floats  # gamma' x' - x
    reward: Floats
    rho: Floats
    start: Floats


class SortedReturns:
    """The extremes of the self-normalised mean of one-step episodes; `explained` is Q, above."""

    def __init__(self, G: Floats, W: Floats, explained: Floats | float = 0.0) -> None:
        residual, p = G - explained, W / W.sum()
        order = np.argsort(residual, kind="stable")
        self.residual, self.p = residual[order], p[order]
        self.explained = float((p * explained).sum())

    def __call__(self, Lambda: float, largest: bool) -> float:
        """The first rows get Lambda, as many as the mean 1 of xi allows, the others 1/Lambda."""
        order = slice(None, None, -1 if largest else 1)
        residual, p = self.residual[order], self.p[order]
        excess = np.cumsum(p) * (Lambda - 1.0 / Lambda)
        added = np.diff(np.minimum(excess, 1.0 - 1.0 / Lambda), prepend=0.0)
        return self.explained + float(residual @ (p / Lambda + added))


class RobustEquations:
    """The extremes by the robust equations; each solution starts from the last one."""

    def __init__(self, rows: EpisodeRows) -> None:
        self.rows = rows
        self.lstd = _solve(rows, np.ones(len(rows.reward)))
        self.last = {True: self.lstd, False: self.lstd}

    def __call__(self, Lambda: float, largest: bool) -> float:
        """NaN if the signs do not settle."""
        w = self.lstd if Lambda == 1.0 else self.last[largest]
        if w is not None and Lambda != 1.0:
            w = robust(self.rows, Lambda, largest, w)
        if w is None:
            return float("nan")
        self.last[largest] = w
        return float(self.rows.start @ w)


def extremes(log: Evidence, target: int) -> tuple[Extreme | None, bool]:
    """The extreme values over Lambda, None if they are not known, and whether they are sharp."""
    outcomes, table, e = log.first.sample.outcomes, log.sampled, log.equations
    if table is None or not table.rho[target].any() or log.plan.average:
        return None, False
    X, reward = table.X[:, e.kept], table.reward
    change = table.discount[:, None] * X[table.row_next] - X[: len(table)]
    start = e.start_mean[e.kept]
    rows = EpisodeRows(X[: len(table)], change, reward, table.rho[target] * table.weight, start)
    enough = len(rows.X) >= PER_FEATURE * rows.X.shape[1]
    one_step = ((outcomes[:, STEPS] == 1.0) & (outcomes[:, LEFT] == 0.0)).all()
    if not one_step:
        return (RobustEquations(rows) if enough else None), False
    returns, weights = outcomes[:, RETURN], outcomes[:, PRODUCTS + target]
    if not weights.any():
        return None, False
    states_alike = bool((rows.X[0] == rows.X).all())
    if states_alike or not enough:
        return SortedReturns(returns, weights), states_alike and enough
    root = np.sqrt(rows.rho)
    w = np.linalg.lstsq(root[:, None] * rows.X, root * rows.reward, rcond=None)[0]
    return SortedReturns(rows.reward, rows.rho, rows.X @ w), False


def robust(rows: EpisodeRows, Lambda: float, largest: bool, w: Floats) -> Floats | None:
    """The weights of the least (or largest) value function, from w on; None if they do not settle.

    The sum over rows of x rho xi delta is 0, with xi = Lambda where delta < 0 (> 0), else 1/Lambda.
    """
    before = None
    scale = float(np.abs(rows.reward).max())
    for _ in range(ROUNDS):
        delta = rows.reward + rows.change @ w
        tiny = 1e-6 * max(scale, float(np.abs(delta).max()))
        raised = delta > tiny if largest else delta < -tiny
        if before is not None and (raised == before).all():
            return w
        solution = _solve(rows, np.where(raised, Lambda, 1.0 / Lambda))
        if solution is None:
            return None
        w, before = solution, raised
    return None


def _solve(rows: EpisodeRows, xi: Floats) -> Floats | None:
    weighted = (rows.rho * xi)[:, None] * rows.X
    A, b = -(weighted.T @ rows.change), weighted.T @ rows.reward
    try:
        w: Floats = np.asarray(np.linalg.solve(A, b), dtype=np.float64)
    except np.linalg.LinAlgError:
        w = np.asarray(np.linalg.lstsq(A, b, rcond=1e-10)[0], dtype=np.float64)
    return w if np.isfinite(w).all() else None


def turning_point(extreme: Extreme, difference: float) -> float:
    """The Lambda up to which a difference from the behaviour's value keeps its sign.

    Infinite if it does up to `MOST`; NaN if the values are not known. Where the equations do not
    settle between two tried Lambda, it is the lower one: the decision does not turn earlier.
    """
    from scipy.optimize import brentq

    largest = difference < 0.0
    unchanged = extreme(1.0, largest)
    if not np.isfinite(unchanged):
        return math.nan

    def remaining(log: float) -> float:
        change = extreme(math.exp(log), largest) - unchanged
        return abs(difference) + (-change if largest else change)

    low, high, most = 0.0, FIRST, math.log(MOST)
    while (at_high := remaining(high)) > 0.0:
        if high == most:
            return math.inf
        low, high = high, min(4.0 * high, most)
    if math.isnan(at_high):
        return math.exp(low) if low else at_high
    try:
        return math.exp(brentq(remaining, low, high, xtol=CLOSE, rtol=CLOSE))
    except ValueError:  # not a number
        return math.exp(low)


def sensitivity(
    log: Evidence, target: int, value: float, d: Decision, continuing: bool
) -> Sensitivity:
    """The factor at which `d` turns, the decision about a target of this value."""
    extreme, sharp = extremes(log, target)
    behavior, sharp = value - d.difference, sharp and not continuing
    if extreme is None or not math.isfinite(d.difference):
        text = "The tolerable error of the ratios is not known: too few sampled rows, or no value."
        if log.plan.average:
            text = "The tolerable error of the ratios is not known for rewards per step."
        return Sensitivity(d.target, math.nan, sharp, value, behavior, text, None)
    Lambda = turning_point(extreme, value - behavior)
    text = _text(d, value, behavior, Lambda, sharp)
    return Sensitivity(d.target, Lambda, sharp, value, behavior, text, extreme)


def _text(d: Decision, value: float, behavior: float, Lambda: float, sharp: bool) -> str:
    if _alike(value, behavior):
        return "Target and logged policy have the same value: there is no decision to reverse."
    verb = "looks" if d.decision == "undecided" else "is"
    decision = f"{d.target} {verb} {'better' if value > behavior else 'worse'}"
    if np.isnan(Lambda):
        return f"{decision}; the tolerable error of the ratios is not known."
    if np.isinf(Lambda):
        return f"{decision}, even if every ratio is wrong by a factor of {MOST:.0f}."
    if sharp:
        return f"{decision} unless individual ratios are wrong by a factor of {Lambda:.3g} or more."
    return (
        f"{decision} while no ratio is wrong by more than a factor of {Lambda:.3g}, as far as the "
        "features can tell."
    )
