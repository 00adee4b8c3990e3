"""Compiled checks of a log's columns: one pass over the values, which may have any number type.

They only say whether all is well. What is wrong, and where, is found out by the slower checks that
make the message.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Longs
from steadytd.base.jit import compiled


@compiled
def all_within(values: NDArray[Any], above: float, most: float) -> bool:
    """Whether above < value <= most for every value; NaN is not."""
    fine = True
    for i in range(len(values)):
        value = np.float64(values[i])
        fine &= bool(value > above) & bool(value <= most)
    return fine


class Cursor(NamedTuple):
    """What has to be remembered of the rows already seen."""

    episode: int = -1  # running number of the last row's episode; -1: no row was seen
    episode_id: int = 0  # of the last row (meaningless while episode < 0)
    t: int = 0  # of the last row
    ended: bool = False  # the last row was terminated or truncated
    t0: int | None = None  # where t begins in this log: 0 or 1; None: not known yet


@compiled
def in_order(
    ids: Longs, t: NDArray[Any], ended: Bools, cursor: Cursor, first: Bools, number: Longs
) -> bool:
    """Whether episodes and steps stand in order; fills `first` and the episodes' running numbers.

    The cursor, which must know t0, is that before these rows.
    """
    episode, id_before, t_before, over, t0 = cursor
    fine = True
    for i in range(len(ids)):
        begins = episode < 0 or ids[i] != id_before
        if begins:
            fine &= (episode < 0 or ids[i] > id_before) and t[i] == t0
            episode += 1
        else:
            fine &= t[i] == t_before + 1 and not over
        first[i] = begins
        number[i] = episode
        id_before, t_before, over = ids[i], int(t[i]), ended[i]
    return fine
