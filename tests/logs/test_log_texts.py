"""Texts and types that do not fit get a sentence: what, rule, value, remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st

N = 60


def frame(**changes: Any) -> pl.DataFrame:
    """Six episodes of ten rows; a column set to None is left out."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "episode_id": np.repeat(np.arange(6), 10), "t": np.tile(np.arange(10), 6),
        "obs_0": rng.normal(size=N), "obs_1": rng.normal(size=N),
        "action": rng.integers(2, size=N), "reward": rng.normal(size=N),
        "terminated": np.tile(np.arange(10) == 9, 6), "behavior_prob": np.full(N, 0.5),
        "target_prob_a": np.full(N, 0.6),
    }  # fmt: skip
    return pl.DataFrame({k: v for k, v in {**columns, **changes}.items() if v is not None})


def refused(message: str, log: Any = None, **options: Any) -> None:
    given = {"discount": 0.9, "learners": "lstd", **options}
    with pytest.raises(st.InputError, match=message):
        st.evaluate(frame() if log is None else log, **given)


def test_a_latin_header(tmp_path: Path) -> None:
    text = frame().with_columns(pl.lit(1).alias("größe")).write_csv()
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1"))
    refused("names of its columns are not UTF-8 text.*save the file as UTF-8", str(path))
    path.write_text(text, encoding="utf-8")
    assert st.evaluate(str(path), discount=0.9, learners="lstd").log.rows == N


@pytest.mark.parametrize("logp", [-720.0, -745.2, -1e4])
def test_a_vanishing_probability(logp: float) -> None:
    log = frame(behavior_prob=None, action_logp=np.full(N, logp))
    refused("probability", log)


def test_a_zero_in_the_name_of_a_column_does_not_end_the_process() -> None:
    log = frame().with_columns(pl.lit(1).alias("a\x00b"))
    refused("a column 'a.x00b'; a name must not contain a NUL character", log)


def test_the_least_probability() -> None:
    refused(
        "got 1e-310; a probability below 1e-100 of an action that was taken: correct it",
        frame(behavior_prob=np.full(N, 1e-310)),
    )
    refused("must lie between -1e.30 and 1e.30, got 1e.200", frame(reward=np.full(N, 1e200)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"behavior": "x"}, r"behavior must be a function .* got 'x'"),
        ({"targets": 3}, r"targets must be a list of names, or a dictionary .* got 3"),
        ({"targets": [3]}, r"targets must be a list of names"),
        ({"targets": {3: len}}, r"targets must be a list of names"),
        ({"columns": "obs=x"}, r"columns must be a dictionary such as .* got 'obs=x'"),
        ({"columns": {"obs": 3}}, r"column map must give names of columns for 'obs', got 3"),
        ({"columns": {3: "obs"}}, r"unknown name in the column map '3'"),
        ({"seed": -1}, r"seed must be a whole number >= 0 and < 2\^63, got -1"),
        ({"learners": 3}, r"learners must be names or learners, in a list, got 3"),
        ({"learners": [3]}, r"learners must be names or learners"),
        ({"engine": 3}, r"unknown engine '3'"),
        ({"value_at": None}, r"unknown place for values \(value_at\) 'None'"),
        ({"progress": 3}, r"progress must be a function \(done, total\), got 3"),
        ({"checkpoint": 3}, r"checkpoint must be a string or a path, got 3"),
    ],
)
def test_options_of_the_wrong_type(options: dict[str, Any], message: str) -> None:
    refused(message, **options)


def test_parts_of_a_log_of_which_every_row_is_left_out(tmp_path: Path) -> None:
    log = frame(episode_id=np.arange(N), t=np.zeros(N, dtype=int), terminated=np.zeros(N, bool))
    log.write_parquet(tmp_path / "log.parquet", row_group_size=10)
    refused("no row can be learned from", str(tmp_path / "log.parquet"), parts=3)
