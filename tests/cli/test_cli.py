"""The command line: tables, JSON, exit codes, one clear sentence for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import steadytd as st
from steadytd.cli import console
from tests.support.commands import call


def test_list_and_show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "list", "problems", "--json") == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert names == sorted(st.problems())
    assert call(monkeypatch, "list", "learners") == 0
    assert "perturbed_td" in capsys.readouterr().out
    assert call(monkeypatch, "show", "problem", "baird", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["states"], facts["features"], facts["rank_of_features"]) == (7, 8, 7)
    assert facts["d_mu"] == pytest.approx([1 / 7] * 7)
    assert facts["largest_ratio"] == pytest.approx(7.0)
    assert call(monkeypatch, "show", "learner", "perturbed_td", "--json") == 0
    params = {p["name"]: p for p in json.loads(capsys.readouterr().out)["params"]}
    assert params["eta"]["default"] is None
    assert params["penalty"]["range"] == "scaled or outside"
    assert call(monkeypatch, "show", "learner", "tdc", "--kernel") == 0
    assert "def advance(" in capsys.readouterr().out


def test_certify_at_a_step_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "certify", "kolter", "--alpha", "1e-4", "--json") == 0
    found = json.loads(capsys.readouterr().out)["at_alpha"]
    assert found["alpha"] == 1e-4
    assert found["learners"] == st.certify("kolter").at_alpha(1e-4).to_dicts()
    assert call(monkeypatch, "certify", "kolter", "--alpha", "1e-4") == 0
    assert "Single runs at alpha = 0.0001" in capsys.readouterr().out
    assert call(monkeypatch, "certify", "kolter", "--alpha", "0") == 2
    assert "alpha must be a positive number" in capsys.readouterr().err


def test_show_of_a_saved_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = st.problem("three_state").save(tmp_path / "mine.npz")
    assert call(monkeypatch, "show", "problem", str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["v_pi"] == pytest.approx([10, 10, 10])


def test_run_prints_what_the_library_returns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    learners = ["td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.5"]
    size = ["--steps", "2000", "--seeds", "3", "--points", "11"]
    out = tmp_path / "out"
    where = ["--out", str(out)]
    assert call(monkeypatch, "run", "three_state", *learners, *size, *where, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    expected = st.run("three_state", learners, steps=2000, seeds=3, points=11)
    assert [row["final"] for row in rows] == expected.summary["final"].to_list()
    assert pl.read_parquet(out / "curves.parquet").equals(expected.curves)
    assert sorted(p.name for p in out.iterdir()) == ["curves.parquet", "summary.parquet"]
    assert call(monkeypatch, "run", "three_state", *learners, *size) == 0
    assert "perturbed_td:alpha=0.01,eta=0.5" in capsys.readouterr().out.replace("\n", "")


def test_whole_numbers_as_a_user_writes_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for steps, seeds in (("2000", "3"), ("2e3", "3.0"), ("2_000", "3")):
        size = ["--steps", steps, "--seeds", seeds, "--points", "11", "--threads", "1e0"]
        assert call(monkeypatch, "run", "collision:seed=1e1", "td:alpha=1e-2", *size, "--json") == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]
    for steps in ("1.5", "many", "inf", "nan"):
        assert call(monkeypatch, "run", "baird", "td:alpha=0.1", "--steps", steps) == 2
        shown = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert "Invalid value for '--steps'" in shown
        assert f"'{steps}' is not a whole number; write it as 1000000" in shown


def test_a_diverged_learner_is_marked_and_json_stays_valid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "theta2theta", "td:alpha=5", "--steps", "5000", "--seeds", "2"]
    assert call(monkeypatch, *arguments, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["final"] is None
    assert row["diverged"] == 2
    assert 0 < row["first_divergence"] < 5000
    assert call(monkeypatch, *arguments) == 0
    text = capsys.readouterr().out
    assert "2 of 2" in text
    assert "nan" not in text


BAD = {
    "misspelled problem": (["run", "biard", "td:alpha=0.1"], "did you mean 'baird'"),
    "misspelled learner": (["run", "baird", "tdd:alpha=0.1"], "unknown learner 'tdd'; did"),
    "misspelled parameter": (["run", "baird", "td:alpa=0.1"], "did you mean 'alpha'"),
    "negative alpha": (["run", "baird", "td:alpha=-0.1"], "(step size) must be > 0, got -0.1"),
    "missing eta": (["run", "baird", "perturbed_td:alpha=0.1"], "perturbed_td needs eta"),
    "no steps": (["run", "baird", "td:alpha=0.1", "--steps", "0"], "steps must be a whole number"),
    "no seeds": (["run", "baird", "td:alpha=0.1", "--seeds", "0"], "seeds must be a whole number"),
    "one point": (["run", "baird", "td:alpha=0.1", "--points", "1"], "points must be a whole"),
    "no threads": (["run", "baird", "td:alpha=0.1", "--threads", "0"], "threads must be a whole"),
    "twice": (["run", "baird", "td:alpha=0.1", "td:alpha=.1"], "is given twice"),
    "no such option": (
        ["show", "problem", "collision:sead=7"], "option of problem collision: 'sead'; did you mean"
    ),
    "no options": (["certify", "baird:seed=7"], "problem baird has no options, got seed"),
    "no value": (["run", "collision:seed=", "td:alpha=0.1"], "expected key=value, got 'seed='"),
    "no number": (["run", "collision:seed=x", "td:alpha=0.1"], ">= 0 and < 2^63, got 'x'"),
    "half a step": (
        ["run", "collision:seed=1.5", "td:alpha=0.1"], "seed must be a whole number >= 0 and < 2^63"
    ),
    "no file": (["show", "problem", "nowhere.npz"], "there is no file 'nowhere.npz'"),
    "no runs": (["reproduce", "--runs", "0"], "runs must be a whole number >= 1, got 0"),
    "no such figure": (["reproduce", "--figure", "5"], "figures 1 to 4, got 5"),
    "negative seed": (["reproduce", "--seed", "-1"], "seed must be a whole number >= 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    arguments, message = BAD[name]
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["reproduce", "run"])
def test_unwritable_out(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    what = ["baird", "td:alpha=0.1"] if command == "run" else []
    assert call(monkeypatch, command, *what, "--out", str(blocked / "out")) == 2
    assert "cannot write to the output directory" in capsys.readouterr().err


def test_interrupt_is_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["steadytd.runs.run"], "_execute", interrupted)
    assert call(monkeypatch, "run", "baird", "td:alpha=0.1") == 130
    assert "interrupted" in capsys.readouterr().err


def test_module_and_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steadytd", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == st.__version__


def test_import_is_light() -> None:
    """`import steadytd` and listing learners must not load the heavy libraries."""
    code = (
        "import sys, steadytd; steadytd.learners(); steadytd.problems(); "
        "print([m for m in ('numba', 'polars', 'altair', 'rich', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_problem_with_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An instance of a family, also in `run`, where the bare name draws one for every seed."""
    found = {}
    for text in ("collision", "collision:seed=0", "collision:seed=7"):
        assert call(monkeypatch, "certify", text, "--json") == 0
        found[text] = json.loads(capsys.readouterr().out)["eta_pd"]
    assert found["collision"] == found["collision:seed=0"] != found["collision:seed=7"]
    assert found["collision:seed=7"] == st.certify(st.problem("collision", seed=7)).eta_pd
    asked = ("td:alpha=0.01", "--steps", "200", "--seeds", "3", "--json")
    assert call(monkeypatch, "run", "collision:seed=7", *asked) == 0
    (row,) = json.loads(capsys.readouterr().out)
    own = st.run(st.problem("collision", seed=7), ["td:alpha=0.01"], steps=200, seeds=3)
    assert row["final"] == own.summary["final"][0]
    assert call(monkeypatch, "show", "problem", "random_mdp:states=7,gamma=0.5", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["states"] == 7


@pytest.mark.parametrize("width", [60, 72, 80])
def test_numbers_of_a_table_are_never_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that is too wide for the terminal only texts are wrapped."""
    screen = Console(width=width, file=StringIO())
    monkeypatch.setattr(console, "out", screen)
    name = "discounted_cop_td (ratio 10, g 0.9)"
    rows = [(name, "[green]stable[/]", "infinite", "0.001228", "2.709e+04"), ("td", "", "", "", "")]
    columns = ("learner", "mean", "variance", ">error", ">alpha <")
    screen.print(console.table("Learners", columns, rows))
    assert isinstance(screen.file, StringIO)
    shown = screen.file.getvalue()
    for word in ("alpha <", "error", "0.001228", "2.709e+04", "stable", "infinite"):
        assert word in shown
    assert "".join(shown.split()).count("(ratio") == 1
