"""`tiles:NxM`: N tilings of M tiles per column; one tile of each tiling is active.

    x = 1 for the N tiles that hold s,  0 for the others,      s = (o - low) / (high - low)

with s clipped into [0, 1] (see `observations.ranged`). The tiles are 1/(M - 1) wide, so that every
tiling can be shifted by up to a whole tile and still covers the range with M of them. Tiling i is
shifted by the fraction i (2j + 1) / N, modulo 1, of a tile in column j: odd multiples, so that the
tilings do not all meet on a diagonal. N M^m features, all of them stored: there is no hashing,
hence no collision between distant observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats, Ints, read_only
from steadytd.base.errors import InputError
from steadytd.engine.rows import Rows
from steadytd.features.base import ArrayMap, State, too_many
from steadytd.features.observations import ranged, scaling

MOST_TILES = 1_000_000
MOST_BYTES = 4 * 2**30  # of a dense answer


class Tiles(ArrayMap):
    """Tile coding without hashing. `rows` (or `sparse`) gives the active tiles alone.

    >>> f = Tiles((2, 3)).fit([[0.0], [1.0]])
    >>> f([[0.0], [0.3], [1.0]]).tolist()
    [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]]
    """

    kind = "tiles"
    form = "tiles:NxM"
    arrays: ClassVar[Mapping[str, str]] = {"columns": "m", "low": "m", "width": "m"}
    is_sparse = True

    def _learn(self, sample: NDArray[Any]) -> State:
        return ranged(sample)

    def _size(self, state: State) -> int:
        m, (tilings, tiles) = len(state["columns"]), self.numbers
        size = int(tilings * tiles**m)
        if size > MOST_TILES:
            fits = max(
                (k for k in range(2, min(tiles, MOST_TILES)) if tilings * k**m <= MOST_TILES),
                default=0,
            )
            best = f"tiles:{tilings}x{fits} is the largest that fits {m} columns"
            remedy = best if fits else f"{m} columns are too many for tiles; use rbf:N"
            raise too_many(self.spec, size, MOST_TILES, remedy)
        return size

    @property
    def most_active(self) -> int:
        """One feature per tiling is 1."""
        return self.numbers[0]

    def active(self, obs: ArrayLike) -> Ints:
        """The numbers of the active tiles [n, tilings]."""
        from steadytd.features.kernels import active_tiles

        given, s = self._given(obs), self.state
        tilings, tiles = self.numbers
        out: Ints = np.empty((len(given), tilings), dtype=np.int32)
        shift = read_only(offsets(tilings, len(s["columns"])))
        by = scaling(s["columns"], s["low"], s["width"])
        active_tiles(read_only(given), by, shift, tiles, out)
        return out

    def rows(self, obs: ArrayLike) -> Rows:
        """A feature table of the active tiles."""
        feature = self.active(obs)
        n, tilings = feature.shape
        first = np.arange(n, dtype=np.int64) * tilings
        length = np.full(n, tilings, dtype=np.int64)
        return Rows(first, length, np.zeros_like(first), feature.reshape(-1), np.ones(feature.size))

    sparse = rows

    def _apply(self, obs: NDArray[Any], out: Floats) -> None:
        out[:] = 0.0
        out[np.arange(len(obs))[:, None], self.active(obs)] = 1.0

    def __call__(self, obs: ArrayLike, out: Floats | None = None) -> Floats:
        """The features, all of them; see `sparse` for the active ones alone."""
        needed = 8 * self.n_features * len(np.asarray(obs))
        if out is None and needed > MOST_BYTES:
            raise InputError(
                f"{self.spec} of {len(np.asarray(obs)):,d} observations as a full array takes "
                f"{needed / 2**30:.0f} GB; use sparse(obs), or fewer at a time."
            )
        return super().__call__(obs, out)


def offsets(tilings: int, m: int) -> Floats:
    """The shift of every tiling in every column, as a fraction of a tile."""
    odd = 2 * np.arange(m) + 1
    return np.ascontiguousarray((np.arange(tilings)[:, None] * odd % tilings) / tilings)
