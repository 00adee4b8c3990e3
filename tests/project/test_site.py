"""The documentation site leads to every page, and to each page once."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import steadytd as st

DOCS = Path(__file__).parents[2] / "docs"
CONTENTS: dict[str, list[str]] = tomllib.loads((DOCS / "contents.toml").read_text(encoding="utf-8"))


def page_of(entry: str) -> str:
    """`Theory <theory>` is the page `theory` under another title."""
    return entry.rpartition("<")[2].removesuffix(">")


def pages() -> set[str]:
    found = [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    return {path.relative_to(DOCS).with_suffix("").as_posix() for path in found}


def listed() -> list[str]:
    """Every page below another one; a pattern stands for what is not named beside it."""
    found = []
    for page, below in CONTENTS.items():
        named = [page_of(entry) for entry in below]
        for name in named:
            matching = [
                path.relative_to(DOCS).with_suffix("").as_posix()
                for path in DOCS.glob(f"{name}.md")
            ]
            found += sorted({*matching} - {page, *named}) if "*" in name else [name]
    return found


def test_the_site_leads_to_every_page_once() -> None:
    assert {name: times for name, times in Counter(listed()).items() if times > 1} == {}
    assert {"index", *listed()} == pages()
    assert {f"learners/{name}" for name in st.learners()} <= set(listed())


def test_decisions_stand_at_the_end() -> None:
    assert CONTENTS["index"][-1] == "developers"
    assert CONTENTS["developers"][-1] == "decisions/*"
    assert [page for page, below in CONTENTS.items() if any("decisions" in x for x in below)] == [
        "developers"
    ]


def test_the_reference_has_every_public_name_once() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.rst"))
    names = re.findall(r"^\.\. auto\w+:: steadytd\.(\w+)$", text, re.MULTILINE)
    assert sorted(names) == sorted(st.__all__)


def test_the_citation_is_that_of_the_citation_file() -> None:
    known = yaml_like((DOCS.parent / "CITATION.cff").read_text(encoding="utf-8"))
    text = (DOCS / "cite.md").read_text(encoding="utf-8")
    assert f"title   = {{{known['title']}}}" in text and f"version = {{{known['version']}}}" in text
    assert f"version = {{{st.__version__}}}" in text


def yaml_like(text: str) -> dict[str, str]:
    """The top-level texts of a simple YAML file."""
    return dict(re.findall(r'^([\w-]+): "?([^"\n]+)"?$', text, re.MULTILINE))


def test_the_list_of_learners_has_every_learner_once_by_kind() -> None:
    text = (DOCS / "learners" / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)) == sorted(st.learners())
    assert text.count("\n## ") >= 6
