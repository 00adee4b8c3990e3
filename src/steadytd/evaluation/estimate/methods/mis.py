"""Marginal importance sampling with linear ratios: J = beta.b / n with A' beta = phi0.

omega(s) = x(s).beta estimates how often, discounted, the target visits s, per row of the log at s.
With the features of both sides the same, J is `lstd`'s number, found from the ratios: the gain is
omega itself. Its masses omega rho (1 - gamma') should sum to the number of starts.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimate.estimators import LSTD, Estimator, Form
from steadytd.evaluation.estimate.methods.solved import solved
from steadytd.evaluation.estimate.sandwich import Estimate, nothing


def mis(e: Estimator, target: int, form: Form) -> Estimate:
    """beta.b / n; its influences are those of `lstd`, the same function of the sums."""
    pair = e.solution(target, LSTD)
    if pair is None:
        return nothing(e.n_units)
    value = float(pair.beta @ e.total(target)[1] / e.starts.sum())
    masses = e.corrections(target, LSTD.system, pair).masses / e.starts.sum()
    return Estimate(value, solved(e, target, LSTD).influence, None, masses)


def marginal_weights(e: Estimator, target: int) -> Floats:
    """beta [d]: omega(s) = x(s).beta; NaN where it cannot be solved for."""
    pair = e.solution(target, LSTD)
    return np.full(e.features, np.nan) if pair is None else pair.beta
