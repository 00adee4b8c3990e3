"""How a fault in a log is reported: file, column, row, rule, value, remedy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError


class Place(NamedTuple):
    """Where a stretch of rows stands: its file, and the number of its first row in that file."""

    file: str
    row: int


def fault(
    place: Place, column: str, index: int, rule: str, value: object, remedy: str
) -> InputError:
    """The error for entry `index` of a stretch of rows.

    >>> print(fault(Place("a.parquet", 100), "reward", 7, "must be finite", "nan", "drop it"))
    a.parquet: column 'reward', row 107 (counted from 0): must be finite, got nan; drop it.
    """
    shown = value if isinstance(value, str) else plain(value)
    return InputError(
        f"{place.file}: column '{column}', row {place.row + index} (counted from 0): "
        f"{rule}, got {shown}; {remedy}."
    )


def plain(value: object) -> str:
    """A value as a person writes it: no type names around numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def first_true(mask: NDArray[Any]) -> int | None:
    """The first index at which a mask is true, or None."""
    index = int(mask.argmax()) if len(mask) else 0
    return index if len(mask) and mask[index] else None
