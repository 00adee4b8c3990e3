"""Estimates with their influences by unit, and intervals from them: the sandwich, by Student's t.

An estimate that changes by psi_u with the chance in unit u has the standard error

    se = sqrt(n / (n - 1) sum_u psi_u^2),      value +- t_{n-1} se

over n independent units. The difference of two estimates has the influences psi_u - phi_u: what
both share cancels. An interval lies around its value by construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from steadytd.base.arrays import Floats

SAME = 1e-9  # relative difference up to which two estimates are the same number
MOST_BIAS = 1.0  # the bias correction of resamples moves the levels by at most two of these


class Interval(NamedTuple):
    """Lower and upper limit; NaN where there is none."""

    lo: float
    hi: float

    @property
    def width(self) -> float:
        """Upper minus lower limit."""
        return self.hi - self.lo


NONE = Interval(float("nan"), float("nan"))


def student(p: float, degrees: float) -> float:
    """The quantile of Student's t: `scipy.stats.t.ppf`, without its checks of the arguments.

    >>> round(student(0.975, 10), 3)
    2.228
    """
    return float(stdtrit(degrees, p))


@dataclass(frozen=True)
class Estimate:
    """A value with its influences by unit; NaN where there is none."""

    value: float
    influence: Floats = field(repr=False)
    lam: float | None = None  # of `drl`

    @property
    def stderr(self) -> float:
        """The standard error."""
        return standard_error(self.influence)

    def interval(self, level: float = 0.95) -> Interval:
        """The interval around the value."""
        error = self.stderr
        if not (math.isfinite(self.value) and math.isfinite(error)):
            return NONE
        reach = student(0.5 + level / 2.0, len(self.influence) - 1) * error
        return Interval(self.value - reach, self.value + reach)

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two estimates from the same units."""
        return Estimate(self.value - other.value, self.influence - other.influence)


def nothing(units: int) -> Estimate:
    """No estimate."""
    return Estimate(float("nan"), np.full(units, np.nan))


def mean_of(scores: Floats, starts: Floats) -> Estimate:
    """The sum of the units' scores over the number of starts, with the influences."""
    number = float(starts.sum())
    value = float(scores.sum() / number)
    return Estimate(value, np.asarray((scores - value * starts) / number))


def standard_error(influence: Floats) -> float:
    """sqrt(n / (n - 1) sum e^2): the sandwich over n units; NaN for fewer than two."""
    n = len(influence)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(influence @ influence)
    return math.sqrt(squares * n / (n - 1.0)) if n > 1 else math.nan


def effective_number(weights: Floats) -> float:
    """(sum w)^2 / sum w^2.

    >>> effective_number(np.array([1.0, 1.0, 0.0])), effective_number(np.zeros(3))
    (2.0, 0.0)
    """
    scale = float(np.abs(weights).max(initial=0.0))
    if not 0.0 < scale < math.inf:
        return 0.0
    w = weights / scale
    return float(w.sum() ** 2 / (w @ w))


def correlation(influence: Floats) -> float:
    """The correlation of each unit's influence with the next one's (their mean is 0).

    >>> round(correlation(np.array([1.0, 1.0, -1.0, -1.0])), 2)
    0.25
    """
    squares = float(influence @ influence)
    lagged = float(influence[1:] @ influence[:-1]) / squares if squares > 0.0 else 0.0
    return lagged if math.isfinite(lagged) else 0.0


def mean_interval(totals: Floats, sizes: Floats, tail: float, least: float = 0.0) -> Interval:
    """The interval of sum(totals)/sum(sizes) over blocks, `tail` on either side, by Student's t.

    The variance of sum(totals) is at least `least`.
    """
    n, size = len(totals), float(sizes.sum())
    if n < 2 or size <= 0.0:
        return NONE
    mean = float(totals.sum()) / size
    error = max(standard_error(totals - mean * sizes), math.sqrt(least)) / size
    reach = student(1.0 - tail, n - 1) * error
    return Interval(mean - reach, mean + reach)


def resampled(value: float, replicates: Floats, units: int) -> Interval:
    """The bias-corrected 95 % percentile interval of resamples, widened for few units.

    Its levels are those of Student's t with units - 1 degrees of freedom, times sqrt(n / (n - 1)),
    because the percentiles of a resample of n units spread less than the estimate does.

    >>> limits = resampled(0.5, np.linspace(0.0, 1.0, 1001), units=10_000)
    >>> [round(limit, 3) for limit in limits]
    [0.025, 0.975]
    """
    finite = replicates[np.isfinite(replicates)]
    if units < 2 or not np.isfinite(value) or len(finite) < 0.9 * len(replicates):
        return NONE
    below = float(np.mean(finite < value) + 0.5 * np.mean(finite == value))
    shift = min(max(float(ndtri(below)), -MOST_BIAS), MOST_BIAS)
    reach = math.sqrt(units / (units - 1.0)) * student(0.975, units - 1)
    levels = [float(ndtr(2.0 * shift + x)) for x in (-reach, reach)]
    lo, hi = np.quantile(finite, levels).tolist()
    return Interval(lo, hi)
