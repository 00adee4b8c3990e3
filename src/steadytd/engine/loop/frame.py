"""What stands around the body of every generated loop: its head, and the driver that calls it."""

from __future__ import annotations

HEADER = '''"""The loop of {name}, {path}. Written by steadytd.engine.loop.write; do not edit."""

import numpy as np
from numba import njit


@njit(nogil=True, error_model="numpy", pipeline_class=Disjoint,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only the driver calls it
def advance({arrays},
            carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end):
'''

# The driver runs `advance` from stop to stop. Where a lane has left the finite range since the last
# stop, it goes back and repeats that stretch in pieces of FINE steps, and the piece in which the
# lane leaves one step at a time, so that the exact step is known without a check in the inner loop.
# A repeated stretch gives the same bits.
FINE = 32
DRIVER = """

@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def run(state, kept, V, Z, M, carry, params, event, factor, row, row_next, facts,
        first, length, offset, feature, value, stops, records,
        goal_first, goal_length, goal_offset, goal_feature, goal_value, weight, target,
        ends, errors, diverged, first_step):
    sought = Sought(goal_first, goal_length, goal_offset, goal_feature, goal_value, weight, target)
    scratch = np.empty(({scratch}, V.shape[2]))
    whole = np.int64(2**62)
    begin = single_until = np.int64(0)
    stop = 0
    recorded = 0
    stride = whole
    while stop < len(stops):
        end = min(begin + stride, stops[stop])
        if stride > 1:
            copy(state, kept)
        advance({arrays},
                carry, event, factor, row, row_next, facts,
                first, length, offset, feature, value, first_step, begin, end)
        if stride == 1:
            mark_diverged(V, diverged, first_step + end)
            if end == single_until:
                stride = {fine}
        elif leaves_finite_range(V, diverged):
            copy(kept, state)
            single_until = end
            stride = {fine} if stride == whole else 1
            continue
        begin = end
        if begin == stops[stop]:
            stride = whole
            if records[stop]:
                measure_all(V[{shown}], sought, ends, diverged, errors[recorded])
                recorded += 1
            stop += 1
"""
