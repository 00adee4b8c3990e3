"""A table as a data scientist has it, evaluated in one call: intervals hold the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import steadytd as st
from steadytd.cli.main import app
from tests.support.tables import Rule, behavior, contexts, mean_rewards, pipeline, sessions

OBS = ["segment", "basket", "member"]


@pytest.fixture(scope="module")
def policies() -> dict[str, Any]:
    return {"sharp": pipeline(10, noise=1.0), "blunt": pipeline(11, noise=3.0)}


def truth(policies: dict[str, Any], n: int = 200_000) -> dict[str, float]:
    """The values of all policies, by a mean over contexts; its error is below 0.005.

    What the log lacks in 2 % of the baskets moves the pipelines' values by less than that.
    """
    frame = contexts(np.random.default_rng(99), n, 10)
    means = mean_rewards(frame)
    found = {
        name: float((model.predict_proba(frame[["segment", "basket"]]) * means).sum(axis=1).mean())
        for name, model in policies.items()
    }
    found["rule"] = float((np.array([0.1, 0.8, 0.1]) * means).sum(axis=1).mean())
    return {**found, "as logged": float((behavior(frame) * means).sum(axis=1).mean())}


def test_one_call_on_a_frame_with_string_actions_and_pipelines(policies: dict[str, Any]) -> None:
    e = st.evaluate(
        sessions(0, 12_000), obs=OBS, unit="user_id", discount=1.0,
        columns={"reward": "revenue"}, targets={**policies, "rule": "rule"},
    )  # fmt: skip
    known = truth(policies)
    assert e.behavior.lo <= known["as logged"] <= e.behavior.hi
    for name in ("sharp", "blunt", "rule"):
        found, d = e.recommended[name], e.compare(name)
        assert found.lo <= known[name] <= found.hi, name
        apart = known[name] - known["as logged"]
        assert d.lo - 0.01 <= apart <= d.hi + 0.01, name  # 0.01: the error of the truth
        assert found.trusted and d.decision == "better", (name, found.warnings)
    assert "basket" in e.feature_names and "segment=new" in e.feature_names
    said = " ".join(str(e).split())
    assert "Read as: Every row is taken as an episode of one step, which terminates." in said
    assert "0 = banner, 1 = coupon, 2 = none" in said


def test_on_a_cluster_the_encoding_is_the_same(policies: dict[str, Any], tmp_path: Path) -> None:
    path = st.write_log(tmp_path / "log.parquet", sessions(1, 2000), row_group_rows=400)
    options: Any = {"obs": OBS, "discount": 1.0, "columns": {"reward": "revenue"},
                    "targets": policies, "parts": 3}  # fmt: skip
    local = st.evaluate(path, **options)
    for _ in range(2):  # made, then from the checkpoint
        spread = st.evaluate(path, **options, engine="dask", checkpoint=tmp_path / "parts")
        assert spread.to_dict()["values"] == local.to_dict()["values"]


def test_the_command_line_takes_a_csv_with_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    sessions(2, 3000).to_csv(path, index=False)
    words = ["evaluate", str(path), "--discount", "1", "--map", "reward=revenue", "--unit",
             "user_id", "--obs", "segment,basket"]  # fmt: skip
    done = CliRunner().invoke(app, [*words, "--target", "mine=rule"])
    assert done.exit_code == 0, done.output
    assert "mine is better than the policy that made the log" in done.output
    for suffix in ("joblib", "pkl", "pickle", "pt"):
        done = CliRunner().invoke(app, [*words, "--target", f"mine=model.{suffix}"])
        assert isinstance(done.exception, st.InputError)  # `fault` makes exit code 2 of it
        said = str(done.exception)
        assert "is a pickle, and opening one can run any code" in said
        assert "st.with_policy(frame, 'mine', model)" in said


def test_a_learned_policy_is_valued_also_where_the_frame_has_to_be_sorted() -> None:
    """The policy of a fold belongs to the fold's rows, wherever sorting has put them."""
    frame = sessions(5, 1500).rename(columns={"revenue": "reward"})
    frame = frame.assign(episode_id=np.random.default_rng(0).permutation(1500))
    options: Any = {"obs": OBS, "unit": "user_id", "discount": 1.0, "folds": 3}

    def fit(rows: Any) -> Any:
        mean = rows.groupby("action")["reward"].mean()
        return Rule(list(mean.index), [0.1 + 0.7 * (name == mean.idxmax()) for name in mean.index])

    shuffled = st.evaluate_learning(fit, frame, **options)
    ordered = st.evaluate_learning(fit, frame.drop(columns="episode_id"), **options)
    for e in (shuffled, ordered):
        assert e.overlap["rho_mean_lo"][0] <= 1.0 <= e.overlap["rho_mean_hi"][0]
    one, other = (e.values.filter(learner="pdis")["value"][0] for e in (shuffled, ordered))
    assert one == pytest.approx(other, rel=1e-9)
