"""`fourier:K`: the Fourier cosine basis of order K.

    x_c = cos(pi c.s)      for every c in {0, ..., K}^m,      s = (o - low) / (high - low)

with s clipped into [0, 1] and low, high the robust range of each varying column (see
`observations.ranged`). (K + 1)^m features; the first is the constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, read_only
from steadytd.features.base import MOST, ArrayMap, State, too_many
from steadytd.features.observations import ranged, scaling

BLOCK = 256  # rows whose angles stay in the cache until their cosines are taken


class Fourier(ArrayMap):
    """Cosines of all frequencies up to an order, in all columns together.

    >>> f = Fourier((2,)).fit([[0.0], [1.0]])
    >>> f([[0.0], [0.5], [1.0]]).round(12).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -1.0, 1.0]]
    """

    kind = "fourier"
    form = "fourier:K"
    constant = 0
    arrays: ClassVar[Mapping[str, str]] = {"columns": "m", "low": "m", "width": "m"}

    def _learn(self, sample: NDArray[Any]) -> State:
        return ranged(sample)

    def _size(self, state: State) -> int:
        m, (order,) = len(state["columns"]), self.numbers
        size = int((order + 1) ** m)
        if size > MOST:
            fits = max((k for k in range(1, min(order, MOST)) if (k + 1) ** m <= MOST), default=0)
            best = f"fourier:{fits} is the largest that fits {m} columns"
            remedy = best if fits else f"{m} columns are too many for fourier; use rbf:N"
            raise too_many(self.spec, size, MOST, remedy)
        return size

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        from steadytd.features.kernels import angles

        s = self.state
        waves = read_only(frequencies(len(s["columns"]), *self.numbers))
        by = scaling(s["columns"], s["low"], s["width"])
        for begin in range(0, len(obs), BLOCK):
            part = out[begin : begin + BLOCK]
            given = read_only(obs[begin : begin + BLOCK])
            angles(given, by, waves, part)
            np.cos(part, out=part)


@lru_cache(maxsize=64)
def frequencies(m: int, order: int) -> Floats:
    """pi c for every c, as columns: [m, (order + 1)^m]."""
    count = (order + 1) ** m
    grid = np.indices((order + 1,) * m).reshape(m, count) if m else np.zeros((0, 1))
    return np.ascontiguousarray(np.pi * grid)
