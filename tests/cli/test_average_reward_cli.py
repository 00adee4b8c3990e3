"""Rewards per step on the command line and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.worlds import get

import steadytd as st
from tests.support.commands import Command


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a walk that never stops."""
    log = get("development", "endless", "line endless poly:2").log(0)
    return st.write_log(tmp_path_factory.mktemp("walk") / "walk.parquet", log)


def test_the_command_says_what_the_library_finds(steadytd: Command, walk: Path) -> None:
    e = st.evaluate(walk, average_reward=True, features="poly:2")
    arguments = ("evaluate", str(walk), "--average-reward", "--features", "poly:2")
    shown = steadytd.json(*arguments)
    assert shown["settings"]["average_reward"] is True and shown["stability"] == shown["path"] == []
    assert shown["decisions"] == e.to_dict()["decisions"] and shown["decisions"][0]["per_step"]
    assert shown["behavior"] == e.behavior._asdict()
    text = " ".join(steadytd(*arguments, "--full").split())
    assert e.compare("pi").difference == pytest.approx(0.29, abs=0.005)
    assert "pi is better than the policy that made the log by 0.29 per step (95 %" in text
    for said in ("per step (95 % interval", "reward per step", "Values are rewards per step",
                 "in the long run it does not matter where a policy starts"):  # fmt: skip
        assert said in text, text
    assert "discounted" not in text and "Stability" not in text and "not known" not in text


def test_the_page_speaks_of_rewards_per_step(walk: Path, tmp_path: Path) -> None:
    e = st.evaluate(walk, average_reward=True, features="poly:2")
    html = e.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for said in ("reward\N{NO-BREAK SPACE}per\N{NO-BREAK SPACE}step", "none: rewards per step",
                 "the rows tell as much as", "Values are rewards per step"):  # fmt: skip
        assert said in html, said
    for unsaid in ("tell as much as about 0", "Overlap and stability", "plain TD", "state by state",
                   "Beyond the mean", "not known", "discounted return", ">None<"):  # fmt: skip
        assert unsaid not in html, unsaid
    again = st.load_evaluation(e.save(tmp_path / "e.npz"))
    assert again.to_dict() == e.to_dict()


def test_the_sample_log_ends(steadytd: Command) -> None:
    said = steadytd.error("evaluate", "--sample", "--average-reward")
    assert "leave out --average-reward" in said
