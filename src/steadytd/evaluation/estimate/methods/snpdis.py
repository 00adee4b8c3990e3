"""Self-normalised per-decision importance sampling.

J = sum_t N_t / D_t, with N_t the sum over episodes of g_t c_t r_t and D_t that of c_t, where
c_t = rho_0 ... rho_t; an episode that has ended keeps its last c. Unit u moves J by

    psi_u = sum_t (N_tu - D_tu N_t / D_t) / D_t.

From step 1,000 on all steps share one normaliser. Without episodes there is no value.
"""

from __future__ import annotations

import numpy as np

from steadytd.evaluation.estimate.estimators import Estimator, Form
from steadytd.evaluation.estimate.sandwich import Estimate, nothing

EIGHT = 8  # NumPy adds in groups of so many: zeros behind a whole group change no bit


def snpdis(e: Estimator, target: int, form: Form) -> Estimate:
    """The sum of the steps' means, with its influences by the delta method."""
    if e.where == "states":
        return nothing(e.n_units)
    u = e.units
    end = -(-int(u.extent[3]) // EIGHT) * EIGHT  # behind the longest episode N is 0
    N = u.numerator[:, target, :end]
    D = u.denominator[:, target, :end] + np.cumsum(u.ended[:, target, :end], axis=1)
    below = D.sum(axis=0)
    used = below > 0.0
    if not used.all():
        N, D, below = N[:, used], D[:, used], below[used]
    means = N.sum(axis=0) / below
    return Estimate(float(means.sum()), np.asarray(((N - D * means) / below).sum(axis=1)))
