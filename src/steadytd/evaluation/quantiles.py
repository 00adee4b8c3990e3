"""What the return of a target is worth beyond its mean: quantiles, and the mean of the worst.

With W_e the product of an episode's ratios and G_e its return,

    F(y) = sum_e W_e 1{G_e <= y} / sum_e W_e

is the distribution of the target's return. The quantile of level p is the least y with F(y) >= p.
CVaR at level a, the mean of the worst share a of all returns, is

    C = q - sum_e W_e (q - G_e)^+ / (a sum_e W_e),

q the quantile of level a. Intervals are by the errors e = W_e (1{G_e <= y} - p) / sum W, which move
the level p, and W_e (q - (q - G_e)^+ / a - C) / sum W: t sqrt(sum e^2) and the largest e on either
side, as if one more episode like it had been logged. t is Student's, with n - 1 degrees of freedom
for the n = (sum e^2)^2 / sum e^4 episodes that decide the error: in the tails those may be few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.intervals import effective_number, student
from steadytd.evaluation.sample import LEFT, PRODUCTS, RETURN

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WORST = 0.1  # the share of returns that CVaR is the mean of
EFFECTIVE = 30.0  # episodes of the target's own that the log has to be worth
LEAST_PRODUCT = 0.6  # mean product of an episode's ratios (it should be 1)
IN_TAIL = 5.0  # of those, beyond the quantile: by their share, and by their own weights


class ReturnLevel(NamedTuple):
    """One row: a quantile (`what` "quantile") or "cvar", with a 95 % interval.

    NaN where too few episodes lie beyond: then the log cannot say.
    """

    what: str
    level: float
    value: float
    lo: float
    hi: float


class Spreads(NamedTuple):
    """The distribution of one target's return; no rows, and the reason, where it cannot be told."""

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
    squares = float(W @ W)
    effective = float(W.sum() ** 2 / squares) if squares > 0.0 else 0.0
    mean = float(W.mean()) if n else 0.0
    reason = ""
    if continuing:
        reason = "values are means over all logged states: no episodes, no returns"
    elif effective < EFFECTIVE or mean < LEAST_PRODUCT:
        reason = (
            f"the {n} logged episodes are worth {effective:.3g} episodes of the target policy "
            f"(at least {EFFECTIVE:.0f} are needed), and the mean product of their ratios is "
            f"{mean:.2g} (it should be 1; at least {LEAST_PRODUCT:g} is needed)"
        )
    if reason:
        return Spreads(name, (), n, effective, cut, f"not known: {reason}.")
    order = np.argsort(G, kind="stable")
    made = WeightedReturns.of(G[order], W[order] / W.sum())
    rows = [_quantile(made, p, effective) for p in LEVELS]
    return Spreads(name, (*rows, _cvar(made, effective)), n, effective, cut, _text(n, cut))


def _text(n: int, cut: int) -> str:
    said = f"by the returns of {n} episodes, weighted with the products of their ratios"
    if cut:
        said += f"; {cut} of them were cut off, and their returns end there"
    return f"{said}."


class WeightedReturns(NamedTuple):
    """Returns in ascending order, their weights of sum 1, and the sums of those up to each."""

    G: Floats
    W: Floats
    up_to: Floats

    @staticmethod
    def of(G: Floats, W: Floats) -> WeightedReturns:
        """Of sorted returns and their weights."""
        return WeightedReturns(G, W, np.cumsum(W))

    def quantile(self, level: float) -> float:
        """The least of the returns up to which the weights reach the level.

        >>> WeightedReturns.of(np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.5, 0.3])).quantile(0.5)
        2.0
        """
        place = int(self.up_to.searchsorted(level - 1e-12))
        return float(self.G[min(place, len(self.G) - 1)])


def _quantile(made: WeightedReturns, level: float, effective: float) -> ReturnLevel:
    nan = float("nan")
    value = made.quantile(level)
    tails = (made.W[value >= made.G], made.W[value <= made.G])
    if min(effective * min(level, 1.0 - level), *map(effective_number, tails)) < IN_TAIL:
        return ReturnLevel("quantile", level, nan, nan, nan)
    above, below = _reaches(made.W * ((value >= made.G) - level))
    lo = made.quantile(level - below) if level > below else nan
    hi = made.quantile(level + above) if level + above < 1.0 else nan
    return ReturnLevel("quantile", level, value, lo, hi)


def _cvar(made: WeightedReturns, effective: float) -> ReturnLevel:
    nan = float("nan")
    G, W, _ = made
    q = made.quantile(WORST)
    if min(effective * WORST, effective_number(W[q >= G])) < IN_TAIL:
        return ReturnLevel("cvar", WORST, nan, nan, nan)
    each = q - np.maximum(q - G, 0.0) / WORST
    value = float(W @ each)
    down, up = _reaches(W * (each - value))
    return ReturnLevel("cvar", WORST, value, value - down, value + up)


def _reaches(errors: Floats) -> tuple[float, float]:
    """How far an estimate with these errors by episode reaches down and up."""
    squares = errors**2
    degrees = max(effective_number(squares), 2.0) - 1.0
    chance = student(0.975, degrees) * float(np.sqrt(squares.sum()))
    return chance - float(errors.min(initial=0.0)), chance + float(errors.max(initial=0.0))
