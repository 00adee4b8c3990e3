"""Features as a SciPy sparse matrix: they stay sparse, except for exact matrices.

A stream needs the active features of a state and nothing else, so a run never makes them dense. The
exact matrices of a problem (A, b, G: [d, d]) are dense whatever the features are; `dense` counts
their bytes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs, frozen
from steadytd.base.errors import InputError
from steadytd.base.numbers import require_room

PARTS = ("indptr", "indices", "data", "shape")
MATRICES = 4  # of shape [d, d]: what the exact answers take at least


def is_sparse(values: object) -> bool:
    """Whether these are features in one of SciPy's sparse forms."""
    return hasattr(values, "tocsr") and hasattr(values, "nnz")


def stored(values: Any, name: str = "Phi") -> Any:
    """A read-only copy in rows of sorted columns, without zeros or duplicates."""
    from scipy.sparse import csr_array

    if values.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, got shape {values.shape}.")
    try:
        found = csr_array(values, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers ({error}).") from None
    found.sum_duplicates()
    found.eliminate_zeros()
    return from_parts(found.indptr, found.indices, found.data, found.shape)


def from_parts(indptr: Any, indices: Any, data: Any, shape: Any) -> Any:
    """The features whose parts these are, read-only."""
    from scipy.sparse import csr_array

    rows, columns = map(int, shape)
    long = np.int64 if len(data) >= 2**31 else np.int32
    arrays = frozen(data), frozen(indices, long), frozen(indptr, long)
    return csr_array(arrays, shape=(rows, columns), copy=False)


def parts(Phi: Any) -> dict[str, Any]:
    """What `from_parts` takes, by name."""
    return {name: np.asarray(getattr(Phi, name)) for name in PARTS}


def used_features(Phi: Any) -> Longs:
    """The features that are not 0 everywhere."""
    found = Phi.indices if is_sparse(Phi) else np.nonzero(np.asarray(Phi))[1]
    return np.unique(found).astype(np.int64)


def largest_entries(Phi: Any) -> Floats:
    """The largest absolute value of every feature, [k]."""
    if not is_sparse(Phi):
        return np.asarray(np.abs(Phi).max(axis=0))
    largest = np.zeros(Phi.shape[1])
    np.maximum.at(largest, Phi.indices, np.abs(Phi.data))
    return largest


def dense(Phi: Any) -> Floats:
    """The features as an array, if they and the exact matrices made of them fit into memory."""
    if not is_sparse(Phi):
        return np.asarray(Phi)
    S, d = Phi.shape
    require_room(
        f"the exact matrices of {S:,} states with {d:,} features", 8.0 * d * (S + MATRICES * d),
        "run learners, which do not need these matrices, or restrict Phi to the "
        f"{len(used_features(Phi)):,} features that are not always 0, Phi[:, used]",
    )  # fmt: skip
    return frozen(Phi.toarray())


def values_of(weights: Floats, Phi: Any) -> Floats:
    """weights [..., k] times Phi': the value of every state, [..., s]."""
    if not is_sparse(Phi):
        return np.asarray(weights @ Phi.T)
    flat = np.asarray(Phi @ weights.reshape(-1, weights.shape[-1]).T).T
    return flat.reshape(*weights.shape[:-1], Phi.shape[0])
