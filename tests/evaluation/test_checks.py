"""The table of checks: short sentences, every number it names, the right side of every limit."""

from __future__ import annotations

import math
import re
from string import Formatter
from typing import Any

import pytest

from steadytd.evaluation.checks import CHECKS, CODES, Check, findings, serious_first

MOST_WORDS = 25


def named(check: Check) -> dict[str, str]:
    """The facts that a sentence names, with their formats."""
    parts = Formatter().parse(check.sentence)
    return {name: spec or "" for _, name, spec, _ in parts if name and name != "limit"}


def facts_for(check: Check, number: float) -> dict[str, Any]:
    """Facts that make the sentence readable, with the check's own number."""
    made: dict[str, Any] = {name: 0.25 if spec else "x" for name, spec in named(check).items()}
    return {**made, check.statistic: number}


def beyond(check: Check) -> float:
    return check.limit + 1.0 if check.side == "above" else check.limit - 1.0


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.code}-{check.level}")
def test_a_sentence_and_its_remedy_are_short(check: Check) -> None:
    text = f"{check.sentence} {check.remedy}"
    words = re.sub(r"\{\w+[^}]*\}", "0", text).split()
    assert len(words) <= MOST_WORDS, len(words)
    assert check.sentence.endswith(".") and (not check.remedy or check.remedy.endswith("."))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.code}-{check.level}")
def test_a_check_speaks_beyond_its_limit_only(check: Check) -> None:
    found = check.finding(facts_for(check, beyond(check)), "new")
    assert found is not None
    assert (found.code, found.target, found.level) == (check.code, "new", check.level)
    assert "{" not in found.text and found.numbers[check.statistic] == beyond(check)
    assert check.finding(facts_for(check, check.limit), "new") is None
    inside = 2 * check.limit - beyond(check)
    assert check.finding(facts_for(check, inside), "new") is None
    assert check.finding(facts_for(check, math.nan), "new") is None
    assert check.finding({}, "new") is None


def test_of_two_rows_with_one_code_the_more_serious_is_taken() -> None:
    facts = {"left_out_share": 0.02, "left_out": 30}
    assert [(f.code, f.level) for f in findings("log", facts)] == [("rows_left_out", "warning")]
    few = {"left_out_share": 0.001, "left_out": 3}
    assert [(f.code, f.level) for f in findings("log", few)] == [("rows_left_out", "note")]
    assert findings("target", facts) == []


def test_findings_are_sorted_by_how_serious_they_are() -> None:
    facts = {"unknown": 1.0, "negative": 0.5, "td_unstable": 1, "td_word": "unstable",
             "eta_pd": 0.2}  # fmt: skip
    found = findings("target", facts, "new")
    assert [f.code for f in serious_first(found[::-1])] == [
        "no_value", "beyond_log", "td_unstable",
    ]  # fmt: skip
    warnings = [check.level for check in CHECKS if check.level == "warning"]
    assert len(warnings) >= 10 and len(CODES) <= 40
