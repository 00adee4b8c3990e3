"""A source with columns that are made of its own ones, batch by batch, while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.logs.sources.source import Chunk, LogSource

State = dict[str, Any]  # what makers remember from one chunk to the next


class Made(NamedTuple):
    """A column that is made: of which columns, its Arrow type, and how: an array, [n] or [n, k].

    A row of NaN is null. A maker that follows the rows remembers things in a `State`, too.
    """

    needs: tuple[str, ...]
    kind: Any
    make: Callable[..., NDArray[Any]]
    follows: bool = False

    def column(self, chunk: Chunk, state: State) -> Any:
        """The Arrow array for the rows of a chunk."""
        import pyarrow as pa

        found = self.make(chunk, state) if self.follows else self.make(chunk)
        if found.ndim == 1:
            return pa.array(found)
        gone = pa.array(np.isnan(found).all(axis=1))
        return pa.FixedSizeListArray.from_arrays(pa.array(found.ravel()), type=self.kind, mask=gone)


@dataclass(frozen=True)
class PreparedSource(LogSource):
    """The columns of `raw`, and further ones."""

    raw: LogSource
    made: Mapping[str, Made]

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the source."""
        return self.raw.files

    @property
    def schemas(self) -> tuple[Any, ...]:  # type: ignore[override]
        """With the further columns at the end."""
        import pyarrow as pa

        further = [pa.field(name, one.kind) for name, one in self.made.items()]
        return tuple(pa.schema([*schema, *further]) for schema in self.raw.schemas)

    @property
    def rows(self) -> int | None:
        """Those of the source."""
        return self.raw.rows

    def with_types(self, types: Mapping[str, Any]) -> PreparedSource:
        """The same with these types; columns that others are made of do not become texts."""
        import pyarrow.types as pt

        needed = {name for one in self.made.values() for name in one.needs}
        own = {k: kind for k, kind in types.items() if k not in self.made}
        own = {k: kind for k, kind in own.items() if k not in needed or pt.is_floating(kind)}
        return replace(self, raw=self.raw.with_types(own))

    def units(self) -> list[int]:
        """Those of the source."""
        return self.raw.units()

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """The rows with the columns asked for. What is followed along the rows begins here."""
        import pyarrow as pa

        needs = (self.made[name].needs if name in self.made else (name,) for name in names)
        plain = list(dict.fromkeys(one for some in needs for one in some))
        state: State = {}
        for chunk in self.raw.read(plain, begin, end, batch_rows):
            columns = [
                self.made[name].column(chunk, state)
                if name in self.made
                else chunk.batch.column(name)
                for name in names
            ]
            yield chunk._replace(batch=pa.record_batch(columns, names=list(names)))
