"""`steadytd monitor`: batch after batch, with its state in a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.support.commands import call


def batch(path: Path, begin: int) -> str:
    rng = np.random.default_rng(begin)
    action = rng.integers(0, 2, 600)
    pl.DataFrame(
        {
            "episode_id": begin + np.arange(600), "t": 0, "obs_0": 1.0, "action": action,
            "reward": (rng.random(600) < 0.2 + 0.5 * action).astype(float), "terminated": True,
            "behavior_prob": 0.5, "target_prob_[red]new": np.where(action == 1, 0.8, 0.2),
        }
    ).write_parquet(path)  # fmt: skip
    return str(path)


def test_batch_after_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(tmp_path / "shop.json")
    first, second = batch(tmp_path / "1.parquet", 0), batch(tmp_path / "2.parquet", 600)
    assert call(monkeypatch, "monitor", state, first, "--reward-range", "0,1") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Stop: [red]new is better than the policy that made the log by" in shown
    assert shown.endswith("Assumed: episodes are independent, and each is in one batch only.")
    assert call(monkeypatch, "monitor", state, second, "--json") == 0
    (look,) = json.loads(capsys.readouterr().out)["looks"]
    assert look["episodes"] == 1200 and look["lo"] < 0.15 < look["hi"]  # 0.3 times 0.5


def test_what_is_wrong_is_said_and_the_file_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, first = tmp_path / "shop.json", batch(tmp_path / "1.parquet", 0)

    def refused(*arguments: str) -> str:
        assert call(monkeypatch, "monitor", str(state), first, *arguments) == 2
        return " ".join(capsys.readouterr().err.split())

    assert "to begin a monitor, give --reward-range LO,HI" in refused()
    assert "a reward is outside the stated range 0 to 0.5" in refused("--reward-range", "0,0.5")
    assert not state.exists()
    assert call(monkeypatch, "monitor", str(state), first, "--reward-range", "0,1") == 0
    before = state.read_bytes()
    assert "began with horizon = 1, got 3; leave the option out" in refused("--horizon", "3")
    assert "this batch was added before" in refused()
    assert state.read_bytes() == before


def test_units_from_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(tmp_path / "users.json")
    for day in range(2):
        path = batch(tmp_path / f"{day}.parquet", 600 * day)
        frame = pl.read_parquet(path).with_columns(user=pl.col("episode_id") // 3)
        frame.write_parquet(path)
        options = ["--unit", "user", "--unit-episodes", "3", "--reward-range", "0,1"]
        assert call(monkeypatch, "monitor", state, path, *options) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "after 1,200 episodes of 400 units" in shown
    assert shown.endswith("Assumed: units (user) are independent.")
    frame.with_columns(t=0, episode_id=pl.col("episode_id") + 9000).write_parquet(path)
    assert call(monkeypatch, "monitor", state, path) == 2
    assert "begin a new monitor with unit_batches=n" in " ".join(capsys.readouterr().err.split())
