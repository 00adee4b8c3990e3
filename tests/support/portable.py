"""The tests as on another machine: what `make test-portable` switches on, see `tests/portable.sh`.

OPENBLAS_CORETYPE makes OpenBLAS take the loops of another processor, which round differently. NumPy
and SciPy bring one OpenBLAS each, and both have to obey.

STEADYTD_TEST_JITTER=SEED moves what `numpy.linalg` and `scipy.linalg` return by up to 1e-15 of its
size: a test that compares it exactly, or a verdict that hangs on its last digits, falls everywhere.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import threadpoolctl
from numpy.typing import NDArray

MOVED = 1e-15
VALUES_FIRST = ("eig", "eigh", "eigvals", "eigvalsh", "dsygvd")  # what they return begins with them
FUNCTIONS = (
    *VALUES_FIRST, "cholesky", "cond", "det", "expm", "inv", "lstsq", "matrix_power", "norm",
    "null_space", "orth", "pinv", "qr", "solve", "solve_triangular", "svd", "svdvals",
    "dgecon", "dgeqp3", "dgetrf", "dgetrs", "dorgqr", "dpstrf", "dtrtrs",
)  # fmt: skip


def prepare() -> None:
    """Do what the environment asks for; called before any test module is imported."""
    if wanted := os.environ.get("OPENBLAS_CORETYPE"):
        require_core_type(wanted)
    if seed := os.environ.get("STEADYTD_TEST_JITTER"):
        jitter(int(seed))


def core_types() -> list[str]:
    """For which processor each loaded OpenBLAS works."""
    found: list[dict[str, Any]] = threadpoolctl.threadpool_info()
    return [one["architecture"] for one in found if one["internal_api"] == "openblas"]


def require_core_type(wanted: str) -> None:
    """Both libraries work for this processor: one that OpenBLAS does not know is passed over."""
    found = core_types()
    if len(found) < 2 or {one.lower() for one in found} != {wanted.lower()}:
        raise SystemExit(f"OPENBLAS_CORETYPE={wanted} has no effect: OpenBLAS works for {found}.")


def jitter(seed: int) -> None:
    """Put functions that move their results in the place of those that work with matrices."""
    for module in (np.linalg, scipy.linalg, scipy.linalg.lapack):
        for name in FUNCTIONS:
            if hasattr(module, name):
                setattr(module, name, jittered(name, getattr(module, name), seed))


def jittered(name: str, function: Callable[..., Any], seed: int) -> Callable[..., Any]:
    """The function with results that are moved a little: the same ones always by the same."""

    def moved(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if options.get("lwork") == -1:  # only how much room it needs
            return result
        unbounded = name in ("eig", "eigvals") and len(args) > 1  # of two matrices
        shifted = name in VALUES_FIRST and not unbounded
        if not isinstance(result, tuple):
            return _moved(result, seed, shifted=shifted)
        parts = [_moved(one, seed, shifted=shifted and i == 0) for i, one in enumerate(result)]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)

    return moved


def _moved(result: Any, seed: int, *, shifted: bool) -> Any:
    """Numbers that are not whole, each moved by its own share, or `shifted` all together.

    An eigenvalue is right to the size of the largest one, so one that is 0 need not be found as 0.
    """
    if not isinstance(result, np.ndarray | np.inexact | float) or not np.size(result):
        return result
    values: NDArray[Any] = np.asarray(result)
    if not np.issubdtype(values.dtype, np.inexact):
        return result
    draw = np.random.default_rng([seed, zlib.crc32(values.tobytes())])
    with np.errstate(all="ignore"):
        if shifted:
            found = values + MOVED * draw.uniform(-1.0, 1.0) * np.abs(values).max()
        else:
            found = values * (1.0 + MOVED * draw.uniform(-1.0, 1.0, values.shape))
    return found if isinstance(result, np.ndarray) else found.dtype.type(found)
