"""Rows come sorted by episode and t: checked across batches, and where a log may be cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Longs
from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns
from steadytd.logs.sources.source import BATCH, Chunk, LogSource
from steadytd.logs.values import fault, whole_numbers


class Cursor(NamedTuple):
    """What has to be remembered of the rows already seen."""

    episode: int = -1  # running number of the last row's episode; -1: no row was seen
    episode_id: int = 0  # of the last row (meaningless while episode < 0)
    t: int = 0  # of the last row
    ended: bool = False  # the last row was terminated or truncated
    t0: int | None = None  # where t begins in this log: 0 or 1; None: not known yet
    unit: int = -1  # number of the last row's unit, where the log has units
    keep: float = 1.0  # probability with which the last row's episode was stored


def advance(
    cursor: Cursor, ids: Longs, t: Longs, ended: Bools, chunk: Chunk, columns: Columns
) -> tuple[Cursor, Bools, Longs]:
    """The cursor after these rows, which rows begin an episode, and each row's episode number."""
    t0 = int(t[0]) if cursor.t0 is None else cursor.t0
    if t0 not in (0, 1):
        rule = "an episode must begin with t = 0 (or 1, in the whole log)"
        raise fault(chunk, columns["t"], 0, rule, t0, "add the rows before it, or renumber t")
    begun = cursor.episode >= 0
    id_before = np.concatenate([[cursor.episode_id if begun else ids[0]], ids[:-1]])
    t_before = np.concatenate([[cursor.t], t[:-1]])
    over = np.concatenate([[cursor.ended], ended[:-1]])
    first = ids != id_before
    first[0] |= not begun
    bad = (ids < id_before) | (t != np.where(first, t0, t_before + 1)) | (over & ~first)
    if bad.any():
        i = int(bad.argmax())
        before = Cursor(0, int(id_before[i]), int(t_before[i]), bool(over[i]), t0)
        raise _explain(chunk, columns, i, int(ids[i]), int(t[i]), before)
    number = cursor.episode + np.cumsum(first)
    last = Cursor(int(number[-1]), int(ids[-1]), int(t[-1]), bool(ended[-1]), t0)
    return last, first, number


def _explain(
    chunk: Chunk, columns: Columns, i: int, episode: int, t: int, before: Cursor
) -> InputError:
    """What is wrong with row i, which is out of order after the row `before`."""
    if episode < before.episode_id:
        return fault(
            chunk, columns["episode_id"], i, "episodes must be contiguous and sorted by "
            f"episode_id across all files, but after episode {before.episode_id} comes", episode,
            "sort the log by episode_id and t; give every episode of every file its own number",
        )  # fmt: skip
    if episode > before.episode_id:
        rule = f"every episode must begin with t = {before.t0} as the first one does"
        value, remedy = f"t = {t} in episode {episode}", "add the missing rows or renumber t"
    elif t == before.t:
        rule = "a pair of episode_id and t may occur once"
        value, remedy = f"({episode}, {t}) again", "drop the duplicate row"
    elif before.ended:
        rule = (
            "no row may follow a terminated or truncated row of its episode, and episode "
            f"{episode} ended at t = {before.t}"
        )
        value = f"t = {t}"
        remedy = "give the rows that follow their own episode_id, or correct the flag"
    else:
        rule = f"t must increase by one within episode {episode}"
        value, remedy = f"{t} after {before.t}", "sort the log by episode_id and t"
        if t > before.t:
            value += " (a gap)"
            remedy = (
                "add the missing rows, or give the rest of the episode an episode_id of its own "
                "and t from the beginning"
            )
    return fault(chunk, columns["t"], i, rule, value, remedy)


def cuts(
    source: LogSource, columns: Columns, begin: int, end: int | None, start: Cursor, k: int
) -> list[tuple[int, Cursor]]:
    """First row of each part and the cursor before it; at most `k` parts.

    Borders of row groups that share the rows as evenly as possible are chosen, and each is moved
    on to the next beginning of an episode. Episode numbers need the whole column `episode_id`.
    """
    if k < 1:
        raise InputError(f"the number of parts must be at least 1, got {k}.")
    if k == 1:
        return [(begin, start)]
    borders = _borders(source, begin, end, k)
    order = columns["episode_id"], columns["t"]
    found, cursor = [(begin, start)], start
    for chunk in source.read(list(map(str, order)), begin, end, BATCH):
        ids, t = (whole_numbers(chunk, column) for column in order)
        before, never_ended = cursor, np.zeros(len(ids), dtype=np.bool_)
        cursor, first, number = advance(cursor, ids, t, never_ended, chunk, columns)
        starts = np.flatnonzero(first)
        while borders:
            place = np.searchsorted(starts, max(borders[0] - chunk.log_row, 0))
            if place == len(starts):
                break
            i = int(starts[place])
            if i > 0:
                before = Cursor(
                    int(number[i - 1]), int(ids[i - 1]), int(t[i - 1]), False, cursor.t0
                )
            found.append((chunk.log_row + i, before))
            borders = [border for border in borders if border > chunk.log_row + i]
    return found


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
    return sorted({int(inside[np.abs(inside - place).argmin()]) for place in ideal})
