"""The progress bar: only where a person watches, only after two seconds."""

from __future__ import annotations

import io
import sys

import pytest

from steadytd.base import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the place of standard error."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


def test_a_bar_appears_after_two_seconds_and_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = watch(monkeypatch)
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with progress.reporting(None, "running") as update:
        assert update is not None
        for seconds, done in ((1.0, 10), (1.9, 20), (3.0, 40)):
            now[0] = 100.0 + seconds
            update(done, 100)
            assert (terminal.getvalue() == "") == (seconds < 2.0)
    assert "running" in terminal.getvalue() and "40%" in terminal.getvalue()
    erase_line = "\x1b[2K"
    assert terminal.getvalue().endswith(erase_line)


def test_no_bar_where_nobody_watches_or_the_caller_draws_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = watch(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    calls: list[tuple[int, int]] = []
    with progress.reporting(lambda *now: calls.append(now), "running") as update:
        assert update is not None
        update(5, 10)
    assert calls == [(5, 10)]
    with progress.reporting(None, "running"):  # nothing was done: nothing to remove
        pass
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.reporting(None, "running") as update:
        assert update is None
