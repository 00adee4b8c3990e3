"""The documentation's snippets run, in order, one namespace per page, and print what is shown."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_snippets", DOCS / "run_snippets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()
SLOW = ("theory", "deadly_triad", "gallery", "own_law")  # laws are compiled, or many figures drawn
RUNNABLE = [page for page in sorted(DOCS.rglob("*.md")) if TOOL.snippets(page)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in RUNNABLE],
    ids=[p.stem for p in RUNNABLE],
)
def test_snippets_print_and_draw_what_the_page_shows(page: Path) -> None:
    """If this fails because a number has changed for good: `python docs/run_snippets.py`."""
    text = page.read_text(encoding="utf-8")
    results = TOOL.run(page)
    shown = [snippet.shown for snippet in TOOL.snippets(page)]
    assert [printed for printed, _ in results] == shown
    for number, (_, chart) in enumerate(results, 1):
        path = TOOL.picture(page, number)
        if chart is not None:
            assert path.is_file()
            assert f"images/{path.name})" in text


def test_the_theory_has_its_counterexamples() -> None:
    page = DOCS / "theory.md"
    assert page in RUNNABLE
    assert len(TOOL.snippets(page)) >= 4
    text = page.read_text(encoding="utf-8")
    assert text.isascii()
    for code in ("sign_reversal", "unstable_etas", "eta_hurwitz"):
        assert code in text


def test_every_marked_block_is_found() -> None:
    """A block that is marked but not closed, or indented, would silently not run."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        marked = len(re.findall(r"^\s*# runs\s*$", text, re.MULTILINE))
        assert marked == len(TOOL.snippets(page)), page.name
        outputs = len(re.findall(r"^```output$", text, re.MULTILINE))
        assert outputs == sum(bool(snippet.shown) for snippet in TOOL.snippets(page)), page.name


def test_a_changed_number_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n# runs\nx = 2\nprint(x)\n```\n\n```output\n3\n```\n")
    ((printed, chart),) = TOOL.run(page)
    assert (printed, chart, TOOL.snippets(page)[0].shown) == ("2\n", None, "3\n")
    TOOL.rewrite(page)
    assert TOOL.snippets(page)[0].shown == "2\n"
    page.write_text("```python\n# runs\nprint('word ' * 40)\n```\n")
    assert max(len(line) for line in TOOL.run(page)[0][0].splitlines()) <= TOOL.WIDTH
