"""Logs in memory: a Polars or Pandas frame, an Arrow table, anything with the Arrow protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns
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

        names = getattr(frame, "columns", ())  # Polars ends the process at such a name
        odd = next((str(name) for name in names if "\x00" in str(name)), None)
        if odd is not None:
            raise InputError(f"the frame has a column {odd!r}; a name may hold no zero character.")
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
            yield Chunk(self.files[0], row, batch)
            row += batch.num_rows
