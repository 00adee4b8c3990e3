"""Logs in memory: a Polars or Pandas frame, an Arrow table, anything with the Arrow protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.sources.source import Chunk, LogSource

UNIT = 65_536


@dataclass(frozen=True)
class MemorySource(LogSource):
    """An Arrow table."""

    files: tuple[str, ...]
    schemas: tuple[Any, ...]
    table: Any

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
        return cls(("the frame",), (table.schema,), table)

    def units(self) -> list[int]:
        """Stretches of equal size."""
        rows = self.table.num_rows
        return [min(UNIT, rows - begin) for begin in range(0, rows, UNIT)]

    def read(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Slices of the table."""
        last = self.table.num_rows if end is None else end
        row = begin
        part = self.table.select(list(names)).slice(begin, last - begin)
        for batch in part.to_batches(max_chunksize=batch_rows):
            yield Chunk(self.files[0], row, batch)
            row += batch.num_rows
