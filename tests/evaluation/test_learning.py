"""Policies that are learned from a log: split logs, refused overlaps, cross-fitted procedures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import steadytd as st

ACTIONS, DIMENSIONS = 4, 6


def world(seed: int, effect: float, n: int = 500) -> pl.DataFrame:
    """One step; action a earns effect x_1 cos(pi a / 2) more, whatever else the log shows."""
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(n, DIMENSIONS)), rng.integers(ACTIONS, size=n)
    return pl.DataFrame(
        {
            "episode_id": np.arange(n),
            "t": np.zeros(n, dtype=int),
            "action": action,
            "reward": effect * x[:, 1] * np.cos(np.pi * action / 2) + rng.normal(size=n),
            "terminated": np.ones(n, dtype=bool),
            "behavior_prob": np.full(n, 1 / ACTIONS),
            **{f"obs_{j}": x[:, j] for j in range(DIMENSIONS)},
        }
    )


def greedy(made: list[Any]) -> Callable[[Any], Any]:
    """A procedure: linear regression for every action, and the action that looks best."""

    def fit(frame: Any) -> Any:
        x = np.column_stack([frame[f"obs_{j}"].to_numpy() for j in range(DIMENSIONS)])
        action, reward = frame["action"].to_numpy(), frame["reward"].to_numpy()
        w = [np.linalg.lstsq(x[action == a], reward[action == a])[0] for a in range(ACTIONS)]

        def policy(obs: Any) -> Any:
            best = (obs @ np.array(w).T).argmax(axis=1)
            return 0.9 * np.eye(ACTIONS)[best] + 0.1 / ACTIONS

        made.append(policy)
        return policy

    return fit


def value(policy: Any, effect: float) -> float:
    """By simulation: standard error below 0.005."""
    x = np.random.default_rng(99).normal(size=(40_000, DIMENSIONS))
    gain = effect * x[:, [1]] * np.cos(np.pi * np.arange(ACTIONS) / 2)
    return float((policy(x) * gain).sum(axis=1).mean())


OPTIONS: Any = {"discount": 1.0, "learners": ["drl"], "features": "raw", "threads": 1}


def test_where_nothing_can_be_learned_better_is_rare() -> None:
    """20 logs without any effect: at level 5 % more than 3 are "better" in 1.6 % of such tests.

    A policy that is learned and evaluated on the same rows looks better in most of them.
    """
    better = fooled = 0
    for seed in range(20):
        frame = world(seed, 0.0)
        e = st.evaluate_learning(greedy([]), frame, **OPTIONS)
        better += e.compare("learned").decision == "better"
        if seed < 6:
            policy = greedy([])(frame)
            same = st.evaluate(frame, targets={"new": policy}, **OPTIONS)
            fooled += same.compare("new").decision == "better"
    assert better <= 3 and fooled >= 4, (better, fooled)


def test_where_something_can_be_learned_it_is_better_and_the_interval_holds() -> None:
    """12 logs: at least 9 intervals of 95 % hold the mean of the policies' values."""
    held = 0
    for seed in range(12):
        made: list[Any] = []
        e = st.evaluate_learning(greedy(made), world(seed, 1.0), **OPTIONS)
        assert len(made) == 5 and e.compare("learned").decision == "better"
        r = e.recommended["learned"]
        held += bool(r.lo <= np.mean([value(policy, 1.0) for policy in made]) <= r.hi)
    assert held >= 9, held
    assert e.compare("learned").trusted
    assert any("5 policies" in text for text in e.assumptions)


def test_no_policy_has_seen_the_unit_that_it_is_evaluated_on() -> None:
    """A procedure that remembers users: its policies know none of those that they are tried on."""
    frame = world(0, 0.0).with_columns(user=pl.col("episode_id") % 100)
    seen: list[set[int]] = []

    def fit(part: pl.DataFrame) -> Any:
        seen.append(set(part["user"].to_list()))
        return lambda obs: np.full((len(obs), ACTIONS), 1 / ACTIONS)

    e = st.evaluate_learning(fit, frame, unit="user", **OPTIONS)
    assert [len(users) for users in seen] == [80] * 5
    left_out = [set(range(100)) - users for users in seen]
    assert set.union(*left_out) == set(range(100)) and sum(map(len, left_out)) == 100
    assert e.log.units == 100 and e.log.learned_folds == 5


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.Table])
def test_two_logs_without_a_common_unit(kind: Any) -> None:
    frame = world(0, 0.0).with_columns(user=pl.format("u{}", pl.col("episode_id") % 40))
    given = {pl.DataFrame: frame, pd.DataFrame: frame.to_pandas(), pa.Table: frame.to_arrow()}
    parts = st.split(given[kind], by="user", share=0.25, seed=1)
    assert all(isinstance(part, kind) for part in parts)
    users = [set(pl.DataFrame(part)["user"].to_list()) for part in parts]
    assert not users[0] & users[1] and [len(u) for u in users] == [10, 30]
    assert sum(len(part) for part in parts) == len(frame)


def test_an_open_log_is_split_by_its_units() -> None:
    frame = world(0, 0.0).with_columns(user=pl.col("episode_id") % 40, target_prob_new=pl.lit(0.25))
    log = st.open_log(frame, discount=1.0, unit="user", batch_rows=64)
    parts = st.split(log, share=0.5)
    rows = [np.concatenate([batch.obs[: len(batch)] for batch in part.batches()]) for part in parts]
    assert sum(map(len, rows)) == len(frame) and parts[0].rows == len(rows[0])
    units = [{int(u) for b in part.batches() for u in b.unit} for part in parts]
    assert not units[0] & units[1] and len(units[0]) == 20
    e = st.evaluate(parts[0], unit="user", learners=["drl"], threads=1)
    assert e.log.units == 20 and e.log.rows == parts[0].rows


def test_targets_learned_on_the_same_units_are_refused() -> None:
    frame = world(0, 0.0).with_columns(user=pl.col("episode_id") % 100)
    policy = greedy([])(frame)
    learn, rest = st.split(frame, by="user")
    options = {"targets": {"new": policy}, "unit": "user", **OPTIONS}
    e = st.evaluate(rest, learned_on=learn, **options)
    assert any("share no unit" in text for text in e.assumptions)
    with pytest.raises(st.InputError, match=r"50 of 50 values of 'user' .*st\.split"):
        st.evaluate(rest, learned_on=frame, **options)
    with pytest.raises(st.InputError, match="values of 'episode_id' are also in learned_on"):
        st.evaluate(rest, learned_on=frame, **{**options, "unit": None})


def test_faults_are_named() -> None:
    frame = world(0, 0.0)
    with pytest.raises(st.InputError, match="fit must be a function"):
        st.evaluate_learning("ridge", frame, **OPTIONS)  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="one target, the learned one"):
        st.evaluate_learning(greedy([]), frame, targets=["new"], **OPTIONS)
    with pytest.raises(st.InputError, match="takes a data frame"):
        st.evaluate_learning(greedy([]), "log.parquet", **OPTIONS)
    with pytest.raises(st.InputError, match="share must lie between"):
        st.split(frame, share=1.0)
    with pytest.raises(st.InputError, match="fit, without fold 0"):
        st.evaluate_learning(lambda part: part["nothing"], frame, **OPTIONS)
