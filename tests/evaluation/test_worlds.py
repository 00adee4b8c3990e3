"""The worlds that grade trust: their truth, their logs, and the slow reference of the rule."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.worlds import (
    DEVELOPMENT,
    DRAWN,
    DRAWN_KEPT,
    FRESH,
    LAST,
    LATER,
    RESERVED,
    SEALED,
    SET_ASIDE,
    UNENDED,
    UNSEEN,
    World,
)
from benchmarks.worlds.checks import alarms, scores
from benchmarks.worlds.drawn import FEATURES, Worlds
from benchmarks.worlds.drl import Fitted, row_scores, unit_of
from benchmarks.worlds.rows import read
from benchmarks.worlds.rule import Sums, stretched


@pytest.mark.parametrize(
    "name",
    [
        "bandit",
        "short queue raw",
        "car poly:2",
        "depot raw",
        "tide raw",
        "payments onehot",
        "allergy raw",
        "oven ends raw",
        "quiz raw",
        "outbreak raw",
        "wells raw",
        "parcels raw",
        "reef raw",
        "bargain onehot",
    ],
)
def test_returns_of_logs_have_the_solved_value(name: str) -> None:
    world = (DEVELOPMENT | LAST | UNSEEN | SEALED | RESERVED)[name]()
    assert abs(off(world, range(3))) < 4.0


def off(world: World, seeds: range) -> float:
    """How many standard errors the mean return lies from the behaviour's value."""
    logs = [world.columns(seed) for seed in seeds]
    returns = [np.bincount(c["episode_id"], world.discount ** c["t"] * c["reward"]) for c in logs]
    found = np.concatenate(returns)
    error = found.std() / np.sqrt(len(found)) + 1e-9  # some worlds have one return
    return float((found.mean() - world.behavior_truth) / error)


@pytest.mark.parametrize("part", [DRAWN, DRAWN_KEPT])
def test_drawn_worlds_have_the_solved_value_and_another_one_for_each_seed(part: Worlds) -> None:
    """Episodes that are not cut off: errors are about normal, and of 20 the largest is 3."""
    found = []
    for i, name in enumerate(part):
        world, same, other = (part[name](seed) for seed in (i, i, i + 1))
        assert world.truth == same.truth != other.truth
        assert world.endless == name.startswith("endless")
        assert world.dynamics.P.sum(axis=2) == pytest.approx(1.0)
        rare = name.startswith(("prizes", "lottery"))  # the largest reward may be in no log
        if not (rare or world.endless) and world.length == 10_000:
            found.append(off(world, range(700, 702)))
    assert len(found) >= 15 and np.abs(found).max() < 4.5
    assert 0.6 < np.std(found) < 1.5
    assert {name.split()[1] for name in part} == set(FEATURES)


def test_no_dynamics_stand_in_two_parts() -> None:
    """Cheap ones of each part, and those of two parts that look alike."""
    names = {
        "garnet raw far": DEVELOPMENT, "walk raw": DEVELOPMENT, "bandit": DEVELOPMENT,
        "trap raw": DEVELOPMENT, "session raw": SET_ASIDE, "river onehot": SET_ASIDE,
        "stopping raw": SET_ASIDE, "gambler raw": FRESH, "lottery raw": FRESH, "prizes": FRESH,
        "subscribers raw": FRESH, "lake6 onehot": FRESH, "slots raw": DEVELOPMENT,
        "climb raw": DEVELOPMENT, "tide raw": DEVELOPMENT, "warehouse raw": LATER,
        "tutor raw": LATER, "trials raw": LATER, "treasure raw": LATER, "parking raw": LATER,
        "warranty raw": LAST, "seedlings few": LAST, "payments raw": LAST, "pig raw": LAST,
        "tennis raw": LAST, "dialog raw": LAST, "battery endless": LAST, "shop onehot": DEVELOPMENT,
        "mass raw": DEVELOPMENT, "fishery raw": UNENDED, "battery raw": UNENDED,
        "illness raw": UNENDED, "tank raw": UNENDED, "grants raw": UNSEEN, "machine raw": UNSEEN,
        "rumour raw": UNSEEN, "voyage raw": UNSEEN, "lift onehot": UNSEEN, "debt raw": UNSEEN,
        "drone raw": UNSEEN, "balloon raw": UNSEEN, "oven raw": DEVELOPMENT,
        "training raw": DEVELOPMENT, "gardens raw": DEVELOPMENT, "chests raw": DEVELOPMENT,
        "fires onehot": DEVELOPMENT, "readers raw": DEVELOPMENT, "kite raw": SEALED,
        "savings raw": SEALED, "wells raw": SEALED, "clients few": SEALED, "mine raw": SEALED,
        "belt raw": SEALED, "counter raw": SEALED, "stairs far": SEALED, "tangle raw": SEALED,
        "fishing raw": DEVELOPMENT, "tombola raw": DEVELOPMENT, "storms raw": DEVELOPMENT,
        "parcels raw": DEVELOPMENT, "reef raw": RESERVED, "loot raw": RESERVED,
        "bridges raw": RESERVED, "scratch raw": RESERVED, "breaches raw": RESERVED,
        "patrons onehot": RESERVED, "triage raw": RESERVED, "sweeper onehot": RESERVED,
    }  # fmt: skip
    found = [part[name]().dynamics for name, part in names.items()]
    for i, a in enumerate(found):
        for b in found[:i]:
            same = a.P.shape == b.P.shape and np.allclose(a.P, b.P) and np.allclose(a.r, b.r)
            assert not same


def test_scores_at_lam_one_are_products_of_ratios() -> None:
    """With V = omega = 0: the sum of gamma^t rho_0 ... rho_t r_t of every episode."""
    rows, _ = read(DEVELOPMENT["garnet raw near"](), 3)
    nothing = np.zeros(len(rows.reward))
    found = row_scores(rows, Fitted(nothing, nothing, nothing), (1.0,))[0, :, 0]
    product = 1.0
    for t in range(200):
        product = rows.rho[t] * (1.0 if rows.first[t] else rows.discount[t - 1] * product)
        assert found[t] == pytest.approx(product * rows.reward[t])


def test_stated_ratios_that_are_wrong_but_one_in_the_mean_are_found() -> None:
    rows, stated = read(DEVELOPMENT["ratios wrong"](), 0)
    assert rows.rho.mean() == pytest.approx(1.0, abs=0.05)
    assert alarms(scores(rows, stated, unit_of(rows))) == ["action", "residual"]
    rows, stated = read(DEVELOPMENT["bandit"](), 0)
    assert alarms(scores(rows, stated, unit_of(rows))) == []


def test_slow_noise_is_seen_by_long_stretches() -> None:
    """Scores that change once in 8 units: the plain standard error is sqrt(8) times too small."""
    rng = np.random.default_rng(1)
    score = np.repeat(rng.standard_normal(25), 8)[:, None]
    starts = np.ones(200)
    assert stretched(score, starts).se[0] > 2.0 * Sums.of(score, starts).se[0]
    assert stretched(score, starts).J[0] == pytest.approx(score.mean())


@pytest.mark.parametrize("name", ["trials raw", "treasure raw", "pump raw", "season raw"])
def test_rewards_lie_in_the_range_that_a_world_states(name: str) -> None:
    world = LATER[name]()
    lo, hi = world.reward_range
    rewards = np.concatenate([world.columns(seed)["reward"] for seed in range(20)])
    assert lo <= rewards.min() <= rewards.max() <= hi
    if name == "treasure raw":
        assert (lo, hi) == (-0.2, 128.0)  # of eight places the last one's prize
