"""Assumptions that a log can contradict: each check finds its fault, and seldom anything else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st

CODES = {
    "drift", "copies", "time_limit", "unfinished", "fixed_end", "ids_missing",
}  # fmt: skip


def world(
    seed: int,
    lengths: Any = 1,
    episodes: int = 400,
    drift: float = 0.0,
    effect: float = 0.0,
    behaviour: float = 0.0,
) -> pl.DataFrame:
    """Episodes of some lengths (0: geometric); rewards, effect or behaviour change by so much."""
    rng = np.random.default_rng(seed)
    steps = rng.geometric(0.2, episodes) if lengths == 0 else np.full(episodes, lengths)
    episode = np.repeat(np.arange(episodes), steps)
    n, tau = len(episode), episode / episodes
    t = np.arange(n) - np.repeat(np.cumsum(steps) - steps, steps)
    p = 0.5 + behaviour * (tau - 0.5)
    x, action = rng.normal(size=n), (rng.random(n) < p).astype(int)
    reward = drift * tau + effect * (tau - 0.5) * (action - 0.5) + rng.normal(size=n)
    return pl.DataFrame(
        {
            "episode_id": episode,
            "t": t,
            "obs_0": x,
            "action": action,
            "reward": reward + 0.3 * x * action,
            "terminated": t == np.repeat(steps, steps) - 1,
            "behavior_prob": np.where(action == 1, p, 1.0 - p),
            "target_prob_new": np.where(action == 1, 0.7, 0.3),
        }
    )


def with_step(frame: pl.DataFrame) -> pl.DataFrame:
    """The step is observed, too."""
    return frame.with_columns(obs_1=pl.col("t").cast(float))


def codes(frame: Any, **options: Any) -> set[str]:
    given = {"discount": 0.95, "learners": ["drl"], "features": "raw", "threads": 1, **options}
    found = st.evaluate(frame, **given)
    assert found.compare("new").trusted == (not [w for w in found.warnings if w.level == "warning"])
    return {w.code for w in found.warnings} & CODES


@pytest.mark.parametrize(
    "world_of",
    [{}, {"lengths": 0}, {"lengths": 4}, {"behaviour": 0.8}],
    ids=["one step", "geometric", "four steps", "behaviour changes"],
)
def test_right_logs_are_seldom_suspected(world_of: dict[str, Any]) -> None:
    """Levels are 0.001: of 12 logs more than one false alarm comes in less than one of 1,000 tests.

    That the behaviour policy changes is no fault: its probabilities are logged.
    """
    logs = (with_step(world(seed, **world_of)) for seed in range(12))
    found = Counter(code for log in logs for code in codes(log))
    expected = {"fixed_end": 12} if world_of.get("lengths") == 4 else {}
    assert sum((found - Counter(expected)).values()) <= 1, found


@pytest.mark.parametrize("fault", [{"drift": 1.5}, {"effect": 3.0}], ids=["values", "effects"])
def test_drift_is_found(fault: dict[str, Any]) -> None:
    frame = world(0, **fault)
    assert "drift" in codes(frame)
    shuffled = np.random.default_rng(0).permutation(len(frame))
    mixed = frame[shuffled].with_columns(episode_id=pl.int_range(len(frame)))
    assert "drift" not in codes(mixed)


def test_probabilities_that_are_right_on_average_only_are_found() -> None:
    """The behaviour policy changes from 0.1 to 0.9, and 0.5 is logged throughout."""
    frame = world(0, behaviour=0.8, episodes=1000)
    assert "drift" in codes(frame.with_columns(behavior_prob=pl.lit(0.5)))


def test_drift_is_tested_by_unit() -> None:
    """Sorted by user: returns differ by user, so the order shows it; among users it is chance."""
    frame, rng = world(0, episodes=1000), np.random.default_rng(1)
    user = np.repeat(np.arange(100), 10)
    own = frame.with_columns(user_id=user, reward=pl.col("reward") + rng.normal(size=100)[user])
    assert "drift" not in codes(own, unit="user_id")


def test_a_time_limit_is_told_from_an_end() -> None:
    """Geometric episodes that are stopped at step 6, and episodes of a uniform number of steps."""
    stopped = world(0, lengths=0, episodes=600).filter(pl.col("t") < 6)
    ended = stopped.with_columns(terminated=pl.col("terminated") | (pl.col("t") == 5))
    assert "time_limit" in codes(ended)
    given: Any = {"discount": 0.95, "learners": ["drl"], "features": "raw", "threads": 1}
    [found] = [w for w in st.evaluate(ended, **given).warnings if w.code == "time_limit"]
    assert found.remedy.endswith("horizon=6.")
    stated = {"reward_range": (-9.0, 9.0), "horizon": 6}
    assert "time_limit" not in codes(ended, **stated)
    flagged = ended.with_columns(
        terminated=stopped["terminated"], truncated=(pl.col("t") == 5) & ~stopped["terminated"],
        next_obs_0=pl.col("obs_0"),
    )  # fmt: skip
    assert "time_limit" not in codes(flagged)
    number = np.random.default_rng(0).integers(1, 7, size=600)
    uniform = world(0, lengths=6, episodes=600).filter(pl.col("t") < np.repeat(number, 6))
    last = pl.col("t") == pl.Series(number)[uniform["episode_id"].to_numpy()] - 1
    assert "time_limit" not in codes(uniform.with_columns(terminated=last))


def fixed_end(frame: pl.DataFrame, **options: Any) -> str:
    """What is noted of one length."""
    given = {"discount": 0.95, "learners": ["drl"], "features": "raw", "threads": 1, **options}
    e = st.evaluate(frame, **given)
    assert any("end after 4 steps" in text for text in e.assumptions)
    [found] = [w for w in e.warnings if w.code == "fixed_end"]
    assert found.level == "note" and "at step 4" in found.text
    return found.text


def test_one_length_is_noted_and_whether_features_tell_the_step() -> None:
    """Of games with a fixed horizon none is suspected where the step is observed, or stated.

    The same without the step is always found, and so are endless episodes that are cut off at a
    step and flagged as ended: nothing tells them apart.
    """
    for seed, features in enumerate(["raw", "auto", "onehot", "rbf:20"]):
        frame = world(seed, lengths=4)
        assert "no feature tells" in fixed_end(frame)
        timed = with_step(frame.with_columns(obs_0=pl.col("obs_0").round()))
        assert "no feature tells" not in fixed_end(timed, features=features)
    assert "no feature tells" not in fixed_end(frame, reward_range=(-9.0, 9.0), horizon=4)


@pytest.mark.parametrize("lengths", [1, 4])
def test_copies_are_found(lengths: int) -> None:
    """A twentieth of the episodes twice: their actions would differ in half of all pairs."""
    frame = world(0, lengths=lengths)
    again = frame.filter(pl.col("episode_id") % 20 == 0)
    twice = pl.concat([frame, again.with_columns(pl.col("episode_id") + 1000)])
    assert "copies" in codes(twice)


def test_episodes_that_repeat_by_chance_are_no_copies() -> None:
    """Three contexts, two actions, rewards of 0 and 1: most episodes have an equal one."""
    frame = world(0, episodes=2000).with_columns(
        obs_0=pl.col("obs_0").round().clip(-1, 1), reward=(pl.col("reward") > 0).cast(float)
    )
    assert codes(frame) == set()


def test_unfinished_episodes_that_are_missing_are_found() -> None:
    """One episode begins per step; the log was written at step 600, with finished ones alone."""
    frame = world(0, lengths=0, episodes=600)
    ends = frame.group_by("episode_id").agg(end=pl.col("episode_id").first() / 8 + pl.len())
    done = frame.join(ends, on="episode_id", maintain_order="left").filter(pl.col("end") <= 75)
    assert "unfinished" in codes(done.drop("end"))


def test_missing_numbers_are_noted() -> None:
    frame = world(0)
    assert codes(frame.filter(pl.col("episode_id") % 10 != 3)) == {"ids_missing"}
    assert codes(frame.with_columns(pl.col("episode_id") * 97)) == set()  # not consecutive numbers
    log = st.open_log(frame, discount=0.95)
    assert codes(st.split(log)[0], discount=None) == set()
