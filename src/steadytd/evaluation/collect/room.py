"""Memory that is used again for every batch, and memory that loops may run over the end of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.vectors import LANES


class Padded:
    """An array of numbers behind whose last one eight more may be read and written.

    A loop that takes eight numbers at a time runs over the end of an array. Such a loop gets its
    memory from `memory_of` and so from this class alone: what has no room cannot be passed to it.
    """

    __slots__ = ("array", "memory")

    def __init__(self, shape: tuple[int, ...], memory: Floats | None = None) -> None:
        size = math.prod(shape)
        flat = np.zeros(size + LANES) if memory is None else memory
        fine = flat.ndim == 1 and flat.dtype == np.float64 and flat.flags.c_contiguous
        if not fine or len(flat) < size + LANES:
            raise ValueError(
                f"padded numbers of shape {shape} need a contiguous float64 vector of at least "
                f"{size + LANES} numbers, got {flat.dtype} of shape {flat.shape}."
            )
        self.memory: Floats = flat[: size + LANES]
        self.array: Floats = flat[:size].reshape(shape)


def memory_of(numbers: object) -> Floats:
    """All memory of padded numbers, their room included, as a vector; nothing else is taken."""
    if not isinstance(numbers, Padded):
        raise TypeError(
            "a loop that takes eight numbers at a time needs room behind the last one: "
            f"give it Padded numbers, not {type(numbers).__name__}."
        )
    return numbers.memory


class Room:
    """Arrays by name, made once and handed out again: the system clears new memory, at a price."""

    def __init__(self) -> None:
        self.memory: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type = np.float64) -> NDArray[Any]:
        """A contiguous array; what it holds is left over from the last use."""
        size = math.prod(shape)
        return self._flat(name, size, dtype)[:size].reshape(shape)

    def padded(self, name: str, shape: tuple[int, ...]) -> Padded:
        """Padded numbers; what they hold is left over from the last use."""
        return Padded(shape, self._flat(name, math.prod(shape) + LANES, np.float64))

    def _flat(self, name: str, size: int, dtype: type) -> NDArray[Any]:
        if name not in self.memory or len(self.memory[name]) < size:
            self.memory[name] = np.zeros(size + size // 8, dtype)
        return self.memory[name]
