"""Per-decision importance sampling: the mean over episodes of sum_t g_t rho_0 ... rho_t r_t.

g_t is the product of the discounts before step t. Only what was logged is valued: where an episode
is cut off, so is its return. Without episodes there is no value.
"""

from __future__ import annotations

import numpy as np

from steadytd.evaluation.estimate.estimators import Estimator, Form
from steadytd.evaluation.estimate.sandwich import Estimate, nothing


def pdis(e: Estimator, target: int, form: Form) -> Estimate:
    """The mean with its influences: a unit's sum less its share."""
    if e.where == "states":
        return nothing(e.n_units)
    return e.mean_of(e.products(target, 1.0, np.zeros(e.features)).errors)
