"""How wrong would the probabilities have to be before a decision turns?

The marginal sensitivity model, step by step: the true ratio of a row is xi rho with some unknown xi
between 1/Lambda and Lambda, which may depend on everything, also on what happens next; and true
ratios have mean 1. For every Lambda this leaves a range of values. The decision (is the target
better than the policy that made the log?) turns at the Lambda where the range reaches the
behaviour's own value.

**One step per episode.** With weights p_e = rho_e / sum rho, the least value is

    min sum_e p_e xi_e G_e   where sum_e p_e xi_e = 1, 1/Lambda <= xi_e <= Lambda,

a linear program that sorting solves: xi = Lambda for the smallest returns, 1/Lambda for the
largest. That is sharp if nothing is known of a state. Else true ratios have mean 1 in every state,
so for any function Q of it sum p xi Q = sum p Q in the mean, and sorting the rest, G - Q, gives a
higher bound. Q is the linear fit of the returns: wrong ratios cannot turn what the states explain.

**Several steps: a bound, as far as the features go.** The least value function that such ratios
allow satisfies V(s) = min_xi E[xi rho (r + gamma' V(s')) | s], E[xi rho | s] = 1. The minimum over
E[xi rho Y] / E[xi rho], without that constraint, is lower, and is the V with

    E[rho h(r + gamma' V(s') - V(s)) | s] = 0,    h(y) = y / Lambda for y > 0, Lambda y for y < 0.

Its operator is monotone and has the contraction of gamma', so its fixed point lies below every
value that the model allows (above: with 1/Lambda and Lambda exchanged). In the class x.w it is

    sum over rows of x rho xi(w) (r + gamma' x'.w - x.w) = 0,    xi(w) = 1/Lambda or Lambda by sign,

LSTD with rows weighted by the sign of their own errors, solved again until no sign changes (policy
iteration of the adversary). It is computed on sampled whole episodes; what is reported is the
change against Lambda = 1, added to the value that was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.rows import RowTable
from steadytd.evaluation.sample import LEFT, PRODUCTS, RETURN, STEPS

CURVE = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0)
MOST = 100.0  # the largest factor that is looked at
PER_FEATURE = 10  # rows of the sample for each feature, at least
ROUNDS = 30  # solutions of the robust equations for one Lambda, at most
FIRST = 0.05  # the first log Lambda that is tried
ALIKE = 1e-9  # of the values: what is no further apart differs by rounding
CLOSE, LEAST = 0.005, 5e-4  # of log Lambda, and at least: how exactly it is found


Value = Callable[[float, bool], float]  # of Lambda, and whether to find the largest; NaN: unknown


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
    least_and_largest: Value | None = field(repr=False, compare=False)
    __kept__ = ("curve",)  # in a file, which cannot hold the function

    @property
    def alike(self) -> bool:
        """Whether there is no difference that could turn."""
        size = max(abs(self.value), abs(self.behavior))
        return abs(self.value - self.behavior) <= ALIKE * size

    @cached_property
    def curve(self) -> tuple[Bound, ...]:
        """The range of values over Lambda; empty where nothing is known."""
        return self._curve()

    @single_threaded
    def _curve(self) -> tuple[Bound, ...]:
        of = self.least_and_largest
        if of is None:
            return ()
        plain = of(1.0, False)
        found = []
        for Lambda in CURVE:
            lo, hi = (self.value + of(Lambda, upper) - plain for upper in (False, True))
            found.append(Bound(Lambda, lo, hi))
        return tuple(found)

    @property
    def facts(self) -> dict[str, Any]:
        """What the checks read: nothing where there is no difference that could turn."""
        return {} if self.alike or math.isinf(self.Lambda) else {"Lambda": self.Lambda}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("target", "Lambda", "sharp", "value", "behavior", "text")
        return {
            **{name: getattr(self, name) for name in names},
            "curve": [bound._asdict() for bound in self.curve],
        }


class Question(NamedTuple):
    """What is decided: the target's value against the behaviour's, and whether more than chance."""

    target: str
    value: float
    behavior: float
    decided: bool


class EpisodeRows(NamedTuple):
    """Rows of whole episodes for one target, and the features whose mean value is asked for."""

    X: Floats
    change: Floats  # gamma' x' - x
    reward: Floats
    rho: Floats
    start: Floats


def rows_of(table: RowTable | None, kept: Longs, start: Floats, target: int) -> EpisodeRows:
    """The sampled rows of a target with the features `kept`."""
    if table is None:
        none = np.empty((0, len(kept)))
        return EpisodeRows(none, none, np.empty(0), np.empty(0), start[kept])
    X = table.X[:, kept]
    here = X[: len(table)]
    change = table.discount[:, None] * X[table.row_next] - here
    return EpisodeRows(here, change, table.reward, table.rho[target], start[kept])


def one_step(outcomes: Floats) -> bool:
    """Whether every sampled episode has one step, after which nothing comes."""
    return bool(((outcomes[:, STEPS] == 1.0) & (outcomes[:, LEFT] == 0.0)).all())


class BySorting:
    """The range of the self-normalised mean of one-step episodes; `known` is Q, above."""

    def __init__(self, G: Floats, W: Floats, known: Floats | float = 0.0) -> None:
        rest, p = G - known, W / W.sum()
        order = np.argsort(rest, kind="stable")
        self.G, self.p, self.known = rest[order], p[order], float((p * known).sum())

    def __call__(self, Lambda: float, upper: bool) -> float:
        """The least or the largest mean: the first get Lambda, as many as the mean 1 allows."""
        G, p = (self.G[::-1], self.p[::-1]) if upper else (self.G, self.p)
        room = np.cumsum(p) * (Lambda - 1.0 / Lambda)
        more = np.diff(np.minimum(room, 1.0 - 1.0 / Lambda), prepend=0.0)
        return self.known + float(G @ (p / Lambda + more))


class ByFeatures:
    """The range by the robust equations; solutions begin with the last one found."""

    def __init__(self, rows: EpisodeRows) -> None:
        self.rows = rows
        self.plain = _solve(rows, np.ones(len(rows.reward)))
        self.known = {True: self.plain, False: self.plain}

    def __call__(self, Lambda: float, upper: bool) -> float:
        """The least or the largest value, NaN if it does not settle."""
        w = self.plain if Lambda == 1.0 else self.known[upper]
        if w is not None and Lambda != 1.0:
            w = robust(self.rows, Lambda, upper, w)
        if w is None:
            return float("nan")
        self.known[upper] = w
        return float(self.rows.start @ w)


def ranges(outcomes: Floats, target: int, rows: EpisodeRows) -> tuple[Value | None, bool]:
    """The least and the largest value over Lambda, and whether they are sharp."""
    n, d = rows.X.shape
    if not rows.rho.any():
        return None, False
    if one_step(outcomes):
        returns, weights = outcomes[:, RETURN], outcomes[:, PRODUCTS + target]
        if not weights.sum() > 0.0:
            return None, False
        if n < PER_FEATURE * d or not rows.rho.sum() > 0.0:
            return BySorting(returns, weights), False
        if (rows.X[0] == rows.X).all():
            return BySorting(returns, weights), True
        root = np.sqrt(rows.rho)
        w = np.linalg.lstsq(root[:, None] * rows.X, root * rows.reward, rcond=None)[0]
        return BySorting(rows.reward, rows.rho, rows.X @ w), False
    return (ByFeatures(rows) if n >= PER_FEATURE * d else None), False


def robust(rows: EpisodeRows, Lambda: float, upper: bool, w: Floats) -> Floats | None:
    """The weights of the least (or largest) value function, from w on; None if it does not settle.

    The sum over rows of x rho xi delta is 0, with xi = Lambda where delta < 0 (> 0), else 1/Lambda.
    """
    before = np.zeros(0, dtype=np.bool_)
    largest = float(np.abs(rows.reward).max())
    for _ in range(ROUNDS):
        delta = rows.reward + rows.change @ w
        tiny = 1e-6 * max(largest, float(np.abs(delta).max()))
        more = delta > tiny if upper else delta < -tiny
        if len(before) and (more == before).all():
            return w
        found = _solve(rows, np.where(more, Lambda, 1.0 / Lambda))
        if found is None:
            return None
        w, before = found, more
    return None


def _solve(rows: EpisodeRows, xi: Floats) -> Floats | None:
    weighted = (rows.rho * xi)[:, None] * rows.X
    A, b = -(weighted.T @ rows.change), weighted.T @ rows.reward
    try:
        w: Floats = np.asarray(np.linalg.solve(A, b), dtype=np.float64)
    except np.linalg.LinAlgError:
        w = np.asarray(np.linalg.lstsq(A, b, rcond=1e-10)[0], dtype=np.float64)
    return w if np.isfinite(w).all() else None


def turning(value: Value, apart: float) -> float:
    """The Lambda up to which a difference `apart` to the behaviour's value keeps its sign.

    Infinite if it does up to `MOST`; NaN if the values are not known.
    """
    upper = apart < 0.0
    plain = value(1.0, upper)

    def left(log: float) -> float:
        moved = value(float(np.exp(log)), upper) - plain
        return abs(apart) + (-moved if upper else moved)

    if not np.isfinite(plain):
        return float("nan")
    most = float(np.log(MOST))
    low, high, at_low = 0.0, FIRST, abs(apart)
    while (at_high := left(high)) > 0.0:
        if high == most:
            return float("inf")
        low, high, at_low = high, min(4.0 * high, most), at_high
    if np.isnan(at_high):
        return float(np.exp(low)) if low else at_high
    last = 0
    while high - low > CLOSE * high + LEAST:  # regula falsi; an end that stays counts half
        share = at_low / (at_low - at_high) if at_low > at_high else 0.5
        middle = low + float(np.clip(share, 0.05, 0.95)) * (high - low)
        rest = left(middle)
        if np.isnan(rest):
            break
        if rest > 0.0:
            low, at_low, at_high = middle, rest, at_high / (2.0 if last == 1 else 1.0)
        else:
            high, at_high, at_low = middle, rest, at_low / (2.0 if last == -1 else 1.0)
        last = 1 if rest > 0.0 else -1
    return float(np.exp(low))


def answer(asked: Question, value: Value | None, sharp: bool, rows: int) -> Sensitivity:
    """The factor at which the decision turns, in words."""
    apart = asked.value - asked.behavior
    known = value is not None and bool(np.isfinite(apart))
    found = turning(value, apart) if value is not None and known else float("nan")
    text = (
        _text(asked, found, sharp)
        if known
        else ("It cannot be told how wrong the ratios may be: too few sampled rows, or no value.")
    )
    return Sensitivity(
        asked.target, found, sharp, asked.value, asked.behavior, text, value if known else None
    )


def _text(asked: Question, Lambda: float, sharp: bool) -> str:
    size = max(abs(asked.value), abs(asked.behavior))
    if abs(asked.value - asked.behavior) <= ALIKE * size:
        return "Target and logged policy have the same value: wrong ratios have nothing to turn."
    side = "better" if asked.value > asked.behavior else "worse"
    known = f"{asked.target} {'is' if asked.decided else 'looks'} {side}"
    if np.isnan(Lambda):
        return f"{known}; it cannot be told how wrong the ratios may be."
    if np.isinf(Lambda):
        return f"{known}, even if every ratio is wrong by a factor of {MOST:.0f}."
    if sharp:
        return f"{known} unless single ratios are wrong by a factor of {Lambda:.3g} or more."
    return (
        f"{known} while no ratio is wrong by more than a factor of {Lambda:.3g}, as far as the "
        "features can tell."
    )
