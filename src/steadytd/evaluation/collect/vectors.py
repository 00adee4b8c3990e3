"""Eight numbers as one, for compiled loops: what the processor does in one or two instructions.

Numba turns a loop over eight lanes into checks and jumps that take longer than the arithmetic.
Inside a compiled function, `eight(a, i)` is a[i], ..., a[i + 7] of a flat array, `same(a, i)` eight
times a[i], `spread(x)` eight times x; `+`, `-`, `*`, `/`, `least`, `most` and `equal` (1 or 0) work
number by number, and `put(a, i, v)` writes them back. A product may be fused with the sum that
takes it, but not in `product(u, v)` and `add_product(total, u, v)`, which round after every
operation. The arrays must be contiguous and nothing checks their bounds.

Where Numba has changed inside (`base.numba_internals`), eight numbers are a small array: the same
numbers, not fused, and slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import LANES, Floats
from steadytd.base.jit import not_kept
from steadytd.base.numba_internals import used
from steadytd.base.numba_vectors import IN_REGISTERS, Operations


@not_kept
def _eight(array: Floats, at: int) -> Floats:
    return array[at : at + LANES].copy()


@not_kept
def _put(array: Floats, at: int, value: Floats) -> None:
    array[at : at + LANES] = value


@not_kept
def _spread(x: float) -> Floats:
    return np.full(LANES, x)


@not_kept
def _same(array: Floats, at: int) -> Floats:
    return np.full(LANES, array[at])


@not_kept
def _least(a: Floats, b: Floats) -> Any:
    return np.where(a < b, a, b)


@not_kept
def _most(a: Floats, b: Floats) -> Any:
    return np.where(a > b, a, b)


@not_kept
def _equal(a: Floats, b: Floats) -> Any:
    return np.where(a == b, 1.0, 0.0)


@not_kept
def _product(a: Floats, b: Floats) -> Any:
    return a * b


@not_kept
def _add_product(total: Floats, a: Floats, b: Floats) -> Any:
    return total + a * b


PLAIN = Operations(_eight, _put, _spread, _same, _least, _most, _equal, _product, _add_product)
OURS = IN_REGISTERS if used("vectors") else PLAIN
eight, put, spread, same, least, most, equal, product, add_product = OURS
__all__ = [
    "LANES", "PLAIN", "add_product", "eight", "equal", "least", "most", "product",
    "put", "same", "spread",
]  # fmt: skip
