"""Around the reader: it works ahead in threads, hashes what it reads, and reads what is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import steadytd as st
from steadytd import InputError
from steadytd.logs import check
from steadytd.logs.log import Log, add_contents, ahead, open_log


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("steadytd-log")]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_items_come_in_order(depth: int) -> None:
    assert list(ahead(iter(range(50)), depth)) == list(range(50))
    assert list(ahead(ahead(iter(range(50)), depth), depth)) == list(range(50))
    assert not readers()


def failing() -> Iterator[int]:
    yield from range(3)
    raise InputError("the fourth item is bad.")


def test_an_error_comes_where_its_item_would() -> None:
    items = ahead(ahead(failing()))
    assert list(islice(items, 3)) == [0, 1, 2]
    with pytest.raises(InputError, match="fourth"):
        next(items)
    assert not readers()


def log_of(rows: int, bad: int | None = None) -> Log:
    reward = np.ones(rows)
    if bad is not None:
        reward[bad] = np.nan
    at = np.arange(rows)
    table = pa.table(
        {
            "episode_id": at // 5, "t": at % 5, "obs": at * 1.0, "reward": reward,
            "terminated": at % 5 == 4, "behavior_prob": np.full(rows, 0.5),
            "target_prob_pi": np.full(rows, 0.5),
        }
    )  # fmt: skip
    return open_log(lambda: table, discount=0.9, batch_rows=10)


def test_a_pass_that_is_given_up_ends_its_threads() -> None:
    log = log_of(1000)
    batches = log.batches()
    assert len(next(batches)) == 10
    assert readers()
    batches.close()
    assert not readers()
    assert [log.left_out] == [None]  # the pass was not completed
    assert sum(len(batch) for batch in log.batches()) == 1000
    assert [log.left_out] == [0]
    assert not readers()


def test_a_bad_row_ends_the_threads_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LOOK", 10)  # rows that are checked when a file is opened
    batches = log_of(1000, bad=25).batches()
    assert [len(next(batches)) for _ in range(2)] == [10, 10]
    with pytest.raises(InputError, match="row 25"):
        next(batches)
    assert not readers()


# The hash of what is read: of the values, and of nothing but the values


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


# Writing: whatever holds the columns, the same log is read back

OBS = np.random.default_rng(0).normal(size=(6, 3))
COLUMNS: dict[str, Any] = {
    "episode_id": np.repeat([0, 1], 3),
    "t": np.tile(np.arange(3), 2),
    "obs": OBS,
    "action": [0, 1, 0, 1, 0, 1],
    "reward": np.arange(6.0),
    "terminated": np.tile([False, False, True], 2),
    "behavior_prob": np.full(6, 0.5),
    "target_prob_pi": np.full(6, 0.25),
}


def test_a_dictionary_a_frame_and_a_table_give_the_same_log(tmp_path: Path) -> None:
    flat = {name: values for name, values in COLUMNS.items() if name != "obs"}
    frame = pl.DataFrame({**flat, **{f"obs_{k}": OBS[:, k] for k in range(3)}})
    sources = {"dictionary": COLUMNS, "polars": frame, "pandas": frame.to_pandas()}
    for name, source in {**sources, "arrow": frame.to_arrow()}.items():
        path = st.write_log(tmp_path / f"{name}.parquet", source, row_group_rows=1e1)  # type: ignore[arg-type]
        (batch,) = st.open_log(path, discount=0.9).batches()
        assert batch.obs[:6].tolist() == OBS.tolist()
        assert batch.reward.tolist() == list(range(6))
        assert batch.discount.tolist() == [0.9, 0.9, 0.0] * 2


@pytest.mark.parametrize(
    "table", [7, "log.csv", {"t": [1, 2], "reward": [1.0]}, {"obs": np.zeros((2, 2, 2))}]
)
def test_what_is_no_table(table: Any, tmp_path: Path) -> None:
    with pytest.raises(
        st.InputError, match=r"a log is written from an Arrow table, .* got (int|str|dict) "
    ):
        st.write_log(tmp_path / "log.parquet", table)
    assert list(tmp_path.iterdir()) == []


def test_empty_row_groups_are_refused(tmp_path: Path) -> None:
    with pytest.raises(st.InputError, match="row_group_rows must be a whole number >= 1, got 0"):
        st.write_log(tmp_path / "log.parquet", pa.table({"t": [1]}), row_group_rows=0)
