"""Whatever a document names, a file or a module, exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from steadytd.evaluation.estimators import GROUP

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ROOMS = sorted(p.parent.name for p in (ROOT / "src" / "steadytd").glob("*/__init__.py"))
TOP = ("src", "tests", "docs", "examples", "studies", "benchmarks", "stubs", ".ci")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
QUOTED = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"\bsteadytd(?:\.[a-z_0-9]+)+\b")


def links(text: str) -> list[str]:
    """The relative links of a page."""
    return [link for link in LINK.findall(text) if "://" not in link and not link.startswith("#")]


def files(text: str) -> list[str]:
    """Quoted texts that look like files of the repository: `room/file.py`, `studies/quick.toml`."""
    words = [word for quoted in QUOTED.findall(text) for word in quoted.split()]
    pattern = re.compile(rf"(?:{'|'.join([*TOP, *ROOMS])})/[\w./-]+\.(?:py|toml|md|c|html|png)$")
    return [word for word in words if pattern.match(word) and "NAME" not in word]


def modules(text: str) -> list[str]:
    """Dotted names below `steadytd`, as far as they can be modules: no group of entry points."""
    return [name for name in MODULE.findall(text) if name != GROUP]


def missing_files(names: list[str]) -> list[str]:
    """The names under which there is no file, from the root or from the package."""
    return [n for n in names if not any((ROOT / d / n).exists() for d in ("", "src/steadytd"))]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    if importlib.util.find_spec(".".join(parts[:2])) is None:
        return False
    for end in range(len(parts), 1, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        rest = parts[end:]
        return not rest or hasattr(module, rest[0])
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [x for x in links(text) if not (page.parent / x).exists()] == []
    assert missing_files(files(text)) == []
    assert [x for x in modules(text) if not is_there(x)] == []


def test_a_wrong_name_would_be_found() -> None:
    text = "See [x](nowhere.md), `engine/nothing.py`, `docs/no.md` and steadytd.engine.nothing."
    assert links(text) == ["nowhere.md"]
    assert missing_files(files(text)) == ["engine/nothing.py", "docs/no.md"]
    assert [x for x in modules(text) if not is_there(x)] == ["steadytd.engine.nothing"]
    good = "`engine/law.py`, `studies/quick.toml`, steadytd.engine.law.Law"
    assert len(files(good)) == 2
    assert missing_files(files(good)) == []
    assert [x for x in modules(good) if not is_there(x)] == []
