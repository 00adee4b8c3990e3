"""The command line: tables, JSON, exit codes, one clear sentence for bad input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from typer.main import get_command

import steadytd as st
from steadytd.cli import browse, console
from steadytd.cli.main import app
from steadytd.cli.study import study_names
from steadytd.report.text import Table
from tests.support.commands import Command, call


def test_list_and_show(steadytd: Command) -> None:
    names = [row["name"] for row in steadytd.json("list", "problems")]
    assert names == sorted(st.problems())
    listed = steadytd.json("list")
    assert list(listed) == ["problems", "learners", "studies"]
    assert [row["name"] for row in listed["learners"]] == list(st.learners())
    assert "perturbed_td" in steadytd("list", "learners")
    facts = steadytd.json("show", "problem", "baird")
    assert (facts["states"], facts["features"], facts["rank_of_features"]) == (7, 8, 7)
    assert facts["d_mu"] == pytest.approx([1 / 7] * 7)
    assert facts["largest_ratio"] == pytest.approx(7.0)
    params = {p["name"]: p for p in steadytd.json("show", "learner", "perturbed_td")["params"]}
    assert params["eta"]["default"] is None
    assert params["penalty"]["range"] == "scaled or outside"
    assert "def advance(" in steadytd("show", "learner", "tdc", "--kernel")


def test_certify_at_a_step_size(steadytd: Command) -> None:
    found = steadytd.json("certify", "kolter", "--alpha", "1e-4")["at_alpha"]
    assert found["alpha"] == 1e-4
    assert found["learners"] == st.certify("kolter").at_alpha(1e-4).to_dicts()
    assert "Single runs at alpha = 1e-4" in steadytd("certify", "kolter", "--alpha", "1e-4")
    assert "alpha must be a positive number" in steadytd.error("certify", "kolter", "--alpha", "0")


def test_show_of_a_saved_problem(steadytd: Command, tmp_path: Path) -> None:
    path = st.problem("three_state").save(tmp_path / "mine.npz")
    assert steadytd.json("show", "problem", str(path))["v_pi"] == pytest.approx([10, 10, 10])


def test_run_prints_what_the_library_returns(steadytd: Command, tmp_path: Path) -> None:
    learners = ["td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.5"]
    size = ["--steps", "2000", "--seeds", "3", "--points", "11"]
    out = tmp_path / "out"
    where = ["--out", str(out)]
    rows = steadytd.json("run", "three_state", *learners, *size, *where)
    expected = st.run("three_state", learners, steps=2000, seeds=3, points=11)
    assert [row["final"] for row in rows] == expected.summary["final"].to_list()
    assert pl.read_parquet(out / "curves.parquet").equals(expected.curves)
    pictures = [f"curves.{kind}" for kind in ("pdf", "png", "svg")]
    tables = ["curves.parquet", "problem.npz", "result.npz", "run.html", "summary.parquet"]
    assert sorted(p.name for p in out.iterdir()) == sorted([*pictures, *tables])
    assert st.load_result(out).summary.equals(expected.summary)
    assert "error over 2,000 steps, 3 runs" in (out / "run.html").read_text(encoding="utf-8")
    printed = steadytd("run", "three_state", *learners, *size)
    assert "perturbed_td:alpha=0.01,eta=0.5" in printed.replace("\n", "")


def test_whole_numbers_as_a_user_writes_them(steadytd: Command) -> None:
    found = []
    for steps, seeds in (("2000", "3"), ("2e3", "3.0"), ("2_000", "3")):
        size = ["--steps", steps, "--seeds", seeds, "--points", "11", "--threads", "1e0"]
        found.append(steadytd("run", "collision:seed=1e1", "td:alpha=1e-2", *size, "--json"))
    assert found[0] == found[1] == found[2]
    for steps in ("1.5", "many", "inf", "nan"):
        shown = steadytd.error("run", "baird", "td:alpha=0.1", "--steps", steps)
        assert "Invalid value for '--steps'" in shown
        assert f"'{steps}' is not a whole number; write it as 1000000" in shown


def test_a_diverged_learner_is_marked_and_json_stays_valid(steadytd: Command) -> None:
    arguments = ["run", "theta2theta", "td:alpha=5", "--steps", "5000", "--seeds", "2"]
    (row,) = steadytd.json(*arguments)
    assert row["final"] is None
    assert row["diverged"] == 2
    assert 0 < row["first_divergence"] < 5000
    text = steadytd(*arguments)
    assert "td:alpha=5: overflowed in both runs, first at step" in text
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
    "no log": (["certify", "nowhere.parquet"], "there is no file 'nowhere.parquet'"),
    "no log to evaluate": (["evaluate", "nowhere.csv"], "there is no file 'nowhere.csv'"),
    "too many seeds": (
        ["run", "baird", "td:alpha=0.1", "--seeds", "1e12"], ">= 1 and <= 1000000, got"
    ),
    "too many points": (
        ["run", "baird", "td:alpha=0.1", "--steps", "1e12", "--points", "1e12"],
        "1,000,000,000,000 recording points would take"
    ),
    "too many states": (
        ["certify", "random_mdp:states=1000000"],
        "random_mdp with 1,000,000 states and 3 actions would take 120,000 GB"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(
    name: str, steadytd: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments, message = BAD[name]
    monkeypatch.chdir(tmp_path)
    assert message in steadytd.error(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["reproduce", "run"])
def test_unwritable_out(steadytd: Command, command: str, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    what = ["baird", "td:alpha=0.1"] if command == "run" else []
    assert "cannot write to the output directory" in steadytd.error(
        command, *what, "--out", str(blocked / "out")
    )


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


def test_a_problem_with_options(steadytd: Command) -> None:
    """An instance of a family, also in `run`, where the bare name draws one for every seed."""
    found = {}
    for text in ("collision", "collision:seed=0", "collision:seed=7"):
        found[text] = steadytd.json("certify", text)["eta_pd"]
    assert found["collision"] == found["collision:seed=0"] != found["collision:seed=7"]
    assert found["collision:seed=7"] == st.certify(st.problem("collision", seed=7)).eta_pd
    asked = ("td:alpha=0.01", "--steps", "200", "--seeds", "3")
    (row,) = steadytd.json("run", "collision:seed=7", *asked)
    own = st.run(st.problem("collision", seed=7), ["td:alpha=0.01"], steps=200, seeds=3)
    assert row["final"] == own.summary["final"][0]
    shown = steadytd.json("show", "problem", "random_mdp:states=7,gamma=0.5")
    assert shown["states"] == 7


@pytest.mark.parametrize("width", [60, 72, 80])
def test_numbers_of_a_table_are_never_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that is too wide for the terminal only texts are wrapped."""
    screen = Console(width=width, file=StringIO())
    monkeypatch.setattr(console, "out", screen)
    name = "discounted_cop_td (ratio 10, g 0.9)"
    rows = [(name, "stable", "infinite", "0.001228", "2.709e+04"), ("td", "", "", "", "")]
    columns = ("learner", "!mean", "variance", ">error", ">alpha <")
    console.print_parts([Table("Learners", columns, rows)])
    assert isinstance(screen.file, StringIO)
    shown = screen.file.getvalue()
    for word in ("alpha <", "error", "0.001228", "2.709e+04", "stable", "infinite"):
        assert word in shown
    assert "".join(shown.split()).count("(ratio") == 1


def test_tables_that_do_not_fit_become_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(width=30, file=StringIO())
    monkeypatch.setattr(console, "out", screen)
    rows = [("td:alpha=0.0001", "1.234e+100 ± 5.6e+99", "2.345e+100 ± 6.7e+99", "growing")]
    console.print_parts([Table("Run", ("learner", ">mean", ">final", "ended"), rows)])
    assert isinstance(screen.file, StringIO)
    lines = [line.rstrip() for line in screen.file.getvalue().splitlines()]
    assert lines[:3] == ["Run", "td:alpha=0.0001", "  mean: 1.234e+100 ± 5.6e+99"]
    assert "  ended: growing" in lines


def test_a_pipe_has_no_width(steadytd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody says how wide it is, sentences and names are not wrapped."""
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "perturbed_td:alpha=0.0001,eta=0.123456789,lam=0.987654321,power=0.123456,delay=1234567"
    size = ["--steps", "100", "--seeds", "2"]
    assert name in steadytd("run", "three_state", name, *size)
    monkeypatch.setenv("COLUMNS", "80")
    shown = steadytd("run", "three_state", name, *size)
    assert name not in shown and max(map(len, shown.splitlines())) <= 80
    for part in name.replace(":", ",").split(","):  # it folds between its settings
        assert part in shown


def test_auto_is_shown_with_its_number(steadytd: Command) -> None:
    learner = "perturbed_td:alpha=0.01,eta=auto"
    found = st.certify("three_state").best_eta
    printed = steadytd("run", "three_state", learner, "--steps", "100", "--seeds", "1")
    assert f"{learner} ({found:.4g})" in printed


COMMANDS = ("reproduce", "run", "study", "report", "certify", "verify", "evaluate", "lab", "list",
            "show")  # fmt: skip


@pytest.mark.parametrize("command", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_flags_have_no_value(steadytd: Command, command: list[str]) -> None:
    shown = steadytd(*command)
    assert "--help" in shown and "bool" not in shown.lower()
    assert "<" not in shown and "list[" not in shown  # no types of Python


UNDERSTOOD = [
    (["list", "learner"], "perturbed_td"), (["list", "Problems"], "three_state"),
    (["list", "studies"], "Quick: a first look at a study"),
    (["show", "perturbed_td"], "Perturbed off-policy TD"),
    (["show", "perturbed_td:alpha=0.1,eta=1"], "Perturbed off-policy TD"),
    (["show", "learners", "tdc"], "TDC, also called"),
    (["show", "baird"], "Baird's counterexample"), (["show", "collision:seed=3"], "error at w0"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text"), UNDERSTOOD, ids=str)
def test_names_are_understood(steadytd: Command, command: list[str], text: str) -> None:
    assert text in steadytd(*command)


def test_a_log_is_shown(steadytd: Command, tmp_path: Path) -> None:
    log = st.sample_log(tmp_path / "log.parquet")
    facts = steadytd.json("show", str(log))
    assert facts["targets"] == ["forward", "hesitant"]
    assert facts["rows"] == len(pl.read_parquet(log))
    assert "forward, hesitant" in steadytd("show", "log", str(log))


NOT_UNDERSTOOD = {
    "unknown problem or learner 'biard'; did you mean 'baird'": ["show", "biard"],
    "unknown kind of thing to show: 'porblem'; did you mean": ["show", "porblem", "baird"],
    "show one thing at a time, got 3": ["show", "td", "tdc", "etd"],
    "unknown kind of thing to list: 'lerners'; did you mean 'learners'": ["list", "lerners"],
    "unknown study 'qick'; did you mean 'quick'? Known: collision": ["study", "qick"],
    "unknown option '--stepz'; did you mean '--steps'? Known: ": ["run", "baird", "td", "--stepz"],
    "unknown option '--hlp'; did you mean '--help'? Known: ": ["--hlp"],
    "'ten' is not a whole number; write it as": ["run", "baird", "td:alpha=1", "--steps", "ten"],
    "(b). `steadytd verify --help` lists what can be given.": ["verify", "a", "b"],
    "give a log, for instance log.parquet; or --sample": ["evaluate"],
    "--sample has a log of its own; leave out 'x.csv'": ["evaluate", "x.csv", "--sample"],
    "--open shows the page that --out writes": ["run", "baird", "td:alpha=0.1", "--open"],
    "--open shows the page that --out writes; add": ["certify", "baird", "--open"],
}


@pytest.mark.parametrize("message", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_one_sentence(message: str, steadytd: Command) -> None:
    assert message in steadytd.error(*NOT_UNDERSTOOD[message])


def test_pages_are_opened(
    steadytd: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    where = ["--out", str(tmp_path / "out"), "--open", "--steps", "50", "--seeds", "1"]
    for printed in (steadytd, steadytd.json):
        printed("run", "three_state", "td:alpha=0.01", *where)
    assert opened == [(tmp_path / "out" / "run.html").resolve().as_uri()] * 2


def test_figures_are_left_out_if_asked(steadytd: Command, tmp_path: Path) -> None:
    """Their files only: the page draws them itself, and has no link to a file that is not there."""
    one = ("run", "three_state", "td:alpha=0.01", "--steps", "50", "--seeds", "2")
    for command, page in ((one, "run.html"), (("certify", "three_state"), "certificate.html")):
        for flag in ((), ("--no-figures",)):
            out = tmp_path / f"{page}{len(flag)}"
            steadytd(*command, "--out", str(out), *flag)
            pictures = {file.suffix for file in out.iterdir()} & {".svg", ".png", ".pdf"}
            assert bool(pictures) == (not flag)
            html = (out / page).read_text(encoding="utf-8")
            assert 'class="live"' in html
            assert ('.svg"' in html) == (not flag)
    html = (tmp_path / "run.html1" / "run.html").read_text(encoding="utf-8")
    assert f"steadytd {' '.join(one)}" in html and 'href="curves.parquet"' in html


def test_the_shell_completes_names() -> None:
    """As bash asks: the words so far, and which of them is being written."""
    asked = {"_STEADYTD_COMPLETE": "complete_bash", "COMP_WORDS": "steadytd show pert"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'steadytd'; "
         "from steadytd.__main__ import main; main()"],
        capture_output=True, text=True, check=False, env={**os.environ, **asked, "COMP_CWORD": "2"},
    )  # fmt: skip
    expected = [name for name in st.learners() if name.startswith("pert")]
    assert done.stdout.split() == expected == browse.names("pert")
    assert browse.kinds("l") == ["learners"] and study_names("qu") == ["quick"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["run", "baird"], ["LEARNERS is missing", "steadytd run baird td:alpha=0.0001"]),
        (["certify"], ["PROBLEM is missing", "For instance: steadytd certify three_state"]),
        (["study"], ["FILE is missing", "For instance: steadytd study quick"]),
        (["reprduce"], ["unknown command 'reprduce'; did you mean 'reproduce'?"]),
    ],
)
def test_what_is_missing_or_misspelt_is_named_with_an_example(
    steadytd: Command, given: list[str], said: list[str]
) -> None:
    text = steadytd.error(*given)
    assert all(part in text for part in said), text


def test_a_study_of_the_package_is_found_beside_a_directory_of_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "quick").mkdir()
    monkeypatch.chdir(tmp_path)
    assert st.study("quick").spec.name == "quick"


def test_a_large_certificate_says_that_it_is_at_work(
    steadytd: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed, is computed below the sign of work, and not while tables are printed."""
    said: list[str] = []
    status = console.err.status

    def noted(text: str) -> Any:
        said.append(text)
        return status(text)

    monkeypatch.setattr(console.err, "status", noted)
    assert "eta=auto takes 0.5143" in " ".join(steadytd("certify", "three_state").split())
    assert said == ["certifying three_state"]


def test_what_the_documents_say_of_options_is_so() -> None:
    """README: every command but `lab` takes --json; docs/reports.md: five commands write pages."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    options = {
        name: {text for parameter in command.params for text in parameter.opts}
        for name, command in commands.items()
    }
    assert {name for name, found in options.items() if "--json" not in found} == {"lab"}
    pages = {name for name, found in options.items() if "--open" in found}
    assert pages == {"reproduce", "run", "certify", "report", "evaluate"}
    root = Path(__file__).parents[2]
    assert "Every command but `lab` takes `--json`" in (root / "README.md").read_text()
    text = (root / "docs/reports.md").read_text()
    (said,) = re.findall(r"^Five commands write pages: (.*?)\.", text, re.M)
    assert set(re.findall(r"`(\w+)", said)) == pages
