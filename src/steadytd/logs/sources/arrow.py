"""Logs in memory: a Polars or Pandas frame, an Arrow table, anything with the Arrow protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns
from steadytd.logs.faults import Place
from steadytd.logs.sources.source import Chunk

UNIT = 65_536


@dataclass(frozen=True)
class MemorySource:
    """An Arrow table."""

    table: Any
    files: tuple[str, ...] = ("the frame",)

    @classmethod
    def of(cls, frame: Any) -> MemorySource:
        """Take over a frame through the Arrow protocol, without a copy where possible."""
        import pyarrow as pa

        try:
            table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        except Exception as error:
            raise InputError(f"the frame cannot be turned into Arrow: {error}.") from error
        if table.num_rows == 0:
            raise InputError("the frame holds no rows; a log needs at least one transition.")
        return cls(table)

    @property
    def schemas(self) -> tuple[Any, ...]:
        """The table's schema."""
        return (self.table.schema,)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def with_types(self, columns: Columns) -> MemorySource:
        """Types are the table's own."""
        return self

    def units(self) -> list[int]:
        """Stretches of equal size."""
        return [min(UNIT, self.rows - begin) for begin in range(0, self.rows, UNIT)]

    def read(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Slices of the table."""
        last = self.rows if end is None else end
        row = begin
        part = self.table.select(list(names)).slice(begin, last - begin)
        for batch in part.to_batches(max_chunksize=batch_rows):
            yield Chunk(Place(self.files[0], row), batch)
            row += batch.num_rows

    def identity(self) -> object:
        """A hash of the content."""
        import pyarrow as pa

        digest = hashlib.sha256()
        sink = pa.PythonFile(_Hashing(digest), mode="w")
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            for begin in range(0, self.rows, UNIT):
                writer.write_table(self.table.slice(begin, UNIT).combine_chunks())
        return ["frame", self.rows, str(self.table.schema), digest.hexdigest()]


class _Hashing:
    """A file that keeps only a hash of what is written to it."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self.digest = digest
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
