"""`write_log`: whatever holds the columns, the same log is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import steadytd as st

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
