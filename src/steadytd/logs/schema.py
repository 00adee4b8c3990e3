"""What an opened source means: columns found, types checked, policies and discount decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.logs import values
from steadytd.logs.columns import (
    BEHAVIOR,
    BEHAVIOR_LOG,
    BEHAVIOR_WHOLE,
    NEXT_WHOLE,
    SCHEMA,
    TARGET,
    WHOLE,
    Column,
    ColumnMap,
    Columns,
    Meaning,
    file_names,
    find_columns,
)
from steadytd.logs.intake import size_of, take_in
from steadytd.logs.policies import Inputs, Model, Policy, PolicySource, check_functions, is_model
from steadytd.logs.sources.source import LogSource
from steadytd.logs.units import named_column

EXTRA = "extra "  # and a name: a further column that is carried in batches
POLICY_COLUMNS = (BEHAVIOR[0], BEHAVIOR_LOG[0], BEHAVIOR_WHOLE)


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
    reward_weights: tuple[float, ...] = (1.0,)  # of the columns that the reward is made of
    obs_names: tuple[str, ...] = ()  # of the numbers of an observation, where columns were named
    actions: tuple[str | float, ...] = ()  # by their numbers, where they were numbered here
    notes: tuple[str, ...] = ()  # what was assumed of the table

    @property
    def policies(self) -> tuple[PolicySource, ...]:
        """The targets, then the behaviour policy."""
        return *self.targets, self.behavior

    @property
    def whole(self) -> list[PolicySource]:
        """The policies that are known as a whole, in the order of `LogBatch.probs`."""
        return [policy for policy in self.policies if policy.whole]

    @property
    def extra(self) -> Columns:
        """Further columns that are carried in batches, by their names."""
        found = self.columns.items()
        return {key.removeprefix(EXTRA): c for key, c in found if key.startswith(EXTRA)}

    @property
    def inputs(self) -> list[str]:
        """The columns that functions and models are given."""
        some = [policy.inputs for policy in self.policies if policy.inputs is not None]
        return [name for inputs in some for name in (*inputs.names, *inputs.after)]

    def named(self, action: NDArray[Any]) -> NDArray[Any]:
        """Actions by their names, where they were numbered here."""
        plain = self.actions == tuple(range(len(self.actions)))
        return action if plain else np.asarray(self.actions)[action]

    def action_column(self, fields: frozenset[str]) -> Column | None:
        """The column of actions, where these fields of a batch need it."""
        needed = "action" in fields or any(p.needs_action(fields) for p in self.policies)
        return self.columns.get("action") if needed else None

    def names(self, fields: frozenset[str]) -> list[str]:
        """The columns to read for these optional fields of a batch."""
        always = [c for c in self.columns.values() if c.name in (*SCHEMA, "unit")]
        always += self.extra.values()
        always = [c for c in always if c.name not in ("action", *POLICY_COLUMNS)]
        action = self.action_column(fields)
        always += [] if action is None else [action]
        found = [part for column in always for part in column.parts]
        found += [name for policy in self.policies for name in policy.reads(fields)]
        return list(dict.fromkeys(found))

    def require_actions(self, file: str, why: str) -> None:
        """Fail if the log has no actions that are numbers."""
        if not self.numeric_actions:
            name = self.columns.get("action")
            got = f"column '{name}' does not hold numbers"
            got = "there is no column 'action'" if name is None else got
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
    unit: str | None = None,
    extra: Mapping[str, Literal["number", "level"]] | None = None,
    obs: Sequence[str] | None = None,
    needs: Sequence[str] = (),
) -> tuple[LogSource, LogSchema]:
    """The source with its types decided, and what its columns mean."""
    check_functions(targets, behavior)
    given = take_in(source, column_map, obs, targets, needs)
    source = given.prepared()
    policies = targets if isinstance(targets, Mapping) else {}
    functions = {
        name: PolicySource(
            name,
            function=Model(one, given.actions) if is_model(one) else one,
            inputs=Inputs.of(
                f"the target '{name}'", one, given.named, source.schemas[0], given.after
            ),
        )
        for name, one in policies.items()
        if not isinstance(one, str)
    }
    names = None if targets is None else [name for name in targets if name not in functions]
    found = [
        find_columns(file, schema, given.columns, names)
        for file, schema in zip(source.files, source.schemas, strict=True)
    ]
    if unit is not None:
        own = named_column(source, unit, "unit", Meaning("unit"))
        found = [{"unit": own, **one} for one in found]
    for name, kind in (extra or {}).items():
        use = EXTRA + name
        own = named_column(source, name, use, Meaning("number" if kind == "number" else "unit"))
        found = [{**one, use: own} for one in found]
    columns = found[0]
    needed = [one.inputs.names for one in functions.values() if one.inputs is not None]
    read = {name for names in needed for name in names}  # with their own values
    types = _types(columns).items()
    source = source.with_types({k: v for k, v in types if k not in read or v != "string"})
    for file, schema, other in zip(source.files, source.schemas, found, strict=True):
        if other != columns:
            differ = sorted(set(file_names(other)) ^ set(file_names(columns)))
            raise InputError(
                f"'{file}' has other columns than '{source.files[0]}' ({', '.join(differ)}); "
                "all files of a log must have the same columns."
            )
        check_types(file, schema, columns)
    width = size_of(source, columns["obs"])
    if width < 1:
        raise InputError(
            f"{source.files[0]}: column '{columns['obs']}', row 0 (counted from 0): an observation "
            "needs at least one number, got none; log observations as lists of one length."
        )
    _check_sizes(source, columns, width)
    schema = LogSchema(
        columns=columns,
        width=width,
        dtype=_dtype(source, columns["obs"]),
        discount=_discount(source.files[0], discount, columns),
        targets=_targets(columns, functions, targets),
        behavior=PolicySource(
            None,
            columns.get(BEHAVIOR[0]) or columns.get(BEHAVIOR_LOG[0]),
            columns.get(BEHAVIOR_WHOLE),
        ),
        numeric_actions=_all_actions(source, columns, _is_numeric),
        densities=_all_actions(source, columns, _is_continuous),
        obs_names=() if given.encoding is None else given.encoding.names,
        actions=given.actions,
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in given.notes),
    )
    if behavior is not None:
        inputs = Inputs.of("behavior", None, given.named, source.schemas[0], given.after)
        schema = replace(schema, behavior=PolicySource(None, function=behavior, inputs=inputs))
    return source, _with_actions(source, schema)


def _targets(
    columns: Columns, functions: Mapping[str, PolicySource], given: Iterable[str] | None
) -> tuple[PolicySource, ...]:
    """Functions, and columns of the others: as they were given, or in the order of the log."""
    logged = [n.removeprefix(p) for n in columns for p in (TARGET, WHOLE) if n.startswith(p)]
    get = columns.get
    return tuple(
        functions.get(name)
        or PolicySource(name, get(TARGET + name), get(WHOLE + name), get(NEXT_WHOLE + name))
        for name in dict.fromkeys(logged if given is None else given)
    )


def _with_actions(source: LogSource, schema: LogSchema) -> LogSchema:
    """The schema with the number of actions, and with the kinds of functions found out."""
    file, sizes = source.files[0], dict[str, int]()
    for policy in schema.policies:
        sizes[policy.whole_name] = size_of(source, policy.all_actions)
        sizes[f"next_{policy.whole_name}"] = size_of(source, policy.next_all_actions)
    sizes = {name: n for name, n in sizes.items() if n}
    if schema.actions:
        sizes = {"the log": len(schema.actions), **sizes}
    elif sizes:
        schema.require_actions(file, f"'{next(iter(sizes))}' has the probabilities of all actions")
    policies = list(schema.policies)
    if any(policy.function is not None for policy in policies):
        schema.require_actions(file, "a policy is given as a function")
        names = schema.columns["obs"].parts
        [chunk] = source.read(names, 0, 1, 1)
        obs = values.matrix(chunk, names, schema.width).astype(schema.dtype)
        for i, policy in enumerate(policies):
            if policy.function is not None:
                rows = obs
                if policy.inputs is not None:
                    [chunk] = source.read(policy.inputs.names, 0, 1, 1)
                    rows = policy.inputs.rows(chunk.batch)
                n = policy.returned_actions(chunk, rows)
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


def _discount(file: str, discount: float | None, columns: Columns) -> float | None:
    """The discount of all rows; None where the log has a column of its own, which goes before."""
    if discount is not None:
        if isinstance(discount, bool) or not isinstance(discount, int | float):
            raise InputError(f"discount must be a number in [0, 1], got {discount!r}.")
        if not 0.0 <= discount <= 1.0:
            raise InputError(f"discount must lie in [0, 1], got {discount}; try 0.99.")
    if "discount" in columns:
        return None
    if discount is None:
        raise InputError(
            f"{file}: no discount is given and there is no column 'discount'; give a number in "
            "[0, 1]: discount=0.99, or --discount 0.99."
        )
    return float(discount)


def _types(columns: Columns) -> dict[str, Any]:
    """The Arrow type of each column by what it means, for files that have none."""
    import pyarrow as pa

    types = {"whole number": pa.int64(), "flag": pa.bool_(), "unit": pa.string()}
    return {
        part: types.get(column.meaning.kind, pa.float64())
        for column in sorted(columns.values(), key=lambda column: column.meaning.kind != "unit")
        for part in column.parts  # one that is a number, too, is read as a number
        if column.meaning.kind != "action"
    }


def check_types(file: str, schema: Any, columns: Columns) -> None:
    """Columns of numbers hold numbers: known from the schema, before any row is read."""
    for column in columns.values():
        for name in column.parts if column.meaning.kind not in ("action", "unit") else ():
            kind = schema.field(name).type
            if column.meaning.nullable and str(kind) == "null":
                continue  # a frame in which no row has a value
            if column.meaning.kind != "vector":
                expected, fine = "numbers", values.is_number(kind)
            elif len(column.parts) > 1 and values.is_list(kind):
                expected, fine = "numbers, as one of several columns", False
            else:
                expected = "numbers or lists of numbers"
                fine = values.is_number(values.item_type(kind))
            if not fine:
                raise values.wrong_type(file, name, expected, kind)


def _check_sizes(source: LogSource, columns: Columns, width: int) -> None:
    """Fixed sizes of lists agree with the first file's; a damaged size could fill the memory."""
    found = [columns[name] for name in ("obs", "next_obs") if name in columns]
    for file, schema in zip(source.files, source.schemas, strict=True):
        for column in found:
            kind = schema.field(str(column)).type
            size = values.list_size(kind) if values.is_list(kind) else width
            if size not in (width, None):
                raise InputError(
                    f"{file}: column '{column}' has lists of {size} numbers, but observations have "
                    f"{width} in '{source.files[0]}'; all must have one length."
                )


def _dtype(source: LogSource, column: Column) -> str:
    """float32 if every file has its observations so (or shorter), else float64."""
    import pyarrow.types as pt

    kinds = [schema.field(name).type for schema in source.schemas for name in column.parts]
    items = [values.item_type(kind) for kind in kinds]
    short = all(pt.is_float32(item) or pt.is_float16(item) for item in items)
    return "float32" if short else "float64"


def _all_actions(source: LogSource, columns: Columns, test: Callable[[Any], bool]) -> bool:
    """Whether there are actions, and their type passes a test in every file."""
    if "action" not in columns:
        return False
    return all(test(schema.field(str(columns["action"])).type) for schema in source.schemas)


def _is_numeric(kind: Any) -> bool:
    return values.is_number(values.item_type(kind))


def _is_continuous(kind: Any) -> bool:
    """Whether actions are fractions or lists: their probabilities may then be densities."""
    import pyarrow.types as pt

    return values.is_list(kind) or bool(pt.is_floating(kind))
