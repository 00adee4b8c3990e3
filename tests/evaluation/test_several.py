"""Several rewards and segments: a decision for each, with joint intervals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import steadytd as st
from steadytd.evaluation import passes
from steadytd.logs.log import Log
from tests.support.action_reference import whole_table
from tests.support.commands import Command
from tests.support.helpers import random_problem

NAMES = np.array(["desktop", "mobile", "tablet"])


def shop(
    seed: int, effects: tuple[float, float, float] = (0.0, 0.0, 0.0), n: int = 900
) -> pl.DataFrame:
    """Sessions of one step: a = 1 moves revenue by the segment's effect, and churn by -0.2.

    The log takes a = 1 with 0.5, the target with 0.9: differences are 0.4 times these.
    """
    rng = np.random.default_rng(seed)
    place, a = rng.integers(3, size=n), rng.integers(2, size=n)
    return pl.DataFrame(
        {
            "episode_id": np.arange(n),
            "t": np.zeros(n, dtype=int),
            "obs_0": rng.normal(size=n),
            "action": a,
            "revenue": np.array(effects)[place] * a + rng.normal(size=n),
            "churn": (rng.random(n) < 0.4 - 0.2 * a).astype(int),
            "terminated": np.ones(n, dtype=bool),
            "behavior_prob": np.full(n, 0.5),
            "target_prob_new": np.where(a == 1, 0.9, 0.1),
            "segment": NAMES[place],
        }
    )


def answer(frame: Any, **options: Any) -> st.Evaluation:
    given = {"discount": 1.0, "learners": ["drl"], "features": "raw", "threads": 1, **options}
    return st.evaluate(frame, **given)


REVENUE = {"columns": {"reward": "revenue"}}


def test_every_reward_is_an_evaluation_of_its_own() -> None:
    """The same numbers as of a log with that reward; a minus turns the sign and the decision."""
    frame = shop(0, (0.5, 0.5, 0.5))
    e = answer(
        frame, rewards={"revenue": "+", "churn": "-", "net": {"revenue": 1.0, "churn": -0.5}}
    )
    assert list(e.rewards) == ["revenue", "churn", "net"] and e.rewards["revenue"] is e
    net = frame.with_columns(reward=pl.col("revenue") - 0.5 * pl.col("churn"))
    for name, alone in {
        "revenue": answer(frame, **REVENUE),
        "churn": answer(frame.with_columns(reward=-pl.col("churn"))),
        "net": answer(net),
    }.items():
        ours, theirs = e.rewards[name].compare("new"), alone.compare("new")
        assert (ours.difference, ours.lo) == pytest.approx((theirs.difference, theirs.lo)), name
    churn = e.rewards["churn"].compare("new")
    assert churn.decision == "better" and churn.difference == pytest.approx(0.08, abs=0.05)
    assert e.rewards["churn"].behavior.value == pytest.approx(-frame["churn"].to_numpy().mean())
    said = str(e)
    assert "revenue: new is better" in said and "-churn: new is better" in said


def test_rewards_share_two_passes_and_equal_separate_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All kinds of learners, on a log with cut-offs that is read twice: as many rows as alone."""
    read: list[int] = []
    batches = Log.batches

    def counted(log: Log, columns: Any = None) -> Any:
        for batch in batches(log, columns):
            read.append(len(batch))
            yield batch

    monkeypatch.setattr(Log, "batches", counted)
    monkeypatch.setattr(passes, "KEPT_BYTES", 0.0)
    problem = random_problem(3, states=5, actions=3, features=3)
    table = whole_table(problem, next_probs=True, episodes=70, length=12, seed=3)
    churn = 3.0 * table["reward"].to_numpy() + np.random.default_rng(0).normal(size=len(table))
    table = table.append_column("other", pa.array(churn))
    learners = ["drl", "lsetd", "perturbed_td", "tdc", "snpdis", "mis", "lstdq", "fqe", "drl_q"]
    options: Any = {"features": "raw", "learners": learners, "threads": 1}
    both = st.evaluate(table, rewards={"reward": "+", "other": "-"}, **options)
    rows = sum(read)
    for name, sign in {"reward": 1.0, "other": -1.0}.items():
        read.clear()
        mine = pa.array(sign * table[name].to_numpy())
        alone = st.evaluate(table.drop(["reward"]).append_column("reward", mine), **options)
        assert sum(read) == rows
        for ours, theirs in (
            (both.rewards[name].values, alone.values),
            (both.rewards[name].agreement, alone.agreement),
            (both.rewards[name].quantiles("pi"), alone.quantiles("pi")),
        ):
            assert_frame_equal(ours, theirs, rel_tol=1e-9)
        one, other = both.rewards[name].compare("pi"), alone.compare("pi")
        assert one.episodes_needed == other.episodes_needed
        assert (one.lo, one.hi) == pytest.approx((other.lo, other.hi))


def test_ranges_of_rewards_are_those_of_their_columns() -> None:
    e = answer(shop(0), rewards={"revenue": "+", "churn": "-"}, reward_range={"churn": (0.0, 1.0)})
    assert e.log.stated is None and e.rewards["churn"].log.stated == (-1.0, 0.0, None)
    with pytest.raises(st.InputError, match="dictionary from their names"):
        answer(shop(0), rewards={"revenue": "+", "churn": "-"}, reward_range=(0.0, 1.0))


def test_joint_intervals_hold_together_and_equal_effects_seldom_differ() -> None:
    """20 logs, effects 0.4 x 0.5 in all segments: 95 % of logs have all three intervals right.

    At least 16 of 20 in 99.7 % of such tests; more than 4 of 20 false differences in 0.3 %.
    """
    held = found = 0
    for seed in range(20):
        s = answer(shop(seed, (0.5, 0.5, 0.5)), by="segment", **REVENUE).segments
        assert s is not None and [row.segment for row in s.rows] == list(NAMES)
        held += all(row.difference_lo <= 0.2 <= row.difference_hi for row in s.rows)
        found += any(c.differ for c in s.contrasts)
    assert held >= 16 and found <= 4, (held, found)


def test_segments_that_differ_are_found_and_named() -> None:
    frame = shop(1, (1.5, 0.0, -1.5), n=1500)
    e = answer(frame, by="segment", **REVENUE)
    s = e.segments
    assert s is not None and [row.decision for row in s.rows] == ["better", "undecided", "worse"]
    assert s.text.startswith("Effects differ: desktop from mobile; desktop from tablet")
    assert "better" in str(e) and s.frame["units"].sum() == len(frame)
    own = answer(frame.filter(pl.col("segment") == "mobile"), **REVENUE)
    assert s["mobile"].compare("new").difference == pytest.approx(own.compare("new").difference)
    # joint over three segments: level 1 - 0.05 / 3
    assert s.rows[1].difference_lo == pytest.approx(
        own.compare("new").difference - _reach(own, 0.05 / 3)
    )
    document = json.loads(json.dumps(e.to_dict()))
    assert document["segments"]["contrasts"][1]["differ"] is True


def _reach(e: st.Evaluation, alpha: float) -> float:
    """Half width of the difference at level 1 - alpha, by `compared` with as many at once."""
    from steadytd.evaluation.decide import compared

    d = compared(e.sides[0], None, e.data, round(0.05 / alpha))
    return d.hi - d.difference


def test_units_in_several_segments_may_depend_on_each_other() -> None:
    """Their standard errors are added, not their squares: p-values are larger."""
    frame = shop(2, (0.6, 0.0, 0.0), n=1800)
    user = np.random.default_rng(0).integers(300, size=len(frame))
    inside = user // 3 * 3 + np.searchsorted(NAMES, frame["segment"].to_numpy())
    p = []
    for who in (inside, user):
        s = answer(
            frame.with_columns(user_id=who), unit="user_id", by="segment", **REVENUE
        ).segments
        assert s is not None
        p.append(s.contrasts[0].p)
    assert 10.0 * p[0] < p[1]


def test_small_segments_are_not_trusted() -> None:
    frame = shop(0).with_columns(
        segment=pl.when(pl.col("episode_id") < 40).then(pl.lit("new")).otherwise("segment")
    )
    s = answer(frame, by="segment", **REVENUE).segments
    assert s is not None
    [row] = [row for row in s.rows if row.segment == "new"]
    assert row.units == 40 and not row.trusted and row.reasons == ("few_units",)
    assert math.isnan(row.value) and "new" not in s.evaluations
    assert s.text.endswith("Not compared, as not trusted: new.")


def test_faults_are_named() -> None:
    frame = shop(0)
    longer = frame.with_columns(
        episode_id=pl.col("episode_id") // 2,
        t=pl.col("episode_id") % 2,
        terminated=pl.col("episode_id") % 2 == 1,
    )
    with pytest.raises(st.InputError, match=r"column 'segment', row \d+ .*one segment"):
        answer(longer, by="segment", **REVENUE)
    with pytest.raises(st.InputError, match="did you mean 'segment'"):
        answer(frame, by="segmnt", **REVENUE)
    with pytest.raises(st.InputError, match="900 values; at most 50"):
        answer(frame, by="episode_id", **REVENUE)
    with pytest.raises(st.InputError, match="did you mean 'churn'"):
        answer(frame, rewards={"revenue": "+", "chrn": "-"})
    with pytest.raises(st.InputError, match=r"reward 'churn' must be '\+', '-', or columns"):
        answer(frame, rewards={"churn": "down"})


def test_dask_files_and_saved_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steadytd = Command(monkeypatch, capsys)
    frame = shop(3, (0.6, 0.0, 0.0))
    file = tmp_path / "shop.parquet"
    frame.write_parquet(file)
    options: Any = {"rewards": {"revenue": "+", "churn": "-"}, "by": "segment"}
    whole = answer(frame, **options)
    kept = tmp_path / "kept"
    for _ in range(2):  # the second time from checkpoints
        spread = answer(file, engine="dask", parts=2, checkpoint=kept, **options)
        for name, e in spread.rewards.items():
            assert e.segments is not None and whole.rewards[name].segments is not None
            ours = [row.difference for row in e.segments.rows]
            theirs = [row.difference for row in whole.rewards[name].segments.rows]  # type: ignore[union-attr]
            assert ours == pytest.approx(theirs)
    whole.save(tmp_path / "e.npz")
    again = st.load_evaluation(tmp_path / "e.npz")
    assert again.segments == whole.segments or str(again) == str(whole)
    said = steadytd.json(
        "evaluate", str(file), "--discount", "1", "--reward", "revenue:+", "--reward", "churn:-",
        "--by", "segment", "--features", "raw", "--learner", "drl", "--out", str(tmp_path / "page"),
    )  # fmt: skip
    assert said["reward"] == "revenue" and set(said["other_rewards"]) == {"churn"}
    assert [row["segment"] for row in said["segments"]["rows"]] == list(NAMES)
    page = (tmp_path / "page" / "evaluation.html").read_text()
    assert "revenue by segment" in page and "-churn" in page
    error = steadytd.error("evaluate", str(file), "--discount", "1", "--reward", "revenue")
    assert "NAME:+" in error
