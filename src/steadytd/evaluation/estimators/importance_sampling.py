"""Per-decision importance sampling, plain and self-normalised; neither rests on features.

`pdis` is the mean over episodes of sum_t g_t c_t r_t, with g_t the product of the discounts before
step t and c_t = rho_0 ... rho_t. `snpdis` divides by weights in place of episodes,

    J = sum_t N_t / D_t,    N_t = sum over episodes of g_t c_t r_t,    D_t = that of c_t;

an episode that has ended keeps its last c, and from step 1,000 on all steps share one normaliser.
Unit u moves it by sum_t (N_tu - D_tu N_t / D_t) / D_t. Only what was logged is valued: where an
episode is cut off, so is its return. Without episodes there is no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steadytd.evaluation.estimators.base import Estimator
from steadytd.evaluation.intervals import Estimate, mean_of, nothing

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence


class Pdis(Estimator):
    """Per-decision importance sampling."""

    name = "pdis"
    summary = "per-decision importance sampling"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The mean with its influences: a unit's sum less its share."""
        if log.equations.where == "states":
            return nothing(log.n_units)
        return mean_of(log.returns[target].pdis, log.starts)


class Snpdis(Estimator):
    """Self-normalised per-decision importance sampling."""

    name = "snpdis"
    summary = "self-normalised per-decision importance sampling"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The sum of the steps' means, with its influences by the delta method."""
        if log.equations.where == "states":
            return nothing(log.n_units)
        means, _ = log.first.ratios.step_means(target)
        return Estimate(float(means.sum()), log.returns[target].snpdis)
