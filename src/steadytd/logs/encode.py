"""Columns of any kind as the numbers of an observation.

Numbers and booleans stay as they are. Dates and times are days since the first one of the log. A
text or category becomes one number per level, which is 1 in its rows and 0 elsewhere; levels in
fewer than one of a hundred rows are joined to one. Where values are missing, one more number says
so, and the mean stands in their place (of levels: all are 0). NaN counts as missing.

An encoding is fitted once, on all rows of a log, and is then the same for every batch and part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.errors import InputError
from steadytd.base.numbers import count
from steadytd.logs import values
from steadytd.logs.sources.source import BATCH, Chunk, LogSource
from steadytd.logs.units import texts

RARE = 0.01  # share of rows below which levels are joined: at most 100 levels are left
MOSTLY = 0.5  # share of joined values from which on a column says little
MOST_LEVELS = 1_000_000  # different texts, from which on a column is taken to name rows
MICROSECONDS = 86_400e6  # of a day

Kind = Literal["number", "time", "level"]


@dataclass(frozen=True)
class Coded:
    """How one column becomes numbers."""

    column: str
    kind: Kind
    missing: bool = False  # a number says where the value is missing
    mean: float = 0.0  # of the numbers
    origin: int = 0  # of times: the first, in microseconds
    levels: tuple[str, ...] = ()
    joined: float = 0.0  # share of the values whose levels are joined: the last one stands for them

    @property
    def names(self) -> list[str]:
        """What the numbers are called."""
        own = [self.column]
        if self.kind == "level":
            own = [f"{self.column}={level}" for level in self.levels]
            own += [f"{self.column}: other levels"] * (self.joined > 0.0)
        return own + [f"{self.column} is missing"] * self.missing

    def fill(self, chunk: Chunk, out: Floats) -> None:
        """Write the numbers of a chunk to `out` [n, numbers]."""
        if self.kind == "level":
            found, gone = self._places(chunk)
            out[...] = 0.0
            rows = np.flatnonzero(found >= 0)
            out[rows, found[rows]] = 1.0
        else:
            found, gone = numbers_of(chunk, self.column, self.kind)
            if self.kind == "time":
                found = (found - self.origin) / MICROSECONDS
            out[:, 0] = np.where(gone, self.mean, found)
        if self.missing:
            out[:, -1] = gone

    def _places(self, chunk: Chunk) -> tuple[Any, Bools]:
        """The place of each row's level, -1 for none, and where the value is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = texts(chunk.batch.column(self.column))
        known = pa.array(self.levels, pa.large_string())
        other = len(self.levels) if self.joined else -1
        place = values.as_numpy(pc.index_in(found, value_set=known).fill_null(other)).copy()
        gone = values.as_numpy(found.is_null())
        place[gone] = -1
        return place, gone


@dataclass(frozen=True)
class Encoding:
    """How named columns become an observation."""

    parts: tuple[Coded, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of an observation are called."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(part.column for part in self.parts)

    def numbers(self, chunk: Chunk) -> Floats:
        """The observations [n, numbers] of a chunk."""
        out = np.empty((chunk.batch.num_rows, len(self.names)))
        ends = np.cumsum([len(part.names) for part in self.parts])[:-1]
        for part, place in zip(self.parts, np.split(out, ends, axis=1), strict=True):
            part.fill(chunk, place)
        return out

    def of(self, columns: Sequence[str]) -> Encoding:
        """The same numbers from other columns: those of the next observation."""
        pairs = zip(self.parts, columns, strict=True)
        return Encoding(tuple(replace(part, column=name) for part, name in pairs))

    def notes(self) -> Iterator[str]:
        """What a reader of an answer has to know of the observation."""
        gone = [f"'{part.column}'" for part in self.parts if part.missing]
        if gone:
            yield f"missing values of {', '.join(gone)} are replaced by the mean, with a flag"
        rare = [f"'{part.column}'" for part in self.parts if part.joined]
        if rare:
            yield f"levels in fewer than 1 % of the rows are joined: {', '.join(rare)}"
        for part in self.parts:
            if part.joined > MOSTLY:
                yield (
                    f"'{part.column}' says little: {100 * part.joined:.0f} % of its values are "
                    "joined (dates in texts should be made times, and names of rows left out)"
                )


def numbers_of(chunk: Chunk, name: str, kind: Kind) -> tuple[Floats, Bools]:
    """The values of a column of numbers or times, and where they are missing.

    Times are in microseconds.
    """
    import pyarrow as pa

    column = chunk.batch.column(name)
    if kind == "time":
        column = _microseconds(column)
    found = values.as_numpy(column.cast(pa.float64(), safe=False).fill_null(np.nan))
    index = values.first_false(~np.isinf(found))
    if index is not None:
        rule = "an observation must be finite (a missing value is null or NaN)"
        raise values.fault(chunk, name, index, rule, found[index], "correct it, or leave it empty")
    return found, np.isnan(found)


def moments(chunk: Chunk, name: str) -> Floats:
    """Steps or times as numbers, to put rows in order; texts are read as times."""
    import pyarrow as pa

    column = chunk.batch.column(name)
    if kind_of(column.type) == "level":
        try:
            column = texts(column).cast(pa.timestamp("us"))
        except pa.ArrowException:
            raise values.wrong_type(chunk.file, name, "numbers or times", column.type) from None
    kind: Kind = "number" if values.is_number(column.type) else "time"
    made = chunk._replace(batch=pa.record_batch([column], names=[name]))
    found, gone = numbers_of(made, name, kind)
    rule, remedy = "every row needs a time", "fill it in, or drop the episode"
    values.require(chunk, name, ~gone, np.full(len(found), "none"), rule, remedy)
    return found


def _microseconds(column: Any) -> Any:
    """Dates, times of day, timestamps and durations as whole numbers."""
    import pyarrow as pa
    import pyarrow.types as pt

    unit = pa.timestamp("us", getattr(column.type, "tz", None))
    if pt.is_time(column.type):
        unit = pa.time64("us")
    elif pt.is_duration(column.type):
        unit = pa.duration("us")
    return column.cast(unit, safe=False).cast(pa.int64())


def kind_of(kind: Any) -> Kind | None:
    """What a column of an Arrow type is for an observation; None: it can be none."""
    import pyarrow.types as pt

    if pt.is_dictionary(kind) or values.is_text(kind):
        return "level"
    if pt.is_temporal(kind):
        return None if pt.is_interval(kind) else "time"
    return "number" if values.is_number(kind) else None


def fit(source: LogSource, names: Sequence[str]) -> Encoding:
    """The encoding of columns, from one pass over all rows."""
    kinds = {name: kind_of(source.schemas[0].field(name).type) for name in names}
    seen: dict[str, Counter[str | None]] = {name: Counter() for name in names}
    total, least = dict.fromkeys(names, 0.0), dict.fromkeys(names, np.inf)
    rows = 0
    for chunk in source.read(names, 0, None, BATCH):
        rows += chunk.batch.num_rows
        for name, kind in kinds.items():
            if kind == "level":
                _count(chunk, name, seen[name])
                continue
            assert kind is not None
            found, gone = numbers_of(chunk, name, kind)
            seen[name][None] += int(gone.sum())
            total[name] += float(found[~gone].sum())
            least[name] = min(least[name], float(found[~gone].min(initial=np.inf)))
    empty = [name for name, some in seen.items() if some[None] == rows]
    if empty:
        raise InputError(
            f"{source.files[0]}: columns of obs without a value in any row: {', '.join(empty)}; "
            "leave them out."
        )
    parts = []
    for name, kind in kinds.items():
        assert kind is not None
        missing = seen[name].pop(None, 0)
        part = Coded(name, kind, missing > 0)
        if kind == "level":
            rare = [n for n in seen[name].values() if n < RARE * rows]
            often = sorted(str(text) for text, n in seen[name].items() if n >= RARE * rows)
            part = replace(part, levels=tuple(often), joined=sum(rare) / (rows - missing))
        else:
            mean = total[name] / (rows - missing)
            if kind == "time":
                part = replace(part, origin=int(least[name]))
                mean = (mean - least[name]) / MICROSECONDS
            part = replace(part, mean=mean)
        parts.append(part)
    return Encoding(tuple(parts))


def _count(chunk: Chunk, name: str, seen: Counter[str | None]) -> None:
    for one in texts(chunk.batch.column(name)).value_counts():
        seen[one["values"].as_py()] += one["counts"].as_py()
    if len(seen) > MOST_LEVELS:
        raise InputError(
            f"{chunk.file}: column '{name}' of obs has more than {count(MOST_LEVELS, 'level')}, so "
            "it identifies rows and describes none; leave it out."
        )
