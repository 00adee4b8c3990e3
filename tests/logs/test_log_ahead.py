"""Reading ahead: the same items, errors where they belong, and no thread that outlives its use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from steadytd import InputError
from steadytd.logs.ahead import ahead
from steadytd.logs.batch import Memory
from steadytd.logs.log import Log, open_log


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "steadytd-log"]


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
    return open_log(table, discount=0.9, batch_rows=10)


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


def test_a_bad_row_ends_the_threads_too() -> None:
    batches = log_of(1000, bad=25).batches()
    assert [len(next(batches)) for _ in range(2)] == [10, 10]
    with pytest.raises(InputError, match="row 25"):
        next(batches)
    assert not readers()


def numbers_table(rows: int) -> pa.Table:
    """Episodes of seven steps, every number another one."""
    at = np.arange(rows)
    return pa.table(
        {
            "episode_id": at // 7,
            "t": at % 7,
            "obs": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3.0 * rows)), 3),
            "reward": at + 0.5,
            "terminated": at % 7 == 6,
            "behavior_prob": np.linspace(0.2, 0.9, rows),
            "target_prob_new": np.linspace(0.9, 0.2, rows),
        }
    )


def test_batches_that_are_held_stay_as_they_are() -> None:
    log = open_log(numbers_table(2000), discount=0.9, batch_rows=60)
    held, copies = [], []
    for batch in log.batches():
        held.append((batch.obs[3:5], batch.target_prob[0], batch.reward[::2]))  # views only
        copies.append([array.copy() for array in held[-1]])
    assert len(held) > 30
    for views, expected in zip(held, copies, strict=True):
        for view, copy in zip(views, expected, strict=True):
            assert_array_equal(view, copy)


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    memory = Memory()
    first = memory.empty((40, 3), np.float64)
    view, place = first[7:9, 1], first.ctypes.data
    del first
    assert memory.empty((40, 3), np.float64).ctypes.data != place  # the view still shows it
    del view
    assert memory.empty((60, 2), np.float64).ctypes.data == place
    assert memory.empty((4, 3), np.float64).ctypes.data != place  # far too large for that
    assert len(memory.pieces) == 3
