"""Solved learners: (A + eta G + ridge I) w = b, J = phi0.w / n.

phi0 is the sum of x at the n starts. With M = A + eta G + ridge I and M' beta = phi0, unit u moves
J by

    psi_u = (beta.(b_u - M_u w) + phi0_u.w - J n_u) / n,

where n_u is the number of starts and M_u has its share of the ridge.
"""

from __future__ import annotations

import numpy as np

from steadytd.evaluation.estimate.estimators import Estimator, Form
from steadytd.evaluation.estimate.sandwich import Estimate, nothing


def solved(e: Estimator, target: int, form: Form) -> Estimate:
    """The value of a solved form with its influences."""
    pair = e.solution(target, form)
    if pair is None:
        return nothing(e.n_units)
    w, beta = pair.w, pair.beta
    with np.errstate(over="ignore", invalid="ignore"):
        residual = e.corrections(target, form.system, pair).errors
        if form.eta:
            residual = residual - form.eta * e.squares(w, beta)
        residual = residual - form.ridge * (w @ beta) / e.n_units
        return e.mean_of(e.start @ w + residual)
