"""Logs in text files, CSV or JSON lines: slower than Parquet, but read in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.sources.source import Chunk, LogSource, cannot_read

JSON_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", *JSON_SUFFIXES)
BLOCK = 1 << 22  # bytes parsed at a time
NULLS = ["", "null", "NULL", "None", "NA"]
CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid value '(.*)'",
    re.DOTALL,
)


@dataclass(frozen=True)
class TextSource(LogSource):
    """CSV files with a header, or files with one JSON object per line.

    Rows are counted from 0 (after the header), without empty lines. CSV has no lists: observations
    stand in numbered columns.
    """

    files: tuple[str, ...]
    schemas: tuple[Any, ...]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> TextSource:
        """Read the headers, and guess the types from each file's first block."""
        names = tuple(map(str, paths))
        return cls(names, tuple(_schema(name) for name in names))

    @property
    def rows(self) -> None:
        """Not known before reading."""

    def with_types(self, types: Mapping[str, Any]) -> TextSource:
        """Types from what the columns mean: a number that looks whole at first may not stay so."""
        import pyarrow as pa

        schemas = tuple(
            pa.schema([
                one.with_type(_typed(file, one.type, types.get(one.name, one.type)))
                for one in schema
            ])
            for file, schema in zip(self.files, self.schemas, strict=True)
        )  # fmt: skip
        return replace(self, schemas=schemas)

    def units(self) -> list[int]:
        """The files, if there are several: they have to be read to be counted."""
        if len(self.files) == 1:
            return []
        first = [schema.names[0] for schema in self.schemas]
        pairs = zip(self.files, first, strict=True)
        return [sum(batch.num_rows for batch in self._file(name, [one])) for name, one in pairs]

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Parse all files from the beginning."""
        log_row = 0
        for file in self.files:
            row = 0
            for batch in self._file(file, names):
                yield Chunk(file, row, batch, log_row + row)
                row += batch.num_rows
            log_row += row
        if log_row == 0:
            raise InputError(f"'{self.files[0]}' holds no rows; a log needs at least one.")

    def _file(self, name: str, names: Sequence[str]) -> Iterator[Any]:
        """The Arrow batches of one file."""
        schema = self.schemas[self.files.index(name)]
        header = schema.names
        reader = _open_json(name, schema) if _is_json(name) else _open(name, schema, names)
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:
                raise _explain(name, header, error) from error
            yield batch.select(list(names))


def _schema(name: str) -> Any:
    """The columns of a file; their names must be UTF-8 text, as Arrow takes them for."""
    schema = (_open_json(name, None) if _is_json(name) else _open(name, None, ())).schema
    try:
        _ = schema.names
    except UnicodeDecodeError as error:
        byte = error.object[error.start : error.end].hex()
        raise InputError(
            f"'{name}': the names of its columns are not UTF-8 text (byte 0x{byte}); save the file "
            "as UTF-8, or rename the column."
        ) from None
    return schema


def _open(name: str, schema: Any, names: Sequence[str]) -> Any:
    """These columns of a CSV file; without a schema all, of types that the first block shows."""
    import pyarrow.csv as pc

    tab = Path(name).name.lower().removesuffix(".gz").endswith(".tsv")
    try:
        return pc.open_csv(
            name,
            # one thread: the error of a bad value then names its row
            read_options=pc.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=pc.ParseOptions(delimiter="\t" if tab else ","),
            convert_options=pc.ConvertOptions(
                column_types={one: schema.field(one).type for one in names},
                include_columns=list(names),
                null_values=NULLS,
            ),
        )
    except Exception as error:
        if "Empty CSV file" in str(error):
            raise InputError(f"'{name}' is an empty file; a log needs at least one row.") from error
        raise _explain(name, () if schema is None else schema.names, error) from error


def _open_json(name: str, schema: Any) -> Any:
    """JSON lines of these columns; None: as they are found in the first block."""
    import pyarrow.json as pj

    known = {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
    try:
        return pj.open_json(
            name,
            read_options=pj.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=pj.ParseOptions(**({} if schema is None else known)),
        )
    except Exception as error:
        if "Empty JSON" in str(error):
            raise InputError(f"'{name}' is an empty file; a log needs at least one row.") from error
        raise cannot_read(name, error) from error


def _is_json(name: str) -> bool:
    return name.lower().endswith(JSON_SUFFIXES)


def _typed(file: str, own: Any, wanted: Any) -> Any:
    """The type of a column: of JSON that of its first block, but whole numbers may be numbers."""
    import pyarrow.types as pt

    if pt.is_floating(wanted) and pt.is_boolean(own):
        return own
    whole = pt.is_floating(wanted) and pt.is_integer(own)
    return wanted if whole or not _is_json(file) else own


def _explain(name: str, header: Sequence[str], error: Exception) -> InputError:
    """Arrow's conversion error, which counts the file's columns, in the words of other faults."""
    found = CONVERSION.search(str(error))
    if found is None or int(found[1]) >= len(header):
        return cannot_read(name, error)
    row = f"row {int(found[2]) - 2} (counted from 0)" if found[2] else "in one of its rows"
    expected = {"int64": "a whole number", "bool": "true or false", "double": "a number"}
    return InputError(
        f"{name}: column '{header[int(found[1])]}', {row}: must be "
        f"{expected.get(found[3], 'of type ' + found[3])}, got '{found[4].strip()}'; correct it, "
        "or name another column in the column map."
    )
