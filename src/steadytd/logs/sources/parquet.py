"""Logs in Parquet files, read row group by row group in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    def read(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Read only the row groups that hold the rows asked for."""
        last = sum(self.units()) if end is None else end
        start = 0
        for name, groups in zip(self.files, self.groups, strict=True):
            low, high = max(begin - start, 0), min(last - start, sum(groups))
            start += sum(groups)
            if low < high:
                yield from _read_file(name, groups, names, low, high, batch_rows)


def _open(path: str | Path) -> Any:
    import pyarrow.parquet as pq

    try:
        size = Path(path).stat().st_size
        if size == 0:
            raise InputError(f"'{path}' is an empty file; a log needs at least one transition.")
        with Path(path).open("rb") as file:
            magic = file.read(4)
        if magic != b"PAR1":
            raise InputError(
                f"'{path}' is not a Parquet file (it begins with {magic!r}, not with b'PAR1'); "
                "a CSV file must have a name that ends in .csv."
            )
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True
        )
    except InputError:
        raise
    except Exception as error:  # a damaged footer raises errors of many kinds
        raise cannot_read(path, error) from error


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


def _read_file(
    name: str, groups: Sequence[int], names: Sequence[str], low: int, high: int, batch_rows: int
) -> Iterator[Chunk]:
    """Rows low, ..., high - 1 of one file."""
    chosen: list[int] = []
    row = end = 0
    for number, rows in enumerate(groups):
        if end + rows > low and end < high and rows:
            row = end if not chosen else row
            chosen.append(number)
        end += rows
    expected = sum(groups[number] for number in chosen)
    file = _open(name)
    try:
        batches = file.iter_batches(
            batch_rows, row_groups=chosen, columns=list(names), use_threads=False
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
            begin, end = max(low - row, 0), min(high - row, batch.num_rows)
            if begin < end:
                yield Chunk(name, row + begin, batch.slice(begin, end - begin))
            row += batch.num_rows
            if row >= high:
                return
    finally:
        file.close()
    if expected:
        raise cannot_read(name, ValueError(f"{expected} rows fewer than the footer says"))
