"""The values of a log's columns: from Arrow to NumPy, and within their bounds.

Everything that turns a column into numbers is here. An array is a view of Arrow's memory where
that is possible; a fault is an `InputError` with file, column, row, rule, value and remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.errors import InputError
from steadytd.logs.sources.source import Chunk

Numbers = NDArray[Any]  # of the column's own type
Matrix = NDArray[Any]  # float32 or float64, [n, k]

LEAST = 1e-100  # behaviour's probability of a logged action: ratios must stay finite
LARGEST = 1e30  # of a reward: samples are kept in single precision
SLACK = 1e-6  # a float32 softmax may end a little above 1: taken as 1
IS_DENSITY = "correct it (densities need a column 'action' of fractions: see docs/logs.md)"
IS_LOG = "it looks like a log-probability: give it as action_logp, or take exp"


def fault(
    chunk: Chunk, column: str, index: int, rule: str, value: object, remedy: str
) -> InputError:
    """The error for row `index` of a chunk.

    >>> print(fault(Chunk("a.parquet", 100, None), "reward", 7, "must be finite", "nan", "drop it"))
    a.parquet: column 'reward', row 107 (counted from 0): must be finite, got nan; drop it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return InputError(
        f"{chunk.file}: column '{column}', row {chunk.row + index} (counted from 0): "
        f"{rule}, got {text}; {remedy}."
    )


def first_true(mask: NDArray[Any]) -> int | None:
    """The first index at which a mask is true, or None."""
    index = int(mask.argmax()) if len(mask) else 0
    return index if len(mask) and mask[index] else None


# Types


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list of any sort (a tensor of fixed shape counts)."""
    import pyarrow.types as pt

    kind = getattr(kind, "storage_type", kind)
    return bool(pt.is_fixed_size_list(kind) or pt.is_list(kind) or pt.is_large_list(kind))


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or booleans, as they are or in a dictionary."""
    import pyarrow.types as pt

    kind = kind.value_type if pt.is_dictionary(kind) else kind
    tests = (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_decimal)
    return any(test(kind) for test in tests)


def item_type(kind: Any) -> Any:
    """The type of a list's items; of anything else, the type itself."""
    kind = getattr(kind, "storage_type", kind)
    return kind.value_type if is_list(kind) else kind


def list_size(kind: Any) -> int | None:
    """How many numbers a value has by its type; None where lists may have any length."""
    if not is_list(kind):
        return 1
    size = int(getattr(getattr(kind, "storage_type", kind), "list_size", -1))
    return size if size >= 0 else None


def wrong_type(file: str, name: str, expected: str, kind: Any) -> InputError:
    """The error for a column of the wrong type."""
    return InputError(
        f"{file}: column '{name}' must hold {expected}, got the type {kind}; convert the column, "
        "or name another in the column map."
    )


# Columns as arrays


def numbers(chunk: Chunk, name: str) -> Numbers:
    """A column of numbers without nulls, in its own type (half precision becomes single)."""
    return _numbers(chunk, name, _plain(chunk.batch.column(name)))


def floats(chunk: Chunk, name: str) -> Floats:
    """A column of numbers as float64."""
    return numbers(chunk, name).astype(np.float64, copy=False)


def whole_numbers(chunk: Chunk, name: str) -> Longs:
    """A column of whole numbers as int64; whole numbers that are stored as floats will do."""
    array = numbers(chunk, name)
    if array.dtype.kind not in "iu":
        index = first_true((array != np.floor(array)) | ~(np.abs(array) < 2.0**53))
        if index is not None or array.dtype.kind == "b":
            raise fault(
                chunk, name, index or 0, "must be a whole number", array[index or 0],
                "number episodes and steps 0, 1, 2, ...",
            )  # fmt: skip
    if array.dtype == np.uint64 and (index := first_true(array > np.uint64(2**63 - 1))) is not None:
        raise fault(chunk, name, index, "must be below 2^63", array[index], "use smaller numbers")
    return array.astype(np.int64, copy=False)


def flags(chunk: Chunk, name: str) -> Bools:
    """A column of booleans; 0 and 1 will do."""
    array = numbers(chunk, name)
    if array.dtype.kind != "b":
        index = first_true((array != 0) & (array != 1))
        if index is not None:
            raise fault(
                chunk, name, index, "must be true or false (or 1 or 0)", array[index],
                "correct the flag",
            )  # fmt: skip
    return array.astype(np.bool_, copy=False)


def actions(chunk: Chunk, name: str) -> Numbers:
    """Actions as logged: numbers [n], or lists of one length [n, k]."""
    column = chunk.batch.column(name)
    if not is_list(column.type):
        return numbers(chunk, name)
    width = list_size(column.type)
    if width is None:
        width = len(_plain(column)[0].as_py() or [0.0])
    return matrix(chunk, (name,), width)


def matrix(chunk: Chunk, names: Sequence[str], width: int, what: str = "observations") -> Matrix:
    """Rows [n, width] from one column of lists or numbers, or from numbered columns.

    float32 stays float32, every other type becomes float64. A column of fixed-size lists without
    nulls is not copied.
    """
    column = chunk.batch.column(names[0])
    if len(names) == 1 and is_list(column.type):
        return _lists(chunk, names[0], width, what)
    parts = [numbers(chunk, name) for name in names]
    if len(parts) != width:
        raise InputError(f"{chunk.file}: {len(parts)} columns of {what}, not {width}.")
    dtype = np.float32 if all(part.dtype == np.float32 for part in parts) else np.float64
    if width == 1:
        return parts[0].astype(dtype, copy=False).reshape(-1, 1)
    return np.stack(parts, axis=1, dtype=dtype)


def optional_matrix(
    chunk: Chunk, names: Sequence[str], width: int, what: str = "observations"
) -> tuple[Matrix | None, Bools]:
    """A matrix where rows may be null, and which are given; None where none is."""
    given = np.zeros(chunk.batch.num_rows, dtype=np.bool_)
    for name in names:
        given |= _numpy(chunk.batch.column(name).is_valid())
    if not given.any():
        return None, given
    if not given.all():
        # a null keeps its place: it is read as the row nearest before it that is given
        fill = np.maximum.accumulate(np.where(given, np.arange(len(given)), given.argmax()))
        chunk = chunk._replace(batch=chunk.batch.select(list(dict.fromkeys(names))).take(fill))
    return matrix(chunk, names, width, what), given


def _plain(column: Any) -> Any:
    """The column without dictionary or extension type."""
    import pyarrow.types as pt

    if isinstance(getattr(column.type, "extension_name", None), str):
        column = column.storage
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column


def _numpy(column: Any) -> Numbers:
    """A column of numbers or booleans without nulls, a view where it can be.

    Arrow's own `to_numpy` imports pandas wherever that is installed, which takes a second.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):  # packed in bits
        return np.from_dlpack(column.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(column)


def _require_values(chunk: Chunk, name: str, column: Any) -> None:
    """Fail at the first null."""
    import pyarrow.compute as pc

    if column.null_count:
        index = pc.index(column.is_null(), True).as_py()
        raise fault(
            chunk, name, index, "a value is needed", "null", "fill it in or drop the episode"
        )


def _numbers(chunk: Chunk, name: str, column: Any) -> Numbers:
    import pyarrow as pa

    _require_values(chunk, name, column)
    if not is_number(column.type):
        raise wrong_type(chunk.file, name, "numbers", column.type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    array = _numpy(column)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _lists(chunk: Chunk, name: str, width: int, what: str) -> Matrix:
    import pyarrow.compute as pc

    column = _plain(chunk.batch.column(name))
    _require_values(chunk, name, column)
    if list_size(column.type) != width:
        lengths = pc.list_value_length(column)
        index = pc.index(pc.not_equal(lengths, width), True).as_py()
        if index >= 0:
            raise fault(
                chunk, name, index, f"{what} must all have {width} numbers as in the first "
                "row", f"{lengths[index]} numbers", "pad or cut them to one length",
            )  # fmt: skip
    items = _plain(column.flatten())
    if not is_number(items.type):
        raise wrong_type(chunk.file, name, "lists of numbers", column.type)
    if items.null_count:
        index = pc.index(items.is_null(), True).as_py()
        raise fault(
            chunk, name, index // width, f"{what} must be complete",
            f"null as its number {index % width}", "fill it in or drop the episode",
        )  # fmt: skip
    flat = _numbers(chunk, name, items)
    if flat.dtype != np.float32:
        flat = flat.astype(np.float64, copy=False)
    return flat.reshape(-1, width)


# Bounds


def _all_between(values: Numbers, least: float, most: float) -> bool:
    """Whether least <= value <= most for every value; NaN is not."""
    return least <= float(values.min()) and float(values.max()) <= most


def require_rewards(values: Numbers, name: str, chunk: Chunk) -> None:
    """Fail at the first number that is NaN, infinite or too large for single precision."""
    if _all_between(values, -LARGEST, LARGEST):
        return
    index = first_true(~(np.abs(values) <= LARGEST)) or 0
    if np.isfinite(values[index]):
        rule, remedy = f"must lie between -{LARGEST:g} and {LARGEST:g}", "use another unit"
    else:
        rule, remedy = "must be finite", "correct it or drop the episode"
    raise fault(chunk, name, index, rule, values[index], remedy)


def require_finite(values: Matrix, name: str, chunk: Chunk, where: Bools | None = None) -> None:
    """Fail at the first row (of those in `where`) with a NaN or infinite number."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
    rows: Bools = np.any(bad, axis=1)
    index = first_true(rows if where is None else rows & where)
    if index is not None:
        number = int(bad[index].argmax())
        raise fault(
            chunk, name, index, "observations must be finite",
            f"{values[index, number]} as number {number}", "correct it or drop the episode",
        )  # fmt: skip


def require_discounts(values: Floats, name: str, chunk: Chunk) -> None:
    """Discounts lie in [0, 1]."""
    if not _all_between(values, 0.0, 1.0):
        index = first_true(~((values >= 0.0) & (values <= 1.0))) or 0
        rule = "a discount must lie in [0, 1]"
        raise fault(chunk, name, index, rule, values[index], "correct it")


def target_probabilities(values: Numbers, name: str, chunk: Chunk, most: float = 1.0) -> Numbers:
    """Target probabilities, which lie in [0, 1]; densities are at least 0 and finite (`most`)."""
    if _all_between(values, 0.0, most):
        return values
    index = first_true(~((values >= 0.0) & (values <= most + SLACK)))
    if index is not None:
        remedy = IS_LOG if values[index] < 0 else IS_DENSITY
        raise fault(chunk, name, index, _range_rule("[0", most), values[index], remedy)
    return np.minimum(values, 1.0)


def behavior_probabilities(
    values: Numbers, name: str, chunk: Chunk, targets: Mapping[str, Numbers], most: float = 1.0
) -> Numbers:
    """Behaviour probabilities of logged actions, in (0, 1]; densities are finite (`most`)."""
    if _all_between(values, float(np.nextafter(LEAST, 1.0)), most):
        return values
    index = first_true(~((values > LEAST) & (values <= most + SLACK)))
    if index is None:
        return np.minimum(values, 1.0)
    value, rule = values[index], _range_rule("(0", most)
    if value < 0:
        raise fault(chunk, name, index, rule, value, IS_LOG)
    if 0 < value <= LEAST:
        raise fault(
            chunk, name, index, f"the probability of a logged action must be above {LEAST:g}",
            f"{value:.6g}", "no ratio can be formed with it: correct it",
        )  # fmt: skip
    if value != 0:
        raise fault(chunk, name, index, rule, value, IS_DENSITY)
    for target, probability in targets.items():
        if probability[index] > 0:
            raise fault(
                chunk, name, index, f"the target '{target}' takes the logged action with "
                f"probability {probability[index]:.6g}, so the behaviour's must be above 0", value,
                "the log cannot speak about this target: correct the probability, or leave the "
                "target out",
            )  # fmt: skip
    remedy = "an action that was taken cannot have probability 0: correct it"
    raise fault(chunk, name, index, rule, value, remedy)


def exp_of_logs(values: Numbers, name: str, chunk: Chunk, most: float = 1.0) -> Floats:
    """Probabilities from their logarithms, which are at most 0; of densities, finite (`most`)."""
    index = first_true(~((values <= np.log(most) + SLACK) & np.isfinite(values)))
    if index is not None:
        raise fault(
            chunk, name, index, "a log-probability must be finite and at most 0", values[index],
            "if these are probabilities, map them to behavior_prob",
        )  # fmt: skip
    return np.exp(values.astype(np.float64))


def _range_rule(least: str, most: float) -> str:
    if most == 1.0:
        return f"a probability must lie in {least}, 1]"
    return f"a density must lie in {least}, infinity)"


def require_distributions(
    values: Matrix, name: str, chunk: Chunk, rows: Longs | None = None
) -> None:
    """Probabilities of all actions are at least 0 and add up to 1.

    `rows` are the chunk's rows that they belong to; None: all, in their order.
    """
    total = values.sum(axis=1, dtype=np.float64)
    index = first_true(~((np.abs(total - 1.0) <= SLACK) & (values >= 0.0).all(axis=1)))
    if index is None:
        return
    entries = ", ".join(f"{value:.6g}" for value in values[index][:8].tolist())
    all_negative = (values[index] < 0.0).all()
    row = index if rows is None else int(rows[index])
    raise fault(
        chunk, name, row, "the probabilities of all actions must be at least 0 and add up to 1",
        f"[{entries}{', ...' if values.shape[1] > 8 else ''}], in sum {total[index]:.10g}",
        "they look like log-probabilities: take exp" if all_negative else "correct them",
    )  # fmt: skip


def require_entries(values: Numbers, entries: Floats, name: str, chunk: Chunk, whole: str) -> None:
    """The probability of the logged action is its entry among those of all actions."""
    index = first_true(~(np.abs(values - entries) <= SLACK))
    if index is not None:
        raise fault(
            chunk, name, index, f"must be the logged action's entry in '{whole}', "
            f"{entries[index]:.10g}", values[index], "correct one of them, or leave one out",
        )  # fmt: skip
