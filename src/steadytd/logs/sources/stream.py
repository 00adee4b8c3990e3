"""Logs that are opened anew for every pass: a query, a dataset, any source of Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steadytd.base.errors import InputError, users_own
from steadytd.logs.sources.source import Chunk, LogSource


@dataclass(frozen=True)
class StreamSource(LogSource):
    """What a function returns each time it is called: a reader of Arrow batches, in one order.

    Nothing is kept: a log is read from the beginning in every pass, and only the columns that are
    needed go on. `open` is given the names of the columns, or None for all.
    """

    open: Callable[[Sequence[str] | None], Any]
    files: tuple[str, ...]
    schemas: tuple[Any, ...]

    @classmethod
    def of(cls, source: Any) -> StreamSource:
        """A function without arguments, or a pyarrow dataset."""
        if hasattr(source, "scanner"):
            return cls.opened(
                lambda names: source.scanner(columns=names and list(names)), "the dataset"
            )
        return cls.opened(lambda names: source(), "the stream")

    @classmethod
    def opened(cls, open_: Callable[[Sequence[str] | None], Any], label: str) -> StreamSource:
        """Look at the schema once."""
        return cls(open_, (label,), (_reader(open_, None, label).schema,))

    @property
    def rows(self) -> None:
        """Not known before reading."""

    def units(self) -> list[int]:
        """None can be read without what is before it."""
        return []

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """All batches from the beginning."""
        [label], row = self.files, 0
        with users_own(label):
            for batch in _reader(self.open, names, label):
                if batch.num_rows:
                    yield Chunk(label, row, batch.select(list(names)), row)
                row += batch.num_rows
        if row == 0:
            raise InputError(
                f"{label} holds no rows; the function must give all rows anew each time it is "
                "called: open a new reader in it."
            )


def _reader(open_: Callable[[Sequence[str] | None], Any], names: Any, label: str) -> Any:
    """A reader of record batches."""
    import pyarrow as pa

    with users_own(f"{label}, when it was opened,"):
        found = open_(names)
        found = found.scanner() if hasattr(found, "scanner") else found
        found = found.to_reader() if hasattr(found, "to_reader") else found
        if isinstance(found, pa.RecordBatchReader):
            return found
        if hasattr(found, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(found)
    raise InputError(
        f"{label} must be a reader of Arrow batches (pyarrow.RecordBatchReader) or a table, got "
        f"{type(found).__module__}.{type(found).__name__}."
    )
