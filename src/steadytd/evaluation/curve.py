"""DRL(lam) by unit for every lam: what the rule of the interval receives of one target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steadytd.base.arrays import Floats, Longs


@dataclass(frozen=True)
class Curve:
    """DRL(lam) of one target with one feature map, by unit.

    The weight of a row is U rho, see `estimators`. `starts` are the states whose mean value is
    asked for: first rows of episodes, or all rows of a log without episodes.
    """

    lams: tuple[float, ...]  # ascending, 0.0 included
    scores: Floats  # [lams, units]: sums of the scores of a unit's starts (NaN: not known)
    weights: Floats  # [lams, units]: sums of U rho (1 - gamma')
    cut: Floats  # [lams]: mean per start of |U rho gamma'| where episodes are cut off
    value_at_cuts: Floats  # [lams]: mean per start of U rho gamma' V(s') there
    starts: Floats  # [units]
    largest: Floats  # [lams]: the largest |U rho| of a row
    negative: float  # share of omega's mass that is negative, beyond its noise

    @property
    def values(self) -> Floats:
        """J(lam) [lams]."""
        return np.asarray(self.scores.sum(axis=1) / self.starts.sum())

    @property
    def influences(self) -> Floats:
        """What each unit moves J(lam) by [lams, units]: (scores - J starts) / sum of starts."""
        apart = self.scores - self.values[:, None] * self.starts
        return np.asarray(apart / self.starts.sum())

    def joined(self, unit: Longs) -> Curve:
        """The curve of longer units; `unit` [units] is the number of the new one."""
        return replace(
            self,
            scores=summed(self.scores, unit),
            weights=summed(self.weights, unit),
            starts=summed(self.starts, unit),
        )


def summed(values: Floats, unit: Longs) -> Floats:
    """Sums over the last axis by the number of the unit.

    >>> summed(np.array([[1.0, 2.0, 3.0]]), np.array([0, 0, 1])).tolist()
    [[3.0, 3.0]]
    """
    found = np.zeros((int(unit.max()) + 1, *values.shape[:-1]))
    np.add.at(found, unit, np.moveaxis(values, -1, 0))
    return np.moveaxis(found, 0, -1)
