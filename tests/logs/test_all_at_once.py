"""All that is wrong with a table is said in one message: what, the rule, the value, the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import steadytd as st
from steadytd import InputError
from tests.support.commands import call

GOOD: dict[str, Any] = {
    "visit": [0, 0, 1, 1], "t": [0, 1, 0, 1], "segment": ["new", "old", "new", "old"],
    "basket": [1.0, 2.0, 3.0, 4.0], "shown": ["a", "b", "a", "b"], "revenue": [1.0, 0.0, 2.0, 1.0],
    "churn": [0, 1, 0, 1], "user": ["u", "u", "v", "v"], "end": [False, True, False, True],
    "p": [0.5, 0.5, 0.25, 0.5], "rule": [0.5, 1.0, 0.0, 0.5],
}  # fmt: skip
MAP = {"episode_id": "visit", "action": "shown", "terminated": "end", "behavior_prob": "p",
       "reward": "revenue"}  # fmt: skip
ARGUMENTS: dict[str, Any] = {
    "obs": ["segment", "basket"], "columns": MAP, "targets": {"rule": "rule"}, "discount": 0.9,
}  # fmt: skip
NUMBER, FRACTION = "must hold numbers, got text", "must be a whole number below 2^63, got 1.5;"

# columns in place of good ones (None: dropped), arguments in place of good ones, what is said
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "types": (
        {"revenue": ["1,5", "0", "2", "1"], "p": ["half"] * 4, "end": ["no", "yes"] * 2,
         "visit": [0.0, 0.0, 1.5, 1.5], "rule": ["x"] * 4},
        {"discount": None},
        [f"column 'revenue' {NUMBER}", f"column 'p' {NUMBER}", f"column 'end' {NUMBER}",
         f"column 'rule' {NUMBER}", f"column 'visit', row 2 (counted from 0): {FRACTION}",
         "no discount is given", "convert the column", "number episodes and steps 0, 1, 2",
         "--discount 0.99"],
    ),
    "values": (
        {"revenue": [1.0, np.nan, 2.0, 1.0], "shown": ["a", "b", None, "b"],
         "p": [0.5, 1.5, 0.5, 0.5], "end": [0, 1, 0, 2], "rule": [0.5, -0.5, 0.5, 0.5],
         "basket": [1.0, 2.0, np.inf, 3.0], "t": [0, 1, 0, 1.5]},
        {"discount": 1.5},
        ["'revenue', row 1 (counted from 0)", "'p', row 1 (counted from 0): a probability must lie "
         "in (0, 1], got 1.5", "'end', row 3 (counted from 0): must be true or false (or 1 or 0), "
         "got 2; correct the flag", "'rule', row 1 (counted from 0): a probability must lie in "
         "[0, 1], got -0.5; it looks like a log-probability", "'basket', row 2 (counted from 0)",
         f"'t', row 3 (counted from 0): {FRACTION} number episodes and steps 0, 1, 2, ....",
         "discount must lie in [0, 1], got 1.5",
         "'shown', row 2 (counted from 0): every row needs a value, got none; fill it in"],
    ),
    "names": (
        {},
        {"obs": ["segmnt", "basket"], "unit": "usr", "needs": ["segmentt"], "targets": {"x": "rul"},
         "rewards": {"revenu": "+", "churn": "-"},
         "columns": {**MAP, "behavior_prob": "pp", "rewrd": "revenue"}},
        ["column for obs 'segmnt'; did you mean 'segment'?", "column for unit 'usr'; did you mean",
         "no column 'segmentt' (did you mean 'segment'?)", "for target 'x' 'rul'; did you mean",
         "column for rewards 'revenu'; did you mean 'revenue'?",
         "the column map says behavior_prob=pp, but there is no column 'pp'",
         "unknown name in the column map 'rewrd'; did you mean 'reward'?"],
    ),
    "lacking and wrong": (
        {"p": None, "visit": [0.0, 0.0, 1.5, 1.5], "user": [None, "u", "v", "v"]},
        {"columns": {"episode_id": "visit", "action": "shown"}, "obs": None, "unit": "user",
         "needs": ["behavior_prob"], "discount": None},
        ["no column 'reward'", "no column 'obs'; name the columns", "no column 'terminated'",
         "no column 'behavior_prob'; it is the probability", FRACTION,
         "'user', row 0 (counted from 0): every row needs a value, got none", "no discount",
         "Perhaps columns={'reward': 'revenue', 'terminated': 'end'}"],
    ),
}  # fmt: skip


def spoilt(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: some for name, some in {**GOOD, **columns}.items() if some is not None}


def read(source: Any, arguments: dict[str, Any]) -> None:
    list(st.open_log(source, **{**ARGUMENTS, **arguments}).batches())


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "stream"])
@pytest.mark.parametrize("case", CASES)
def test_every_fault_is_named(case: str, kind: str, tmp_path: Path) -> None:
    columns, arguments, words = CASES[case]
    frame = pd.DataFrame(spoilt(columns))
    table = pa.table(frame)
    source: Any = {
        "pandas": frame, "polars": pl.from_pandas(frame), "stream": lambda: table,
        "parquet": tmp_path / "log.parquet",
    }[kind]  # fmt: skip
    st.write_log(tmp_path / "log.parquet", table)
    with pytest.raises(InputError) as caught:
        read(source, arguments)
    message = str(caught.value)
    for one in words:
        assert one in message, message
    lines = [line for line in message.splitlines() if line.startswith("  ")]
    assert f"{len(lines)} things are missing or wrong:" in message
    assert len(lines) == {"types": 6, "values": 8, "names": 7, "lacking and wrong": 7}[case]


def test_the_good_table_has_no_fault() -> None:
    read(pd.DataFrame(GOOD), {})
    read(pd.DataFrame(GOOD), {"rewards": {"revenue": "+", "churn": "-"}, "unit": "user"})


def test_a_csv_says_what_cannot_be_read_in_every_column(tmp_path: Path) -> None:
    columns = {"revenue": [1.0, "free", 2.0, 1.0], "p": ["half", 0.5, 0.5, 0.5],
               "end": [False, "maybe", False, True], "rule": [0.5, 2.5, 0.5, 0.5]}  # fmt: skip
    pd.DataFrame(spoilt(columns)).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "log.csv", {"discount": None})
    message = str(caught.value)
    for one in (
        "5 things are missing or wrong", "'revenue', row 1 (counted from 0): must be a number, got "
        "'free'", "'p', row 0 (counted from 0): must be a number, got 'half'", "'end', row 1 "
        "(counted from 0): must be true or false, got 'maybe'", "'rule', row 1 (counted from 0): a "
        "probability must lie in [0, 1], got 2.5", "no discount is given",
    ):  # fmt: skip
        assert one in message, message


def test_the_command_line_says_it_all_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With faults of its own options, exit code 2 and no traceback."""
    path = st.write_log(
        tmp_path / "log.parquet",
        pd.DataFrame(spoilt({"p": [0.5, 1.5, 0.5, 0.5], "churn": ["no"] * 4})),
    )
    code = call(
        monkeypatch, "evaluate", str(path), "--obs", "segmnt", "--by", "segmen", "--unit", "usr",
        "--map", "episode_id=visit,action=shown,terminated=end,behavior_prob=p,t",
        "--target", "rule=rule", "--target", "x=model.pkl", "--reward-range", "1",
        "--reward", "revenue:+", "--reward", "churn:-", "--reward", "basket",
    )  # fmt: skip
    shown = capsys.readouterr().err
    assert code == 2
    for one in (
        "10 things are missing or wrong", "--reward-range must be two numbers LO,HI",
        "a reward must be NAME:+, NAME:- or NAME:COLUMN=WEIGHT,COLUMN=WEIGHT, got 'basket'",
        "--target x=model.pkl: such a file is a pickle", "got 't'", "did you mean 'segment'?",
        "no column 'segmen' (did you mean 'segment'?)", "column for unit 'usr'; did you mean",
        "'p', row 1 (counted from 0): a probability must lie in (0, 1], got 1.5",
        f"column 'churn' {NUMBER}", "no discount is given",
    ):  # fmt: skip
        assert one in shown, shown
    assert "Traceback" not in shown
