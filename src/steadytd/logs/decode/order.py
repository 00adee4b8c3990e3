"""Rows must come sorted by episode and t: checked across batches with a constant memory."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Bools, Longs, read_only
from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns
from steadytd.logs.decode.kernels import Cursor, in_order
from steadytd.logs.faults import Place, fault


def advance(
    cursor: Cursor, ids: Longs, t: Longs, ended: Bools, place: Place, columns: Columns
) -> tuple[Cursor, Bools, Longs]:
    """The cursor after these rows, which rows begin an episode, and each row's episode number."""
    t0 = cursor.t0
    if t0 is None:
        t0 = int(t[0])
        if t0 not in (0, 1):
            rule = "an episode must begin with t = 0 (or 1, in the whole log)"
            raise fault(place, columns.t, 0, rule, t0, "add the rows before it, or renumber t")
    first, number = np.empty(len(ids), dtype=np.bool_), np.empty(len(ids), dtype=np.int64)
    given = read_only(ids), read_only(t), read_only(ended)
    if not in_order(*given, cursor._replace(t0=t0), first, number):
        raise _first_fault(cursor, ids, t, ended, t0, place, columns)
    last = Cursor(int(number[-1]), int(ids[-1]), int(t[-1]), bool(ended[-1]), t0)
    return last, first, number


def _first_fault(
    cursor: Cursor, ids: Longs, t: Longs, ended: Bools, t0: int, place: Place, columns: Columns
) -> InputError:
    """The first row that is out of order, when it is known that there is one."""
    begun = cursor.episode >= 0
    id_before = np.concatenate([[cursor.episode_id if begun else ids[0]], ids[:-1]])
    t_before = np.concatenate([[cursor.t], t[:-1]])
    over = np.concatenate([[cursor.ended], ended[:-1]])
    first = ids != id_before
    first[0] |= not begun
    bad = (ids < id_before) | np.where(first, t != t0, (t != t_before + 1) | over)
    i = int(bad.argmax())
    before = int(id_before[i]), int(t_before[i]), bool(over[i])
    return _explain(place, columns, i, (int(ids[i]), int(t[i])), before, t0)


def _explain(
    place: Place, columns: Columns, i: int, now: tuple[int, int], before: tuple[int, int, bool],
    t0: int,
) -> InputError:  # fmt: skip
    (episode, t), (episode_before, t_before, over) = now, before
    if episode < episode_before:
        return fault(
            place, columns.episode_id, i, "episodes must stand one after another, sorted by "
            f"episode_id (over all files), but after episode {episode_before} comes", str(episode),
            "sort the log by episode_id and t; give every episode of every file its own number",
        )  # fmt: skip
    if episode > episode_before:
        return fault(
            place, columns.t, i, f"every episode must begin with t = {t0} as the first one does",
            f"t = {t} in episode {episode}", "add the missing rows or renumber t",
        )  # fmt: skip
    if t == t_before:
        return fault(
            place, columns.t, i, "a pair of episode_id and t may occur once", f"({episode}, {t}) "
            "again", "drop the duplicate row",
        )  # fmt: skip
    if over:
        return fault(
            place, columns.t, i, f"no row may follow a terminated or truncated row of its episode, "
            f"and episode {episode} ended at t = {t_before}", f"t = {t}", "give what follows an "
            "episode_id of its own, or correct the flag",
        )  # fmt: skip
    if t < t_before:
        return fault(
            place, columns.t, i, f"t must grow by one within episode {episode}",
            f"{t} after {t_before}", "sort the log by episode_id and t",
        )  # fmt: skip
    return fault(
        place, columns.t, i, f"t must grow by one within episode {episode}",
        f"{t} after {t_before} (a gap)", "add the missing rows, or give the rest of the episode an "
        "episode_id of its own and t from the beginning",
    )  # fmt: skip
