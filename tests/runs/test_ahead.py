"""Loops of a first run are compiled in two processes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import steadytd as st
from steadytd.engine.step import driver
from steadytd.runs import ahead

LEARNERS = [st.learner(x) for x in ("td:alpha=0.1", "etd:alpha=0.1", "tdc:alpha=0.1,ratio=1")]


class Started:
    """Instead of a process: what it would have been told."""

    asked: list[list[str]]

    def __init__(self, command: list[str], **_: Any) -> None:
        Started.asked.append(json.loads(command[-1]))
        self.stdout = io.BytesIO()

    def kill(self) -> None:
        """Nothing runs."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    monkeypatch.setattr(ahead, "_kept", lambda _: False)
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(ahead, "_seen", set())
    Started.asked = []
    return Started.asked


def test_loops_are_compiled_from_the_end_and_once(asked: list[list[str]]) -> None:
    assert ahead.compile_beside([*LEARNERS, st.learner("etd:alpha=0.2"), st.learner("lstd")])
    assert asked == [["tdc:alpha=0.1,ratio=1", "etd:alpha=0.2", "td:alpha=0.1"]]
    assert not ahead.compile_beside(LEARNERS)
    assert len(asked) == 1


def test_nothing_is_started_where_one_loop_is_missing(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_kept", {"etd", "td"}.__contains__)
    assert not ahead.compile_beside(LEARNERS)
    assert asked == []


def test_a_law_of_ones_own_is_left_to_this_process(asked: list[list[str]]) -> None:
    @st.law(writes={"w": "x"})
    def mine(reward, w_x, alpha):  # type: ignore[no-untyped-def]
        """Towards the reward."""
        return alpha * (reward - w_x)

    @st.law(writes={"w": "x"})
    def other(reward, w_x, alpha):  # type: ignore[no-untyped-def]
        """Towards half of it."""
        return alpha * (reward - 2.0 * w_x)

    ahead.compile_beside([st.learner(law, alpha=0.1) for law in (mine, other)])
    assert asked == []


def test_a_run_asks_for_it(asked: list[list[str]]) -> None:
    st.run("three_state", LEARNERS[:2], steps=2, points=2)
    assert asked == [["etd:alpha=0.1", "td:alpha=0.1"]]


def test_the_driver_is_compiled_for_what_a_block_gives() -> None:
    ahead.compile_driver(LEARNERS[0])
    before = list(driver.run.overloads)  # type: ignore[attr-defined]
    st.run("three_state", LEARNERS[:1], steps=2, points=2)
    assert list(driver.run.overloads) == before and before  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_other_process_keeps_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-m", "steadytd.runs.ahead", json.dumps(["td:alpha=0.1"])]
    assert subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout == b"\n"
    assert len(list(tmp_path.glob("driver.run-*"))) == 1
    assert len(list(tmp_path.glob("steadytd_kernel_td_*"))) == 1
    assert ahead._kept("td") and not ahead._kept("etd")
