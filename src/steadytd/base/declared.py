"""Checks of what users declare for a law: options by name, and functions to compile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from keyword import iskeyword
from opcode import opmap
from types import FunctionType
from typing import Any

from steadytd.base.errors import InputError

RAISE = opmap["RAISE_VARARGS"]  # what `raise` and `assert` become


def by_name(owner: str, option: str, given: object) -> dict[str, Any]:
    """The entries of an option, whose names must be usable as variables.

    >>> by_name("law mine", "params", None)
    {}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{owner}: `{option}` must be a dictionary by name, got {given!r}.")
    for name in given:
        if not (isinstance(name, str) and name.isidentifier() and not iskeyword(name)):
            raise InputError(
                f"{owner}: a name in `{option}` must be letters, digits and _, and not a "
                f"Python keyword, got {name!r}."
            )
    return dict(given)


def require_functions(owner: str, given: Iterable[object]) -> None:
    """Refuse what is no plain function, or raises: compiled code cannot pass on an exception."""
    for one in given:
        if not isinstance(one, FunctionType):
            raise InputError(
                f"{owner}: only a function written with def can be compiled, got {one!r}."
            )
        if raising := _raising(one, set()):
            raise InputError(
                f"{owner}: {raising} has a `raise` or `assert`, which compiled code cannot have; "
                "return math.nan instead: the learner then counts as diverged."
            )


def _raising(function: FunctionType, seen: set[FunctionType]) -> str:
    """The name of a function that raises: this one, or a compiled one that it may call."""
    seen.add(function)
    code = function.__code__
    if RAISE in code.co_code[::2]:
        return function.__name__
    closed = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    for name in (*code.co_names, *closed):
        used = function.__globals__.get(name)
        if name in closed and _filled(closed[name]):
            used = closed[name].cell_contents
        plain = getattr(used, "py_func", None)
        if (
            isinstance(plain, FunctionType)
            and plain not in seen
            and (found := _raising(plain, seen))
        ):
            return found
    return ""


def _filled(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is not None)
    except ValueError:  # not assigned yet
        return False
