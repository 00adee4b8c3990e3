"""Runs the loop of any law from stop to stop, and notices the step at which a lane diverges.

It is compiled once for all laws: it gets the loop as the address of its machine code, so a new law
compiles its own few lines and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from steadytd.base import numba_internals
from steadytd.base.jit import compiled
from steadytd.engine.step.kernels import (
    GoalRows,
    copy,
    leaves_finite_range,
    mark_diverged,
    measure_all,
)

WHOLE = np.int64(2**62)  # steps: no end but the next stop
FINE = 32  # steps of the pieces in which a stretch is repeated where a lane diverged in it


def _numbers(dtype: Any, ndim: int, *, read: bool = True) -> types.Array:
    return types.Array(dtype, ndim, "C", readonly=read, aligned=True)


_STATE = [_numbers(types.float64, n, read=False) for n in (3, 3, 2, 2, 2, 1)]
_STEPS = [
    _numbers(types.int32, 1), _numbers(types.float64, 1),  # event, factor
    _numbers(types.int32, 1), _numbers(types.int32, 1), _numbers(types.float64, 2),  # transitions
    *[_numbers(types.int64, 1)] * 3, _numbers(types.int32, 1), _numbers(types.float64, 1),  # rows
]  # fmt: skip
ENTRY = (*_STATE, *_STEPS, types.int64, types.int64, types.int64)  # what `enter` is given


def address(enter: Any) -> int:
    """Where the machine code of a loop is in memory, compiled or taken from disk."""
    return numba_internals.address(enter, ENTRY)


call = numba_internals.caller(ENTRY)  # another type is an error, never a wrong read


# Where a lane has left the finite range since the last stop, the driver goes back and repeats that
# stretch in pieces of FINE steps, and the piece in which the lane leaves one step at a time, so
# that the exact step is known without a check in the inner loop. A repeated stretch gives the same
# bits.
@compiled
def run(loop: Any, layout: Any, own: Any, steps: Any, goal: Any, plan: Any) -> None:
    """Take all steps up to the last stop; fill `errors` at the stops that are recorded.

    Plain tuples, not named ones: the step of an online learner is a call of its own, and these cost
    half as much. They are what `Block.advance` gives.
    """
    rows_of_scratch, measured = layout
    state, backup, V, Z, M, carry, params, diverged = own
    event, factor, row, row_next, facts, first, length, offset, feature, value = steps
    goal_first, goal_length, goal_offset, goal_feature, goal_value, weight, target, ends = goal
    stops, records, errors, first_step = plan
    rows_of_goal = GoalRows(
        goal_first, goal_length, goal_offset, goal_feature, goal_value, weight, target
    )
    scratch = np.empty((rows_of_scratch, V.shape[2]))
    begin = single_until = np.int64(0)
    stop = 0
    recorded = 0
    stride = WHOLE
    while stop < len(stops):
        end = min(begin + stride, stops[stop])
        if stride > 1:
            copy(state, backup)
        given = (
            V, Z, M, params, scratch, carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end,
        )  # fmt: skip
        call(loop, given)
        if stride == 1:
            mark_diverged(V, diverged, first_step + end)
            if end == single_until:
                stride = np.int64(FINE)
        elif leaves_finite_range(V, diverged):
            copy(backup, state)
            single_until = end
            stride = np.int64(FINE) if stride == WHOLE else np.int64(1)
            continue
        begin = end
        if begin == stops[stop]:
            stride = WHOLE
            if records[stop]:
                measure_all(V[measured], rows_of_goal, ends, diverged, errors[recorded])
                recorded += 1
            stop += 1
