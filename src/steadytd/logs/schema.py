"""What an opened source means: columns found, types checked, targets and discount settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.columns import ColumnMap, Columns, resolve
from steadytd.logs.decode import arrays
from steadytd.logs.decode.distributions import with_distributions
from steadytd.logs.decode.meaning import Meaning, Policy
from steadytd.logs.sources.source import LogSource


def understand(
    source: LogSource,
    discount: float | None,
    targets: Sequence[str] | Mapping[str, Policy] | None,
    given: ColumnMap | None,
    behavior: Policy | None,
) -> tuple[LogSource, Meaning, tuple[str, ...]]:
    """The source with its types settled, what its columns mean, and notes for the user."""
    policies = dict(targets) if isinstance(targets, Mapping) else {}
    _names(targets)
    if behavior is not None and not callable(behavior):
        raise InputError(
            "behavior must be a function (obs, action) -> probability, or in evaluate also "
            f'"estimate" or a classifier, got {behavior!r}.'
        )
    for name, policy in policies.items():
        if not callable(policy):
            raise InputError(
                f"the target '{name}' must be a function obs -> probabilities of all actions, or "
                "(obs, action) -> probability of that action, got "
                f"{type(policy).__name__}; name a column in the list targets=['{name}'] instead."
            )
    wanted = None if targets is None else [] if policies else list(targets)
    found = [
        resolve(file, schema.names, given, wanted, _lists(schema))
        for file, schema in zip(source.files, source.schemas, strict=True)
    ]
    columns = found[0]
    source = source.with_types(columns)
    for file, schema, other in zip(source.files, source.schemas, found, strict=True):
        if other != columns:
            differ = sorted(set(other.names()) ^ set(columns.names()))
            raise InputError(
                f"'{file}' has other columns than '{source.files[0]}' ({', '.join(differ)}); "
                "all files of a log must have the same columns."
            )
        _types(file, schema, columns)
    width = _width(source, columns)
    _widths(source, columns, width)
    discount, notes = _settle(source.files[0], discount, columns)
    meaning = Meaning(
        columns=columns,
        width=width,
        discount=discount,
        targets=tuple(policies) if policies else tuple(columns.targets),
        policies=policies,
        behavior=behavior,
        numeric_actions=_numeric(source, columns),
        densities=_continuous(source, columns),
        dtype=_dtype(source, columns),
    )
    if policies or behavior is not None:
        meaning.need_actions(source.files[0], "a policy is given as a function")
    return source, with_distributions(source, meaning), notes


def _lists(schema: Any) -> list[str]:
    return [one.name for one in schema if arrays.is_list(one.type)]


def _names(targets: object) -> None:
    """Targets are a list of names, or a dictionary from names."""
    if isinstance(targets, str):
        raise InputError(f"targets must be a list of names, got '{targets}'; write ['{targets}'].")
    if targets is not None and not (
        isinstance(targets, Iterable) and all(isinstance(name, str) for name in targets)
    ):
        raise InputError(
            f"targets must be a list of names, or a dictionary from names to functions, got "
            f"{targets!r}."
        )


def _settle(
    file: str, discount: float | None, columns: Columns
) -> tuple[float | None, tuple[str, ...]]:
    """The discount: the log's own column if it has one, else the number."""
    if discount is not None:
        if isinstance(discount, bool) or not isinstance(discount, int | float):
            raise InputError(f"discount must be a number in [0, 1], got {discount!r}.")
        if not 0.0 <= discount <= 1.0:
            raise InputError(f"discount must lie in [0, 1], got {discount}; try 0.99.")
    if columns.discount is None:
        if discount is None:
            raise InputError(
                f"{file}: no discount is given and there is no column 'discount'; "
                "give a number in [0, 1]: discount=0.99, or --discount 0.99."
            )
        return float(discount), ()
    if discount is None:
        return None, ()
    note = f"the log's column '{columns.discount}' is used; the discount {discount:g} is not."
    return None, (note,)


def _types(file: str, schema: Any, columns: Columns) -> None:
    """Columns of numbers hold numbers: known from the schema, before any row is read."""
    single = (columns.episode_id, columns.t, columns.reward, columns.terminated)
    further = (columns.truncated, columns.discount, columns.behavior, *columns.targets.values())
    distributions = (*columns.whole.values(), *columns.next_whole.values(), columns.behavior_whole)
    for name in (*single, *further):
        if name is not None:
            kind = schema.field(name).type
            if not arrays.is_number(arrays.decoded_type(kind)):
                raise arrays.wrong_type(file, name, "numbers", kind)
    for names in (columns.obs, columns.next_obs, *distributions):
        for name in names:
            kind = schema.field(name).type
            if names not in (columns.obs, *columns.whole.values()) and str(kind) == "null":
                continue  # of a frame in which none is given
            if len(names) > 1 and arrays.is_list(kind):
                raise arrays.wrong_type(file, name, "numbers, as one of several columns", kind)
            if not arrays.is_number(arrays.element_type(kind)):
                raise arrays.wrong_type(file, name, "numbers or lists of numbers", kind)


def _widths(source: LogSource, columns: Columns, width: int) -> None:
    """Fixed sizes of lists agree with the first file's; a damaged size could fill the memory."""
    for file, schema in zip(source.files, source.schemas, strict=True):
        for name in (columns.obs[0], *columns.next_obs[:1]):
            kind = schema.field(name).type
            kind = getattr(kind, "storage_type", kind)
            size = int(getattr(kind, "list_size", width)) if arrays.is_list(kind) else width
            if size not in (width, -1):
                raise InputError(
                    f"{file}: column '{name}' has lists of {size} numbers, but observations have "
                    f"{width} in '{source.files[0]}'; all must have one length."
                )


def _dtype(source: LogSource, columns: Columns) -> str:
    """float32 if every file has its observations so (or shorter), else float64."""
    import pyarrow.types as pt

    kinds = [schema.field(name).type for schema in source.schemas for name in columns.obs]
    items = [arrays.element_type(kind) for kind in kinds]
    short = all(pt.is_float32(item) or pt.is_float16(item) for item in items)
    return "float32" if short else "float64"


def _numeric(source: LogSource, columns: Columns) -> bool:
    if columns.action is None:
        return False
    kinds = [schema.field(columns.action).type for schema in source.schemas]
    return all(arrays.is_number(arrays.element_type(arrays.decoded_type(kind))) for kind in kinds)


def _continuous(source: LogSource, columns: Columns) -> bool:
    """Whether actions are fractions or lists: their probabilities may then be densities."""
    import pyarrow.types as pt

    if columns.action is None:
        return False
    kinds = [schema.field(columns.action).type for schema in source.schemas]
    return all(arrays.is_list(kind) or pt.is_floating(kind) for kind in kinds)


def _width(source: LogSource, columns: Columns) -> int:
    """How many numbers an observation has: from the schema, or from the log's first row."""
    if len(columns.obs) > 1:
        return len(columns.obs)
    name = columns.obs[0]
    kind = source.schemas[0].field(name).type
    kind = getattr(kind, "storage_type", kind)
    if not arrays.is_list(kind):
        return 1
    width = int(getattr(kind, "list_size", -1))
    if width < 0:
        for chunk in source.read([name], 0, 1, 1):
            first = chunk.batch.column(name)[0].as_py()
            width = 0 if first is None else len(first)
    if width < 1:
        raise InputError(
            f"{source.files[0]}: column '{name}', row 0 (counted from 0): an observation needs at "
            "least one number, got none; log observations as lists of one length."
        )
    return width
