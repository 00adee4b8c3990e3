"""A problem with two actions whose target chain and stationary distribution are prescribed."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats


def realise(chain: Floats, d: Floats, share: float) -> tuple[Floats, Floats, Floats]:
    """P [s, a, s'], mu and pi [s, a] such that pi follows `chain` and mu has the distribution d.

    Action 0 follows the chain, action 1 jumps to a state drawn from q, whatever the state was. mu
    follows with probability `share`, so d is stationary if d = share d'chain + (1 - share) q, which
    gives q. It has no negative entry if share <= min_j d_j / (d'chain)_j.
    """
    n = len(d)
    q = (d - share * (d @ chain)) / (1.0 - share)
    P = np.stack([chain, np.tile(q, (n, 1))], axis=1)
    return P, np.tile([share, 1.0 - share], (n, 1)), np.tile([1.0, 0.0], (n, 1))
