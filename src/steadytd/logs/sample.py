"""A sample of a log's observations, to fit feature maps on, without reading everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.base.random import OBSERVATIONS, Reservoir
from steadytd.logs import values
from steadytd.logs.schema import LogSchema
from steadytd.logs.sources.source import Chunk, LogSource

SPREAD = 32  # row groups that are looked into
FULL = 262_144  # a log of at most this many rows is read whole
BATCH = 65_536


def sample(
    source: LogSource, schema: LogSchema, begin: int, end: int | None, n: int, seed: int
) -> NDArray[Any]:
    """At most `n` observations in the log's order, without replacement.

    A small log, or one of few row groups, is read whole and every row has the same chance. Of a
    large one the beginnings of up to 32 row groups are read, evenly spread over the log.
    """
    if n < 1:
        raise InputError(f"a sample needs at least one row, got {n}.")
    found = Reservoir(n, seed, OBSERVATIONS)
    names = schema.columns.obs
    for chunk in _chunks(source, names, begin, end, n):
        obs = values.matrix(chunk, names, schema.width)
        values.require_finite(obs, names[0], chunk)
        found.add(obs)
    return found.rows()[0]


def _chunks(
    source: LogSource, names: Sequence[str], begin: int, end: int | None, n: int
) -> Iterator[Chunk]:
    total = source.rows
    if total is None:
        yield from source.read(names, begin, end, BATCH)
        return
    last = total if end is None else end
    starts = np.cumsum([0, *source.units()])
    inside = [
        (max(int(low), begin), min(int(high), last))
        for low, high in pairwise(starts)
        if low < last and high > begin and low < high
    ]
    if last - begin <= max(FULL, 2 * n) or len(inside) < SPREAD // 4:
        yield from source.read(names, begin, end, BATCH)
        return
    places = np.unique(np.linspace(0, len(inside) - 1, SPREAD).round().astype(int))
    share = -(-4 * n // len(places))
    for place in places:
        low, high = inside[place]
        yield from source.read(names, low, min(high, low + share), min(share, BATCH))
