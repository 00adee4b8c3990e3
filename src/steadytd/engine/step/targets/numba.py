"""Statements as Python source that Numba compiles."""

from __future__ import annotations

from collections.abc import Iterable

from steadytd.base.files import file_name
from steadytd.engine.step.program import pattern_text
from steadytd.engine.step.statements import Bind, For, If, Statement

STEPS = """carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end"""
HEAD = '''"""The loop of {name}, {path}. Written by steadytd.engine.step; do not edit."""

import numpy as np
from numba import njit

from steadytd.engine.step.kernels import row_dot

index = np.uintp  # an unsigned index needs no test for counting back


'''
ADVANCE = """@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
      **disjoint)  # no two of these arrays overlap
def advance({arrays},
            {steps}):
{body}
"""
ENTRY = """

@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def enter(V, Z, M, params, scratch,
          {steps}):
    advance({given},
            {steps})


SCRATCH = {scratch}  # rows that the driver provides
MEASURED = {measured}  # the vector whose error is measured
"""
BLOCKS = """

@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def run(V, Z, E, row_of, listed, A, I, S, C, M, counts, params, places, starts, begins, limits,
        {tables}, low, high):
    features, lanes = V.shape[1], V.shape[3]
    sums = np.zeros(({sums}, lanes), dtype=V.dtype)
    numbers = np.zeros(({numbers}, lanes))
    rows = np.zeros(({rows}, I.shape[2], lanes))
    for b in range(low, high):
        shape = features, begins[b + 1] - begins[b]
        cells = slice(begins[b] * features, begins[b + 1] * features)
        advance({given},
                {tables})
"""


def printed(statements: Iterable[Statement], depth: int = 1) -> str:
    """Statements as the lines of a function's body."""
    indent, lines = "    " * depth, []
    for one in statements:
        match one:
            case For(index, begin, end, body):
                numbers = end if begin == "0" else f"{begin}, {end}"
                lines += [f"{indent}for {index} in range({numbers}):"]
                lines += [printed(body or ["pass"], depth + 1)]
            case If(condition, body, otherwise):
                lines += [f"{indent}if {condition}:", printed(body or ["pass"], depth + 1)]
                lines += [f"{indent}else:", printed(otherwise, depth + 1)] if otherwise else []
            case Bind(names, value):
                lines.append(f"{indent}{pattern_text(names)} = {value}")
            case _:
                lines.append(indent + one)
    return "\n".join(lines)


def head(name: str, path: str) -> str:
    """The module up to its first function."""
    return HEAD.format(name=file_name(name), path=path)


def driven(arrays: dict[str, str], scratch: int, measured: int, body: str) -> str:
    """A loop that the driver enters with the same arguments for every law.

    `arrays` are the arguments of the loop, and what of the driver's each of them is. Each is one
    of its own because that is how the compiler learns that no two overlap. Else it would test for
    overlap before every loop over lanes: twice the time at 16 lanes.
    """
    loop = ADVANCE.format(arrays=", ".join(arrays), steps=STEPS, body=body)
    given = ", ".join(arrays.values())
    return loop + ENTRY.format(given=given, steps=STEPS, scratch=scratch, measured=measured)


def blocked(
    arrays: dict[str, str], tables: Iterable[str], scratch: Iterable[int], body: str
) -> str:
    """A loop for one block of `engine.active`, and a function that goes from block to block.

    `arrays` are the arguments of the loop, and how block b finds each; `tables` tell what happens
    in the steps; `scratch` is how many arrays of each kind last for one step: sums, numbers, and
    rows of the ring.
    """
    sums, numbers, rows = scratch
    steps = ", ".join(tables)
    loop = ADVANCE.format(arrays=", ".join(arrays), steps=steps, body=body)
    given = ", ".join(arrays.values())
    return loop + BLOCKS.format(given=given, tables=steps, sums=sums, numbers=numbers, rows=rows)
