"""The documentation's runnable blocks run, in order, one namespace per page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(# runs\n.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The page's runnable blocks, each with the line in which its code begins."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in BLOCK.finditer(text)]


RUNNABLE = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page)]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_runnable_blocks(page: Path) -> None:
    namespace: dict[str, object] = {}
    for line, code in blocks(page):
        padded = "\n" * (line - 1) + code  # so that a failure names the line of the page
        exec(compile(padded, str(page), "exec"), namespace)
    assert "st" in namespace  # the blocks have run, and their own asserts with them


def test_the_theory_has_its_counterexamples() -> None:
    page = DOCS / "theory.md"
    assert page in RUNNABLE
    assert len(blocks(page)) >= 4
    text = page.read_text(encoding="utf-8")
    assert text.isascii()
    for code in ("sign_reversal", "unstable_etas", "eta_hurwitz"):
        assert code in text


def test_every_marked_block_is_found() -> None:
    """A block that is marked but not closed, or indented, would silently not run."""
    for page in DOCS.rglob("*.md"):
        marked = len(re.findall(r"^\s*# runs\s*$", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert marked == len(blocks(page)), page.name
