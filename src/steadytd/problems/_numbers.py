"""Random numbers for problems that are drawn from a seed: the same on every machine, for ever.

The generator is that of the streams (`docs/streams.md`), under keys that no stream has: a stream's
key is mix(seed) with seed < 2^63, a problem's is mix(seed ^ DOMAIN), and DOMAIN has the highest bit
set. NumPy's own generators are not used, since their methods may change with its version.
`docs/problems.md` has the specification.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats

Words = NDArray[np.uint64]
DOMAIN = 0xB5AD4ECEDA1CE2A9


def uniforms(seed: int, count: int, first: int = 0) -> Floats:
    """Numbers `first`, `first + 1`, ... of a problem's seed, each in [0, 1)."""
    key = _mix(np.array([seed ^ DOMAIN], dtype=np.uint64))
    n = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    words = _mix(key + n * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _mix(z: Words) -> Words:
    """The output function of SplitMix64, for arrays: their products wrap around silently."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
