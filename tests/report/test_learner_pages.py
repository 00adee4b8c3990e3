"""Registry = files on disk = documentation pages, and the pages are those of the present code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from steadytd.engine.active import is_active
from steadytd.learners import algorithm, names
from steadytd.report.learner_pages import SECTIONS, learner_pages, sections
from tests.support.cases import cases_of

ROOT = Path(__file__).parents[2]
FILES = sorted(p.stem for p in (ROOT / "src/steadytd/learners").glob("[a-z]*.py"))


def test_registry_files_and_pages_are_the_same() -> None:
    pages = {p.stem for p in (ROOT / "docs/learners").glob("*.md")} - {"index"}
    assert list(names()) == FILES
    assert pages == set(FILES)


PAGES = cache(learner_pages)


@pytest.mark.parametrize("name", FILES)
def test_page_is_up_to_date(name: str) -> None:
    """If this fails, run `make docs`."""
    page = (ROOT / "docs/learners" / f"{name}.md").read_text(encoding="utf-8")
    assert page == PAGES()[f"{name}.md"]


@pytest.mark.parametrize("name", FILES)
def test_text_has_every_section(name: str) -> None:
    found = sections(algorithm(name).doc)
    assert list(found) == list(SECTIONS)
    assert all(found.values())
    assert "```" in found["Update"]


@pytest.mark.parametrize("name", FILES)
def test_file_is_short_and_holds_its_law(name: str) -> None:
    text = (ROOT / "src/steadytd/learners" / f"{name}.py").read_text(encoding="utf-8")
    longer = 10 * len(algorithm(name).each)  # functions of entries stand beside the law's own
    assert len(text.splitlines()) <= 120 + longer
    assert algorithm(name).name == name


@pytest.mark.parametrize("name", FILES)
def test_the_cost_of_a_step_is_that_of_the_block_that_runs(name: str) -> None:
    law = algorithm(name)
    (row,) = [line for line in PAGES()[f"{name}.md"].splitlines() if "| cost per step" in line]
    kinds = {n: {is_active(case, n) for case in cases_of(law)} for n in (127, 128)}
    assert kinds[127] == {False}
    assert ("128 features" in row) == (True in kinds[128] and not law.each)  # lists in both
