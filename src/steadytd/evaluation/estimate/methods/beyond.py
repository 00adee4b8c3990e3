"""What lies beyond the cuts: the mean per start of U rho gamma' V(s') where episodes are cut off.

Nothing in the log checks these values. The mean is taken over sampled whole episodes, with w and
beta of the whole log: it is held against a limit only, and enters no value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.outcomes import DISCOUNT, RATIOS, Sampled
from steadytd.evaluation.estimate.estimators import LSTD, Estimator


def beyond_cuts(sample: Sampled, e: Estimator) -> Callable[[int, float], float]:
    """The mean per start, of a target and a lam; 0 where no whole episode could be sampled."""
    rows, d, every = sample.rows, e.features, e.where == "states"
    episode = sample.marks[:, 1]
    first = np.append(True, episode[1:] != episode[:-1])[: len(rows)]
    here, ahead = (np.ascontiguousarray(x) for x in (rows[:, -2 * d : -d], rows[:, -d:]))
    discount, rho = rows[:, DISCOUNT], np.ascontiguousarray(rows[:, RATIOS : -2 * d].T)
    starts = len(rows) if every else int(first.sum())
    cut = bool((discount[np.append(first[1:], True)[: len(rows)]] > 0.0).any())

    def mean(target: int, lam: float) -> float:
        pair = e.solution(target, LSTD)
        if pair is None or not cut:
            return 0.0
        numbers = np.stack([here @ pair.beta, ahead @ pair.w, rho[target], discount, first])
        return float(followed(numbers.astype(np.float64), lam, 1.0 if every else 0.0) / starts)

    return mean


@compiled
def followed(numbers: Floats, lam: float, every: float) -> float:
    """The sum over last rows of episodes of U rho gamma' V(s')."""
    omega, ahead, rho, discount, first = numbers
    U, total, n = 0.0, 0.0, len(omega)
    for i in range(n):
        if first[i] > 0.0:
            U = (1.0 - lam) * omega[i] + lam
        else:
            U = (1.0 - lam) * omega[i] + lam * (discount[i - 1] * rho[i - 1] * U + every)
        if i + 1 == n or first[i + 1] > 0.0:
            total += U * rho[i] * discount[i] * ahead[i]
    return total
