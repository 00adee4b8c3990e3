"""Random numbers that are the same on every machine, for ever: SplitMix64, and samples of rows.

`docs/streams.md` has the specification. A stream's key is mix(seed) with seed < 2^63; what is drawn
for another purpose has the key mix(seed ^ purpose), and a purpose has the highest bit set, so that
no stream has its key. NumPy's own generators are not used: their methods may change with its
version, and a user's data may come from the same generator and seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)

PROBLEM = 0xB5AD4ECEDA1CE2A9
OBSERVATIONS = 0xC2B2AE3D27D4EB4F
BEHAVIOR = 0xA0761D6478BD642F
EPISODES = 0xE7037ED1A0B428DB
PROJECTIONS = 0x8EBC6AF09C88C6E3


def mix(z: Any) -> Any:
    """The output function of SplitMix64, of an array of words or, compiled, of one word."""
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


def uniforms(seed: int, purpose: int, count: int, first: int = 0) -> Floats:
    """Numbers `first`, `first + 1`, ... of a seed and a purpose, each in [0, 1)."""
    return uniforms_of(seed, purpose, np.arange(first, first + count))


def uniforms_of(seed: int, purpose: int, numbers: Longs) -> Floats:
    """The same for any numbers, in any order."""
    key = mix(np.array([seed ^ purpose], dtype=np.uint64))
    n = numbers.astype(np.uint64) + np.uint64(1)
    return np.asarray((mix(key + n * GOLDEN) >> S11) * 2.0**-53, dtype=np.float64)


def dealt(units: Longs, groups: int, seed: int) -> Longs:
    """The group of each unit, by a hash of its number and the seed."""
    key = (seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % 2**64
    words = mix((units.astype(np.uint64) + np.uint64(1)) * GOLDEN ^ np.uint64(key))
    return np.asarray(words % np.uint64(groups), dtype=np.int64)


class Reservoir:
    """A uniform sample without replacement of at most n rows, which come batch by batch.

    Row i has the uniform number i for its key; the rows of the n smallest keys are the sample.
    """

    def __init__(self, n: int, seed: int, purpose: int) -> None:
        self.n, self.seed, self.purpose = n, seed, purpose
        self.count = 0
        self.keys = np.empty(0)
        self.arrays: list[NDArray[Any]] = []

    def add(self, *arrays: NDArray[Any]) -> None:
        """The next rows: arrays of the same length, the same number of them every time."""
        drawn = uniforms(self.seed, self.purpose, len(arrays[0]), self.count)
        self.count += len(drawn)
        bound = np.partition(self.keys, self.n - 1)[self.n - 1] if self._full() else np.inf
        chosen = np.flatnonzero(drawn < bound)
        new = [array[chosen] for array in arrays]
        old = self.arrays or [array[:0] for array in new]
        self.arrays = [np.concatenate(pair) for pair in zip(old, new, strict=True)]
        self.keys = np.concatenate([self.keys, drawn[chosen]])
        if len(self.keys) > 2 * self.n:
            self._drop()

    def rows(self) -> list[NDArray[Any]]:
        """The sample of each array, in the order of the rows."""
        self._drop()
        return self.arrays

    def _full(self) -> bool:
        return len(self.keys) >= self.n

    def _drop(self) -> None:
        chosen = np.sort(np.argsort(self.keys, kind="stable")[: self.n])
        self.keys, self.arrays = self.keys[chosen], [array[chosen] for array in self.arrays]
