"""Intervals from the influences of the log's units: the sandwich, with Student's t.

An estimate that changes by psi_u with the chance in unit u has the standard error

    se = sqrt(n / (n - 1) sum_u psi_u^2),      value +- t_{n-1} se

over n independent units. The difference of two estimates has the influences psi_u - phi_u: what
both share cancels. An interval lies around its value by construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimate.bootstrap import NONE, Interval, student

SAME = 1e-9  # relative difference up to which two estimates are the same number


@dataclass(frozen=True)
class Estimate:
    """A value with its influences by unit; NaN and zeros where there is none.

    `masses`, of `drl` and `mis`: by unit, the sum of U_t rho_t (1 - gamma_{t+1}), divided by the
    number of all starts. In truth their sum is 1 without cuts. `cut`, of `drl`: the mean per start
    of U_t rho_t gamma_{t+1} where episodes are cut off.
    """

    value: float
    influence: Floats = field(repr=False)
    lam: float | None = None
    masses: Floats | None = field(default=None, repr=False)
    cut: float = 0.0

    @cached_property
    def stderr(self) -> float:
        """The standard error."""
        return spread_of(self.influence)

    def interval(self, level: float = 0.95) -> Interval:
        """The interval around the value."""
        return _around(self.value, self.stderr, len(self.influence), level)

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two estimates from the same units."""
        return Estimate(self.value - other.value, self.influence - other.influence)

    @property
    def effective(self) -> float:
        """(sum e^2)^2 / sum e^4 of the influences e: how many units decide the error."""
        return effective_number(self.influence**2)

    @property
    def moment(self) -> float:
        """The sum of the masses, in truth 1 less at most what is cut off."""
        return float("nan") if self.masses is None else float(self.masses.sum())

    @property
    def effective_masses(self) -> float:
        """(sum m)^2 / sum m^2 of the masses m: how many units decide the value."""
        return float("nan") if self.masses is None else effective_number(self.masses)


def nothing(units: int) -> Estimate:
    """No estimate."""
    return Estimate(float("nan"), np.full(units, np.nan))


def spread_of(influence: Floats) -> float:
    """The standard error that influences give; NaN for fewer than two."""
    n = len(influence)
    if n < 2:
        return float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.add.reduce(influence * influence))
    return math.sqrt(squares * n / (n - 1.0))


def around(value: float, influence: Floats, level: float = 0.95) -> Interval:
    """The interval of a value.

    >>> [round(limit, 2) for limit in around(1.0, np.array([0.1, -0.1] * 50))]
    [-0.99, 2.99]
    """
    return _around(value, spread_of(influence), len(influence), level)


def _around(value: float, error: float, units: int, level: float) -> Interval:
    if not (math.isfinite(value) and math.isfinite(error)):
        return NONE
    reach = student(0.5 + level / 2.0, units - 1) * error
    return Interval(value - reach, value + reach)


def effective_number(weights: Floats) -> float:
    """(sum w)^2 / sum w^2.

    >>> effective_number(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    scale = float(np.maximum.reduce(np.abs(weights), initial=0.0))
    if not math.isfinite(scale) or scale == 0.0:
        return 0.0
    w = weights / scale
    return float(np.add.reduce(w) ** 2 / (w @ w))


def neighbours(influence: Floats) -> float:
    """The correlation of each unit's influence with the next one's (their mean is 0).

    >>> round(neighbours(np.array([1.0, 1.0, -1.0, -1.0])), 2)
    0.25
    """
    squares = float(influence @ influence)
    found = float(influence[1:] @ influence[:-1]) / squares if squares > 0.0 else 0.0
    return found if math.isfinite(found) else 0.0
