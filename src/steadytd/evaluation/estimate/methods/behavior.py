"""The behaviour policy's own value, from what it was logged to earn.

J is the mean over episodes of the discounted return; where an episode is cut off with discount g
left, g V(s) of the state at the cut is added, V being the `lstd` of ratios 1 from the other units:
this is `drl` at lam = 1 with ratios of 1. J then rests on w, so unit u moves it through w too, by

    beta.(b_u - A_u w) / n,      A' beta = the sum of g x at the cuts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steadytd.evaluation.estimate.estimators import Estimator, summed
from steadytd.evaluation.estimate.inverse import Inverse
from steadytd.evaluation.estimate.methods import drl
from steadytd.evaluation.estimate.methods.solved import residuals
from steadytd.evaluation.estimate.sandwich import Estimate


def behavior_estimate(e: Estimator) -> Estimate:
    """The value of the policy that made the log, with its influences."""
    found, d = drl.at(e, e.behavior, 1.0), e.units.G.shape[1]
    system = summed(e.system(e.behavior))
    inverse = Inverse.of(system[:, :-1], summed(e.units.G))
    if inverse is None:
        return found
    passed = e.units.weighted[:, e.behavior, e.lams.index(1.0), :d]
    beta = inverse.solve_transposed(summed(e.start - passed))
    moved = residuals(e.system(e.behavior), inverse.solve(system[:, -1])) @ beta / e.starts.sum()
    return replace(found, influence=np.asarray(found.influence + moved))
