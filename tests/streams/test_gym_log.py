"""Logs recorded in Gymnasium: every column is what the policies and the environment said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd import InputError

pytest.importorskip("gymnasium")


def towards(obs: Any) -> list[float]:
    right = float(1.0 / (1.0 + np.exp(-5.0 * obs[2])))
    return [1.0 - right, right]


def test_all_probabilities_are_filled_in() -> None:
    policies: dict[str, Any] = {"new": towards, "left": [0.9, 0.1]}
    options: dict[str, Any] = {"behavior": [0.4, 0.6], "targets": policies, "episodes": 30}
    table = st.gym_log("CartPole-v1", **options, limit=15, seed=3)
    assert table.equals(st.gym_log("CartPole-v1", **options, limit=15, seed=3))
    rows = table.to_pylist()
    assert (
        {row["truncated"] for row in rows} == {row["terminated"] for row in rows} == {True, False}
    )
    assert max(row["t"] for row in rows) == 14 and rows[-1]["episode_id"] == 29
    for row in rows:
        assert row["behavior_probs"] == [0.4, 0.6]
        assert row["behavior_prob"] == row["behavior_probs"][row["action"]]
        assert row["target_probs_new"] == pytest.approx(towards(row["obs"]), rel=1e-6)  # float32
        cut, after = row["truncated"], row["next_target_probs_new"]
        assert after == (pytest.approx(towards(row["next_obs"]), rel=1e-6) if cut else None)
        assert (row["next_obs"] is None) == (not cut)
    log = st.open_log(table, discount=0.9)
    assert log.whole == ["new", "left"]
    for batch in log.batches():
        assert batch.probs is not None and not np.isnan(batch.probs[:, :2]).any()
    e = st.evaluate(table, discount=0.9, features="poly:1", learners=["lstd", "lstdq", "drl_q"])
    assert e.values["value"].is_finite().all()
    assert not any(f.code == "next_probs_missing" for f in e.warnings)


def test_without_cuts_and_with_wrong_policies() -> None:
    table = st.gym_log("CartPole-v1", behavior=[0.5, 0.5], targets={"x": towards}, episodes=3)
    assert "next_obs" not in table.column_names and "next_target_probs_x" not in table.column_names
    with pytest.raises(InputError, match=r"the target 'x' policy must give 2 probabilities"):
        st.gym_log("CartPole-v1", behavior=[0.5, 0.5], targets={"x": [1.0]})
    with pytest.raises(InputError, match="episodes"):
        st.gym_log("CartPole-v1", behavior=[0.5, 0.5], episodes=0)
