"""Threads and clusters: one BLAS thread where more slow each other down, locks, and Dask.

Dask is an optional dependency; where it is missing, the error says how to install it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from steadytd.base.errors import InputError

if TYPE_CHECKING:
    from distributed import Client
    from threadpoolctl import ThreadpoolController


class _Shared(Protocol):
    """An object that several threads may call; `turn` is a `threading.RLock`."""

    turn: Any


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=_Shared)
TIMEOUT = 10  # seconds


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run with one BLAS thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


def in_turn(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method of an object with a `turn`: while a thread is in one of them, others wait."""

    @wraps(method)
    def alone(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.turn:
            return method(self, *args, **kwargs)

    return alone


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, found once: that takes 10 ms."""
    import scipy.linalg  # noqa: F401  (so that its library is loaded)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def require_dask() -> None:
    """Complain if Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            "engine='dask' needs Dask; install it with: pip install 'steadytd[cluster]'."
        ) from None


def connect(address: str) -> Client:
    """A client of the scheduler at `address`; an `InputError` if it cannot be reached."""
    from distributed import Client

    try:
        return Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"cannot reach a Dask scheduler at '{address}' ({error}); start one with "
            "`dask scheduler` and give its address, for instance tcp://localhost:8786."
        ) from None
