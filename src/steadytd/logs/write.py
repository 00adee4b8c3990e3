"""Writing a log: Parquet with a checksum on every page, so that later damage is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.files import write_whole
from steadytd.base.numbers import whole

SEAL = b"steadytd.columns"


def names_digest(names: Sequence[str]) -> bytes:
    """A hash of the column names in their order."""
    return hashlib.sha256(json.dumps(list(names)).encode()).hexdigest().encode()


def write_log(path: str | Path, table: Any, *, row_group_rows: int = 131_072) -> Path:
    """Write a log as a Parquet file for `open_log`, `evaluate` and other programs.

    `table` is an Arrow table, a Polars or pandas frame, or a dictionary of columns; in a dictionary
    an array [n, k] becomes a column of lists of k numbers, as for `obs`. `docs/logs.md` says which
    columns a log has. A part of the file that can be read by itself has `row_group_rows` rows.

    Pages carry checksums, which the reader verifies. The footer of a Parquet file has none; a hash
    of the column names at least shows damage that would make a column disappear.
    """
    import pyarrow.parquet as pq

    content = _arrow(table)
    rows = whole("row_group_rows", row_group_rows, 1)
    seal = {**(content.schema.metadata or {}), SEAL: names_digest(content.schema.names)}
    content = content.replace_schema_metadata(seal)

    def write(target: Path) -> None:
        pq.write_table(
            content, target, row_group_size=rows, write_page_checksum=True, compression="zstd"
        )

    return write_whole(Path(path), write)


def _arrow(table: Any) -> Any:
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    try:
        if isinstance(table, Mapping):
            return pa.table({name: _column(values) for name, values in table.items()})
        return pa.table(table)
    except (TypeError, ValueError) as error:  # Arrow's own errors are ValueErrors, too
        raise InputError(
            "a log is written from an Arrow table, a data frame or a dictionary of columns of one "
            f"length, got {type(table).__name__} ({error})."
        ) from None


def _column(values: Any) -> Any:
    import pyarrow as pa

    if not (isinstance(values, np.ndarray) and values.ndim == 2):
        return values
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
