"""Statements as Python source that Numba compiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steadytd.base.files import file_name
from steadytd.engine.step.program import pattern_text
from steadytd.engine.step.statements import Bind, For, If, Statement

STEPS = """carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end"""
HEAD = '''"""The loop of {name}, {path}. Written by steadytd.engine.step; do not edit."""

import numpy as np
from numba import njit

{imports}
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
SHOWN = {shown}  # the vector whose error is measured
"""
RUN = """@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **disjoint)
def run({arrays},
            {steps}):
{body}
    return end
"""


def printed(statements: Iterable[Statement], depth: int = 1) -> str:
    """Statements as the lines of a function's body."""
    return "\n".join("    " * (depth + more) + line for more, line in _lines(statements))


def _lines(statements: Iterable[Statement]) -> Iterator[tuple[int, str]]:
    """The lines, each with how far it is indented."""
    for one in statements:
        match one:
            case For(index, begin, end, body):
                yield 0, f"for {index} in range({end if begin == '0' else f'{begin}, {end}'}):"
                yield from _inside(body)
            case If(condition, body, otherwise):
                yield 0, f"if {condition}:"
                yield from _inside(body)
                if otherwise:
                    yield 0, "else:"
                    yield from _inside(otherwise)
            case Bind(names, value):
                yield 0, f"{pattern_text(names)} = {value}"
            case _:
                yield 0, one


def _inside(body: list[Statement]) -> Iterator[tuple[int, str]]:
    for more, line in _lines(body or ["pass"]):
        yield more + 1, line


def head(name: str, path: str, *imports: str) -> str:
    """The module up to its first function."""
    return HEAD.format(name=file_name(name), path=path, imports="\n".join(imports))


def driven(arrays: dict[str, str], scratch: int, shown: int, body: str) -> str:
    """A loop that the driver enters with the same arguments for every law.

    `arrays` are the arguments of the loop, and what of the driver's each of them is. Each is one
    of its own because that is how the compiler learns that no two overlap. Else it would test for
    overlap before every loop over lanes: twice the time at 16 lanes.
    """
    loop = ADVANCE.format(arrays=", ".join(arrays), steps=STEPS, body=body)
    given = ", ".join(arrays.values())
    return loop + ENTRY.format(given=given, steps=STEPS, scratch=scratch, shown=shown)


def called(arrays: Iterable[str], body: str) -> str:
    """A loop that Python calls."""
    return RUN.format(arrays=", ".join(arrays), steps=STEPS, body=body)
