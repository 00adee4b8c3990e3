"""Logs in Parquet files, read row group by row group in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.logs.sources.source import Chunk, LogSource, cannot_read
from steadytd.logs.write import SEAL, names_digest

BUFFER = 1 << 20  # bytes read at a time and column: a column chunk is never held whole


@dataclass(frozen=True)
class ParquetSource(LogSource):
    """One or many Parquet files with the rows of each row group."""

    files: tuple[str, ...]
    schemas: tuple[Any, ...]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> ParquetSource:
        """Read the footers of all files."""
        schemas, groups = zip(*map(_footer, paths), strict=True)
        source = cls(tuple(map(str, paths)), schemas, groups)
        if source.rows == 0:
            raise InputError(f"'{paths[0]}' holds no rows; a log needs at least one transition.")
        return source

    def units(self) -> list[int]:
        """The row groups, over all files."""
        return [rows for groups in self.groups for rows in groups]

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Read only the row groups that hold the rows asked for."""
        row, last = 0, sum(self.units()) if end is None else end
        for name, groups in zip(self.files, self.groups, strict=True):
            starts = row + np.cumsum([0, *groups])
            wanted = (starts[1:] > begin) & (starts[:-1] < last) & (np.diff(starts) > 0)
            chosen = np.flatnonzero(wanted).tolist()
            if chosen:
                first = int(starts[chosen[0]])
                expected = sum(groups[i] for i in chosen)
                for batch in _batches(name, chosen, names, batch_rows, expected):
                    yield Chunk(name, first - row, batch, first)
                    first += batch.num_rows
            row += sum(groups)


def _open(path: str | Path) -> Any:
    import pyarrow.parquet as pq

    try:
        with Path(path).open("rb") as file:
            magic = file.read(4)
        if magic == b"PAR1":
            return pq.ParquetFile(
                path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True
            )
    except Exception as error:  # a damaged footer raises errors of many kinds
        raise cannot_read(path, error) from error
    if not magic:
        raise InputError(f"'{path}' is an empty file; a log needs at least one transition.")
    raise InputError(
        f"'{path}' is not a Parquet file (it begins with {magic!r}, not with b'PAR1'); "
        "a CSV file must have a name that ends in .csv."
    )


def _footer(path: Path) -> tuple[Any, tuple[int, ...]]:
    """Schema and rows of each row group; nothing stays open."""
    file = _open(path)
    try:
        return file.schema_arrow, _group_rows(file)
    except Exception as error:  # a damaged footer raises errors of many kinds
        raise cannot_read(path, error) from error
    finally:
        file.close()


def _group_rows(file: Any) -> tuple[int, ...]:
    meta = file.metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    if any(group.num_columns != meta.num_columns for group in groups):
        raise ValueError("a row group lacks columns")
    schema = file.schema_arrow
    seal = (schema.metadata or {}).get(SEAL)
    if seal is not None and seal != names_digest(schema.names):
        raise ValueError("the names of its columns are not those it was written with")
    rows = tuple(int(group.num_rows) for group in groups)
    if sum(rows) != meta.num_rows or min(rows, default=0) < 0:
        raise ValueError(f"the row groups have {sum(rows)} rows, the footer says {meta.num_rows}")
    return rows


def _batches(
    name: str, groups: list[int], names: Sequence[str], batch_rows: int, expected: int
) -> Iterator[Any]:
    """The row groups of one file, which must have the expected number of rows."""
    file = _open(name)
    try:
        batches = file.iter_batches(
            batch_rows, row_groups=groups, columns=list(names), use_threads=False
        )
        while True:
            try:
                batch = next(batches)
                batch.validate()
            except StopIteration:
                break
            except Exception as error:  # damaged pages raise errors of many kinds
                raise cannot_read(name, error) from error
            expected -= batch.num_rows
            yield batch
    finally:
        file.close()
    if expected:
        raise cannot_read(name, ValueError(f"{expected} rows fewer than the footer says"))
