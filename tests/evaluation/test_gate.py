"""`--require`: the outcome of every kind of interval, and the exit code of a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steadytd as st
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.gate import Requirement
from steadytd.logs.example import DISCOUNT, sample_log
from tests.support.commands import call


def decision(lo: float, hi: float, trusted: bool = True) -> Decision:
    middle = (lo + hi) / 2.0
    return Decision("new", None, middle, lo, hi, "undecided", trusted, None, 0.95,
                    () if trusted else ("low_overlap",))  # fmt: skip


@pytest.mark.parametrize(
    ("what", "margin", "lo", "hi", "outcome", "code"),
    [
        ("better", 0.0, 0.01, 0.5, "met", 0),
        ("better", 0.02, 0.01, 0.5, "undecided", 4),
        ("better", 0.02, 0.03, 0.5, "met", 0),
        ("better", 0.0, -0.5, -0.1, "worse", 3),
        ("better", 0.02, 0.001, 0.01, "worse", 3),
        ("not-worse", 0.0, -0.1, 0.5, "undecided", 4),
        ("not-worse", 0.2, -0.1, 0.5, "met", 0),
        ("not-worse", 0.2, -0.5, -0.3, "worse", 3),
        ("not-worse", 0.2, -0.5, -0.1, "undecided", 4),
    ],
)
def test_every_kind_of_interval(
    what: str, margin: float, lo: float, hi: float, outcome: str, code: int
) -> None:
    required = Requirement.of(f"{what}:new", margin)
    gate = required.judge(decision(lo, hi))
    assert (gate.outcome, gate.exit_code) == (outcome, code)
    says = {0: ": met; ", 3: ": not met; ", 4: ": cannot be told; "}[code]
    assert gate.text.startswith(f"Required {what}:new") and says in gate.text
    refused = required.judge(decision(lo, hi, trusted=False))
    assert (refused.outcome, refused.exit_code) == ("not trusted", 5)
    assert refused.text.endswith(": not trusted (low_overlap).")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["better:forward"], 0),
        (["better:forward", "--margin", "0.9"], 3),
        (["better:hesitant"], 3),
        (["not-worse:hesitant", "--margin", "0.234"], 4),
    ],
)
def test_exit_codes_and_the_line(
    arguments: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = sample_log(tmp_path / "log.parquet")
    asked = ["evaluate", str(log), "--discount", str(DISCOUNT), "--require", *arguments]
    assert call(monkeypatch, *asked, "--json-line") == code
    (line,) = capsys.readouterr().out.splitlines()
    e = st.evaluate(log, discount=DISCOUNT)
    margin = float(arguments[2]) if len(arguments) > 1 else 0.0
    assert json.loads(line) == e.require(arguments[0], margin).to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--require", "better"], "must be better:NAME or not-worse:NAME, got 'better'"),
        (["--require", "beter:forward"], "did you mean 'better'"),
        (["--require", "better:forwards"], "did you mean 'forward'"),
        (["--require", "better:forward", "--margin", "-1"], "margin must be a finite number >= 0"),
        (["--margin", "0.1"], "--margin needs --require"),
        (["--json-line"], "--json-line needs --require"),
    ],
)
def test_a_bad_requirement_is_bad_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = sample_log(tmp_path / "log.parquet")
    assert call(monkeypatch, "evaluate", str(log), "--discount", "0.95", *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
