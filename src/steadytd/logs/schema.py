"""What an opened source means: columns found, types checked, policies and discount settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs import values
from steadytd.logs.columns import ColumnMap, Columns, PolicyColumns, resolve
from steadytd.logs.policies import Policy, PolicySource, check_functions
from steadytd.logs.sources.source import LogSource


@dataclass(frozen=True)
class LogSchema:
    """How the columns of a log become transitions."""

    columns: Columns
    width: int  # numbers of an observation
    dtype: str  # of the observations, in all files
    discount: float | None  # None: the column's
    targets: tuple[PolicySource, ...]
    behavior: PolicySource
    numeric_actions: bool
    densities: bool  # actions are continuous: probabilities may be above 1
    n_actions: int = 0  # 0: no policy is known as a whole

    @property
    def policies(self) -> tuple[PolicySource, ...]:
        """The targets, then the behaviour policy."""
        return *self.targets, self.behavior

    @property
    def whole(self) -> list[PolicySource]:
        """The policies that are known as a whole, in the order of `LogBatch.probs`."""
        return [policy for policy in self.policies if policy.whole]

    def wants(self, policy: PolicySource, fields: frozenset[str]) -> tuple[bool, bool]:
        """Whether these fields of a batch need the logged action's probability, and all known."""
        logged = "behavior_prob" if policy.target is None else "target_prob"
        return logged in fields and policy.known, "probs" in fields

    def reads_action(self, fields: frozenset[str]) -> bool:
        """Whether actions are read: asked for, or to find the probabilities of logged ones."""
        found = any(policy.uses_action(*self.wants(policy, fields)) for policy in self.policies)
        return self.columns.action is not None and ("action" in fields or found)

    def names(self, fields: frozenset[str]) -> list[str]:
        """The columns to read for these optional fields of a batch."""
        c = self.columns
        found = [name for p in self.policies for name in p.reads(*self.wants(p, fields))]
        found += [c.action] if c.action is not None and self.reads_action(fields) else []
        return list(dict.fromkeys([*c.always_read(), *found]))

    def require_actions(self, file: str, why: str) -> None:
        """Fail if the log has no actions that are numbers."""
        if not self.numeric_actions:
            name = self.columns.action
            got = (
                f"column '{name}' does not hold numbers" if name else "there is no column 'action'"
            )
            raise InputError(
                f"{file}: {why}, but {got}; number the actions 0, 1, 2, ..., or name another "
                "column in the column map (action=its_name)."
            )


def understand(
    source: LogSource,
    discount: float | None,
    targets: Sequence[str] | Mapping[str, Policy] | None,
    column_map: ColumnMap | None,
    behavior: Policy | None,
) -> tuple[LogSource, LogSchema]:
    """The source with its types settled, and what its columns mean."""
    check_functions(targets, behavior)
    functions = targets if isinstance(targets, Mapping) else {}
    names = None if targets is None else [] if functions else list(targets)
    found = [
        resolve(file, schema.names, column_map, names, _list_columns(schema))
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
        _check_types(file, schema, columns)
    width = _size(source, columns.obs)
    if width < 1:
        raise InputError(
            f"{source.files[0]}: column '{columns.obs[0]}', row 0 (counted from 0): an observation "
            "needs at least one number, got none; log observations as lists of one length."
        )
    _check_sizes(source, columns, width)
    schema = LogSchema(
        columns=columns,
        width=width,
        dtype=_dtype(source, columns),
        discount=_discount(source.files[0], discount, columns),
        targets=tuple(PolicySource(name, found) for name, found in columns.targets.items()),
        behavior=PolicySource(None, columns.behavior, behavior),
        numeric_actions=_all_actions(source, columns, _is_numeric),
        densities=_all_actions(source, columns, _is_continuous),
    )
    if functions:
        given = tuple(PolicySource(name, PolicyColumns(), one) for name, one in functions.items())
        schema = replace(schema, targets=given)
    return source, _with_actions(source, schema)


def _with_actions(source: LogSource, schema: LogSchema) -> LogSchema:
    """The schema with the number of actions, and with the kinds of functions found out."""
    file, sizes = source.files[0], dict[str, int]()
    for policy in schema.policies:
        if policy.function is None:
            sizes[policy.whole_name] = _size(source, policy.columns.whole)
            sizes[f"next_{policy.whole_name}"] = _size(source, policy.columns.next_whole)
    sizes = {name: n for name, n in sizes.items() if n}
    if sizes:
        schema.require_actions(file, f"'{next(iter(sizes))}' has the probabilities of all actions")
    policies = list(schema.policies)
    if any(policy.function is not None for policy in policies):
        schema.require_actions(file, "a policy is given as a function")
        [chunk] = source.read(schema.columns.obs, 0, 1, 1)
        obs = values.matrix(chunk, schema.columns.obs, schema.width).astype(schema.dtype)
        for i, policy in enumerate(policies):
            if policy.function is not None:
                n = policy.returned_actions(chunk, obs)
                policies[i] = replace(policy, takes_action=n == 0)
                sizes |= {policy.label: n} if n else {}
    for name, n in sizes.items():
        first, expected = next(iter(sizes.items()))
        if n != expected:
            raise InputError(
                f"{file}: {first} has {expected} actions, but {name} has {n}; give every policy "
                "one probability for each action."
            )
    *targets, behavior = policies
    n_actions = next(iter(sizes.values()), 0)
    return replace(schema, targets=tuple(targets), behavior=behavior, n_actions=n_actions)


def _list_columns(schema: Any) -> list[str]:
    return [one.name for one in schema if values.is_list(one.type)]


def _discount(file: str, discount: float | None, columns: Columns) -> float | None:
    """The discount of all rows; None where the log has a column of its own, which goes before."""
    if discount is not None:
        if isinstance(discount, bool) or not isinstance(discount, int | float):
            raise InputError(f"discount must be a number in [0, 1], got {discount!r}.")
        if not 0.0 <= discount <= 1.0:
            raise InputError(f"discount must lie in [0, 1], got {discount}; try 0.99.")
    if columns.discount is not None:
        return None
    if discount is None:
        raise InputError(
            f"{file}: no discount is given and there is no column 'discount'; give a number in "
            "[0, 1]: discount=0.99, or --discount 0.99."
        )
    return float(discount)


def _check_types(file: str, schema: Any, columns: Columns) -> None:
    """Columns of numbers hold numbers: known from the schema, before any row is read."""
    for name in (*columns.whole_numbers(), *columns.flags(), *columns.numbers()):
        if not values.is_number(schema.field(name).type):
            raise values.wrong_type(file, name, "numbers", schema.field(name).type)
    for names in columns.wide():
        for name in names:
            kind = schema.field(name).type
            if str(kind) == "null" and names in columns.may_be_null():
                continue  # of a frame in which none is given
            if len(names) > 1 and values.is_list(kind):
                expected = "numbers, as one of several columns"
                raise values.wrong_type(file, name, expected, kind)
            if not values.is_number(values.item_type(kind)):
                raise values.wrong_type(file, name, "numbers or lists of numbers", kind)


def _size(source: LogSource, names: Sequence[str]) -> int:
    """How many numbers a value has: by the schema, or in the first row; 0 where there is none."""
    if len(names) != 1:
        return len(names)
    kind = source.schemas[0].field(names[0]).type
    if str(kind) == "null":
        return 0
    size = values.list_size(kind)
    if size is None:
        [chunk] = source.read(names, 0, 1, 1)
        size = len(chunk.batch.column(names[0])[0].as_py() or ())
    return size


def _check_sizes(source: LogSource, columns: Columns, width: int) -> None:
    """Fixed sizes of lists agree with the first file's; a damaged size could fill the memory."""
    for file, schema in zip(source.files, source.schemas, strict=True):
        for name in (columns.obs[0], *columns.next_obs[:1]):
            kind = schema.field(name).type
            size = values.list_size(kind) if values.is_list(kind) else width
            if size not in (width, None):
                raise InputError(
                    f"{file}: column '{name}' has lists of {size} numbers, but observations have "
                    f"{width} in '{source.files[0]}'; all must have one length."
                )


def _dtype(source: LogSource, columns: Columns) -> str:
    """float32 if every file has its observations so (or shorter), else float64."""
    import pyarrow.types as pt

    kinds = [schema.field(name).type for schema in source.schemas for name in columns.obs]
    items = [values.item_type(kind) for kind in kinds]
    short = all(pt.is_float32(item) or pt.is_float16(item) for item in items)
    return "float32" if short else "float64"


def _all_actions(source: LogSource, columns: Columns, test: Callable[[Any], bool]) -> bool:
    """Whether there are actions, and their type passes a test in every file."""
    name = columns.action
    return name is not None and all(test(schema.field(name).type) for schema in source.schemas)


def _is_numeric(kind: Any) -> bool:
    return values.is_number(values.item_type(kind))


def _is_continuous(kind: Any) -> bool:
    """Whether actions are fractions or lists: their probabilities may then be densities."""
    import pyarrow.types as pt

    return values.is_list(kind) or bool(pt.is_floating(kind))
