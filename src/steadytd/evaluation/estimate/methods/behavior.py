"""The behaviour policy's own value, from what it was logged to earn.

J is the mean over episodes of the discounted return; where an episode is cut off with discount g
left, g V(s) of the state at the cut is added, V being the `lstd` of ratios 1 from the other units:
this is `drl` at lam = 1 with ratios of 1. J then rests on w, so unit u moves it through w too, by

    beta.(b_u - A_u w) / n,      A' beta = the sum of g x at the cuts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steadytd.evaluation.estimate.estimators import LSTD, Estimator, Pair, Sides
from steadytd.evaluation.estimate.methods import drl
from steadytd.evaluation.estimate.sandwich import Estimate


def behavior_estimate(e: Estimator) -> Estimate:
    """The value of the policy that made the log, with its influences."""
    found = drl.at(e, e.behavior, 1.0)
    A, b = e.total(e.behavior)
    at_cuts = e.start_sum() - e.passed(e.behavior, 1.0)
    inverse = e.inverse(A, e.gram(), Sides(b, at_cuts))
    if inverse is None:
        return found
    pair = Pair(inverse.solve(b), inverse.solve_transposed(at_cuts))
    moved = e.corrections(e.behavior, LSTD.system, pair).errors / e.starts.sum()
    return replace(found, influence=np.asarray(found.influence + moved))
