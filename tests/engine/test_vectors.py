"""Eight numbers as one: each operation against NumPy's, and what was left out stays as it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from numba import njit

from steadytd.base.arrays import Floats
from steadytd.engine.loop.vectors import LANES, eight, equal, least, most, put, spread

NUMBERS = arrays(np.float64, 3 * LANES, elements=some.floats(-1e6, 1e6))


@njit(error_model="numpy")
def everything(a: Floats, b: Floats, out: Floats, at: int, x: float) -> None:
    u, v = eight(a, at), eight(b, at)
    put(out, 0, u + v)
    put(out, 8, u - v)
    put(out, 16, u * v)
    put(out, 24, u / v)
    put(out, 32, least(u, v))
    put(out, 40, most(u, v))
    put(out, 48, equal(u, v))
    put(out, 56, u + spread(x) * v)


@settings(deadline=None)  # the first call compiles
@given(a=NUMBERS, b=NUMBERS, at=some.integers(0, 2 * LANES), x=some.floats(-10, 10))
def test_operations_are_numpys(a: Floats, b: Floats, at: int, x: float) -> None:
    a, b = a.copy(), np.where(b == 0.0, 1.0, b)
    b[at] = a[at] = 2.0  # at least one equal pair
    out = np.full(8 * LANES + 3, 7.0)
    everything(a, b, out, at, x)
    u, v = a[at : at + LANES], b[at : at + LANES]
    with np.errstate(over="ignore"):
        quotient = u / v
    expected = [u + v, u - v, u * v, quotient, np.minimum(u, v), np.maximum(u, v), (u == v) * 1.0]
    found = out[: 8 * LANES].reshape(8, LANES)
    assert np.array_equal(found[:7], expected)
    # fused: rounded once instead of twice
    np.testing.assert_allclose(found[7], u + x * v, rtol=1e-12, atol=1e-9)
    assert (out[8 * LANES :] == 7.0).all()


@njit(error_model="numpy")
def add_up(a: Floats, out: Floats) -> None:
    total = spread(0.0)
    for i in range(0, len(a), LANES):
        total = total + eight(a, i)
    put(out, 0, total)


def test_a_sum_stays_in_a_register_over_a_loop() -> None:
    a = np.random.default_rng(0).standard_normal(LANES * 50)
    out = np.zeros(LANES)
    add_up(a, out)
    np.testing.assert_allclose(out, a.reshape(-1, LANES).sum(axis=0), rtol=1e-12, atol=1e-12)
