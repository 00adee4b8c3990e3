"""Loops of a first reproduction are compiled in two processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import steadytd as st
from steadytd.reproduction import ahead

LEARNERS = [st.learner(x) for x in ("td:alpha=0.1", "etd:alpha=0.1", "tdc:alpha=0.1,ratio=1")]


class Started:
    """Instead of a process: what it would have been told."""

    asked: list[list[str]]

    def __init__(self, command: list[str], **_: Any) -> None:
        Started.asked.append(json.loads(command[-1]))

    def kill(self) -> None:
        """Nothing runs."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    Started.asked = []
    return Started.asked


def test_loops_are_compiled_from_the_end(asked: list[list[str]]) -> None:
    ahead.compile_beside(LEARNERS)
    assert asked == [["tdc:alpha=0.1,ratio=1", "etd:alpha=0.1", "td:alpha=0.1"]]


def test_nothing_is_started_where_a_loop_is_kept(asked: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "steadytd_kernel_etd_0.enter-0.nbc").write_bytes(b"")
    ahead.compile_beside(LEARNERS)
    assert asked == []


@pytest.mark.slow
def test_the_other_process_keeps_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-m", "steadytd.reproduction.ahead", json.dumps(["td:alpha=0.1"])]
    subprocess.run(command, check=True)
    assert len(list(tmp_path.glob("steadytd_kernel_td_*"))) == 1
