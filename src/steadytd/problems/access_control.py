"""Access control: customers of four priorities ask for one of ten servers; average reward.

A state is the number of free servers and the priority of the customer at the head of an endless
queue. Action 1 accepts her, if a server is free, and pays 1, 2, 4 or 8 by her priority; action 0
sends her away. Then every busy server becomes free with probability 0.06, and the next customer has
any priority with probability 1/4. The behaviour policy tosses a coin. The target policy accepts
priority 8 always, 4 with more than two free servers, and 2 and 1 with more than five. The features
are the share of free servers, its square, the priority over 8, and the product of the two: smooth,
few, and without a constant.

Named fact: the target policy earns 2.654 a step, the behaviour policy 1.698.

Source: Sutton & Barto (2018), Example 10.2; both policies and the features are ours.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from steadytd.mdp.problem import Problem

SERVERS, FREED = 10, 0.06
PAYS = np.array([1.0, 2.0, 4.0, 8.0])
NEEDS = np.array([6, 6, 3, 1])  # free servers from which on the target policy accepts


def make() -> Problem:
    """State free * 4 + priority; action 0 rejects, 1 accepts."""
    free = np.arange(SERVERS + 1)
    frees = np.zeros((SERVERS + 1, SERVERS + 1))  # from so many free servers to so many
    for f in free:
        frees[f, f:] = binom.pmf(free[: SERVERS - f + 1], SERVERS - f, FREED)
    accepted = frees[np.maximum(free - 1, 0)]
    accepted[0] = frees[0]  # there is no server to give
    P = np.stack([np.kron(one, np.ones((4, 4)) / 4.0) for one in (frees, accepted)], axis=1)
    servers, pays = np.repeat(free, 4), np.tile(PAYS, SERVERS + 1)
    accepts = servers >= np.tile(NEEDS, SERVERS + 1)
    share, priority = servers / SERVERS, pays / PAYS.max()
    return Problem(
        name="access_control",
        doc=__doc__ or "",
        P=P,
        r=np.stack([np.zeros(len(servers)), np.where(servers > 0, pays, 0.0)], axis=1),
        gamma=1.0,
        mu=np.full((len(servers), 2), 0.5),
        pi=np.stack([~accepts, accepts], axis=1).astype(np.float64),
        Phi=np.stack([share, share**2, priority, share * priority], axis=1),
        average_reward=True,
    )
