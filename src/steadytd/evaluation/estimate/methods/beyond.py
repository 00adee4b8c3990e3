"""What lies beyond the cuts: the mean per start of U rho gamma' V(s') where episodes are cut off.

Nothing in the log checks these values. The mean is taken over sampled whole episodes, with w and
beta of the whole log: it is held against a limit only, and enters no value.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.outcomes import DISCOUNT, RATIOS, Sampled
from steadytd.evaluation.estimate.estimators import LSTD, Estimator


def beyond_cuts(sample: Sampled, e: Estimator, target: int, lam: float) -> float:
    """The mean per start; 0 where no whole episode could be sampled."""
    pair, d = e.solution(target, LSTD), e.features
    if pair is None or not len(sample.rows):
        return 0.0
    rows, episode = sample.rows, sample.marks[:, 1]
    x = rows[:, -2 * d : -d]
    first = np.append(True, episode[1:] != episode[:-1])
    every = e.where == "states"
    numbers = np.stack(
        [x @ pair.beta, rows[:, -d:] @ pair.w, rows[:, RATIOS + target], rows[:, DISCOUNT], first]
    )
    starts = len(rows) if every else int(first.sum())
    return float(followed(numbers.astype(np.float64), lam, 1.0 if every else 0.0) / starts)


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
