"""Values of actions: a policy known as a whole, valued with and without behaviour probabilities.

    python examples/action_values.py [--quick]

Records CartPole under a careless policy and values a better one. lstdq needs no ratios, so it says
the same where the log's behaviour probabilities are wrong; lstd and drl do not.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

import steadytd as st


def towards(strength: float) -> Any:
    """Push to where the pole leans, the likelier the more it leans."""

    def policy(obs: Any) -> list[float]:
        right = 1.0 / (1.0 + float(np.exp(-strength * (obs[2] + 0.3 * obs[3]))))
        return [1.0 - right, right]

    return policy


quick = "--quick" in sys.argv  # few episodes, to see that it runs
try:
    log = st.gym_log(
        "CartPole-v1", behavior=towards(2.0), targets={"better": towards(6.0)},
        episodes=30 if quick else 300, limit=60,
    )  # fmt: skip
except st.InputError as error:  # Gymnasium may be missing
    raise SystemExit(str(error)) from None
learners = ["lstd", "drl:lam=1", "lstdq", "fqe", "drl_q"]
right = st.evaluate(log, discount=0.95, features="rbf:40", learners=learners)

# The same log, had somebody written 0.5 for every action that was taken.
half = pa.array(np.full(len(log), 0.5))
wrong = log.drop_columns("behavior_probs")
wrong = wrong.set_column(wrong.column_names.index("behavior_prob"), "behavior_prob", half)
other = st.evaluate(wrong, discount=0.95, features="rbf:40", learners=learners)

print("learner   value, right probabilities    value, wrong ones")
for one, two in zip(right.values.to_dicts(), other.values.to_dicts(), strict=True):
    shown = [f"{v['value']:7.3f} ({v['lo']:.3f} to {v['hi']:.3f})" for v in (one, two)]
    print(f"{one['learner']:9}  {shown[0]:28}  {shown[1]}")
for finding in other.warnings:
    if finding.level == "warning":
        print(finding)
