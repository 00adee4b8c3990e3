"""From Arrow columns to NumPy arrays: views where possible, clear errors where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.errors import InputError
from steadytd.logs.faults import Place, fault, first_true

Matrix = NDArray[Any]  # float32 or float64, [n, k]


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list of any sort (a tensor of fixed shape counts)."""
    import pyarrow.types as pt

    kind = getattr(kind, "storage_type", kind)
    return bool(pt.is_fixed_size_list(kind) or pt.is_list(kind) or pt.is_large_list(kind))


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or booleans."""
    import pyarrow.types as pt

    tests = (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_decimal)
    return any(test(kind) for test in tests)


def element_type(kind: Any) -> Any:
    """The type of a list's items; of anything else, the type itself."""
    kind = getattr(kind, "storage_type", kind)
    return kind.value_type if is_list(kind) else kind


def decoded_type(kind: Any) -> Any:
    """The type of a dictionary's values; of anything else, the type itself."""
    import pyarrow.types as pt

    return kind.value_type if pt.is_dictionary(kind) else kind


def simple(column: Any) -> Any:
    """The column without dictionary or extension type."""
    import pyarrow.types as pt

    if isinstance(getattr(column.type, "extension_name", None), str):
        column = column.storage
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column


def numpy_of(column: Any) -> NDArray[Any]:
    """A column of numbers or booleans without nulls, a view where it can be.

    Arrow's own `to_numpy` imports pandas wherever that is installed, which takes a second.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):  # kept in bits
        return np.from_dlpack(column.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(column)


def no_nulls(column: Any, name: str, place: Place) -> None:
    """Fail at the first null."""
    if column.null_count:
        index = first_true(~numpy_of(column.is_valid()))
        if index is not None:
            raise fault(
                place, name, index, "a value is needed", "null", "fill it in or drop the episode"
            )


def values(column: Any, name: str, place: Place) -> NDArray[Any]:
    """A column of numbers without nulls, in its own type (half precision becomes single).

    It is a view where Arrow allows it.
    """
    import pyarrow as pa
    import pyarrow.types as pt

    column = simple(column)
    no_nulls(column, name, place)
    if not is_number(column.type):
        raise wrong_type(place.file, name, "numbers", column.type)
    if pt.is_decimal(column.type):
        column = column.cast(pa.float64())
    array = numpy_of(column)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def floats(column: Any, name: str, place: Place) -> Floats:
    """A column of numbers as float64."""
    return values(column, name, place).astype(np.float64, copy=False)


def whole(column: Any, name: str, place: Place) -> Longs:
    """A column of whole numbers as int64; whole numbers that are stored as floats will do."""
    array = values(column, name, place)
    if array.dtype.kind not in "iu":
        index = first_true((array != np.floor(array)) | ~(np.abs(array) < 2.0**53))
        if index is not None or array.dtype.kind == "b":
            raise fault(
                place, name, index or 0, "must be a whole number", array[index or 0],
                "number episodes and steps 0, 1, 2, ...",
            )  # fmt: skip
    if array.dtype == np.uint64 and (index := first_true(array > np.uint64(2**63 - 1))) is not None:
        raise fault(place, name, index, "must be below 2^63", array[index], "use smaller numbers")
    return array.astype(np.int64, copy=False)


def flags(column: Any, name: str, place: Place) -> Bools:
    """A column of booleans; 0 and 1 will do."""
    array = values(column, name, place)
    if array.dtype.kind != "b":
        index = first_true((array != 0) & (array != 1))
        if index is not None:
            raise fault(
                place, name, index, "must be true or false (or 1 or 0)", array[index],
                "correct the flag",
            )  # fmt: skip
    return array.astype(np.bool_, copy=False)


def matrix(
    columns: Sequence[Any],
    names: Sequence[str],
    place: Place,
    width: int,
    what: str = "observations",
) -> Matrix:
    """Observations [n, width] from one column of lists or numbers, or from numbered columns.

    float32 stays float32, every other type becomes float64. A column of fixed-size lists without
    nulls is not copied.
    """
    if len(columns) == 1 and is_list(columns[0].type):
        return _lists(simple(columns[0]), names[0], place, width, what)
    parts = [values(c, name, place) for c, name in zip(columns, names, strict=True)]
    dtype = np.float32 if all(part.dtype.itemsize <= 4 for part in parts if part.dtype.kind == "f")\
        and all(part.dtype.kind == "f" for part in parts) else np.float64  # fmt: skip
    if len(parts) != width:
        raise InputError(f"{place.file}: {len(parts)} columns of {what}, not {width}.")
    if width == 1:
        return parts[0].astype(dtype, copy=False).reshape(-1, 1)
    out = np.empty((len(parts[0]), width), dtype)
    for i, part in enumerate(parts):
        out[:, i] = part
    return out


def optional(
    columns: Sequence[Any],
    names: Sequence[str],
    place: Place,
    width: int,
    what: str = "observations",
) -> tuple[Matrix | None, Bools]:
    """A matrix where rows may be null, and which are given; None where none is."""
    given = np.logical_or.reduce([numpy_of(c.is_valid()) for c in columns])
    if not given.any():
        return None, given
    if not given.all():
        # a null keeps its place: it is read as the row nearest before it that is given
        fill = np.maximum.accumulate(np.where(given, np.arange(len(given)), given.argmax()))
        columns = [c.take(fill) for c in columns]
    return matrix(columns, names, place, width, what), given


def _lists(column: Any, name: str, place: Place, width: int, what: str) -> Matrix:
    import pyarrow.types as pt

    no_nulls(column, name, place)
    if not (pt.is_fixed_size_list(column.type) and column.type.list_size == width):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        index = first_true(lengths != width)
        if index is not None:
            raise fault(
                place, name, index, f"{what} must all have {width} numbers as in the first "
                "row", f"{lengths[index]} numbers", "pad or cut them to one length",
            )  # fmt: skip
    items = simple(column.flatten())
    if not is_number(items.type):
        raise wrong_type(place.file, name, "lists of numbers", column.type)
    if items.null_count:
        index = first_true(~numpy_of(items.is_valid())) or 0
        raise fault(
            place, name, index // width, f"{what} must be complete",
            f"null as its number {index % width}", "fill it in or drop the episode",
        )  # fmt: skip
    flat = values(items, name, place)
    if flat.dtype != np.float32:
        flat = flat.astype(np.float64, copy=False)
    return flat.reshape(-1, width)


def wrong_type(file: str, name: str, wanted: str, kind: Any) -> InputError:
    """The error for a column of the wrong type."""
    return InputError(
        f"{file}: column '{name}' must hold {wanted}, got the type {kind}; convert the column, or "
        f"name another in the column map."
    )
