"""Compiled loops of the feature maps: one pass over the observations, row by row.

Every row is computed by itself and in the same order, so that a row's features have the same bits
whatever rows stand beside it. The observations may be in single or double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.features.observations import Scaling


@compiled
def standardize(obs: NDArray[Any], scaling: Scaling, out: Floats) -> None:
    """out[i] = 1, then (obs - mean) * inverse of the chosen columns."""
    columns, mean, inverse = scaling
    every = len(columns) == obs.shape[1]  # then they stand in order, and the loop can be unrolled
    for i in range(len(obs)):
        out[i, 0] = 1.0
        if every:
            for j in range(len(mean)):
                out[i, j + 1] = (obs[i, j] - mean[j]) * inverse[j]
        else:
            for j in range(len(mean)):
                out[i, j + 1] = (obs[i, columns[j]] - mean[j]) * inverse[j]


@compiled
def multiply_up(
    obs: NDArray[Any], scaling: Scaling, parent: Longs, variable: Longs, out: Floats
) -> None:
    """out[i, q] = out[i, parent[q]] * z[variable[q]], with out[i, 0] = 1."""
    columns, mean, inverse = scaling
    z = np.empty(len(columns))
    for i in range(len(obs)):
        for j in range(len(columns)):
            z[j] = (obs[i, columns[j]] - mean[j]) * inverse[j]
        out[i, 0] = 1.0
        for q in range(1, len(parent)):
            out[i, q] = out[i, parent[q]] * z[variable[q]]


@compiled
def minus_squared_distance(
    obs: NDArray[Any], scaling: Scaling, centers: Floats, out: Floats
) -> None:
    """out[i] = 0, then minus the squared distances of z to the columns of `centers`."""
    columns, mean, inverse = scaling
    dimensions, count = centers.shape
    for i in range(len(obs)):
        row = out[i]
        row[:] = 0.0
        for j in range(dimensions):
            z = (obs[i, columns[j]] - mean[j]) * inverse[j]
            for c in range(count):
                row[c + 1] -= (z - centers[j, c]) * (z - centers[j, c])


@compiled
def angles(obs: NDArray[Any], scaling: Scaling, waves: Floats, out: Floats) -> None:
    """out[i, c] = sum_j waves[j, c] s_j, with s the observation clipped into [0, 1]."""
    columns, low, inverse = scaling
    dimensions, count = waves.shape
    for i in range(len(obs)):
        row = out[i]
        row[:] = 0.0
        for j in range(dimensions):
            s = min(max((obs[i, columns[j]] - low[j]) * inverse[j], 0.0), 1.0)
            for c in range(count):
                row[c] += waves[j, c] * s


@compiled
def active_tiles(
    obs: NDArray[Any], scaling: Scaling, offsets: Floats, tiles: int, out: Ints
) -> None:
    """out[i, tiling]: the number of the tile that holds the observation."""
    columns, low, inverse = scaling
    tilings, dimensions = offsets.shape
    for i in range(len(obs)):
        for tiling in range(tilings):
            number = tiling
            for j in range(dimensions):
                s = min(max((obs[i, columns[j]] - low[j]) * inverse[j], 0.0), 1.0)
                tile = min(int(s * (tiles - 1) + offsets[tiling, j]), tiles - 1)
                number = number * tiles + tile
            out[i, tiling] = number


@compiled
def find_rows(obs: NDArray[Any], known: Floats, out: Ints, found: Bools) -> None:
    """out[i]: where observation i stands among the sorted rows `known`, by bisection."""
    count, width = known.shape
    for i in range(len(obs)):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            less = False
            for j in range(width):
                if known[middle, j] != obs[i, j]:
                    less = known[middle, j] < obs[i, j]
                    break
            if less:
                low = middle + 1
            else:
                high = middle
        same = low < count
        if same:
            for j in range(width):
                same &= known[low, j] == obs[i, j]
        found[i] = same
        out[i] = low if same else 0
