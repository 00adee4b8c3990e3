"""Where in a TOML text a key stands, so that a message can name the line."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADER = re.compile(r"^\s*\[(\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")

Path = tuple[str | int, ...]


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    r"""The number of the line, from 1, on which the deepest known part of `path` begins.

    >>> line_of("steps = 5\n[[learners]]\nname = 'td'\nalpha = 7", ["learners", 0, "alpha"])
    4
    """
    places = _places(text)
    for length in range(len(path), 0, -1):
        found = places.get(tuple(path[:length]))
        if found is not None:
            return found
    return None


def _places(text: str) -> dict[Path, int]:
    """Every key and table of a text with its line. Keys inside inline tables are not looked for."""
    places: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = HEADER.match(line), KEY.match(line)
        if header:
            table = _enter(_parts(header[2]), header[1] == "[", counts)
            places.setdefault(table, number)
            places.setdefault(table[:-1], number)
        elif key:
            path = (*table, *_parts(key[1]))
            for end in range(len(table) + 1, len(path) + 1):
                places.setdefault(path[:end], number)
    return places


def _enter(names: list[str], repeated: bool, counts: dict[Path, int]) -> Path:
    """The path of a table; entries of an array of tables are numbered from 0."""
    path: Path = ()
    for i, name in enumerate(names):
        path = (*path, name)
        if repeated and i == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
