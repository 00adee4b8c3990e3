"""Which source a user means: files, globs, directories, frames, streams, Minari data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.sources.minari import minari_source
from steadytd.logs.sources.parquet import ParquetSource
from steadytd.logs.sources.source import LogSource, MemorySource
from steadytd.logs.sources.stream import StreamSource
from steadytd.logs.sources.text import TEXT_SUFFIXES, TextSource


def open_source(source: Any) -> LogSource:
    """Recognise what the user gave."""
    if isinstance(source, str) and source.startswith("minari:"):
        return minari_source(source.removeprefix("minari:"))
    if isinstance(source, str | Path):
        return _from_paths(_expand(source))
    if hasattr(source, "iterate_episodes") and hasattr(source, "episode_indices"):
        return minari_source(source)
    if hasattr(source, "__arrow_c_stream__"):
        return MemorySource.of(source)
    if callable(source) or hasattr(source, "scanner"):
        return StreamSource.of(source)
    if isinstance(source, list | tuple) and all(isinstance(item, str | Path) for item in source):
        return _from_paths([path for item in source for path in _expand(item)])
    kind = f"{type(source).__module__}.{type(source).__name__}"
    remedy = "call .collect() first" if kind.endswith("LazyFrame") else "save it as Parquet first"
    raise InputError(
        "a log must be a path (Parquet, CSV or JSONL, a glob or a directory), a list of paths, a "
        "data frame, a function that opens a reader of Arrow batches, or a Minari data set, got "
        f"{kind}; {remedy}."
    )


def _expand(given: str | Path) -> list[Path]:
    """The files that a path, a glob or a directory stands for."""
    path = Path(given)
    if path.is_dir():
        for pattern in ("*.parquet", "*.csv", "*.jsonl"):
            found = [p for p in path.rglob(pattern) if not p.name.startswith((".", "_"))]
            if found:
                return sorted(found, key=_natural)
        raise InputError(f"the directory '{path}' holds no .parquet, .csv or .jsonl file.")
    if path.exists():
        return [path]
    root = Path(path.anchor or ".")
    pattern = str(path.relative_to(root) if path.anchor else path)
    found = [p for p in root.glob(pattern) if p.is_file()]
    if not found:
        what = "no file matches" if re.search(r"[*?\[]", str(given)) else "there is no file"
        raise InputError(f"{what} '{given}'; name a Parquet or CSV file, a glob or a directory.")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Numbers in names count by value: 2 comes before 10."""
    pieces = re.split(r"(\d+)", str(path))
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]


def _from_paths(paths: list[Path]) -> LogSource:
    if not paths:
        raise InputError("a log needs at least one file, got an empty list.")
    twice = {str(p) for p in paths if paths.count(p) > 1}
    if twice:
        raise InputError(f"'{min(twice)}' is given twice; name every file of the log once.")
    is_text = {path.name.lower().endswith(TEXT_SUFFIXES) for path in paths}
    if is_text == {True, False}:
        raise InputError("a log is either Parquet or CSV, got both; convert one of them.")
    return TextSource.of(paths) if is_text == {True} else ParquetSource.of(paths)
