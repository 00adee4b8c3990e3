# Only what this project uses: the decorator keeps the type of the function that it compiles.
from collections.abc import Callable
from typing import TypeVar

from numba import types as types

F = TypeVar("F", bound=Callable[..., object])

__version__: str

def njit(
    *,
    cache: bool = ...,
    nogil: bool = ...,
    error_model: str = ...,
    pipeline_class: type = ...,
    no_cpython_wrapper: bool = ...,
    no_cfunc_wrapper: bool = ...,
) -> Callable[[F], F]: ...
