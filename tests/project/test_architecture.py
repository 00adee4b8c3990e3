"""docs/architecture.md is true: its map is that of the linter, and its walks are those of the code.

Each walk is taken: the command runs, small, and every call into the package is noted.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import threading
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import steadytd as st
from steadytd.cli.main import app
from steadytd.engine.schedule import _kept
from steadytd.engine.step.compile import kernel
from steadytd.report import pages
from steadytd.report import reproduction as reproduction_page
from steadytd.reproduction import reproduce
from steadytd.reproduction.paper import FIGURES
from tests.support.log_helpers import log_table

ROOT = Path(__file__).parents[2]
SOURCE = Path(str(st.__file__)).parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STATION = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`: (.+?\.)$", re.MULTILINE | re.DOTALL)
PAIR = re.compile(r"`([\w/]+\.py)`\s+`([A-Za-z_][\w.]*)`")
MOST_STATIONS = 12

STUDY = """
steps = 100
seeds = 2
every = 50
[[problems]]
name = "three_state"
[[learners]]
name = "td"
alpha = [0.001, 0.01]
"""


class Station(NamedTuple):
    """A place on a walk: a file of the package, and a function or class in it."""

    file: str
    name: str

    def meets(self, visit: Station) -> bool:
        """Whether a call is a visit: of the function itself, or of a method of the class."""
        return visit.file == self.file and f"{visit.name}.".startswith(f"{self.name}.")


def walks(text: str) -> dict[str, list[Station]]:
    """The stations of each walk, by the name of its heading; they are numbered from 1 on."""
    found = {}
    _, _, section = text.partition("## The five walks\n")
    for part in section.partition("\n## ")[0].split("\n### ")[1:]:
        name, _, body = part.partition("\n")
        lines = STATION.findall(body)
        assert [int(number) for number, *_ in lines] == list(range(1, len(lines) + 1)), name
        assert len(lines) == len(re.findall(r"^\d+\. ", body, re.MULTILINE)), name
        found[name] = [Station(file, inner) for _, file, inner, _ in lines]
    return found


def first_visits(stations: list[Station], visits: list[Station]) -> list[int]:
    """When each station is first visited; -1 if never."""
    return [next((i for i, v in enumerate(visits) if s.meets(v)), -1) for s in stations]


def followed(walk: Callable[[], object]) -> list[Station]:
    """The functions of the package that are called, each once, by all threads, in order.

    The walk is taken once before, so that nothing is compiled while calls are noted: that is slow.
    """
    seen: dict[Station, None] = {}
    where = f"{SOURCE}/"

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        called = event == "call" and code.co_flags & inspect.CO_OPTIMIZED  # not a class's body
        if called and code.co_filename.startswith(where):
            seen.setdefault(Station(code.co_filename.removeprefix(where), code.co_qualname))

    walk()
    for once in (kernel, _kept):  # as in a new process; machine code is kept
        once.cache_clear()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def defined(file: str, name: str) -> bool:
    """Whether a file of the package defines a name: a function, class, constant or member."""
    body: list[ast.stmt] = ast.parse((SOURCE / file).read_text(encoding="utf-8")).body
    for part in name.split("."):
        node = next((node for node in body if part in _names(node)), None)
        if node is None:
            return False
        body = node.body if isinstance(node, ast.ClassDef) else []
    return True


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def command(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


WALKS = walks(TEXT)


def check(name: str, visits: list[Station]) -> None:
    stations = WALKS[name]
    times = first_visits(stations, visits)
    assert [s for s, time in zip(stations, times, strict=True) if time < 0] == []
    assert [stations[i] for i in sorted(range(len(times)), key=times.__getitem__)] == stations


def test_there_are_five_walks_of_at_most_twelve_stations() -> None:
    assert list(WALKS) == ["reproduce", "study", "evaluate", "certify", "update"]
    for stations in WALKS.values():
        assert 8 <= len(stations) <= MOST_STATIONS
        assert len(set(stations)) == len(stations)


def test_whatever_is_named_together_with_its_file_exists() -> None:
    pairs = PAIR.findall(TEXT)
    assert len(pairs) >= sum(map(len, WALKS.values()))
    assert [pair for pair in pairs if not defined(*pair)] == []


def test_the_map_is_the_one_that_the_linter_enforces() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    shown = re.findall(r"^    (\S.*?)  ", TEXT.partition("\n## ")[0], re.MULTILINE)
    assert [set(line.split(" | ")) for line in shown] == [set(x.split(" | ")) for x in layers]


def test_a_wrong_walk_would_be_found() -> None:
    page = (
        "## The five walks\n\n### one\n\n1. `a.py` `f`: in.\n2. `b.py` `C`: out,\n   or so.\n\n## x"
    )
    assert walks(page) == {"one": [Station("a.py", "f"), Station("b.py", "C")]}
    f, g = walks(page)["one"]
    there = [Station("a.py", "f"), Station("b.py", "C.method"), Station("b.py", "Clear")]
    assert first_visits([f, g], there) == [0, 1]
    assert first_visits([f, g], there[1::-1]) == [1, 0]
    assert first_visits([f, g], there[::2]) == [0, -1]
    with pytest.raises(AssertionError, match="one"):
        walks(page.replace("2. `b.py` `C`", "2. `b.py` C"))
    assert defined("engine/law.py", "Law.block") and defined("features/__init__.py", "KINDS")
    assert not defined("engine/law.py", "Law.blocks") and not defined("engine/law.py", "block")


def test_calls_are_seen_in_every_thread() -> None:
    def elsewhere() -> None:
        thread = threading.Thread(target=lambda: st.learner("td:alpha=0.1"))
        thread.start()
        thread.join()

    visits = followed(elsewhere)
    assert Station("learners/__init__.py", "learner") in visits
    assert sys.getprofile() is None


def test_walk_of_reproduce(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command itself, with a short Figure 1 and without drawing."""
    short = replace(FIGURES[0], steps=200, claims=FIGURES[0].claims[:3])
    monkeypatch.setattr(reproduce, "FIGURES", (short,))
    monkeypatch.setattr(reproduction_page, "save_figures", lambda *_, **__: None)
    monkeypatch.setattr(pages, "library", lambda: "")
    said: list[str] = []
    arguments = ("reproduce", "--figure", "1", "--runs", "2", "--out", str(tmp_path))
    check("reproduce", followed(lambda: said.append(command(*arguments))))
    assert "measured" in said[0] and "rows agree with theory" in " ".join(said[0].split())


def test_walk_of_study(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(STUDY, encoding="utf-8")
    said: list[str] = []

    def walk() -> None:
        new = tmp_path / str(len(said))  # finished blocks would not run again
        said.append(command("study", str(file), "--out", str(new)))

    check("study", followed(walk))
    assert "td:alpha=0.01" in said[0]


def test_walk_of_evaluate(tmp_path: Path) -> None:
    file = st.write_log(tmp_path / "log.parquet", log_table(st.problem("three_state")))
    said: list[str] = []
    arguments = ("evaluate", str(file), "--learner", "lstd", "--learner", "drl")
    check("evaluate", followed(lambda: said.append(command(*arguments))))
    assert "pi" in said[0]


def test_walk_of_certify() -> None:
    said: list[str] = []
    check("certify", followed(lambda: said.append(command("certify", "three_state"))))
    assert "0.5143" in said[0]


def test_walk_of_update() -> None:
    said: list[float] = []

    def walk() -> None:
        agent = st.learner("td", alpha=0.5).start(n_features=2)
        said.append(agent.update([1, 0], reward=1.0, x_next=[0, 1], rho=1.0, gamma=0.9))
        said.append(agent.predict([1, 0]))

    check("update", followed(walk))
    assert said[-2:] == [1.0, 0.5]
