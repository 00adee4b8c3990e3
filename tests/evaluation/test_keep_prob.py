"""Episodes that were stored with a probability are weighted, in values, intervals and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st
from steadytd.evaluation.behavior import estimate_behavior
from tests.support.tables import Rule

GAMMA, STEPS = 0.9, 3


def walks(seed: int, episodes: int, steps: int = STEPS) -> pl.DataFrame:
    """Of x in {0, 1, 2}, drawn anew in each step; a reward is 1 with chance 0.1 + 0.2 a x."""
    rng = np.random.default_rng(seed)
    n = episodes * steps
    x, action = rng.integers(3, size=n), rng.integers(2, size=n)
    reward = (rng.random(n) < 0.1 + 0.2 * action * x).astype(float)
    returned = reward.reshape(-1, steps).sum(axis=1)
    return pl.DataFrame(
        {
            "episode_id": np.repeat(np.arange(episodes), steps),
            "t": np.tile(np.arange(steps), episodes),
            "obs_0": x.astype(float),
            "obs_1": np.tile(np.arange(float(steps)), episodes),  # a value depends on it
            "action": action,
            "reward": reward,
            "terminated": np.tile(np.arange(steps) == steps - 1, episodes),
            "behavior_prob": np.full(n, 0.5),
            "behavior_probs": [[0.5, 0.5]] * n,
            "target_prob_new": np.where(action == 1, 0.8, 0.2),
            "target_probs_new": [[0.2, 0.8]] * n,
            "keep_prob": np.repeat(np.where(returned > 0, 1.0, 0.25), steps),
        }
    )


def stored(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """What is left: each episode with its probability."""
    rng = np.random.default_rng(seed)
    episode = frame["episode_id"].to_numpy()
    chance = rng.random(int(episode.max()) + 1)[episode]
    return frame.filter(pl.Series(chance < frame["keep_prob"].to_numpy()))


def worth(right: float, steps: int) -> float:
    """The value of taking action 1 with this probability: E[x] = 1."""
    return (0.1 + 0.2 * right) * sum(GAMMA**t for t in range(steps))


@pytest.mark.parametrize("steps", [1, STEPS])
def test_weighted_intervals_hold_the_truth_and_ignoring_it_is_clearly_wrong(steps: int) -> None:
    value, own = worth(0.8, steps), worth(0.5, steps)
    held, apart = 0, 0.0
    for seed in range(6):
        log = stored(walks(seed, 4000, steps), seed + 100)
        others = ["lstd", "mis", "pdis", "snpdis", "lstdq"]
        e = st.evaluate(log, discount=GAMMA, features="onehot", learners=others)
        found, d = e.recommended["new"], e.compare("new")
        assert found.trusted and d.decision == "better"
        held += int(found.lo <= value <= found.hi) + int(e.behavior.lo <= own <= e.behavior.hi)
        held += int(d.lo <= value - own <= d.hi)
        for name in others:
            row = e.values.filter(pl.col("learner") == name).row(0, named=True)
            apart = max(apart, abs(row["value"] - value) / (row["hi"] - row["lo"]))
        assert e.overlap["rho_mean_lo"][0] <= 1.0 <= e.overlap["rho_mean_hi"][0]
        assert e.calibration.fine and e.notes is not None
        ignored = st.evaluate(
            log, discount=GAMMA, features="onehot", columns={"keep_prob": ""}, learners=["drl"]
        )
        assert ignored.recommended["new"].lo > value and ignored.behavior.lo > own
    assert held >= 16  # of 18 at 95 %: fewer come with probability 0.01
    assert apart < 1.0  # an interval reaches half its width; so far off comes once in 10^4


@pytest.mark.parametrize("features", ["onehot", "tiles:2x8"])  # dense, and 128 sparse ones
def test_a_weight_of_two_is_an_episode_that_is_there_twice(features: str) -> None:
    """Estimates of all groups together are the same numbers; no fold decides them."""
    frame = walks(3, 400).with_columns(
        keep_prob=1.0 - 0.5 * (pl.col("episode_id") % 2 == 0).cast(pl.Float64)
    )
    again = frame.filter(pl.col("episode_id") % 2 == 0)
    twice = pl.concat([frame, again.with_columns(pl.col("episode_id") + 400)])
    options: Any = {"discount": GAMMA, "features": features, "seed": 0}
    learners = ["lstd", "mis", "pdis", "snpdis", "lsetd"]
    learners += ["lstdq", "fqe"] if features == "onehot" else []
    a = st.evaluate(frame, learners=learners, **options)
    b = st.evaluate(twice.drop("keep_prob"), learners=learners, **options)
    for name in learners:
        one, other = (x.values.filter(pl.col("learner") == name)["value"][0] for x in (a, b))
        assert one == pytest.approx(other, rel=1e-6), name  # sparse ones are refined to 1e-9
    assert a.behavior.value == pytest.approx(b.behavior.value, rel=1e-9)
    assert a.overlap["rho_mean"][0] == pytest.approx(b.overlap["rho_mean"][0])
    assert a.log.episodes == 400 and b.log.episodes == 600
    quantiles = [x.quantiles("new").filter(pl.col("what") == "quantile")["value"] for x in (a, b)]
    assert quantiles[0].to_list() == quantiles[1].to_list()
    assert a.behavior.hi - a.behavior.lo > b.behavior.hi - b.behavior.lo  # fewer episodes


def test_what_weights_cannot_do_is_refused() -> None:
    frame = walks(5, 60)
    inside = frame.with_columns(keep_prob=pl.when(pl.col("t") == 1).then(0.5).otherwise(1.0))
    with pytest.raises(st.InputError, match=r"'keep_prob', row 1 .*the same in all rows of an ep"):
        list(st.open_log(inside, discount=GAMMA, batch_rows=1).batches())
    with pytest.raises(st.InputError, match=r"row 0 .*must lie in \(0, 1\], got 0"):
        list(st.open_log(frame.with_columns(keep_prob=0.0), discount=GAMMA).batches())
    with pytest.raises(st.InputError, match=r"td:alpha=0\.1 learns step by step from the rows"):
        st.evaluate(frame, discount=GAMMA, learners=["td:alpha=0.1"])
    log = st.open_log(frame, discount=GAMMA)
    with pytest.raises(st.InputError, match="cannot be estimated from rows that were stored"):
        estimate_behavior(log)
    monitor = st.monitor(discount=GAMMA, reward_range=(0, 1), horizon=STEPS)
    with pytest.raises(st.InputError, match="cannot be monitored: column 'keep_prob'"):
        monitor.add(frame)


def test_a_model_and_a_weight_together() -> None:
    frame = stored(walks(6, 3000, 1), 7).drop("episode_id", "t", "terminated")
    e = st.evaluate(frame, obs=["obs_0"], discount=GAMMA, targets={"m": Rule([0, 1], [0.2, 0.8])})  # type: ignore[list-item]
    assert e.recommended["m"].lo <= worth(0.8, 1) <= e.recommended["m"].hi
    assert "Episodes are weighted by 1 / 'keep_prob'." in e.log.notes
