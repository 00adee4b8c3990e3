"""Eight numbers as one: each operation against NumPy's, and what was left out stays as it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from numba import njit

from steadytd.base.arrays import LANES, Floats
from steadytd.base.numba_vectors import IN_REGISTERS, Operations
from steadytd.evaluation.collect.vectors import PLAIN

NUMBERS = arrays(np.float64, 3 * LANES, elements=some.floats(-1e6, 1e6))


def everything(kind: Operations) -> Callable[..., None]:
    """A compiled function that does all that can be done with eight numbers."""
    eight, put, spread, same, least, most, equal, product, add_product = kind

    @njit(error_model="numpy")
    def do(a: Floats, b: Floats, out: Floats, at: int, x: float) -> None:
        u, v = eight(a, at), eight(b, at)
        put(out, 0, u + v)
        put(out, 8, u - v)
        put(out, 16, u * v)
        put(out, 24, u / v)
        put(out, 32, least(u, v))
        put(out, 40, most(u, v))
        put(out, 48, equal(u, v))
        put(out, 56, same(b, at + 1))
        put(out, 64, u + spread(x) * v)
        put(out, 72, add_product(v, spread(x), u))
        put(out, 80, add_product(product(u, u), v, v))

    return do


KINDS = {"in registers": everything(IN_REGISTERS), "plain": everything(PLAIN)}


@pytest.mark.parametrize("kind", ["in registers", pytest.param("plain", marks=pytest.mark.slow)])
@settings(deadline=None)  # the first call compiles
@given(a=NUMBERS, b=NUMBERS, at=some.integers(0, 2 * LANES), x=some.floats(-10, 10))
def test_operations_are_numpys(kind: str, a: Floats, b: Floats, at: int, x: float) -> None:
    a, b = a.copy(), np.where(b == 0.0, 1.0, b)
    b[at] = a[at] = 2.0  # at least one equal pair
    out = np.full(11 * LANES + 3, 7.0)
    KINDS[kind](a, b, out, at, x)
    u, v = a[at : at + LANES], b[at : at + LANES]
    with np.errstate(over="ignore"):
        quotient = u / v
    expected = [u + v, u - v, u * v, quotient, np.minimum(u, v), np.maximum(u, v), (u == v) * 1.0]
    expected.append(np.full(LANES, b[at + 1]))
    found = out[: 11 * LANES].reshape(11, LANES)
    assert np.array_equal(found[:8], expected)
    if kind == "plain":
        assert np.array_equal(found[8], u + x * v)
    # fused: rounded once instead of twice
    np.testing.assert_allclose(found[8], u + x * v, rtol=1e-12, atol=1e-9)
    assert np.array_equal(found[9:11], [v + x * u, u * u + v * v])  # never fused
    assert (out[11 * LANES :] == 7.0).all()


@pytest.mark.parametrize(
    "kind",
    [IN_REGISTERS, pytest.param(PLAIN, marks=pytest.mark.slow)],
    ids=["in registers", "plain"],
)
def test_a_sum_goes_on_over_a_loop(kind: Operations) -> None:
    eight, put, spread, *_ = kind

    @njit(error_model="numpy")
    def add_up(a: Floats, out: Floats) -> None:
        total = spread(0.0)
        for i in range(0, len(a), LANES):
            total = total + eight(a, i)
        put(out, 0, total)

    a = np.random.default_rng(0).standard_normal(LANES * 50)
    out = np.zeros(LANES)
    add_up(a, out)
    assert np.array_equal(out, np.add.accumulate(a.reshape(-1, LANES))[-1])
