"""What an opened source means: columns found, types checked, policies and discount decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.logs import values
from steadytd.logs.check import EXTRA, Wanted, checked, discount_of
from steadytd.logs.columns import (
    BEHAVIOR,
    BEHAVIOR_LOG,
    BEHAVIOR_WHOLE,
    NEXT_WHOLE,
    SCHEMA,
    TARGET,
    WHOLE,
    Column,
    Columns,
    file_names,
)
from steadytd.logs.intake import size_of, take_in
from steadytd.logs.policies import Inputs, Model, PolicySource, is_model
from steadytd.logs.rewards import reward_weights
from steadytd.logs.sources.source import LogSource

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
    used: frozenset[str] = frozenset()  # the columns of the table that something is read from

    @property
    def most(self) -> float:
        """The largest that a probability may be."""
        return values.LARGEST_DENSITY if self.densities else 1.0

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


def understand(source: LogSource, wanted: Wanted) -> tuple[LogSource, LogSchema]:
    """The source with all columns of a log, and what they mean."""
    table = checked(source, wanted)
    used = {*file_names(table.columns), *table.obs}
    by_model = [policy for policy in wanted.policies.values() if is_model(policy)]
    source = take_in(table, by_model)
    file, columns = table.file, table.columns
    width = size_of(source, columns["obs"])
    if width < 1:
        raise InputError(
            f"{file}: column '{columns['obs']}', row 0 (counted from 0): an observation needs at "
            "least one number, got none; log observations as lists of one length."
        )
    _check_sizes(source, columns, width)

    def called(name: str | None, policy: Any) -> PolicySource:
        found = PolicySource(name, function=policy)
        inputs = Inputs.of(found.label, policy, table.obs, source.schemas[0], table.after)
        function = Model(policy, table.actions) if is_model(policy) else policy
        return replace(found, function=function, inputs=inputs)

    logged = [n.removeprefix(p) for n in columns for p in (TARGET, WHOLE) if n.startswith(p)]
    get, policies = columns.get, wanted.policies
    targets = tuple(
        called(name, policies[name])
        if name in policies
        else PolicySource(name, get(TARGET + name), get(WHOLE + name), get(NEXT_WHOLE + name))
        for name in dict.fromkeys(logged if wanted.targets is None else wanted.targets)
    )
    behavior = PolicySource(None, get(BEHAVIOR[0]) or get(BEHAVIOR_LOG[0]), get(BEHAVIOR_WHOLE))
    weights = [] if wanted.rewards is None else [*reward_weights(wanted.rewards).values()]
    schema = LogSchema(
        columns=columns,
        width=width,
        dtype=_dtype(source, columns["obs"]),
        discount=discount_of(file, wanted.discount, columns),
        targets=targets,
        behavior=behavior if wanted.behavior is None else called(None, wanted.behavior),
        numeric_actions=_all_actions(source, columns, _is_numeric),
        densities=_all_actions(source, columns, values.is_continuous),
        reward_weights=tuple(weights[0].values()) if weights else (1.0,),
        obs_names=() if table.encoding is None else table.encoding.names,
        actions=table.actions,
        used=frozenset(used.union(*(one.inputs.names for one in targets if one.inputs))),
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in table.notes),
    )
    return source, _with_actions(source, schema)


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
