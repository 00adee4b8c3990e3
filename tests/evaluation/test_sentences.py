"""What evaluation says about logs in which there is little to say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.evaluation.judge.decide import Decision
from steadytd.report.evaluation import words
from tests.support.log_helpers import fixed_lists


def log(seed: int, rewards: str, target: str, episodes: int = 60) -> Any:
    """Episodes of five steps of a coin's two actions."""
    rng = np.random.default_rng(seed)
    n = 5 * episodes
    t, action = np.arange(n) % 5, (rng.random(n) < 0.5).astype(int)
    reward = {"none": np.zeros(n), "one": np.ones(n), "by action": action + rng.normal(size=n)}
    pi = {"same": np.full(n, 0.5), "other": np.where(action == 1, 0.8, 0.2)}
    return pa.table(
        {
            "episode_id": np.arange(n) // 5, "t": t, "obs": fixed_lists(rng.normal(size=(n, 2))),
            "action": action, "reward": reward[rewards], "terminated": t == 4,
            "truncated": np.zeros(n, dtype=bool), "behavior_prob": np.full(n, 0.5),
            "target_prob_pi": pi[target],
        }
    )  # fmt: skip


def evaluated(*how: Any) -> st.Evaluation:
    return st.evaluate(log(*how), discount=0.9, learners=["lstd"], threads=1)


@pytest.mark.parametrize("seed", range(4))
def test_a_log_without_rewards_says_that_nothing_varies(seed: int) -> None:
    e = evaluated(seed, "none", "other")
    (line,) = words.decision_lines(e)
    assert "everything in the log says the same" in line.text and line.grade == "bad"
    assert "too little of what" not in str(e)
    assert e.compare("pi").episodes_needed is None and "more episodes" not in e.compare("pi").text
    assert "look alike (0)" in e.sensitivity("pi").text


@pytest.mark.parametrize("seed", range(4))
def test_a_target_like_the_behaviour_looks_alike(seed: int) -> None:
    e = evaluated(seed, "by action", "same")
    d = e.compare("pi")
    assert abs(d.difference) < 1e-9 and d.decision == "undecided" and d.lo <= 0.0 <= d.hi
    assert "they look alike" in d.text and "bias" not in d.text
    assert "look alike" in e.sensitivity("pi").text


def test_the_number_of_things_is_said_as_it_is_spoken() -> None:
    e = st.evaluate(
        log(1, "by action", "other", episodes=1), discount=0.9, learners=["lstd"], value_at="start"
    )
    (few,) = [w for w in e.warnings if w.code == "few_episodes"]
    assert "and 1 episode in" in few.text


def test_no_zero_has_a_sign_and_needed_episodes_are_named_only_where_they_help() -> None:
    """Over drawn decisions: what the sentence says is what the numbers are."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        value = rng.choice([0.0, rng.normal(), 1e-6 * rng.normal()])
        down, up = rng.exponential(size=2)
        lo, hi = value - down, value + up
        said = "better" if lo > 0.0 else "worse" if hi < 0.0 else "undecided"
        needed = 0 if said != "undecided" else None if rng.random() < 0.5 else 40
        needed = None if value == 0.0 else needed
        d = Decision("pi", None, value, lo, hi, said, True, needed, 0.95, ())  # type: ignore[arg-type]
        assert not re.search(r"-0\.?0*(?![\d.])", d.text), d.text
        assert ("more episodes like these would be needed" in d.text) == bool(needed)
        assert ("possible bias" in d.text) == (
            said == "undecided" and needed is None and abs(value) > 1e-9 * (hi - lo)
        )
        assert ("they look alike" in d.text) == (
            said == "undecided" and abs(value) <= 1e-9 * (hi - lo)
        )
