"""At 80 x 24 the first screen of every command is the answer; the rest comes with --full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import steadytd as st
from tests.support.commands import Command

WIDE, TALL = 80, 24
LEARNERS = [f"td:alpha={alpha}" for alpha in (*(k / 1000 for k in range(1, 20)), 1e9)]
STUDY = """
steps = 300
seeds = 2
[[problems]]
name = "three_state"
[[learners]]
name = "td"
alpha = [0.001, 0.01]
[[learners]]
name = "tdc"
alpha = 0.01
"""


@pytest.fixture
def seen(steadytd: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The first screen of a command, as one line; the whole of it must be no wider."""
    monkeypatch.setenv("COLUMNS", str(WIDE))
    monkeypatch.setenv("LINES", str(TALL))

    def shown(*words: str) -> str:
        lines = steadytd(*words).splitlines()
        texts = [x for x in lines if not x.startswith(("page: ", "results: ", "next: "))]
        assert max(map(len, texts)) <= WIDE  # the path of a file stays whole
        return " ".join(" ".join(lines[:TALL]).split())

    return shown


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (["certify", "three_state"], "three_state: use perturbed_td with eta = 0.5143"),
        (["certify", "baird", "--cures"], "baird: use perturbed_td with eta = 1.619"),
        (["certify", "three_state", "--full"], "three_state: use perturbed_td with eta = 0.5143"),
        (["list"], "problems:"),
        (["list", "learners"], "learners: abtd,"),
        (["list", "problems", "--full"], "Baird's counterexample"),
        (["show", "baird"], "baird: Baird's counterexample"),
        (["show", "perturbed_td"], "w ← w + α ρ δ x"),
        (
            ["run", "three_state", *LEARNERS, "--steps", "200", "--seeds", "1"],
            "Not settled: td:alpha=0.001",
        ),
    ],
)
def test_the_answer_is_on_the_first_screen(
    seen: Callable[..., str], command: list[str], answer: str
) -> None:
    assert answer in seen(*command)


def test_an_evaluation_begins_with_its_decision(seen: Callable[..., str], tmp_path: Path) -> None:
    path = str(st.sample_log(tmp_path / "log.parquet"))
    e = st.evaluate(path, discount=0.95)
    first = seen("evaluate", path, "--discount", "0.95")
    assert first.startswith(e.best.text)
    for d in e.decisions:
        assert (d.headline if d.trusted else f"No decision about {d.target}.") in first
    assert seen("evaluate", path, "--discount", "0.95", "--full").startswith(e.best.text)


def test_a_study_and_its_report_begin_with_the_best(
    seen: Callable[..., str], tmp_path: Path
) -> None:
    file, out = tmp_path / "small.toml", str(tmp_path / "out")
    file.write_text(STUDY, encoding="utf-8")
    first = seen("study", str(file), "--out", out)
    assert first.startswith("Best configuration of each learner") and "tdc" in first
    assert seen("report", out, "--no-figures").startswith("td and tdc cannot be told apart")


def test_a_reproduction_begins_with_its_verdict(seen: Callable[..., str], tmp_path: Path) -> None:
    first = seen(
        "reproduce", "--figure", "1", "--runs", "2", "--no-figures", "--out", str(tmp_path)
    )
    assert "rows agree with theory" in first.partition("Figures of the paper")[0]
    assert "theory and paper" in first
