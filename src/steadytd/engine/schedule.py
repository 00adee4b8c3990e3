"""Step sizes: alpha_t = alpha / (1 + t/delay)^power, constant for power = 0."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from steadytd.base.arrays import Floats


def step_factor(step: int, power: float, delay: float) -> float:
    """alpha_t / alpha at one step.

    >>> step_factor(3, power=1.0, delay=1.0)
    0.25
    """
    return 1.0 if power == 0.0 else math.pow(1.0 + step / delay, -power)


@lru_cache(maxsize=1024)
def step_factors(first: int, count: int, power: float, delay: float) -> Floats:
    """alpha_t / alpha for `count` steps from step `first` on.

    Computed number by number with the C library's `pow`: vectorised versions differ in the last
    bit from processor to processor, and a learner's bits must not.
    """
    if power == 0.0:
        factors = np.ones(count)
    else:
        steps = range(first, first + count)
        factors = np.fromiter((step_factor(t, power, delay) for t in steps), float, count)
    factors.flags.writeable = False
    return factors
