"""A mistake of our own is one sentence with a report, exit 1; too little memory is exit 2."""

from __future__ import annotations

import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from steadytd.cli import fault, main
from tests.support.commands import call


def broken(error: BaseException) -> object:
    def app(**options: object) -> NoReturn:
        raise error

    return app


def exit_code(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    monkeypatch.setattr(main, "app", broken(error))
    monkeypatch.setattr(sys, "argv", ["steadytd", "run", "böse"])
    with pytest.raises(SystemExit) as stop:
        main.main()
    return int(stop.value.code or 0)


def test_an_exception_that_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert exit_code(monkeypatch, ZeroDivisionError("[red]by zero[/red] \ud800")) == 1
    said = capsys.readouterr().err
    assert fault.OUR_FAULT in said
    assert "Traceback" not in said
    found = re.search(r"a report is in '([^']+)'", said.replace("\n", ""))
    assert found is not None
    report = Path(found[1])
    assert report.parent == tmp_path
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError: [red]by zero[/red]" in text
    assert "Traceback" in text and "böse" in text


def test_where_no_report_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    assert exit_code(monkeypatch, KeyError("x")) == 1
    assert "no report could be written" in capsys.readouterr().err


def test_too_little_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(monkeypatch, MemoryError()) == 2
    assert "there is not enough memory for this" in capsys.readouterr().err


def test_the_other_tests_notice_such_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "app", broken(IndexError("x")))
    with pytest.raises(AssertionError, match="an exception that is not ours"):
        call(monkeypatch, "list")
