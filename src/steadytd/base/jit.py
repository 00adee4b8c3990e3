"""The one decorator for compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit
from numba.core.compiler import Compiler

F = TypeVar("F", bound=Callable[..., object])


class Disjoint(Compiler):
    """Numba's compiler, told that no two arrays given to the function overlap (`restrict` in C)."""

    def define_pipelines(self) -> object:
        """The usual passes."""
        self.state.flags.noalias = True
        return super().define_pipelines()


def compiled(function: F) -> F:
    """Compile when first called, keep on disk, release the interpreter's lock.

    Strict IEEE arithmetic; a division by zero gives inf or NaN, as in NumPy.
    """
    return _fresh(njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_disjoint(function: F) -> F:
    """As `compiled`, for a function whose arrays never overlap."""
    decorate = njit(cache=True, nogil=True, error_model="numpy", pipeline_class=Disjoint)
    return _fresh(decorate(function))


def _fresh(function: F) -> F:
    """Let Numba compare the date of the source before it opens what it has kept on disk.

    It compares only its own version first, and what was kept for older source may name a class of
    arguments that is no longer there: opening it would fail.
    """
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    if file is not None:
        file._version = file._version, file._source_stamp
    return function
