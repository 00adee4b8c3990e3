"""Where a log may be cut: at beginnings of episodes, near the borders of row groups."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns
from steadytd.logs.order import Cursor, advance
from steadytd.logs.sources.source import LogSource
from steadytd.logs.values import whole_numbers

BATCH = 1 << 18


def cuts(
    source: LogSource, columns: Columns, begin: int, end: int | None, start: Cursor, k: int
) -> list[tuple[int, Cursor]]:
    """First row of each part and the state of the order check before it; at most `k` parts.

    Borders of row groups that share the rows as evenly as possible are chosen, and each is moved
    on to the next beginning of an episode. Episode numbers need the whole column `episode_id`.
    """
    if k < 1:
        raise InputError(f"the number of parts must be at least 1, got {k}.")
    if k == 1:
        return [(begin, start)]
    borders = _borders(source, begin, end, k)
    found, cursor, row = [(begin, start)], start, begin
    for chunk in source.read(columns.whole_numbers(), begin, end, BATCH):
        if not chunk.batch.num_rows:
            continue
        ids, t = (whole_numbers(chunk, name) for name in columns.whole_numbers())
        before = cursor
        never = np.zeros(len(ids), dtype=np.bool_)
        cursor, first, number = advance(cursor, ids, t, never, chunk, columns)
        starts = np.flatnonzero(first)
        while borders:
            i = np.searchsorted(starts, max(borders[0] - row, 0))
            if i == len(starts):
                break
            at = int(starts[i])
            state = before if at == 0 else _after(cursor, ids, t, number, at - 1)
            found.append((row + at, state))
            borders = [border for border in borders if border > row + at]
        row += len(ids)
    return found


def _after(cursor: Cursor, ids: Longs, t: Longs, number: Longs, i: int) -> Cursor:
    return Cursor(int(number[i]), int(ids[i]), int(t[i]), False, cursor.t0)


def _borders(source: LogSource, begin: int, end: int | None, k: int) -> list[int]:
    """Rows inside (begin, end) at which to cut, before they are moved to an episode's beginning."""
    edges = np.cumsum(source.units())
    if len(edges) < 2:
        return []
    last = int(edges[-1]) if end is None else end
    inside = edges[(edges > begin) & (edges < last)]
    if not len(inside):
        return []
    ideal = begin + (last - begin) * np.arange(1, k) / k
    nearest = [int(inside[np.abs(inside - place).argmin()]) for place in ideal]
    return sorted(set(nearest))
