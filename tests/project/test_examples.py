"""Every example prints what it is to show, and the README's claims are true."""

from __future__ import annotations

import re
import runpy
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


def numbers(text: str) -> list[float]:
    """All numbers in a text, in order."""
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text.replace(",", ""))]


def line_of(out: str, word: str) -> str:
    """The one line that contains a word."""
    (line,) = [line for line in out.splitlines() if word in line]
    return line


def check_action_values(out: str) -> None:
    """Wrong behaviour probabilities move lstd and drl, and not the values of actions."""
    values = {line.split()[0]: numbers(line)[-6:] for line in out.splitlines()[1:6]}
    for name in ("lstdq", "fqe"):
        assert values[name][:3] == values[name][3:]
    for name in ("lstd", "drl:lam=1"):
        assert values[name][0] != values[name][3]
    assert "ratios_off" in out


def check_cartpole(out: str) -> None:
    """With every feature map the solver is nearer to the truth than TD."""
    for part in out.split("features)")[1:]:
        error = {x: numbers(line_of(part, x))[-1] for x in ("td:alpha", "lstd:ridge")}
        assert error["lstd:ridge"] < error["td:alpha"]
    assert out.count("features)") == 3


def check_cartpole_log(out: str) -> None:
    """The better policies are worth more, and nothing is worth more than 20."""
    worth = {name: numbers(line_of(out, f"{name} "))[-2] for name in ("random", "soft5", "good")}
    assert worth["random"] < worth["soft5"] < worth["good"] <= 20.0
    assert "parquet" in out


def check_clinic(out: str) -> None:
    """The new policies in the order of their exact values."""
    names = ("sparing", "doctors", "guideline", "early")
    worth = [numbers(line_of(out, name))[-1] for name in names]
    assert worth == sorted(worth)
    assert worth[2] - worth[1] == pytest.approx(0.048, abs=0.002)


def check_evaluate_log(out: str) -> None:
    """What is trusted holds the truth in its interval."""
    told = [line for line in out.splitlines() if "truth" in line]
    assert len(told) == 4
    assert any("trusted" in line for line in told)
    assert all("inside" in line for line in told if line.endswith("trusted"))


def check_horde(out: str) -> None:
    """The lamp is foreseen, and the one prediction that diverges is named."""
    fits = [numbers(line)[1] for line in out.splitlines() if "correlation" in line]
    assert len(fits) == 3
    assert fits[0] > 0.8 and min(fits) > 0.4
    assert "warning: Prediction 300 (td:alpha=1 about" in line_of(out, "warning")


def check_learners(out: str) -> None:
    assert {line.split()[0] for line in out.splitlines()} >= set(learner_names())
    assert "did you mean 'perturbed_td'?" in out


def check_mountain_car(out: str) -> None:
    """Every learner ends with less than half of its first error."""
    rows = [line for line in out.splitlines() if "alpha=" in line or "ridge=" in line]
    assert len(rows) == 5
    assert all(numbers(row)[-1] < 0.5 * numbers(row)[-5] for row in rows)


def check_online(out: str) -> None:
    """The nearer the reward, the more a cell is worth."""
    values = numbers(out.partition("updates:")[2])
    assert len(values) == 4
    assert values == sorted(values)


def check_own_law(out: str) -> None:
    """Perturbed TD ends near its fixed point, whose error is 3.015; a ceiling of 4 is unstable."""
    *verdicts, runs = out.split("\n", 3)
    assert [line.rpartition(" ")[2] for line in verdicts] == ["stable", "stable", "unstable"]
    settled, _, runs = runs.partition("\nthree_state")
    assert settled.startswith("Settled: clipped_td:alpha=0.001, clipped_td:alpha=0.001,ceiling=2")
    assert numbers(line_of(runs, "perturbed_td"))[-2] == pytest.approx(3.015, rel=0.05)
    assert runs.count("growing in all 10 runs") == 1


def check_problems(out: str) -> None:
    assert {line.split()[0] for line in out.splitlines()} >= set(problem_names())
    assert "true values [10. 10. 10.]" in out
    assert "must sum to 1, its sum is 1.5" in out


def check_recipes(out: str) -> None:
    """`test_recipes.py` has what is in the files."""
    names = [line.rpartition("/")[2] for line in out.splitlines()]
    assert names == ["requests.csv", "sessions.csv", "ward.csv"]


def check_run(out: str) -> None:
    """eta = 0.5 is near the best; TD is far off."""
    rows = [[cell.strip() for cell in line.strip("│").split("┆")] for line in out.splitlines()]
    table = [row for row in rows if len(row) == 5 and row[2][:1].isdigit()]
    final = {row[0] if row[1] == "null" else row[1]: float(row[2]) for row in table}
    assert final["0.5"] == pytest.approx(3.0, abs=0.2)
    assert final["1.0"] > 8.0
    assert final["td"] > 1e6


def check_spiral(out: str) -> None:
    """TD moves away from the values, the gradient methods come nearer."""
    ends = {
        part.split(",")[0]: numbers(part.strip().splitlines()[-1])[-1]
        for part in re.split(r"^(?=\w+, alpha)", out, flags=re.MULTILINE)
        if part.strip()
    }
    assert ends["td"] > 100.0
    assert max(ends["tdc"], ends["gtd2"]) < 10.0


CHECKS = {
    name.removeprefix("check_"): function
    for name, function in list(globals().items())
    if name.startswith("check_")
}


def test_every_example_has_a_check() -> None:
    assert sorted(CHECKS) == [path.stem for path in EXAMPLES]


LONG = (
    "action_values", "cartpole", "cartpole_log", "evaluate_log", "horde", "mountain_car", "spiral",
)  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in LONG else []) for p in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example_runs(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])  # without the arguments of pytest
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    CHECKS[path.stem](capsys.readouterr().out)


@pytest.mark.parametrize("name", [n for n in learner_names() if algorithm(n).action_values])
def test_the_line_in_the_text_of_a_learner_of_action_values_runs(name: str) -> None:
    """The others have commands, which `test_commands` runs."""
    (line,) = [x for x in algorithm(name).doc.splitlines() if "st.run(" in x]
    short = line.strip().replace("steps=100_000, seeds=10", "steps=10")
    assert short != line.strip()
    assert eval(short, {"st": st}).learners[0].name == name


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


@pytest.mark.parametrize("name", ["cartpole", "mountain_car", "cartpole_log"])
def test_an_example_says_which_extra_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with pytest.raises(SystemExit, match=r"^this example needs Gymnasium; .*'steadytd\[gym\]'$"):
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
