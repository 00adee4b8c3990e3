"""The line that says how far a run is: only where somebody looks, only after two seconds."""

from __future__ import annotations

import io
import sys

import pytest

from steadytd.base import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    return now


def test_a_line_after_two_seconds_that_goes_away(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress.shown(None, "running") as update:
        assert update is not None
        for seconds, done in ((1.0, 10), (1.9, 20), (3.0, 40)):
            clock[0] = 100.0 + seconds
            update(done, 100)
            assert (terminal.getvalue() == "") == (seconds < 2.0)
        clock[0] += 0.1
        update(41, 100)  # too soon for another word
    # 30 of 100 in the 2 s since the first word: 60 more take 4 s
    assert terminal.getvalue() == "\rrunning: 40 %, 4 s left\r                       \r"


def test_nothing_where_nobody_looks_or_the_caller_has_a_line(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.shown(None, "running") as update:
        assert update is None
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    calls: list[tuple[int, int]] = []
    with progress.shown(lambda *now: calls.append(now), "running") as update:
        assert update is not None
        clock[0] += 9.0
        update(5, 10)
    assert (calls, terminal.getvalue()) == ([(5, 10)], "")
    with progress.shown(None, "running"):  # a short run says nothing, and clears nothing
        pass
    assert terminal.getvalue() == ""
