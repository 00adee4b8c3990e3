"""A queue with a slow and a fast server: what does waiting cost in the long run? Average reward.

At most 12 customers wait. In a step one arrives with probability 0.35 (and leaves again if there
are 12), or one is served with probability 0.25 (action 0, slow) or 0.5 (action 1, fast). The reward
is minus a tenth of the number of customers, and minus 0.5 for fast service. The behaviour policy is
fast half of the time, the target policy from four customers on. Three features: the number of
customers over 12, its square, and whether there are four or more.

Named fact: as in any chain of births and deaths, the stationary distribution has the ratios
arrival/service of neighbours; so the target policy's rate is a quotient of two sums.

Source: ours; the model is standard (Puterman 1994, Section 8.1 has average rewards of queues).
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem

MOST, FAST_FROM = 12, 4
ARRIVES, SERVED = 0.35, (0.25, 0.5)


def make() -> Problem:
    """State: the number of customers; action 1 is fast."""
    n = np.arange(MOST + 1)
    P = np.zeros((len(n), 2, len(n)))
    for action, served in enumerate(SERVED):
        P[n, action, np.minimum(n + 1, MOST)] += ARRIVES
        P[n, action, np.maximum(n - 1, 0)] += served
        P[n, action, n] += 1.0 - ARRIVES - served
    fast = n >= FAST_FROM
    return Problem(
        name="queue",
        doc=__doc__ or "",
        P=P,
        r=-0.1 * n[:, None] - np.array([0.0, 0.5]),
        gamma=1.0,
        mu=np.full((len(n), 2), 0.5),
        pi=np.stack([~fast, fast], axis=1).astype(np.float64),
        Phi=np.stack([n / MOST, (n / MOST) ** 2, fast], axis=1),
        average_reward=True,
    )
