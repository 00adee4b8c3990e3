"""Units: episodes that belong together stay together, and intervals hold by unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st
from steadytd.evaluation.behavior import estimate_behavior
from steadytd.evaluation.recurring import is_someone, p_value

USERS, SESSIONS = 100, 50


def sessions(seed: int, users: int = USERS, spread: float = 0.5, effect: float = 0.0) -> Any:
    """Interleaved sessions of one step; user u earns e_u for a = 1 and -e_u for a = 0.

    e_u is normal with mean `effect`. The log takes a = 1 with 0.5, the target with 0.9: over the
    population it is better by 0.8 `effect`.
    """
    rng = np.random.default_rng(seed)
    n = users * SESSIONS
    user = rng.permutation(np.repeat(np.arange(users), SESSIONS))
    own, action = rng.normal(effect, spread, users), rng.integers(2, size=n)
    x = rng.integers(3, size=n)
    return pl.DataFrame(
        {
            "episode_id": np.arange(n),
            "t": np.zeros(n, dtype=int),
            "obs_0": x.astype(float),
            "action": action,
            "reward": own[user] * (2 * action - 1) + 0.3 * x + rng.normal(size=n),
            "terminated": np.ones(n, dtype=bool),
            "behavior_prob": np.full(n, 0.5),
            "target_prob_new": np.where(action == 1, 0.9, 0.1),
            "user_id": [f"u{u}" for u in user],
        }
    )


def walks(seed: int = 0, users: int = 80, each: int = 4, steps: int = 3) -> pl.DataFrame:
    """Interleaved episodes of several steps."""
    rng = np.random.default_rng(seed)
    episodes = users * each
    n = episodes * steps
    user = rng.permutation(np.repeat(np.arange(users), each))
    x, action = rng.integers(4, size=n), rng.integers(2, size=n)
    own = rng.normal(size=users)[np.repeat(user, steps)]
    return pl.DataFrame(
        {
            "episode_id": np.repeat(np.arange(episodes), steps),
            "t": np.tile(np.arange(steps), episodes),
            "obs_0": x.astype(float),
            "action": action,
            "reward": own + action * x + rng.normal(size=n),
            "terminated": np.tile(np.arange(steps) == steps - 1, episodes),
            "behavior_prob": np.full(n, 0.5),
            "target_prob_new": np.where(action == 1, 0.7, 0.3),
            "user_id": np.repeat(user, steps),
        }
    )


def answer(frame: Any, **options: Any) -> Any:
    return st.evaluate(frame, **{"discount": 1.0, "learners": ["lstd"], "threads": 1, **options})


def test_decisions_by_user_are_right_and_without_units_the_finding_speaks() -> None:
    """No effect in the population: of 8 decisions at level 95 %, more than 2 are wrong in 0.6 %.

    Taken as independent, episodes understate the error of the difference about threefold.
    """
    wrong, warned, without = 0, 0, 0
    for seed in range(8):
        frame = sessions(seed)
        wrong += answer(frame, unit="user_id").compare("new").decision != "undecided"
        e = answer(frame)
        decision = e.compare("new")
        without += decision.decision != "undecided"
        warned += decision.reasons == ("units_visible",) and not decision.trusted
        assert e.assumptions[0] == "episodes are independent"
    assert wrong <= 2 and without >= 4 and warned == 8, (wrong, without, warned)


def test_unit_intervals_hold_the_truth() -> None:
    """20 logs with the difference 0.8 x 0.3 = 0.24: at least 16 of 95 % intervals hold it.

    Right intervals fail that in 0.3 % of such tests; those by episode hold it in about 10 of 20.
    """
    held = 0
    for seed in range(100, 120):
        d = answer(sessions(seed, effect=0.3), unit="user_id").compare("new")
        held += d.lo <= 0.24 <= d.hi
    assert held >= 16, held


def test_errors_are_those_of_sums_by_unit() -> None:
    """Pdis by unit, by plain arithmetic: sum of (score - mean) over a user's episodes, squared."""
    frame = sessions(0).drop("obs_0").with_columns(obs_0=pl.lit(0.0))
    e = answer(frame, unit="user_id", learners=["pdis"])
    row = e.values.filter(pl.col("learner") == "pdis").row(0, named=True)
    score = frame["target_prob_new"] / frame["behavior_prob"] * frame["reward"]
    by_user = frame.select("user_id", apart=score - score.mean()).group_by("user_id").sum()
    sums = by_user["apart"].to_numpy()
    se = np.sqrt(USERS / (USERS - 1) * (sums**2).sum()) / len(frame)
    from scipy.stats import t

    assert row["value"] == pytest.approx(score.mean())
    assert (row["hi"] - row["lo"]) / 2 == pytest.approx(t.ppf(0.975, USERS - 1) * se)
    assert e.log.units == USERS


def test_one_unit_per_episode_changes_no_number() -> None:
    frame = walks().drop("user_id")
    plain = answer(frame, discount=0.9).to_dict()
    same = frame.with_columns(who="w" + pl.col("episode_id").cast(pl.String))
    by_unit = answer(same, discount=0.9, unit="who").to_dict()
    for key in ("values", "behavior", "overlap", "stability", "calibration", "agreement"):
        assert by_unit[key] == plain[key], key
    for name in ("difference", "lo", "hi", "decision"):
        assert by_unit["decisions"][0][name] == plain["decisions"][0][name]
    ours, theirs = (d["quantiles"][0]["rows"] for d in (by_unit, plain))
    assert ours and [r["lo"] for r in ours] == pytest.approx([r["lo"] for r in theirs], nan_ok=True)


def test_quantiles_are_wider_by_unit() -> None:
    """Returns differ by user with standard deviation 3 of 1: errors grow with sqrt(4 episodes)."""
    frame = walks(users=200).with_columns(target_prob_new=pl.col("behavior_prob"))
    plain, by_unit = (answer(frame, unit=unit).quantiles("new") for unit in (None, "user_id"))
    median = [q.filter(pl.col("level") == 0.5).row(0, named=True) for q in (plain, by_unit)]
    widths = [row["hi"] - row["lo"] for row in median]
    assert (
        median[0]["value"] == median[1]["value"] and 1.2 * widths[0] < widths[1] < 2.5 * widths[0]
    )


def test_dask_decides_by_user_too() -> None:
    """The same limits as on one machine; without units the finding speaks there as well."""
    frame = sessions(3)
    here = answer(frame, unit="user_id").compare("new")
    there = answer(frame, unit="user_id", engine="dask", parts=3).compare("new")
    assert (there.lo, there.hi, there.trusted) == pytest.approx((here.lo, here.hi, True))
    alone = answer(frame, engine="dask", parts=3).compare("new")
    assert alone.reasons == ("units_visible",)


def test_dask_and_files_give_the_same(tmp_path: Path) -> None:
    frame = walks()
    whole = answer(frame, unit="user_id")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    frame[:480].write_parquet(paths[0])
    frame[480:].write_parquet(paths[1])
    options = {"unit": "user_id", "parts": 2, "checkpoint": tmp_path / "parts"}
    spread = answer([str(p) for p in paths], engine="dask", **options)
    assert spread.settings["parts"] == 2 and spread.log.units == whole.log.units == 80
    for name in ("value", "lo", "hi"):
        assert spread.values[name].to_list() == pytest.approx(whole.values[name].to_list())
    again = answer([str(p) for p in paths], engine="dask", **options)
    assert again.values.equals(spread.values)
    frame.write_csv(tmp_path / "log.csv")
    assert answer(tmp_path / "log.csv", unit="user_id").values.equals(whole.values)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.String, pl.Int32, pl.Float64])
def test_units_of_any_type(kind: Any) -> None:
    frame = walks(users=70)
    text = pl.col("user_id").cast(pl.String).cast(kind)
    log = st.open_log(frame.with_columns(text), discount=1.0, unit="user_id")
    found = np.concatenate([batch.unit for batch in log.batches()])
    first = frame["user_id"].unique(maintain_order=True).to_list()
    assert found.tolist() == [first.index(u) for u in frame["user_id"].to_list()]


def test_estimated_behaviour_is_fitted_without_the_unit() -> None:
    frame = walks().drop("behavior_prob")
    log = st.open_log(frame, discount=1.0, unit="user_id")
    fitted = estimate_behavior(log)
    [batch] = log.batches()
    assert batch.unit is not None
    folds = fitted.folds_of(batch.unit, batch.rows)
    assert all(len(set(folds[batch.unit == u].tolist())) == 1 for u in range(80))
    e = answer(frame, unit="user_id", behavior="estimate", nothing_hidden=True)
    assert e.log.units == 80


def test_few_units_are_not_trusted() -> None:
    """15 users, and 100 users of whom one has most sessions: 1 / sum of squared shares."""
    e = answer(sessions(0, users=15), unit="user_id")
    [found] = [w for w in e.warnings if w.code == "few_units"]
    assert found.level == "warning" and not e.compare("new").trusted
    assert found.numbers["effective_units"] == pytest.approx(15.0)
    frame = sessions(0)
    most = frame.with_columns(
        user_id=pl.when(pl.col("episode_id") < 3000).then(pl.lit("u0")).otherwise("user_id")
    )
    share = most["user_id"].value_counts()["count"].to_numpy() / len(most)
    [found] = [w for w in answer(most, unit="user_id").warnings if w.code == "few_units"]
    assert found.numbers["effective_units"] == pytest.approx(1.0 / (share**2).sum())


def test_columns_that_do_not_matter_are_not_found() -> None:
    """50 columns at random, level 0.001: one false alarm comes in 5 % of such tests, two never."""
    rng = np.random.default_rng(0)
    returns = rng.standard_cauchy(2000)
    from scipy.stats import rankdata

    found = [p_value(rng.integers(k, size=2000), rankdata(returns)) for k in [25, 400] * 25]
    assert sum(p < 0.001 for p in found) <= 1
    assert np.mean(found) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 50))


def test_a_column_that_names_nobody_is_noted() -> None:
    frame = sessions(0).rename({"user_id": "shop"})
    e = answer(frame)
    [found] = [w for w in e.warnings if w.code == "units_visible"]
    assert found.level == "note" and "shop" in found.text and e.compare("new").trusted
    alone = answer(frame.with_columns(shop=pl.lit("one"), visit=pl.col("episode_id")))
    assert "units_visible" not in [w.code for w in alone.warnings]
    assert is_someone("accountId") and not is_someone("accounting")


def test_faults_are_named() -> None:
    frame = walks(users=30)
    with pytest.raises(st.InputError, match="did you mean 'user_id'"):
        answer(frame, unit="user")
    with pytest.raises(st.InputError, match=r"row 4 .*one unit"):
        answer(frame.with_columns(user_id=pl.int_range(pl.len()) // 4), unit="user_id")
    with pytest.raises(st.InputError, match=r"'user_id', row 7 .*needs a value"):
        gap = pl.when(pl.int_range(pl.len()) != 7).then("user_id")
        answer(frame.with_columns(user_id=gap), unit="user_id")
    with pytest.raises(st.InputError, match="unit of an open log"):
        answer(st.open_log(frame, discount=1.0), unit="user_id", discount=None)
