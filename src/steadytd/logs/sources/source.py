"""Where a log's rows come from: files, frames and data sets, all read as Arrow batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from steadytd.base.errors import InputError, listed

UNIT = 65_536  # rows of a frame that count as a stretch
BATCH = 1 << 18  # rows read at a time where a pass needs a column or two


class Chunk(NamedTuple):
    """Consecutive rows as an Arrow record batch, and where they are, to name a row in a message."""

    file: str
    row: int  # of the first row in its file
    batch: Any
    log_row: int = 0  # of the first row in the log

    def slice(self, begin: int, rows: int) -> Chunk:
        """Some of its rows."""
        part = self.batch.slice(begin, rows)
        return Chunk(self.file, self.row + begin, part, self.log_row + begin)


class LogSource(ABC):
    """Rows 0, 1, 2, ... over all files, readable again and again and from the middle."""

    files: tuple[str, ...]  # names, for messages
    schemas: tuple[Any, ...]  # one Arrow schema per file

    @property
    def rows(self) -> int | None:
        """Rows over all files; None: not known before reading."""
        return sum(self.units())

    def with_types(self, types: Mapping[str, Any]) -> LogSource:
        """The same source with these Arrow types of its columns; only CSV has none of its own."""
        return self

    @abstractmethod
    def units(self) -> list[int]:
        """Numbers of rows of the stretches that can be read without reading what is before them."""

    @abstractmethod
    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """The columns `names` in order, of at least the rows begin, ..., end - 1."""

    def read(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """The columns `names` of exactly these rows, at most `batch_rows` at a time."""
        for chunk in self.scan(names, begin, end, batch_rows):
            rows = chunk.batch.num_rows
            low = max(begin - chunk.log_row, 0)
            high = rows if end is None else min(end - chunk.log_row, rows)
            for i in range(low, high, batch_rows):
                yield chunk.slice(i, min(batch_rows, high - i))
            if end is not None and chunk.log_row + rows >= end:
                return


@dataclass(frozen=True)
class MemorySource(LogSource):
    """A Polars or Pandas frame, an Arrow table, anything with the Arrow protocol."""

    files: tuple[str, ...]
    schemas: tuple[Any, ...]
    table: Any

    @classmethod
    def of(cls, frame: Any) -> MemorySource:
        """Take over a frame through the Arrow protocol, without a copy where possible."""
        import pyarrow as pa

        arrow = isinstance(frame, pa.Table | pa.RecordBatch)
        names = frame.schema.names if arrow else getattr(frame, "columns", ())
        # Polars ends the process at such a name
        odd = next((str(name) for name in names if "\x00" in str(name)), None)
        if odd is not None:
            raise InputError(
                f"the frame has a column {odd!r}; a name must not contain a NUL character."
            )
        twice = [f"'{name}'" for name, times in Counter(map(str, names)).items() if times > 1]
        if twice:
            raise InputError(f"the frame: several columns are named {listed(twice)}; rename them.")
        try:
            table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        except Exception as error:
            raise InputError(
                f"the frame cannot be turned into Arrow: {error}; give every column one type, as "
                "pandas.to_numeric and pandas.to_datetime do."
            ) from error
        views = [pa.types.is_string_view(one.type) for one in table.schema]  # of Polars; not sorted
        if any(views):
            table = table.cast(pa.schema([
                one.with_type(pa.large_string()) if view else one
                for one, view in zip(table.schema, views, strict=True)
            ]))  # fmt: skip
        if table.num_rows == 0:
            raise InputError("the frame holds no rows; a log needs at least one transition.")
        return cls(("the frame",), (table.schema,), table)

    def units(self) -> list[int]:
        """Stretches of equal size."""
        rows = self.table.num_rows
        return [min(UNIT, rows - begin) for begin in range(0, rows, UNIT)]

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Slices of the table."""
        row = begin
        for batch in self.table.select(list(names)).slice(begin).to_batches(batch_rows):
            yield Chunk(self.files[0], row, batch, row)
            row += batch.num_rows


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
