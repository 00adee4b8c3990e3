"""What stands around the body of every generated loop: its head, and how the driver comes in."""

from __future__ import annotations

HEADER = '''"""The loop of {name}, {path}. Written by steadytd.engine.loop.write; do not edit."""

import numpy as np
from numba import njit


@njit(nogil=True, error_model="numpy", pipeline_class=Inner,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only the driver calls it
def advance({arrays},
            carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end):
'''

FINE = 32  # steps of the pieces in which a stretch is repeated where a lane diverged in it

# How the driver comes in: with the same arguments for every law.
ENTRY = """

@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def enter(V, Z, M, params, scratch, carry, event, factor, row, row_next, facts,
          first, length, offset, feature, value, first_step, begin, end):
    advance({arrays},
            carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end)


SCRATCH = {scratch}  # rows that the driver provides
SHOWN = {shown}  # the vector whose error is measured
"""
