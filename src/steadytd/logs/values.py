"""The values of a log's columns: from Arrow to NumPy, and within their bounds.

Everything that turns a column into numbers is here. An array is a view of Arrow's memory where
that is possible; a fault is an `InputError` with file, column, row, rule, value and remedy. A
column is named by its name in the file, or by a `Column`, whose text is that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
LARGEST_DENSITY = float(np.finfo(np.float64).max)
SLACK = 1e-6  # a float32 softmax may end a little above 1: taken as 1


def fault(
    chunk: Chunk, column: object, index: int, rule: str, value: object, remedy: str
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


def first_false(fine: Bools) -> int | None:
    """The first index at which a mask is false, or None."""
    return None if fine.all() else int(fine.argmin())


def require(
    chunk: Chunk, column: object, fine: Bools, values: Numbers, rule: str, remedy: str
) -> None:
    """Fail at the first row that is not fine."""
    index = first_false(fine)
    if index is not None:
        raise fault(chunk, column, index, rule, values[index], remedy)


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


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds texts."""
    import pyarrow.types as pt

    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def item_type(kind: Any) -> Any:
    """The type of a list's items; of anything else, the type itself."""
    return getattr(kind, "storage_type", kind).value_type if is_list(kind) else kind


def width(kind: Any, parts: int, first: Callable[[], Any]) -> int:
    """How many numbers a row has: by the type, or by the `first` row; 0 where there is none."""
    if parts > 1:
        return parts
    size = 0 if str(kind) == "null" else list_size(kind)
    return len(first() or ()) if size is None else size


def is_continuous(kind: Any) -> bool:
    """Whether actions are fractions or lists: their probabilities may then be densities."""
    import pyarrow.types as pt

    return is_list(kind) or bool(pt.is_floating(kind))


def list_size(kind: Any) -> int | None:
    """How many numbers a value has by its type; None where lists may have any length."""
    if not is_list(kind):
        return 1
    size = int(getattr(getattr(kind, "storage_type", kind), "list_size", -1))
    return size if size >= 0 else None


def wrong_type(file: str, name: str, expected: str, kind: Any) -> InputError:
    """The error for a column of the wrong type."""
    return InputError(
        f"{file}: column '{name}' must hold {expected}, got "
        f"{'text' if is_text(kind) else f'the type {kind}'}; convert the column, or name another "
        "in the column map."
    )


# Columns as arrays


def numbers(chunk: Chunk, column: object) -> Numbers:
    """A column of numbers without nulls, in its own type (half precision becomes single)."""
    return _numbers(chunk, column, _plain(chunk.batch.column(str(column))))


def floats(chunk: Chunk, column: object) -> Floats:
    """A column of numbers without nulls as float64."""
    return numbers(chunk, column).astype(np.float64)


def whole_numbers(chunk: Chunk, column: object) -> Longs:
    """A column of whole numbers as int64; whole numbers that are stored as floats will do."""
    array = numbers(chunk, column)
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64, copy=False)
    rule, remedy = "must be a whole number below 2^63", "number episodes and steps 0, 1, 2, ..."
    require(chunk, column, whole == array, array, rule, remedy)
    return whole


def flags(chunk: Chunk, column: object) -> Bools:
    """A column of booleans; 0 and 1 will do."""
    array = numbers(chunk, column)
    rule, remedy = "must be true or false (or 1 or 0)", "correct the flag"
    require(chunk, column, (array == 0) | (array == 1), array, rule, remedy)
    return array.astype(np.bool_, copy=False)


def rewards(chunk: Chunk, column: object) -> Floats:
    """Rewards, which are finite and not too large for single precision."""
    array = floats(chunk, column)
    require(
        chunk, column, np.isfinite(array), array, "must be finite", "correct it or drop the episode"
    )
    rule = f"must lie between -{LARGEST:g} and {LARGEST:g}"
    require(chunk, column, np.abs(array) <= LARGEST, array, rule, "use another unit")
    return array


def discounts(chunk: Chunk, column: object) -> Floats:
    """Discounts, which lie in [0, 1]."""
    array = floats(chunk, column)
    fine = (array >= 0.0) & (array <= 1.0)
    remedy = "correct it, or map 'discount' to '' (nothing) if the column is something else"
    require(chunk, column, fine, array, "a discount must lie in [0, 1]", remedy)
    return array


def kept(chunk: Chunk, column: object) -> Floats:
    """Probabilities with which rows were stored: in (0, 1]."""
    array = floats(chunk, column)
    fine = (array > LEAST) & (array <= 1.0)
    require(chunk, column, fine, array, "must lie in (0, 1]", "correct it")
    return array


def kept_whole(chunk: Chunk, column: object, first: Bools, before: float) -> Floats:
    """The same, one for all rows of an episode; `before` is that of the row before the chunk.

    A row that was dropped leaves a gap in its episode, and no weight of the others fills it.
    """
    array = kept(chunk, column)
    same = first | (array == np.append(before, array[:-1]))
    rule = "must be the same in all rows of an episode, since weights cannot fill gaps between rows"
    require(chunk, column, same, array, rule, "keep or drop whole episodes")
    return array


def actions(chunk: Chunk, name: str) -> Numbers:
    """Actions as logged: numbers [n], or lists of one length [n, k]."""
    column = chunk.batch.column(name)
    if not is_list(column.type):
        return numbers(chunk, name)
    width = list_size(column.type)
    if width is None:
        width = len(_plain(column)[0].as_py() or [0.0])
    return _lists(chunk, name, width, "actions")


def matrix(chunk: Chunk, names: Sequence[str], width: int, what: str = "observations") -> Matrix:
    """Rows [n, width] from one column of lists or numbers, or from numbered columns.

    float32 stays float32, every other type becomes float64. A column of fixed-size lists without
    nulls is not copied.
    """
    if len(names) == 1 and is_list(chunk.batch.column(names[0]).type):
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
        given |= as_numpy(chunk.batch.column(name).is_valid())
    if not given.any():
        return None, given
    if not given.all():
        # a null keeps its place: it is read as the row nearest before it that is given
        fill = np.maximum.accumulate(np.where(given, np.arange(len(given)), given.argmax()))
        chunk = chunk._replace(batch=chunk.batch.select(list(dict.fromkeys(names))).take(fill))
    return matrix(chunk, names, width, what), given


def require_finite(
    chunk: Chunk, column: object, values: Matrix, where: Bools | None = None
) -> None:
    """Fail at the first row (of those in `where`) with a NaN or infinite number."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return
    finite = np.isfinite(values)
    rows: Bools = np.all(finite, axis=1)
    index = first_false(rows if where is None else rows | ~where)
    if index is not None:
        number = int(finite[index].argmin())
        raise fault(
            chunk, column, index, "observations must be finite",
            f"{values[index, number]} at position {number}", "correct it or drop the episode",
        )  # fmt: skip


def _plain(column: Any) -> Any:
    """The column without dictionary or extension type."""
    import pyarrow.types as pt

    if isinstance(getattr(column.type, "extension_name", None), str):
        column = column.storage
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column


def as_numpy(column: Any) -> Numbers:
    """A column of numbers or booleans without nulls, a view where it can be.

    Arrow's own `to_numpy` imports pandas wherever that is installed, which takes a second.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):  # packed in bits
        return np.from_dlpack(column.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(column)


def _require_values(chunk: Chunk, column: object, found: Any) -> None:
    import pyarrow.compute as pc

    if found.null_count:
        index = pc.index(found.is_null(), True).as_py()
        remedy = "fill it in or drop the episode"
        raise fault(chunk, column, index, "a value is needed", "null", remedy)


def _numbers(chunk: Chunk, column: object, found: Any) -> Numbers:
    import pyarrow as pa

    _require_values(chunk, column, found)
    if not is_number(found.type):
        raise wrong_type(chunk.file, str(column), "numbers", found.type)
    if pa.types.is_decimal(found.type):
        found = found.cast(pa.float64())
    array = as_numpy(found)
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
            f"null at position {index % width}", "fill it in or drop the episode",
        )  # fmt: skip
    flat = _numbers(chunk, name, items)
    if flat.dtype != np.float32:
        flat = flat.astype(np.float64, copy=False)
    return flat.reshape(-1, width)


# Probabilities. `most` is the largest that one may be.


def probabilities(
    chunk: Chunk, column: object, values: Floats, most: float, logged: bool = False
) -> Floats:
    """Probabilities in [0, 1], or in (0, 1] of actions that were taken; densities are finite."""
    index = first_false((values > LEAST if logged else values >= 0.0) & (values <= most + SLACK))
    if index is None:
        return np.minimum(values, most)
    least, value = "(0" if logged else "[0", values[index]
    rule = f"a density must lie in {least}, infinity)"
    if most == 1.0:
        rule = f"a probability must lie in {least}, 1]"
    remedy = (
        "correct it (per cent: divide by 100; densities need a column 'action' of real numbers: "
        "see docs/logs.md)"
    )
    if value < 0.0:
        remedy = "it looks like a log-probability: give it as action_logp, or take exp"
    elif value <= LEAST:
        remedy = f"a probability below {LEAST:g} of an action that was taken: correct it"
    raise fault(chunk, column, index, rule, value, remedy)


def exp_of_logs(chunk: Chunk, column: object, values: Floats, most: float) -> Floats:
    """Probabilities from their logarithms, which are at most 0; of densities, finite."""
    require(
        chunk, column, (values <= np.log(most) + SLACK) & np.isfinite(values), values,
        "a log-probability must be finite and at most 0",
        "if these are probabilities, map them to behavior_prob",
    )  # fmt: skip
    return np.exp(values)


def require_distributions(
    chunk: Chunk, column: object, values: Matrix, rows: Longs | None = None
) -> None:
    """Probabilities of all actions are at least 0 and add up to 1.

    `rows` are the chunk's rows that they belong to; None: all, in their order.
    """
    total = values.sum(axis=1, dtype=np.float64)
    index = first_false((np.abs(total - 1.0) <= SLACK) & (values >= 0.0).all(axis=1))
    if index is None:
        return
    entries = ", ".join(f"{value:.6g}" for value in values[index][:8].tolist())
    all_negative = (values[index] < 0.0).all()
    raise fault(
        chunk, column, index if rows is None else int(rows[index]),
        "the probabilities of all actions must be at least 0 and add up to 1",
        f"[{entries}{', ...' if values.shape[1] > 8 else ''}], in sum {total[index]:.10g}",
        "they look like log-probabilities: take exp" if all_negative else "correct them",
    )  # fmt: skip


def action_indices(chunk: Chunk, column: object, action: Numbers, n_actions: int) -> Longs:
    """The logged actions as numbers 0, ..., n_actions - 1 of the entries of a distribution."""
    if action.ndim > 1:
        raise fault(
            chunk, column, 0, "an action must be one number, where policies give the probabilities "
            "of all actions", action[0].tolist(), "number the actions 0, 1, 2, ...",
        )  # fmt: skip
    require(
        chunk, column, (action >= 0) & (action < n_actions) & (action == np.floor(action)), action,
        f"an action must be one of 0, ..., {n_actions - 1}, the entries of the policies' "
        "probabilities", "number the actions as the policies do",
    )  # fmt: skip
    return action.astype(np.int64)
