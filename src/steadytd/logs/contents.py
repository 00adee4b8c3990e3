"""A hash of rows as they were read: what a log holds, whatever its files are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def add_contents(digest: Any, batch: Any) -> None:
    """Add an Arrow batch to a hash: names, types, and the bytes of all values."""
    digest.update(str(batch.schema.remove_metadata()).encode())
    for part in _defined(batch):
        digest.update(_bytes(part))


def _defined(batch: Any) -> Iterator[Any]:
    """The batch without the slots of missing values, whose bytes mean nothing; where they are."""
    import pyarrow as pa

    full = [i for i, column in enumerate(batch.columns) if not column.null_count]
    yield batch.select(full)
    for column in batch.columns:
        if column.null_count:
            for part in (column.is_valid(), column.drop_null()):
                yield pa.record_batch([part], names=["part"])


def _bytes(batch: Any) -> Any:
    """The batch as Arrow sends it; a stream where words are numbered, since it holds the words."""
    import pyarrow as pa

    if "dictionary<" not in str(batch.schema):
        return batch.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
