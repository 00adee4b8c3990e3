"""The hash of what is read from a log: of the values, and of nothing but the values."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from steadytd.logs.log import add_contents


def contents(column: Any, name: str = "x") -> str:
    digest = sha256()
    add_contents(digest, pa.record_batch([column], names=[name]))
    return digest.hexdigest()


def words(*known: str) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(known))


def with_gaps(hidden: float) -> Any:
    """1 and a missing value, below which a number stands in memory all the same."""
    values, valid = pa.array([1.0, hidden]).buffers()[1], pa.array([True, False]).buffers()[1]
    return pa.Array.from_buffers(pa.float64(), 2, [valid, values])


DIFFERENT = {
    "value": (pa.array([1.0, 2.0]), pa.array([1.0, np.nextafter(2.0, 3.0)])),
    "type": (pa.array([1.0, 2.0]), pa.array([1.0, 2.0], pa.float32())),
    "missing": (pa.array([1.0, 0.0]), pa.array([1.0, None])),
    "where it is missing": (pa.array([1.0, None, 1.0]), pa.array([1.0, 1.0, None])),
    "words": (words("left", "right"), words("left", "up")),
    "words in lists": (
        pa.FixedSizeListArray.from_arrays(words("left", "right"), 3),
        pa.FixedSizeListArray.from_arrays(words("left", "up"), 3),
    ),
    "flags": (pa.array([True, False, True]), pa.array([True, True, True])),
    "lists": (pa.array([[1.0], [2.0, 3.0]]), pa.array([[1.0, 2.0], [3.0]])),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_a_change_is_seen(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert contents(one) == contents(one) != contents(other)
    assert contents(one) != contents(one, "y")


SIMPLE = {name: pair[0] for name, pair in DIFFERENT.items() if name != "words in lists"}


@pytest.mark.parametrize("column", SIMPLE.values(), ids=SIMPLE)
def test_where_the_values_stand_in_memory_does_not_count(column: Any) -> None:
    moved = pa.concat_arrays([column.slice(1, 1), column]).slice(1)
    assert contents(moved) == contents(column)


def test_what_stands_below_a_missing_value_does_not_count() -> None:
    assert with_gaps(2.0).to_pylist() == [1.0, None]
    assert contents(with_gaps(2.0)) == contents(with_gaps(3.0))
