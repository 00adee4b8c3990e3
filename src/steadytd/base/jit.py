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
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def compiled_disjoint(function: F) -> F:
    """As `compiled`, for a function whose arrays never overlap."""
    return njit(cache=True, nogil=True, error_model="numpy", pipeline_class=Disjoint)(function)
