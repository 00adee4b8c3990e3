"""Compiled checks of a log's columns: one pass over the values, which may have any number type.

They only say whether all is well. What is wrong, and where, is found out by the slower checks that
make the message.
"""

from __future__ import annotations

from typing import Any

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


@compiled
def in_order(
    ids: Longs, t: NDArray[Any], ended: Bools, episode: int, id_before: int, t_before: int,
    over: bool, t0: int, first: Bools, number: Longs,
) -> bool:  # fmt: skip
    """Whether episodes and steps stand in order; fills `first` and the episodes' running numbers.

    `episode`, `id_before`, `t_before` and `over` belong to the row before; episode -1: there is
    none.
    """
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
