"""`st.monitor`: bounds that hold at every look, against their equations and known truth."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.monitor import LowerBound
from steadytd.evaluation.returning import Returning

LOG_LEVEL = math.log(2.0 / 0.05)


def one_step(n: int, effect: float, rng: np.random.Generator, begin: int = 0) -> pl.DataFrame:
    """mu takes both actions alike, `new` the second with 0.8: Delta = 0.3 effect."""
    action = rng.integers(0, 2, n)
    return pl.DataFrame(
        {
            "episode_id": begin + np.arange(n), "t": 0, "obs_0": 1.0, "action": action,
            "reward": (rng.random(n) < 0.4 + effect * action).astype(float), "terminated": True,
            "behavior_prob": 0.5, "target_prob_new": np.where(action == 1, 0.8, 0.2),
        }
    )  # fmt: skip


def ones(D: Floats) -> Floats:
    return np.ones(len(D))


def by_hand(X: Floats, N: Floats, log_level: float) -> float:
    """The largest lower bound, step by step from the equations of the module.

    At every look q is computed from all Y at numbers d on a grid from -1 up; the bound is where it
    first falls below the level.
    """
    grid = np.linspace(-1.0, 1.0, 20_001)
    q, best, total, count, squares = np.zeros(len(grid)), -1.0, 0.0, 0.0, 0.0
    for i, (x, n) in enumerate(zip(X, N, strict=True), 1):
        m = max(-1.0, min(1.0, total / count)) if count else 0.0
        bet = min(math.sqrt(2 * log_level / ((0.25 + squares) * math.log(1 + i))), 0.25)
        Y = x - grid * n
        q += bet * Y - (-math.log(1 - 2 * bet) - 2 * bet) / 4 * Y**2
        total, count, squares = total + x, count + n, squares + (x - m * n) ** 2
        above = q >= log_level
        if above[0]:
            best = max(best, float(grid[len(grid) - 1 if above.all() else above.argmin() - 1]))
    return best


@pytest.mark.parametrize("shares", [(1.0,), (0.0, 0.2, 0.6, 1.0)])
def test_the_bound_is_that_of_the_equations_in_any_batches(shares: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    N = rng.choice(shares, 700)
    X = N * (rng.exponential(1.5, 700) - 1.0) * rng.random(700)
    whole = LowerBound().add(X, N, LOG_LEVEL)
    parts = LowerBound()
    for part in np.split(np.arange(700), [1, 2, 50, 50, 400]):
        parts = parts.add(X[part], N[part], LOG_LEVEL)
    expected = by_hand(X, N, LOG_LEVEL)
    assert expected > 0.05
    assert expected <= whole.lower < expected + 1.5e-4  # the grid's distance is 1e-4
    assert parts.lower == pytest.approx(whole.lower, rel=1e-10)
    assert parts.n == 700
    assert parts.total == pytest.approx(X.sum())


@pytest.mark.parametrize("tail", ["two ratios", "products of six ratios"])
def test_ten_thousand_looks_make_at_most_one_in_twenty_false_decisions(tail: str) -> None:
    """Without a difference, in 400 sequences: the theorem allows 20 on average.

    One look after each of 10,000 episodes, since `lower` is the largest bound of all looks. Four
    standard deviations of the number allowed are 17.
    """
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(400):
        ratios = rng.choice([0.4, 1.6], (10_000, 1 if tail == "two ratios" else 6))
        W, g = ratios.prod(axis=1), (rng.random(10_000) < 0.3).astype(float)
        low = LowerBound().add((W - 1.0) * g, ones(W), LOG_LEVEL)
        up = LowerBound().add((W - 1.0) * (1.0 - g), ones(W), LOG_LEVEL)
        false += low.lower > 0.0 or up.lower > 0.0
    assert false <= 20 + 17


def test_ten_thousand_looks_with_units_whose_effects_differ() -> None:
    """Effects of units are negative or positive alike, so that there is no difference.

    A unit has up to 20 episodes. One look after each of 10,000 units. Episodes taken as independent
    would be wrong far more often.
    """
    rng = np.random.default_rng(12)
    false = alone = 0
    for _ in range(60):
        n = rng.integers(1, 21, 10_000)
        unit = np.repeat(np.arange(10_000), n)
        W, effect = rng.choice([0.4, 1.6], len(unit)), rng.choice([-0.45, 0.45], 10_000)[unit]
        g = (rng.random(len(unit)) < 0.5 + np.sign(W - 1.0) * effect).astype(float)
        scores = [(W - 1.0) * g, (W - 1.0) * (1.0 - g)]
        by_unit = [np.bincount(unit, D) / 20.0 for D in scores]
        false += any(LowerBound().add(X, n / 20.0, LOG_LEVEL).lower > 0.0 for X in by_unit)
        alone += any(LowerBound().add(D, ones(D), LOG_LEVEL).lower > 0.0 for D in scores)
    assert false <= 3 + 7  # four standard deviations of the number allowed
    assert alone > 15


def test_looking_often_at_a_usual_interval_would_be_wrong_far_more_often() -> None:
    """What the monitor is for: the same looks with 1.96 standard errors."""
    rng = np.random.default_rng(3)
    i, false = np.arange(1, 10_001), 0
    for _ in range(100):
        D = (rng.choice([0.4, 1.6], 10_000) - 1.0) * (rng.random(10_000) < 0.3)
        mean = np.cumsum(D) / i
        error = np.sqrt((np.cumsum(D**2) / i - mean**2) / i)
        false += bool((np.abs(mean) > 1.96 * error)[100:].any())
    assert false > 30


@pytest.mark.parametrize(("effect", "decision"), [(0.5, "better"), (-0.4, "worse")])
def test_a_difference_is_found_and_the_interval_has_the_truth(effect: float, decision: str) -> None:
    rng = np.random.default_rng(4)
    m = st.monitor(reward_range=(0, 1))
    for day in range(10):
        (look,) = m.add(one_step(400, effect, rng, 400 * day))
        assert look.lo <= 0.3 * effect <= look.hi
    assert look.decision == decision and look.more == 0
    assert look.text.startswith(f"Stop: new is {decision} than the policy that made the log by ")
    assert m.history["episodes"].to_list() == [400 * (day + 1) for day in range(10)]
    assert m.history["lo"].is_sorted() and m.history["hi"].is_sorted(descending=True)


def test_more_episodes_as_predicted_decide_in_about_one_of_two_cases() -> None:
    """In 60 sequences of mean 0.03: 0.25 to 0.75 is four standard deviations of a fair coin."""
    rng = np.random.default_rng(5)
    decided = asked = 0
    for _ in range(60):
        W, g = rng.choice([0.4, 1.6], 200_000), rng.random(200_000)
        D = (W - 1.0) * (g < np.where(W > 1, 0.55, 0.45))
        bound = LowerBound().add(D[:1000], np.ones(1000), LOG_LEVEL)
        more = bound.more(LOG_LEVEL)
        if bound.lower < 0.0 and more is not None and more < 190_000:
            asked += 1
            decided += bound.add(D[1000 : 1000 + more], np.ones(more), LOG_LEVEL).lower > 0.0
    assert asked > 40
    assert 0.25 < decided / asked < 0.75


def episodes(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Three steps; each pays the action, and the last action before it pays again."""
    action = rng.integers(0, 2, (n, 3))
    before = np.concatenate([np.zeros((n, 1), dtype=int), action[:, :2]], axis=1)
    return pl.DataFrame(
        {
            "episode_id": np.repeat(np.arange(n), 3), "t": np.tile([0, 1, 2], n),
            "obs_0": before.ravel().astype(float), "reward": (action + before).ravel() - 1.0,
            "terminated": np.tile([False, False, True], n), "behavior_prob": 0.5,
            "target_prob_new": np.where(action == 1, 0.7, 0.3).ravel(),
            "target_prob_old": 0.5,
        }
    )  # fmt: skip


def value(p: float, discount: float) -> float:
    """Of taking the second action with probability p: all eight episodes."""
    total = 0.0
    for a in product((0, 1), repeat=3):
        rewards = [now + was - 1.0 for now, was in zip(a, (0, *a[:2]), strict=True)]
        chance = math.prod(p if x else 1.0 - p for x in a)
        total += chance * sum(discount**t * r for t, r in enumerate(rewards))
    return total


def test_whole_episodes_with_a_discount_against_enumeration() -> None:
    rng = np.random.default_rng(6)
    m = st.monitor(reward_range=(-1, 1), horizon=3, discount=0.9)
    assert (m.lo, m.hi) == pytest.approx((-2.71, 2.71))
    new, old = m.add(episodes(60_000, rng))
    truth = value(0.7, 0.9) - value(0.5, 0.9)
    assert new.lo < truth < new.hi and new.decision == "better"
    assert new.difference == pytest.approx(truth, abs=0.02)  # five standard errors
    assert old.decision == "undecided" and (old.difference, old.more) == (0.0, None)
    assert "How many more episodes would decide is not known." in old.text


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    first, second = one_step(300, 0.1, rng), one_step(300, 0.1, rng, 300)
    m = st.monitor(reward_range=(0, 1))
    assert str(m) == "No batch has been added."
    m.add(first)
    again = st.load_monitor(m.save(tmp_path / "m.json"))
    assert again.add(second) == m.add(second)
    assert again == m and str(m).startswith("Go on: after 600 episodes, new differs by ")
    assert "the chance of a decision is even" in str(m)
    json.dumps(m.to_dict())


def test_bounds_that_contradict_each_other_are_named() -> None:
    rng = np.random.default_rng(8)
    m = st.monitor(reward_range=(0, 1))
    m.add(one_step(20_000, 0.5, rng))
    (look,) = m.add(one_step(200_000, -0.4, rng, 20_000))
    assert look.contradiction and look.decision == "undecided"
    assert look.text == (
        "Stop: the bounds for new contradict each other. The difference has changed over time, or "
        "logged probabilities are wrong."
    )


BAD: list[tuple[pl.Expr, dict[str, Any], str]] = [
    (pl.lit(2.0).alias("reward"), {}, "row 0: a reward is outside the stated range 0 to 1"),
    (pl.lit(False).alias("terminated"), {"horizon": 2}, "has not terminated and is shorter"),
    (pl.lit(0).alias("episode_id"), {}, "more steps than the stated horizon 1"),
    (pl.lit(0.5).alias("target_prob_more"), {}, "those monitored are new"),
]


@pytest.mark.parametrize(("column", "options", "message"), BAD)
def test_a_bad_batch_is_refused_and_changes_nothing(
    column: pl.Expr, options: dict[str, Any], message: str
) -> None:
    rng = np.random.default_rng(9)
    m = st.monitor(reward_range=(0, 1), **options)
    m.add(one_step(50, 0.1, rng))
    before = m.to_dict()
    batch = one_step(50, 0.1, rng, 50).with_columns(column, next_obs_0=pl.lit(1.0))
    if "episode_id" in str(column):
        batch = batch.with_columns(t=pl.Series(range(50)), terminated=pl.lit(False))
    with pytest.raises(st.InputError, match=message):
        m.add(batch)
    assert m.to_dict() == before


def test_the_same_batch_twice_is_refused() -> None:
    m, batch = st.monitor(reward_range=(0, 1)), one_step(50, 0.1, np.random.default_rng(10))
    m.add(batch)
    with pytest.raises(st.InputError, match="this batch was added before"):
        m.add(batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward_range": (1, 1)}, r"lo < hi, got \(1, 1\)"),
        ({"reward_range": (0, 1), "discount": 2.0, "level": 95.0}, "discount must .* level must"),
        ({"reward_range": (0, 1), "unit": "user"}, "needs unit_episodes, the most episodes"),
        ({"reward_range": (0, 1), "unit_batches": 2}, "unit_batches need unit"),
        ({"reward_range": (0, 1), "horizon": 0}, "horizon must be a whole number >= 1, got 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        st.monitor(**options)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', '{"format": 1}'])
def test_a_file_that_is_no_monitor_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(st.InputError, match="is not a saved monitor"):
        st.load_monitor(path)
    with pytest.raises(st.InputError, match="cannot read"):
        st.load_monitor(tmp_path / "none.json")


def users(names: list[str], rng: np.random.Generator, effect: Floats, begin: int) -> pl.DataFrame:
    """One episode for each name; `effect` is that of the second action."""
    frame = one_step(len(names), 0.0, rng, begin)
    chance = 0.5 + effect * frame["action"].to_numpy()
    reward = (rng.random(len(names)) < chance).astype(float)
    return frame.with_columns(user=pl.Series(names), reward=reward)


def test_units_that_come_back_count_while_their_batches_last() -> None:
    """Who gains comes back, who loses does not: complete units in order are no selection.

    Units with the effect 0.4 have two episodes, those with -0.4 one: Delta = 0.3 (0.8 - 0.4) / 3.
    """
    rng = np.random.default_rng(13)
    m = st.monitor(reward_range=(0, 1), unit="user", unit_episodes=2, unit_batches=2)
    gains = rng.random((12, 1000)) < 0.5
    for day in range(12):
        names = [f"{day}-{i}" for i in range(1000)]
        back = [f"{day - 1}-{i}" for i in np.flatnonzero(gains[day - 1])] if day else []
        late = [f"{day - 2}-{i}" for i in range(10)] if day > 1 else []
        effect = np.where(gains[day], 0.4, -0.4)
        whole = np.concatenate([effect, np.full(len(back), 0.4), np.full(len(late), 0.5)])
        m.add(users([*names, *back, *late], rng, whole, 10_000 * day))
    (look,) = m.looks
    assert look.units == 11_000
    assert look.episodes == 11_000 + gains[:11].sum()
    assert look.lo < 0.04 < look.hi
    assert look.difference == pytest.approx(0.04, abs=0.012)  # four standard errors
    assert m.sentences[-2:] == [
        "Not complete yet: 1,000 units.",
        "Left out: 100 episodes beyond the first 2 of a unit, or later than 2 batches from its "
        "first one on.",
    ]
    assert f"after {look.episodes:,} episodes of 11,000 units" in m.sentences[0]


def test_which_episodes_of_a_unit_count_by_hand() -> None:
    units = Returning("user", 2, 2)
    scores = np.array([[1.0, 2.0, 4.0, 8.0]])
    found = units.add(["a", "b"], np.array([0, 1, 0, 0]), scores, 0)
    assert found.scores.shape == (1, 0) and units.left_out == 1  # the third one of a
    found = units.add(["b", "a", "c"], np.array([0, 1, 2]), np.array([[16.0, 32.0, 64.0]]), 1)
    assert found.shares.tolist() == [1.0, 1.0]  # a, then b, as they first appeared
    assert found.scores.tolist() == [[(1.0 + 4.0) / 2.0, (2.0 + 16.0) / 2.0]]
    assert units.left_out == 2
    found = units.add(["b"], np.array([0]), np.array([[128.0]]), 2)
    assert found.shares.tolist() == [0.5] and found.scores.tolist() == [[32.0]]
    assert units.left_out == 3 and list(units.sums) == []


def test_a_unit_that_comes_back_unannounced_is_refused() -> None:
    rng = np.random.default_rng(14)
    m = st.monitor(reward_range=(0, 1), unit="user", unit_episodes=3)
    m.add(users(["a", "b", "a"], rng, np.zeros(3), 0))
    before = m.to_dict()
    with pytest.raises(st.InputError, match=r"user 'b' was in an earlier batch, .*unit_batches=n"):
        m.add(users(["c", "b"], rng, np.zeros(2), 3))
    assert m.to_dict() == before
    (look,) = m.looks
    assert (look.units, look.episodes) == (2, 3)


def test_units_are_remembered_in_the_file_by_a_hash(tmp_path: Path) -> None:
    rng = np.random.default_rng(15)
    m = st.monitor(reward_range=(0, 1), unit="user", unit_episodes=3, unit_batches=3)
    m.add(users(["ann", "bob", "ann"], rng, np.zeros(3), 0))
    assert m.looks == [] and str(m) == "Not complete yet: 2 units."
    path = m.save(tmp_path / "m.json")
    assert "ann" not in path.read_text()
    again, batch = st.load_monitor(path), users(["bob", "cid"], rng, np.zeros(2), 3)
    assert again.add(batch) == m.add(batch)
    assert again == m and again.unit_batches == 3


def test_the_picture_has_the_looks_and_where_it_was_decided() -> None:
    rng = np.random.default_rng(16)
    m = st.monitor(reward_range=(0, 1))
    with pytest.raises(st.InputError, match="no look yet"):
        m.plot()
    for day in range(6):
        m.add(one_step(300, 0.5, rng, 300 * day))
    sets = m.plot().to_dict(validate=False)["datasets"].values()
    (dot,) = next(rows for rows in sets if len(rows) == 1 and "decision" in rows[0])
    band = max(sets, key=len)
    first = m.history.filter(pl.col("decision") == "better")["episodes"].min()
    assert dot["episodes"] == first and dot["decision"] == "better"
    assert [row["lo"] for row in band] == m.history["lo"].to_list()


def test_a_batch_with_another_discount_is_refused() -> None:
    """Its returns would leave the range on which the bounds rest."""
    m = st.monitor(reward_range=(0, 1), horizon=3, discount=0.5)
    batch = episodes(30, np.random.default_rng(11)).with_columns(reward=1.0, discount=1.0)
    with pytest.raises(st.InputError, match=r"a return is outside 0 to 1\.75"):
        m.add(batch)
    assert m.batches == []
