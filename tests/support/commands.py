"""The command line, called in this process."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

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


class Command:
    """The command line, by what it prints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> str:
        """What a command that succeeds prints."""
        assert call(self.monkeypatch, *arguments) == 0
        return self.capsys.readouterr().out

    def json(self, *arguments: str) -> Any:
        """The document that it prints with --json."""
        return json.loads(self(*arguments, "--json"))

    def error(self, *arguments: str) -> str:
        """The one line that a command prints that is refused, and nothing else; exit code 2."""
        assert call(self.monkeypatch, *arguments) == 2
        printed = self.capsys.readouterr()
        assert printed.out == "" and printed.err.count("\n") == 1
        assert printed.err.startswith("error: ") and "Traceback" not in printed.err
        return printed.err
