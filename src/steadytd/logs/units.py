"""The column that says which unit a row belongs to: a user, a patient, a machine.

Episodes of one unit may depend on each other; units are independent. A unit's number is the place
of its value among the distinct values of the whole log, in the order in which they first appear, so
that all parts of a log agree. Values of any type are compared as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Longs
from steadytd.base.errors import InputError, unknown
from steadytd.logs.columns import Column, Meaning
from steadytd.logs.sources.source import BATCH, Chunk, LogSource
from steadytd.logs.values import fault


def named_column(source: LogSource, name: object, use: str, meaning: Meaning) -> Column:
    """The column `name`, which every file must have, for this use (such as `unit`)."""
    if not isinstance(name, str):
        raise InputError(f"{use} must be the name of a column, got {name!r}.")
    for file, schema in zip(source.files, source.schemas, strict=True):
        if name not in schema.names:
            raise InputError(f"{file}: {unknown(f'column for {use}', name, schema.names)}")
    return Column(use, (name,), meaning)


def texts(values: Any) -> Any:
    """An Arrow array of numbers, texts or categories as one of texts."""
    import pyarrow as pa
    import pyarrow.types as pt

    if pt.is_dictionary(values.type):
        return texts(values.dictionary).take(values.indices)
    return values.cast(pa.large_string())


def present(chunk: Chunk, column: Column) -> Any:
    """The values of a column as an Arrow array of texts; none may be missing."""
    import pyarrow as pa

    found = chunk.batch.column(str(column))
    if found.null_count:
        row = int(np.asarray(found.is_null()).argmax())
        rule, remedy = "every row needs a value", "fill it in, or drop the row's episode"
        raise fault(chunk, column, row, rule, "none", remedy)
    try:
        return texts(found)
    except pa.ArrowException:
        raise InputError(
            f"{chunk.file}: column '{column}' must hold numbers or strings to tell units apart, "
            f"got {found.type}; name another column."
        ) from None


def distinct(source: LogSource, column: Column) -> Any:
    """The distinct values as an Arrow array, in the order in which they first appear."""
    import pyarrow as pa

    parts = [present(chunk, column).unique() for chunk in source.read(column.parts, 0, None, BATCH)]
    return pa.chunked_array(parts, pa.large_string()).unique()


def level_numbers(chunk: Chunk, column: Column, known: Any) -> Longs:
    """The place of every row's value among the known ones."""
    import pyarrow.compute as pc

    found = pc.index_in(present(chunk, column), value_set=known)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def unit_numbers(
    chunk: Chunk, column: Column, known: Any, first: Bools, before: int, kind: str = "one unit"
) -> Longs:
    """The number of every row's unit; `before` is that of the row before, in the same episode."""
    numbers = level_numbers(chunk, column, known)
    other = ~first & (numbers != np.append(before, numbers[:-1]))
    if other.any():
        i = int(other.argmax())
        rule = f"an episode must belong to {kind}, and the row before has another value"
        value = chunk.batch.column(str(column))[i].as_py()
        raise fault(chunk, column, i, rule, value, "name a column that is constant in an episode")
    return numbers
