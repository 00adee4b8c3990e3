"""Tables with hostile cells, types and columns: read, evaluated, or refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import steadytd as st
from tests.support.fuzz import EVERY_SIZE, no_nan, one_of, tried

CELLS = (None, float("nan"), float("inf"), -1.0, 0.0, 2.0, 1e200, 1e-310, -720.0, 2.0**63)
TYPES = (pl.String, pl.Int8, pl.Float32, pl.Boolean, pl.Int64, pl.Null, pl.List(pl.Float64))


def drawn(rng: Generator) -> pl.DataFrame:
    episodes, length = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    n = episodes * length
    t = np.tile(np.arange(length), episodes)
    return pl.DataFrame({
        "episode_id": np.repeat(np.arange(episodes), length), "t": t,
        "obs_0": rng.normal(size=n), "obs_1": rng.normal(size=n),
        "action": rng.integers(2, size=n), "reward": rng.normal(size=n),
        "terminated": t == length - 1, "behavior_prob": rng.uniform(0.1, 1.0, size=n),
        "target_prob_a": rng.uniform(0.0, 1.0, size=n),
    })  # fmt: skip


def spoilt(rng: Generator, frame: pl.DataFrame) -> pl.DataFrame:
    name = one_of(rng, frame.columns)
    kind = int(rng.integers(7))
    if kind == 0:
        return frame.drop(name)
    if kind == 1:
        return frame.rename({name: one_of(rng, ["action_logp", name + "s", "größe", "", "\x00"])})
    if kind == 2:
        return frame.with_columns(pl.col(name).cast(one_of(rng, TYPES), strict=False))
    if kind == 3:
        return frame.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(1000)))
    if kind == 4:
        return frame.head(int(rng.integers(0, 3)))
    values: list[Any] = frame[name].to_list()
    if values:
        values[int(rng.integers(len(values)))] = one_of(rng, CELLS)
    return frame.with_columns(pl.Series(name, values, strict=False))


def table(rng: Generator) -> pl.DataFrame:
    frame = drawn(rng)
    for _ in range(int(rng.integers(0, 3))):
        with suppress(pl.exceptions.PolarsError, TypeError):  # Polars does not make such a table
            frame = spoilt(rng, frame)
    return frame


def read(rng: Generator) -> None:
    log = st.open_log(table(rng), discount=0.9, batch_rows=int(rng.integers(1, 9)))
    for batch in log.batches():
        assert np.isfinite(batch.reward).all()


def evaluated(rng: Generator) -> None:
    learners = one_of(rng, ["lstd", ["pdis", "snpdis"], ["td:alpha=0.1"]])
    features = one_of(rng, ["raw", "poly:2", "rbf:2", "onehot"])
    found = st.evaluate(table(rng), discount=0.9, learners=learners, features=features, threads=1)
    endless = "continuing_log" in {w.code for w in found.warnings}  # sampling has no value there
    rows = [r for r in found.values.to_dicts() if not (endless and r["kind"] == "sampling")]
    no_nan([row["value"] for row in rows])


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_tables_are_read_or_refused(many: bool) -> None:
    tried(read, 700, 3, many=many)


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_tables_are_evaluated_or_refused(many: bool) -> None:
    tried(evaluated, 30, 4, many=many)
