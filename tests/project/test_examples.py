"""Every example runs, and the README's commands and claims are true."""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path

import pytest

import steadytd as st
from steadytd.learners import algorithm
from steadytd.learners import names as learner_names
from steadytd.problems import names as problem_names
from steadytd.theory.dynamics import fixed_point

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_is_an_example_for_each_part() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {"problems", "learners", "run", "online", "own_law"} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])  # without the arguments of pytest
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert len(capsys.readouterr().out) > 50


@pytest.mark.parametrize("name", learner_names())
def test_the_command_in_a_learners_text_is_valid(name: str) -> None:
    if algorithm(name).action_values:  # not on the command line, which has no such problems
        (line,) = [x for x in algorithm(name).doc.splitlines() if "st.run(" in x]
        short = line.strip().replace("steps=100_000, seeds=10", "steps=10")
        assert short != line.strip()
        assert eval(short, {"st": st}).learners[0].name == name
        return
    (line,) = [x for x in algorithm(name).doc.splitlines() if "steadytd run" in x]
    _, _, problem, learner, *_ = shlex.split(line)
    assert problem in problem_names()
    assert st.learner(learner).name == name


def test_readme_numbers() -> None:
    p = st.problem("three_state")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for eta, shown in ((0.42, "160 at eta 0.42"), (0.5, "3.0 at 0.5"), (0.6, "5.1 at 0.6")):
        error = float(p.error(fixed_point(p, st.learner("perturbed_td", alpha=1, eta=eta))))
        assert shown in text.replace("\n", " ").replace("  ", " ")
        assert float(shown.split()[0]) == pytest.approx(error, rel=0.02)
    assert float(p.error(fixed_point(p, st.learner("tdc", alpha=1)))) == pytest.approx(
        12.3, abs=0.05
    )


def test_readme_names_all_learners() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in learner_names():
        assert f"`{name}`" in text
