"""The distribution of a target's return: quantiles, and the mean of the worst returns.

With W_e the product of an episode's ratios (and its weight) and G_e its return,

    F(y) = sum_e W_e 1{G_e <= y} / sum_e W_e

is the distribution of the target's return. The quantile of level p is the least y with F(y) >= p.
CVaR at level a, the mean of the worst share a of all returns, is

    C = q - sum_e W_e (q - G_e)^+ / (a sum_e W_e),

q the quantile of level a. Intervals are by the errors e = W_e (1{G_e <= y} - p) / sum W, which move
the level p, and W_e (q - (q - G_e)^+ / a - C) / sum W: t sqrt(sum e^2) and the largest e on either
side, as if one more episode like it had been logged. t is Student's, with n - 1 degrees of freedom
for the n = (sum e^2)^2 / sum e^4 episodes that decide the error: in the tails those may be few.
Errors are summed by unit, where a column of the log says which episodes belong together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.intervals import effective_number, student
from steadytd.evaluation.sample import LEFT, PRODUCTS, RETURN, UNIT, WEIGHT

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 0.1  # the share of returns that CVaR is the mean of
EFFECTIVE = 30.0  # effective number of episodes, at least
LEAST_PRODUCT = 0.6  # mean product of an episode's ratios (it should be 1), at least
IN_TAIL = 5.0  # effective number of episodes beyond a quantile, at least


class ReturnLevel(NamedTuple):
    """One row: a quantile (`what` "quantile") or "cvar", with a 95 % interval.

    NaN where too few episodes lie beyond it.
    """

    what: str
    level: float
    value: float
    lo: float
    hi: float


class Spreads(NamedTuple):
    """The distribution of one target's return; without rows, `text` gives the reason."""

    target: str
    rows: tuple[ReturnLevel, ...]
    episodes: int
    effective: float
    cut: int  # episodes that were cut off: their returns are cut too
    text: str


def spreads(outcomes: Floats, target: int, name: str, continuing: bool) -> Spreads:
    """Quantiles and CVaR by weighted episodes, where enough of them are like the target's."""
    G, W = outcomes[:, RETURN], outcomes[:, PRODUCTS + target]
    n, cut = len(G), int((outcomes[:, LEFT] > 0.0).sum())
    effective = effective_number(W)
    mean = float(W.sum() / outcomes[:, WEIGHT].sum()) if n else 0.0
    text = _unknown(n, effective, mean, continuing)
    if text:
        return Spreads(name, (), n, effective, cut, text)
    text = f"from the returns of {n} episodes, weighted by the products of their ratios"
    if cut:
        text += f"; {cut} of them were cut off, and their returns end there"
    order = np.argsort(G, kind="stable")
    unit = np.unique(outcomes[order, UNIT], return_inverse=True)[1]
    returns = WeightedReturns.of(G[order], W[order] / W.sum(), unit)
    rows = [_quantile(returns, p, effective) for p in LEVELS]
    return Spreads(name, (*rows, _cvar(returns, effective)), n, effective, cut, f"{text}.")


def _unknown(n: int, effective: float, mean: float, continuing: bool) -> str:
    """Why the distribution is not known; empty if it is."""
    if continuing:
        return "not known: values are not those of episodes, so there are no returns."
    if effective < EFFECTIVE:
        return (
            f"not known: {n} episodes are worth {effective:.3g} of the target's own; at least "
            f"{EFFECTIVE:.0f} are needed."
        )
    if mean < LEAST_PRODUCT:
        return (
            f"not known: the mean product of an episode's ratios is {mean:.2g} instead of 1; at "
            f"least {LEAST_PRODUCT:g} is needed."
        )
    return ""


class WeightedReturns(NamedTuple):
    """Returns in ascending order, their weights of sum 1, the sums of those up to each, units."""

    G: Floats
    W: Floats
    up_to: Floats
    unit: Longs

    @staticmethod
    def of(G: Floats, W: Floats, unit: Longs) -> WeightedReturns:
        """Of sorted returns, their weights and units."""
        return WeightedReturns(G, W, np.cumsum(W), unit)

    def by_unit(self, values: Floats) -> Floats:
        """The sums of values by unit."""
        return np.asarray(np.bincount(self.unit, values), dtype=np.float64)

    def quantile(self, level: float) -> float:
        """The least of the returns up to which the weights reach the level.

        >>> G, W = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.5, 0.3])
        >>> WeightedReturns.of(G, W, np.arange(3)).quantile(0.5)
        2.0
        """
        place = int(self.up_to.searchsorted(level - 1e-12))
        return float(self.G[min(place, len(self.G) - 1)])


def _quantile(returns: WeightedReturns, level: float, effective: float) -> ReturnLevel:
    nan = float("nan")
    value = returns.quantile(level)
    tails = [returns.by_unit(returns.W * side) for side in (value >= returns.G, value <= returns.G)]
    if min(effective * min(level, 1.0 - level), *map(effective_number, tails)) < IN_TAIL:
        return ReturnLevel("quantile", level, nan, nan, nan)
    above, below = _reaches(returns.by_unit(returns.W * ((value >= returns.G) - level)))
    lo = returns.quantile(level - below) if level > below else nan
    hi = returns.quantile(level + above) if level + above < 1.0 else nan
    return ReturnLevel("quantile", level, value, lo, hi)


def _cvar(returns: WeightedReturns, effective: float) -> ReturnLevel:
    nan = float("nan")
    G, W = returns.G, returns.W
    q = returns.quantile(WORST)
    if min(effective * WORST, effective_number(returns.by_unit(W * (q >= G)))) < IN_TAIL:
        return ReturnLevel("cvar", WORST, nan, nan, nan)
    each = q - np.maximum(q - G, 0.0) / WORST
    value = float(W @ each)
    down, up = _reaches(returns.by_unit(W * (each - value)))
    return ReturnLevel("cvar", WORST, value, value - down, value + up)


def _reaches(errors: Floats) -> tuple[float, float]:
    """How far the interval of an estimate with these errors by unit reaches down and up."""
    squares = errors**2
    degrees = max(effective_number(squares), 2.0) - 1.0
    chance = student(0.975, degrees) * float(np.sqrt(squares.sum()))
    return chance - float(errors.min(initial=0.0)), chance + float(errors.max(initial=0.0))
