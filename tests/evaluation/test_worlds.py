"""The worlds that grade trust: their truth, their logs, and that no world is in two parts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from benchmarks.worlds import DEVELOPMENT, PARTS, SET_ASIDE, Simulated, World, get
from benchmarks.worlds.drawn import FEATURES
from benchmarks.worlds.world import table

SIMULATED = [
    (part, kind, name)
    for part, kind in product(PARTS, ("continuous", "one-step"))
    for name, make in PARTS[part][kind].items()
    if isinstance(make, type)
]


@pytest.mark.parametrize("name", ["bandit", "short queue onehot", "depot raw", "oven ends raw"])
def test_returns_of_development_logs_have_the_solved_value(name: str) -> None:
    assert abs(off(DEVELOPMENT[name](), range(3))) < 4.0


@pytest.mark.parametrize("name", ["outbreak raw", "triage raw", "courier raw", "session onehot"])
def test_returns_of_logs_set_aside_have_the_solved_value(name: str) -> None:
    assert abs(off(SET_ASIDE[name](), range(3))) < 4.0


def off(world: World, seeds: range) -> float:
    """How many standard errors the mean return lies from the behaviour's value."""
    logs = [world.columns(seed) for seed in seeds]
    returns = [np.bincount(c["episode_id"], world.discount ** c["t"] * c["reward"]) for c in logs]
    found = np.concatenate(returns)
    error = found.std() / np.sqrt(len(found)) + 1e-9  # some worlds have one return
    return float((found.mean() - world.behavior_truth) / error)


@pytest.mark.parametrize("part", PARTS)
def test_drawn_worlds_have_the_solved_value_and_another_one_for_each_seed(part: str) -> None:
    """Episodes that are not cut off: errors are about normal, and of 15 the largest is 3."""
    found = []
    for i, name in enumerate(PARTS[part]["drawn"]):
        world, same, other = (get(part, "drawn", name, seed) for seed in (i, i, i + 1))
        assert world.truth == same.truth != other.truth
        assert world.endless == name.startswith("endless")
        assert world.dynamics.P.sum(axis=2) == pytest.approx(1.0)
        rare = name.startswith("prizes")  # the largest reward may be in no log
        if not (rare or world.endless) and world.length == 10_000:
            found.append(off(world, range(700, 702)))
    assert len(found) >= 6 and np.abs(found).max() < 4.5
    assert {name.split()[1] for name in PARTS[part]["drawn"]} == set(FEATURES)


@pytest.mark.parametrize(("part", "kind", "name"), SIMULATED)
def test_logged_probabilities_and_rewards_are_those_of_the_simulation(
    part: str, kind: str, name: str
) -> None:
    """The first rewards of a log, weighted by ratios, have the mean that each target gets."""
    world = PARTS[part][kind][name]()
    log = world.log(1, episodes=4000)
    first = log["t"].to_numpy() == 0
    assert first.sum() == 4000
    reward, behavior = log["reward"].to_numpy()[first], log["behavior_prob"].to_numpy()[first]
    for column in (c for c in log.column_names if c.startswith("target_prob_")):
        ratio = log[column].to_numpy()[first] / behavior
        expected = first_rewards(world, column.removeprefix("target_prob_"))
        error = np.hypot(sem(ratio * reward), sem(expected)) + 1e-12
        assert abs((ratio * reward).mean() - expected.mean()) < 4.5 * error
        assert ratio.mean() == pytest.approx(1.0, abs=4.5 * sem(ratio) + 1e-12)
    if world.reward_range is not None:
        lo, hi = world.reward_range
        assert lo <= reward.min() and reward.max() <= hi


def first_rewards(world: Simulated, policy: str) -> Any:
    """The first rewards of many episodes of a policy."""
    rng = np.random.default_rng(5)
    s = np.stack(world.start(rng, 20_000))
    p = world.policies(s[: len(s) - world.hidden])[policy]
    a = (rng.random(p.shape[1]) > np.cumsum(p, axis=0)[:-1]).sum(axis=0)
    return world.step(rng, s, a)[1]


def sem(values: Any) -> float:
    return float(np.std(values) / np.sqrt(len(values)))


def test_a_simulated_truth_is_found_once_and_then_read(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADYTD_WORLDS", str(tmp_path))
    make = PARTS["development"]["one-step"]["fee"]
    monkeypatch.setattr(make, "truth_episodes", 40_000)
    found = make()
    assert found.truths["window"] == found.behavior_truth != found.truths["able"]
    monkeypatch.setattr(make, "returns", None)  # what would be simulated again fails
    assert make().truths == found.truths
    monkeypatch.setattr(make, "reward", lambda self, rng, x, a: x[0])
    with pytest.raises(TypeError):  # another world has another file
        _ = make().truths


def test_no_dynamics_are_in_two_parts() -> None:
    names = {*PARTS["development"]["continuous"], *PARTS["development"]["one-step"]}
    assert not names & {*PARTS["set aside"]["continuous"], *PARTS["set aside"]["one-step"]}
    for a, b in product(distinct(DEVELOPMENT), distinct(SET_ASIDE)):
        assert a.P.shape != b.P.shape or not np.allclose(a.P, b.P)


def distinct(worlds: Any) -> list[Any]:
    """The dynamics of a part, each once."""
    return list({id(d): d for d in (make().dynamics for make in worlds.values())}.values())


def test_a_table_lists_moves_and_each_last_reward_has_an_end() -> None:
    @table(states=(0, 1), actions=1, first=[0], scale=2.0)
    def steps(s: int, a: int) -> Any:
        return [(0.5, None, 1.0), (0.25, 1, 2.0), (0.25, 1, 4.0)] if s == 0 else [(1.0, None, 5.0)]

    d = steps()
    assert d.P[:, 0].tolist() == [[0, 0.5, 0.5, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert d.r[0, 0].tolist() == [0, 3.0, 1.0, 0] and d.r[1, 0, 3] == 5.0
    assert d.ends.tolist() == [False, False, True, True] and d.obs[:2, 0].tolist() == [0.0, 2.0]


@pytest.mark.parametrize("name", ["trials raw", "treasure raw", "loot raw"])
def test_rewards_lie_in_the_range_that_a_world_states(name: str) -> None:
    world = SET_ASIDE[name]()
    lo, hi = world.reward_range
    rewards = np.concatenate([world.columns(seed)["reward"] for seed in range(20)])
    assert lo <= rewards.min() <= rewards.max() <= hi
    if name == "treasure raw":
        assert (lo, hi) == (-0.2, 128.0)  # of eight places the last one's prize
