"""Any text is a name: it never leaves its directory, never obeys, never ends the process."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path, PurePosixPath, PureWindowsPath
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import steadytd as st
from steadytd.base.errors import visible
from steadytd.base.files import file_name
from steadytd.cli import console
from steadytd.report.figures import Axis, curves_chart, heading, save_figures
from steadytd.report.pages import _environment, library
from steadytd.report.palette import looks
from steadytd.report.text import Line, Table
from steadytd.studies.blocks import grid_blocks
from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study
from tests.support.commands import call
from tests.support.hostile import drawn_names
from tests.support.light_pages import no_pictures
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import episodic

COUNTS = [2_000, pytest.param(100_000, marks=pytest.mark.slow)]
DEVICES = ("con", "conin$", "conout$", "prn", "aux", "nul")
WINDOWS = {*DEVICES, *(f"{x}{n}" for x in ("com", "lpt") for n in range(10))}


def obeyed(text: str, lines: bool) -> list[str]:
    """Characters that a terminal obeys, that turn the writing round, or that are none."""
    turns = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    kinds = ("Cc", "Cs", "Cn", "Zl", "Zp")
    return [
        c for c in text
        if c in turns or (unicodedata.category(c) in kinds and not (lines and c == "\n"))
    ]  # fmt: skip


@pytest.mark.parametrize("count", COUNTS)
def test_file_names(count: int) -> None:
    """One part of a path on every system, short, and another one for every other name."""
    names = drawn_names(count)
    lower: dict[str, list[str]] = {}
    for name in names:
        lower.setdefault(name.lower(), []).append(name)
    found = {name: file_name(name, lower[name.lower()]) for name in names}
    assert len({file.lower() for file in found.values()}) == len(names) == count
    for name, file in found.items():
        assert PurePosixPath(file).parts == PureWindowsPath(file).parts == (file,), name
        assert file.split(".")[0].lower() not in WINDOWS, name
        assert file.isascii() and file.isprintable() and 0 < len(file) <= 80, name
        assert file[0] not in ".-~ " and file[-1] not in ". ", name


@pytest.mark.parametrize("count", COUNTS)
def test_visible(count: int) -> None:
    for name in drawn_names(count):
        for lines in (False, True):
            seen = visible(name, lines)
            assert not obeyed(seen, lines and "\t" not in name) or (lines and "\t" in name)
            assert visible(seen, lines) == seen
            seen.encode()
    assert (
        visible("größe 💡\u200d🔬 1\N{NO-BREAK SPACE}%") == "größe 💡\u200d🔬 1\N{NO-BREAK SPACE}%"
    )


def test_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in sentences and tables: printed, whole, and nothing that is not text."""
    screen = Console(file=StringIO(), width=70)
    monkeypatch.setattr(console, "out", screen)
    monkeypatch.setattr(console, "err", screen)
    names = drawn_names(300)
    for name in names:
        console.say(name)
        screen.print(f"[bold]{console.plain(name)}[/]", soft_wrap=True)
        console.print_prose(name)
    rows = [(name, name) for name in names]
    console.print_parts(
        [Table(names[7], ("name", ">number"), rows), *(Line(n, "bad", n) for n in names)]
    )
    assert isinstance(screen.file, StringIO)
    assert obeyed(screen.file.getvalue(), lines=True) == []
    assert screen.file.getvalue().count("escape") >= 5


class Text(HTMLParser):
    """The text of a page, and how many tags it has."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += 1
        self.parts += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def test_the_page() -> None:
    template = _environment().from_string('<p title="{{ x }}">{{ x }}</p>')
    for name in drawn_names(1000):
        reader = Text()
        reader.feed(template.render(x=name))
        reader.close()
        seen = visible(name, lines=True)
        assert reader.tags == 1 and "".join(reader.parts) == seen + seen
        assert not obeyed(seen, lines=True) or "\t" in seen
    assert _environment().from_string("{{ x|safe }}").render(x="<b>\n</b>") == "<b>\n</b>"


@pytest.mark.parametrize("count", [80, pytest.param(2_000, marks=pytest.mark.slow)])
def test_the_drawing(count: int, tmp_path: Path) -> None:
    """The engine that draws ends the process at a control code."""
    names = [name for name in drawn_names(count) if name.strip()]
    for i in range(0, len(names) - 1, 80):
        some = names[i : i + 80]
        rows = [{"learner": x, "step": t, "mean": k} for k, x in enumerate(some) for t in range(3)]
        titled = heading(names[i], names[i + 1])
        chart = curves_chart(rows, looks(dict.fromkeys(some, "td")), Axis(False, 0, 80), titled)
        save_figures({"picture": chart}, tmp_path)
        svg = (tmp_path / "picture.svg").read_text(encoding="utf-8")
        drawn = "".join(ElementTree.fromstring(svg).itertext())
        assert set(obeyed(drawn, lines=True)) <= {"\t"}
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png", ".pdf"}


def study_text(labels: list[str]) -> str:
    problems = "".join(
        f'[[problems]]\nname = "three_state"\nlabel = {json.dumps(label)}\n' for label in labels
    )
    return f'steps = 4\nseeds = 1\n{problems}[[learners]]\nname = "td"\nalpha = [0.1]\n'


def in_toml(name: str) -> bool:
    """TOML has no halves of characters; an empty label is none."""
    return name != "" and "\x7f" not in name and not any(0xD800 <= ord(c) < 0xE000 for c in name)


def test_labels_of_studies(tmp_path: Path) -> None:
    labels = [name for name in drawn_names(120) if in_toml(name) and max(map(ord, name)) < 0x10000]
    blocks = grid_blocks(parse_spec(study_text(labels), "fuzz"))
    assert [block.label for block in blocks] == labels
    assert len({block.file.lower() for block in blocks}) == len(labels) > 80
    for block in blocks:
        assert (tmp_path / block.file).parent == tmp_path and len(block.file) < 140
        assert not block.file.startswith(".")
    [plain] = grid_blocks(parse_spec(study_text(["small"]), "fuzz"))
    assert plain.file == f"small-td-0000-{plain.fingerprint[:12]}.parquet"


def test_a_study_with_such_labels_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The issue's cases: nothing leaves --out, finished blocks stay, and all of it can be shown."""
    labels = [
        "../../escape",
        "/x",
        ".hidden",
        "x" * 300,
        "a/b",
        "A",
        "a",
        "[/x]",
        "\x1b[31m",
        "\ufffe",
    ]
    out = tmp_path / "deep" / "er" / "out"
    study = Study(parse_spec(study_text(labels), "../fuzz"))
    assert len(study.run(out=out).rows()) == len(labels)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    said: list[str] = []
    study.run(out=out, say=said.append)
    assert f"{len(labels)} of {len(labels)} blocks of the grid are finished." in said
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == before
    assert len(before) == 2 * len(labels) and [p.name for p in tmp_path.iterdir()] == ["deep"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "...toml").write_text(
        study_text(labels)
    )  # its stem is "..", from 3.14 on "...toml"
    assert call(monkeypatch, "study", "...toml", "--threads", "1") == 0
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err, lines=True) and "../../escape" in shown.out
    assert [p.name for p in (tmp_path / "results").iterdir()] == [file_name(Path("...toml").stem)]


def test_an_evaluation_of_such_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`test_the_drawing` shows that pictures stand such names, so none is drawn here."""
    no_pictures(monkeypatch)
    problem = episodic(4, 0.3, np.eye(4))
    names = ["a\x01b\ufffe\x1b[31m", "[/x]\u202e", "../../Escape", "../../escape"]
    table = log_table(problem, episodes=40, length=30, targets=dict.fromkeys(names, problem.pi))
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    out = tmp_path / "out"
    words = ("evaluate", str(tmp_path / "log.parquet"), "--learner", "lstd")
    assert call(monkeypatch, *words, "--out", str(out)) == 0
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err, lines=True) and r"a\x01b\ufffe\x1b[31m" in shown.out
    models = sorted(path.name for path in out.glob("*.npz"))
    assert models == sorted(f"value_{file_name(name, names)}.npz" for name in names)
    assert len({name.lower() for name in models}) == len(names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "out"]
    html = (out / "evaluation.html").read_text()
    assert not obeyed(html.replace(library(), ""), lines=True)
    assert call(monkeypatch, *words, "--target", "\x1b[2J") == 2
    shown = capsys.readouterr()
    assert not obeyed(shown.err, lines=True) and r"\x1b[2J" in shown.err


def test_a_problem_of_such_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    p = st.problem("three_state")
    arrays = {"P": p.P, "r": p.r, "gamma": p.gamma, "mu": p.mu, "pi": p.pi, "Phi": p.Phi}
    name = "../\x1b]0;x\x07[/x]\ud800\u202e\ufffe\x00z"
    made = st.Problem(name=name, w0=p.w0, start=p.start, summary=name, doc=name, **arrays)
    file = str(made.save(tmp_path / "mine.npz"))
    for words in (("certify", file), ("show", "problem", file)):
        assert call(monkeypatch, *words) == 0
        shown = capsys.readouterr()
        assert not obeyed(shown.out + shown.err, lines=True) and r"\x1b]0" in shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_reprs_and_errors(tmp_path: Path) -> None:
    """What Python shows by itself, in a session or a traceback."""
    p = st.problem("three_state")
    arrays = {"P": p.P, "r": p.r, "gamma": p.gamma, "mu": p.mu, "pi": p.pi, "Phi": p.Phi}
    for name in drawn_names(200):
        made = st.Problem(name=name, w0=p.w0, start=p.start, **arrays)
        shown = [repr(made), repr(st.ActionValues(made))]
        shown += [str(st.InputError(f"there is no '{name}'.".replace("\n", "")))]
        assert not obeyed("".join(shown), lines=False), name
    made = st.Problem(name="\x1b[31m", w0=p.w0, start=p.start, **arrays)
    label = {"name": "three_state", "label": "\x1b[31m"}
    study = st.study(
        {"problems": [label], "steps": 10, "seeds": 1, "learners": ["td:alpha=0.1"]}, name="\x1b["
    )
    log = pa.table(log_table(p, episodes=40, length=30, targets={"\x1b[31m": p.pi}))
    opened = st.open_log(log, discount=0.9)
    things = [
        st.run(made, "td:alpha=0.1", steps=10), st.certify(made), opened,
        study, study.run(tmp_path / "\x1b"), st.evaluate(opened, learners=["lstd"]),
    ]  # fmt: skip
    for thing in things:
        assert "\\x1b" in repr(thing) and not obeyed(repr(thing), lines=False)
