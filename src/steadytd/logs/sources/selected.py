"""Some of the rows of another source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.logs.sources.source import Chunk, LogSource


@dataclass(frozen=True)
class SelectedSource(LogSource):
    """The rows `chosen` (ascending numbers) of a source; messages count the rows selected."""

    base: LogSource
    chosen: Longs

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        """The files' names."""
        return tuple(f"{file} (selected rows)" for file in self.base.files)

    @property
    def schemas(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Those of the source."""
        return self.base.schemas

    def with_types(self, types: Mapping[str, Any]) -> LogSource:
        """The same rows of the source with these types."""
        return replace(self, base=self.base.with_types(types))

    def units(self) -> list[int]:
        """The selected rows of each stretch; one stretch where the source has none."""
        if self.base.rows is None:
            return [len(self.chosen)]
        edges = np.cumsum([0, *self.base.units()])
        return [int(n) for n in np.diff(np.searchsorted(self.chosen, edges))]

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """The selected rows of every chunk of the source."""
        wanted = self.chosen[begin:end]
        if not len(wanted):
            return
        for chunk in self.base.read(names, int(wanted[0]), int(wanted[-1]) + 1, batch_rows):
            low, high = np.searchsorted(
                self.chosen, [chunk.log_row, chunk.log_row + chunk.batch.num_rows]
            )
            if low < high:
                file = f"{chunk.file} (selected rows)"
                batch = taken(chunk.batch, self.chosen[low:high] - chunk.log_row)
                yield Chunk(file, int(low), batch, int(low))


def taken(batch: Any, rows: Longs) -> Any:
    """Some rows of an Arrow batch; Arrow cannot take views of texts, so they are copied first."""
    import pyarrow as pa
    import pyarrow.types as pt

    columns = [c.cast(pa.large_string()) if pt.is_string_view(c.type) else c for c in batch.columns]
    return pa.record_batch(columns, names=batch.schema.names).take(pa.array(rows))
