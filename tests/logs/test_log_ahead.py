"""Reading ahead: the same items, errors where they belong, and no thread that outlives its use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from steadytd import InputError
from steadytd.logs.log import Log, ahead, open_log


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
