"""The page and its server: complete, small, and closed to others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

import steadytd as st
from steadytd.base.errors import InputError
from steadytd.lab.course import course
from steadytd.lab.page import fits, lab_page, penalty_of
from steadytd.learners import algorithm, names
from steadytd.problems import problems
from steadytd.report.palette import look
from tests.support.commands import call

OWN = '''
import numpy as np, steadytd as st
@st.law(traces={{"z": lambda gamma, lam: (gamma * lam, 1.0)}}, writes={{"w": "z"}},
        params={{"gain": st.Param("gain", default=1.0), "lam": st.Param("decay", default=0.0)}})
def own(reward, w_x, alpha, gain):
    """A law."""
    return alpha * {factor} * (reward - w_x)
'''


@pytest.fixture(scope="module")
def page() -> str:
    return lab_page()


def content(page: str) -> dict[str, list[dict[str, object]]]:
    """The data in a page."""
    found = re.search(r'id="lab-data">(.*?)</script>', page, re.S)
    assert found is not None
    document: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return document


def test_every_small_problem_and_every_stepping_law_is_there(page: str) -> None:
    data = content(page)
    small = {name for name in problems() if fits(st.problem(name))}
    laws = {n for n in names() if algorithm(n).block is None}
    laws = {n for n in laws if algorithm(n).of_discounted_states}
    assert {p["name"] for p in data["problems"]} == small >= {"baird", "three_state", "theta2theta"}
    assert {one["name"] for one in data["learners"]} == laws


def test_it_is_one_small_file_without_addresses(page: str) -> None:
    assert len(page.encode()) < 400_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "{{" not in page.replace("${{", "")


def test_its_loops_are_part_of_its_script_and_no_code_is_made_from_texts(page: str) -> None:
    found = re.search(r'id="lab-worker">(.*?)</script>', page, re.S)
    assert found is not None
    count = int(str(MiniRacer().eval(f"{found[1]} LOOPS.length")))
    data: Any = content(page)
    loops = [form["loop"] for one in data["learners"] for form in one["forms"]]
    assert loops == list(range(count))
    assert not re.search(r"\beval\(|new Function|unsafe-eval", page)


def test_the_penalty_is_found_by_trial_not_by_name() -> None:
    with_penalty = {name for name in names() if penalty_of(algorithm(name))}
    assert with_penalty == {"perturbed_td"}


def test_it_has_the_course_and_says_how_long_that_is(page: str) -> None:
    assert content(page)["course"] == course()
    assert "The deadly triad in seven steps" in page and len(course()) == 7


def test_a_problem_with_the_name_of_one_of_the_courses_takes_the_course_away() -> None:
    p = st.problem("theta2theta")
    own = st.Problem(name="baird", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi)
    assert content(lab_page([own]))["course"] == []


def test_names_cannot_end_the_script() -> None:
    p = st.problem("three_state")
    name = "</script><script>alert(1)</script>"
    own = st.Problem(name=name, P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi)
    page = lab_page([own])
    assert name not in page
    assert content(page)["problems"][0]["name"] == name


def test_a_large_problem_is_refused() -> None:
    with pytest.raises(InputError, match="at most 10 states"):
        lab_page([st.problem("random_mdp", seed=0, states=11, actions=2, features=3)])


def test_the_command_writes_the_page_and_refuses_what_is_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lab.html"
    assert call(monkeypatch, "lab", "--out", str(file)) == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert call(monkeypatch, "lab", "--law", str(tmp_path / "empty.py"), "--out", str(file)) == 2
    assert "defines no law" in capsys.readouterr().err
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    assert call(monkeypatch, "lab", "--law", str(tmp_path / "ends.py"), "--out", str(file)) == 2
    assert "cannot be run: SystemExit: 3" in capsys.readouterr().err
    (tmp_path / "sine.py").write_text(OWN.format(factor="np.sin(w_x)"))
    assert call(monkeypatch, "lab", "--law", str(tmp_path / "sine.py"), "--out", str(file)) == 2
    assert "own: 'np.sin(w_x)' cannot be translated" in capsys.readouterr().err
    (tmp_path / "own.py").write_text(OWN.format(factor="min(gain, 2.0)"))
    assert call(monkeypatch, "lab", "--law", str(tmp_path / "own.py"), "--out", str(file)) == 0
    assert "min(gain, 2.0)" in file.read_text(encoding="utf-8")
    assert call(monkeypatch, "lab", "--port", "70000") == 2
    assert "0 to 65535" in capsys.readouterr().err


def test_a_law_has_the_colour_of_the_reports(page: str) -> None:
    """In the page's data; the two darkest are lightened for a dark page."""
    data: Any = content(page)
    for law in data["learners"]:
        own, *shades = data["colours"][law["name"]]
        assert own == look(law["name"]).colour or look(law["name"]).colour in ("#222222", "#774400")
        assert own not in shades
    assert data["colours"]["perturbed_td"][0] == "#0072B2"
