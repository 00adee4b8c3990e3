"""Phrases that no reader should have to stop at, in sentences of the package and in documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = (
    r"comes once in", r"once in [\d.]+ times", r"each two of them", r"what forbids trust",
    r"little is left", r"rows count for", r"amounts? to take", r"that is made for you",
    r"without cure", r"enough: \|\|T\|\|", r"are wanted", r"what is kept", r"the gravest",
)  # fmt: skip
PHRASE = re.compile("|".join(BANNED), re.IGNORECASE)
SPACE = re.compile(r'\s*["\']?\s*\n\s*(?:f?["\'])?')  # a sentence may go on in the next line
FILES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.py", "studies/*.toml", "src/**/*")
    for path in ROOT.glob(pattern)
    if path.suffix in {".md", ".py", ".toml", ".html", ".js", ".j2"}
)


def phrases(text: str) -> list[str]:
    """The banned phrases of a text, also those that are broken over two lines."""
    return PHRASE.findall(SPACE.sub(" ", text))


def test_no_text_has_a_banned_phrase() -> None:
    assert len(FILES) > 300
    found = {str(f.relative_to(ROOT)): phrases(f.read_text(encoding="utf-8")) for f in FILES}
    assert {file: some for file, some in found.items() if some} == {}


@pytest.mark.parametrize(
    "text",
    ["An outcome that comes\n  once in 3.9 times.", 'say("more rows are "\n    f"wanted")'],
)
def test_a_broken_sentence_is_found(text: str) -> None:
    assert phrases(text)
