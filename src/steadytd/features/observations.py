"""Observations as arrays: what is accepted, what is refused, and how they are scaled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats, Longs, read_only
from steadytd.base.errors import InputError

SAME = 1e-12  # a column whose values differ by less than this, relatively, is constant
TAIL, MARGIN = 0.005, 0.1  # the robust range: between these quantiles, and this much wider


def observations(obs: ArrayLike) -> NDArray[Any]:
    """A contiguous [n, k] array of float32 or float64, free of NaN and infinities.

    Single precision stays single: a large log that is read once is not copied.
    """
    try:
        array = np.asarray(obs)
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"observations must be numbers, one row per observation ({error})."
        ) from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"observations must be an array [n, k], one row each, got shape {array.shape}; "
            "use obs.reshape(n, -1), or [obs] for a single observation."
        )
    array = np.ascontiguousarray(array)
    with np.errstate(all="ignore"):  # a sum may overflow though every number is finite
        suspect = not np.isfinite(array.sum())
    if suspect and not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"observations must be finite numbers, got {array[row, column]} "
            f"in row {row}, column {column}; drop or fill such rows first."
        )
    return array


def varying(sample: NDArray[Any]) -> Longs:
    """The columns that are not constant; the constant feature stands for the others."""
    low, high = sample.min(axis=0).astype(np.float64), sample.max(axis=0).astype(np.float64)
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):  # an infinite spread is not constant
        return np.flatnonzero(high - low > SAME * size).astype(np.int64)


def standard(sample: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Mean and standard deviation of the varying columns.

    >>> found = standard(np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> found["columns"].tolist(), found["mean"].tolist(), found["scale"].tolist()
    ([0], [2.0], [1.0])
    """
    columns = varying(sample)
    chosen = sample[:, columns].astype(np.float64)
    with np.errstate(all="ignore"):
        mean, scale = chosen.mean(axis=0), chosen.std(axis=0)
    _require_moderate(columns, mean, scale)
    return {"columns": columns, "mean": mean, "scale": scale}


def ranged(sample: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Lower end and width of the robust range of the varying columns.

    The range reaches from the 0.5 % to the 99.5 % quantile and 10 % of that beyond both, but never
    beyond the least and the largest value; where the quantiles coincide, those two are its ends.
    """
    columns = varying(sample)
    chosen = sample[:, columns].astype(np.float64)
    least, most = chosen.min(axis=0), chosen.max(axis=0)
    with np.errstate(all="ignore"):
        low, high = np.quantile(chosen, [TAIL, 1.0 - TAIL], axis=0)
        wider = MARGIN * (high - low)
        same = high - low <= SAME * np.maximum(np.abs(low), np.abs(high))
        low = np.where(same, least, np.maximum(low - wider, least))
        width = np.where(same, most, np.minimum(high + wider, most)) - low
    _require_moderate(columns, low, width)
    return {"columns": columns, "low": low, "width": width}


class Scaling(NamedTuple):
    """How compiled loops scale the chosen columns: (observation - middle) * inverse."""

    columns: Longs
    middle: Floats
    inverse: Floats


def scaling(columns: Longs, middle: Floats, width: Floats) -> Scaling:
    """(observation - middle) / width."""
    return Scaling(columns, middle, read_only(1.0 / width))


def _require_moderate(columns: Longs, at: Floats, width: Floats) -> None:
    usable = np.isfinite(at) & np.isfinite(width) & (width > np.finfo(np.float64).tiny)
    if not usable.all():
        raise InputError(
            f"the observations of column {int(columns[~usable][0])} cannot be scaled: their spread "
            "is too large or too small for double precision; rescale them first."
        )
