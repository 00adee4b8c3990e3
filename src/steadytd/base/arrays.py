"""Array types and the one way to make an array read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


def frozen(values: ArrayLike, dtype: type[np.generic] = np.float64) -> NDArray[Any]:
    """A read-only, contiguous copy."""
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array
