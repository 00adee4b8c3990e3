"""docs/architecture.md is true: its map is the linter's, and its walks name what the code has."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import steadytd as st

ROOT = Path(__file__).parents[2]
SOURCE = Path(str(st.__file__)).parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STATION = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`: ", re.MULTILINE)
PAIR = re.compile(r"`([\w/]+\.py)`\s+`([A-Za-z_][\w.]*)`")


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


def test_five_walks_of_at_most_twelve_stations() -> None:
    section = TEXT.partition("## The five walks\n")[2].partition("\n## ")[0]
    walks = dict(part.split("\n", 1) for part in section.split("\n### ")[1:])
    assert list(walks) == ["reproduce", "study", "evaluate", "certify", "update"]
    for body in walks.values():
        stations = STATION.findall(body)
        assert 8 <= len(stations) <= 12
        assert [int(number) for number, *_ in stations] == list(range(1, len(stations) + 1))
        assert len(stations) == len(re.findall(r"^\d+\. ", body, re.MULTILINE))


def test_whatever_is_named_together_with_its_file_exists() -> None:
    pairs = PAIR.findall(TEXT)
    assert len(pairs) >= 5 * 8
    assert [pair for pair in pairs if not defined(*pair)] == []
    assert defined("engine/law.py", "Law.block") and defined("features/__init__.py", "KINDS")
    assert not defined("engine/law.py", "Law.blocks") and not defined("engine/law.py", "block")


def test_the_map_is_the_one_that_the_linter_enforces() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    shown = re.findall(r"^    (\S.*?)  ", TEXT.partition("\n## ")[0], re.MULTILINE)
    assert [set(line.split(" | ")) for line in shown] == [set(x.split(" | ")) for x in layers]
