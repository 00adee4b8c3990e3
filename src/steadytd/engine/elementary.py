"""exp and log from additions, multiplications and comparisons alone, for the functions of laws.

Every one of those is rounded by itself, in Numba, in Python and in a browser. So a law that uses
these functions has the same bits everywhere, which those of a mathematical library do not promise.
They are right to within two units of the last place.
"""

from __future__ import annotations

import math

LN2 = math.log(2.0)
LN2_HIGH = 0.693145751953125  # its first 20 bits: times a whole number below 2^30 it is exact
LN2_LOW = 1.4286068203094172321e-6  # the rest
LARGEST, LEAST = 709.782712893384, -745.1332191019412  # beyond them exp is inf, or 0
ROOT = math.sqrt(0.5)


def exp(x: float) -> float:
    """e to the power x, as 2^n e^r with |r| at most log(2)/2; e^r is a polynomial."""
    if x > LARGEST:
        return math.inf
    if x < LEAST:
        return 0.0
    if math.isnan(x):
        return x
    n = int(x / LN2 + 0.5) if x >= 0.0 else int(x / LN2 - 0.5)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1 / 6227020800
    p = 1 / 39916800 + r * (1 / 479001600 + r * p)
    p = 1 / 362880 + r * (1 / 3628800 + r * p)
    p = 1 / 5040 + r * (1 / 40320 + r * p)
    p = 1 / 120 + r * (1 / 720 + r * p)
    p = 1 / 6 + r * (1 / 24 + r * p)
    p = 1.0 + r * (1.0 + r * (0.5 + r * p))
    while n >= 32:
        p *= 4294967296.0
        n -= 32
    while n <= -32:
        p *= 1 / 4294967296
        n += 32
    while n > 0:
        p *= 2.0
        n -= 1
    while n < 0:
        p *= 0.5
        n += 1
    return p


def log(x: float) -> float:
    """Logarithm to the base e: that of 2, n times, and a series for what is left, near 1."""
    if not x > 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == math.inf:
        return x
    n = 0.0
    while x < ROOT:
        x *= 2.0
        n -= 1.0
    while x > 2.0 * ROOT:
        x *= 0.5
        n += 1.0
    s = (x - 1.0) / (x + 1.0)
    q = s * s
    p = 1 / 21
    p = 1 / 17 + q * (1 / 19 + q * p)
    p = 1 / 13 + q * (1 / 15 + q * p)
    p = 1 / 9 + q * (1 / 11 + q * p)
    p = 1 / 5 + q * (1 / 7 + q * p)
    p = q * (1 / 3 + q * p)
    return n * LN2_HIGH + (2.0 * s + (2.0 * s * p + n * LN2_LOW))
