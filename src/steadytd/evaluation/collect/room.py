"""Memory that is used again for every batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.engine.vectors import LANES


class Room:
    """Arrays by name, made once and handed out again: the system clears new memory, at a price.

    Behind every array there are at least eight more numbers that may be read.
    """

    def __init__(self) -> None:
        self.memory: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type = np.float64) -> NDArray[Any]:
        """A contiguous array; what it holds is left over from the last use."""
        size = math.prod(shape)
        if name not in self.memory or len(self.memory[name]) < size + LANES:
            self.memory[name] = np.zeros(size + size // 8 + LANES, dtype)
        return self.memory[name][:size].reshape(shape)
