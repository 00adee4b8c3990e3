"""Where a log's rows come from: files, frames and data sets, all read as Arrow batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns


class Chunk(NamedTuple):
    """Consecutive rows as an Arrow record batch, and where they are: file, first row in it."""

    file: str
    row: int
    batch: Any

    def first(self) -> Chunk:
        """The first row alone."""
        return self._replace(batch=self.batch.slice(0, 1))


class LogSource(ABC):
    """Rows 0, 1, 2, ... over all files, readable again and again and from the middle."""

    files: tuple[str, ...]  # names, for messages
    schemas: tuple[Any, ...]  # one Arrow schema per file

    @property
    def rows(self) -> int | None:
        """Rows over all files; None: not known before reading."""
        return sum(self.units())

    def with_types(self, columns: Columns) -> LogSource:
        """The same source, once it is known what its columns mean; types are its own but in CSV."""
        return self

    @abstractmethod
    def units(self) -> list[int]:
        """Numbers of rows of the stretches that can be read without reading what is before them."""

    @abstractmethod
    def read(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """The columns `names` of the rows begin, ..., end - 1, in order."""


def cannot_read(path: str | Path, error: BaseException) -> InputError:
    """The error for a file that the operating system or Arrow refuses to read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is no file '{path}'.")
    if isinstance(error, PermissionError):
        return InputError(f"'{path}' may not be read; check its permissions.")
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return InputError(
        f"'{path}' cannot be read: {reason}; the file is damaged, cut short or not what its name "
        "says: copy or write it again."
    )
