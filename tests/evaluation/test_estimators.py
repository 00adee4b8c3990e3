"""Estimators of other packages, and features that choose themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.evaluation import estimators
from steadytd.features import feature_map
from steadytd.features.auto import Observed, automatic, second_map
from tests.support.layers import GAMMA, STATES, every_trajectory

PAGE = Path(__file__).parents[2] / "docs" / "evaluate_methods.md"


def test_an_estimator_of_another_package_is_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The example of the documents; on short episodes no product reaches its cap."""
    example: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    exec(code, example)
    own = {**estimators.registered(), "capped": example["Capped"]}
    monkeypatch.setattr(estimators, "registered", lambda: own)
    table = every_trajectory(np.eye(STATES))
    e = st.evaluate(table, discount=GAMMA, learners=["capped", "pdis", "lstd"], batch_rows=7)
    rows = {row["learner"]: row for row in e.values.to_dicts()}
    for name in ("value", "lo", "hi"):
        assert rows["capped"][name] == pytest.approx(rows["pdis"][name])
    assert rows["capped"]["kind"] == "sampling" and e.agreement.height > 0


@pytest.mark.parametrize(
    ("distinct", "numbers", "rows", "first", "second"),
    [
        (4, 1, 500, "onehot", "poly:2"),
        (50, 2, 5000, "onehot", "rbf:25"),
        (900, 2, 5000, "poly:2", "rbf:100"),
        (5000, 4, 5000, "poly:2", "rbf:100"),
        (3000, 30, 3000, "rbf:60", "poly:1"),
    ],
)
def test_features_follow_the_observations(
    distinct: int, numbers: int, rows: int, first: str, second: str
) -> None:
    seen = Observed(distinct, numbers, rows)
    chosen = automatic(seen)
    assert chosen.spec == first and first in chosen.reason
    sample = np.random.default_rng(0).normal(size=(max(100, 2), numbers))
    assert second_map(feature_map(first).fit(sample), seen) == second
    raw = second_map(feature_map("raw").fit(sample), seen)
    assert raw == "onehot" if seen.states else raw.startswith("rbf")


def test_the_choice_and_its_reason_are_in_the_settings() -> None:
    rng = np.random.default_rng(0)
    n = 600
    table = pa.table(
        {
            "episode_id": np.arange(n) // 10, "t": np.arange(n) % 10,
            "obs_0": rng.normal(size=n), "obs_1": rng.normal(size=n), "reward": rng.normal(size=n),
            "terminated": np.arange(n) % 10 == 9, "truncated": np.zeros(n, bool),
            "behavior_prob": np.full(n, 0.5), "target_prob_pi": rng.uniform(0.4, 0.6, n),
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=0.9, learners=["lstd"])
    assert e.settings["features"] == "poly:2" and e.settings["second_features"] == "rbf:12"
    assert "6 products" in e.settings["features_reason"]
    asked = st.evaluate(table, discount=0.9, features="raw", learners=["lstd"])
    assert asked.settings["features"] == "raw" and asked.settings["features_reason"]
