"""The command line, called in this process."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from steadytd.cli import fault
from steadytd.cli.main import main


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process; its exit code. A mistake of our own fails the test."""
    monkeypatch.setattr(sys, "argv", ["steadytd", *arguments])
    monkeypatch.setattr(fault, "sentence", _fail)
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def _fail(error: BaseException) -> NoReturn:
    raise AssertionError("the command line met an exception that is not ours") from error
