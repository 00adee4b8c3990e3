"""Writing a log: Parquet with a checksum on every page, so that later damage is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.files import write_whole

SEAL = b"steadytd.columns"


def names_digest(names: Sequence[str]) -> bytes:
    """A hash of the column names in their order."""
    return hashlib.sha256(json.dumps(list(names)).encode()).hexdigest().encode()


def write_log(path: str | Path, table: Any, *, row_group_rows: int = 131_072) -> Path:
    """Write an Arrow table, or a frame with the Arrow protocol, as a Parquet file.

    Pages carry checksums, which the reader verifies. The footer of a Parquet file has none; a hash
    of the column names at least shows damage that would make a column disappear.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = table if isinstance(table, pa.Table) else pa.table(table)
    seal = {**(content.schema.metadata or {}), SEAL: names_digest(content.schema.names)}
    content = content.replace_schema_metadata(seal)

    def write(target: Path) -> None:
        pq.write_table(
            content, target, row_group_size=row_group_rows, write_page_checksum=True,
            compression="zstd",
        )  # fmt: skip

    return write_whole(Path(path), write)
