"""The behaviour policy's own value, from what it was logged to earn.

J is the mean over episodes of the discounted return; where an episode is cut off with discount g
left, g V(s) of the state at the cut is added, V being the `lstd` of ratios 1 from the other units:
this is `drl` at lam = 1 with ratios of 1.
"""

from __future__ import annotations

from steadytd.evaluation.estimate.estimators import Estimator
from steadytd.evaluation.estimate.methods import drl
from steadytd.evaluation.estimate.sandwich import Estimate


def behavior_estimate(e: Estimator) -> Estimate:
    """The value of the policy that made the log, with its influences."""
    return drl.through_weights(e, e.behavior, drl.at(e, e.behavior, 1.0))
