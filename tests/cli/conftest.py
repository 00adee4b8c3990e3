"""Pages are drawn lightly in this room; commands are called in this process."""

from __future__ import annotations

import pytest

from tests.support.commands import Command
from tests.support.light_pages import light_pages

__all__ = ["light_pages", "steadytd"]


@pytest.fixture
def steadytd(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line."""
    return Command(monkeypatch, capsys)
