"""Step sizes: alpha_t = alpha / (1 + t/delay)^power, constant for power = 0."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import repeat

import numpy as np

from steadytd.base.arrays import Floats


def step_factor(step: int, power: float, delay: float) -> float:
    """alpha_t / alpha at one step.

    >>> step_factor(3, power=1.0, delay=1.0)
    0.25
    """
    return 1.0 if power == 0.0 else math.pow(1.0 + step / delay, -power)


def factors(first: int, count: int, power: float, delay: float) -> Floats:
    """alpha_t / alpha for `count` steps from step `first` on.

    Computed number by number with the C library's `pow`: vectorised versions differ in the last
    bit from processor to processor, and a learner's bits must not.
    """
    if power == 0.0:
        return np.ones(count)
    bases = 1.0 + np.arange(first, first + count) / delay
    return np.fromiter(map(math.pow, bases.tolist(), repeat(-power)), float, count)


def step_factors(first: int, count: int, power: float, delay: float) -> Floats:
    """As `factors`, cached for the next learner or seed that takes the same steps."""
    return _cached(first, count, power, delay) if power else _cached(0, count, 0.0, 1.0)


@lru_cache(maxsize=256)
def _cached(first: int, count: int, power: float, delay: float) -> Floats:
    found = factors(first, count, power, delay)
    found.flags.writeable = False
    return found
