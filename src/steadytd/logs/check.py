"""What is wrong with a table, or lacking in it, said all at once before anything is made of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steadytd.base.errors import Faults, InputError, listed, unknown
from steadytd.logs import encode, values
from steadytd.logs.actions import Levels
from steadytd.logs.columns import (
    BEHAVIOR,
    BEHAVIOR_LOG,
    BEHAVIOR_WHOLE,
    SCHEMA,
    TARGET,
    WHOLE,
    Column,
    ColumnMap,
    Columns,
    Finder,
    Kind,
    Meaning,
    checked_map,
    file_names,
    find_columns,
)
from steadytd.logs.policies import Inputs, Policy, check_functions, is_model
from steadytd.logs.rewards import reward_weights
from steadytd.logs.sources.source import Chunk, LogSource, MemorySource
from steadytd.logs.units import distinct, named_column, present

LOOK, LOOK_BATCH = 65_536, 16_384  # rows at the beginning of files and streams that are checked
LOOSER: dict[str, Kind] = {"episode_id": "unit", "t": "time"}  # where they are no numbers
EXTRA = "extra "  # and a name: a further column that is carried in batches
HINTS = {  # words in names of columns that may be what is lacking
    "episode_id": r"episode|session|visit|trip|traj|dialog|stay",
    "reward": r"reward|revenue|gain|profit|outcome|payoff|return|score|click|conver|cost",
    "terminated": r"termin|done|end|final|last",
    "action": r"action|arm|choice|chosen|offer|variant|treatment|decision|dose",
    "behavior_prob": r"prob|propens|^p$|^mu$|weight",
}
NOT_SEEN = re.compile(r"(^|_)id$|prob|propens|^(pi|mu|target)_")  # not of an observation
WHY = {
    "obs": "name the columns of the observation: obs=['a', 'b'], or --obs a,b",
    "terminated": "it says which row is the last of its episode (if every row is an episode of its "
    "own, say columns={'episode_id': ''})",
    "behavior_prob": "it is the probability of the logged action; to estimate it, say "
    'behavior="estimate" (--estimate-behavior)',
    "episode_id": "it says which rows belong together",
}


@dataclass(frozen=True)
class Wanted:
    """What a user says of a table: the arguments of `open_log`."""

    discount: float | None = None
    targets: Sequence[str] | Mapping[str, Policy] | None = None
    columns: ColumnMap | None = None
    behavior: Policy | None = None
    unit: str | None = None
    extra: Mapping[str, Literal["number", "level"]] = field(default_factory=dict)
    obs: Sequence[str] | None = None
    rewards: Mapping[str, Any] | None = None
    needs: Sequence[str] = ()

    @property
    def policies(self) -> dict[str, Any]:
        """The targets that are functions or models."""
        given = self.targets if isinstance(self.targets, Mapping) else {}
        return {name: one for name, one in given.items() if not isinstance(one, str)}

    @property
    def reward_columns(self) -> list[str]:
        """The columns of all rewards."""
        weights = {} if self.rewards is None else reward_weights(self.rewards)
        return list(dict.fromkeys(name for one in weights.values() for name in one))


@dataclass
class Table:
    """A table whose columns are known, and without faults as far as was looked."""

    source: LogSource
    columns: Columns
    obs: tuple[str, ...] = ()  # columns that the observation is made of; (): it is there already
    after: dict[str, str] = field(default_factory=dict)  # those of the next observation, by these
    notes: list[str] = field(default_factory=list)
    encoding: encode.Encoding | None = None  # of `obs`
    actions: Levels = ()  # by their numbers, where they were numbered

    @property
    def file(self) -> str:
        """The first file, for messages."""
        return self.source.files[0]

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return list(self.source.schemas[0].names)

    def kind(self, column: object) -> Any:
        """The Arrow type of a column."""
        return self.source.schemas[0].field(str(column)).type

    @property
    def single(self) -> bool:
        """Whether every row is an episode of its own: nothing says otherwise."""
        return not self.columns.keys() & {"episode_id", "t", "terminated"}


def checked(source: LogSource, wanted: Wanted) -> Table:
    """The table with its columns; all its faults are raised together."""
    check_functions(wanted.targets, wanted.behavior)
    faults = Faults(source.files[0])
    table, finder = _found(source, wanted, faults)
    own, columns = _named(table, wanted, faults), table.columns
    lacking = _lacking(table, wanted, faults)
    for name in lacking:
        faults.add(_lack(table, name))
    faults.remedy = _proposals(table, lacking)
    finder.refuse_misspelled(columns, lacking, faults)
    fitted = {n for one in wanted.policies.values() for n in getattr(one, "feature_names_in_", ())}
    types = {k: t for k, t in _types(table, own).items() if not (k in fitted and t == "string")}
    table.source = source.with_types(types)
    with faults.caught():
        discount_of(table.file, wanted.discount, columns)
    fine = {}
    for key, column in {**columns, **own}.items():
        with faults.caught():
            for file, schema in zip(source.files, table.source.schemas, strict=True):
                check_type(file, schema, column)
            fine[key] = column
    for name, policy in wanted.policies.items():
        with faults.caught():
            label = f"the target '{name}'"
            Inputs.of(label, policy, table.obs, source.schemas[0], table.after)
    _check_rows(table.source, fine, faults)
    faults.check()
    columns |= {k: c for k, c in own.items() if k == "unit" or k.startswith(EXTRA)}
    return table


# Which columns there are


def _found(source: LogSource, wanted: Wanted, faults: Faults) -> tuple[Table, Finder]:
    """The columns that are found by their names, in all files the same."""
    file, schema = source.files[0], source.schemas[0]
    column_map = dict(checked_map(file, schema.names, wanted.columns, faults))
    finder = Finder(file, schema, column_map)
    given = wanted.targets if isinstance(wanted.targets, Mapping) else {}
    unclear = []
    for name, column in given.items():
        if not isinstance(column, str):
            continue
        own = any(finder.find(prefix + name) for prefix in (TARGET, WHOLE))
        if column in schema.names and not (own and column == name):
            whole = values.is_list(schema.field(column).type)
            column_map[(WHOLE if whole else TARGET) + name] = column
        elif not (own and column == name):
            unclear.append(name)
            faults.add(str(unknown(f"column for target '{name}'", column, schema.names)))
    names = None
    if wanted.targets is not None:
        names = [n for n in wanted.targets if n not in wanted.policies and n not in unclear]
    finders = [
        Finder(file, schema, column_map)
        for file, schema in zip(source.files, source.schemas, strict=True)
    ]
    table = Table(source, find_columns(finders[0], names, faults))
    for other in finders[1:]:
        found = find_columns(other, names, Faults(other.file))
        if found != table.columns:
            differ = sorted(set(file_names(found)) ^ set(file_names(table.columns)))
            raise InputError(
                f"'{other.file}' has other columns than '{file}' ({', '.join(differ)}); all files "
                "of a log must have the same columns."
            )
    _observed(table, wanted.obs, faults)
    if "t" in table.columns:
        table.columns.pop("timestamp", None)  # of which t would be made
    for name, kind in LOOSER.items():
        column = table.columns.get(name)
        if column is not None and not values.is_number(table.kind(column)):
            table.columns[name] = replace(column, meaning=Meaning(kind))
    return table, finders[0]


def _observed(table: Table, obs: Sequence[str] | None, faults: Faults) -> None:
    """Find the columns of the observation."""
    present, columns = table.names, table.columns
    if obs is None and "obs" not in columns:
        stems = ("obs_", "context_", "state_")
        found = ([name for name in present if name.startswith(stem)] for stem in stems)
        obs = next(filter(None, found), None)
        if obs is not None:
            table.notes.append(f"the observation is {listed(obs)}, by their names")
    if obs is None:
        return
    if isinstance(obs, str) or not all(isinstance(name, str) for name in obs) or not obs:
        raise InputError(f"obs must be a list of names of columns, got {obs!r}.")
    for name in dict.fromkeys(obs):
        if name not in present:
            faults.add(str(unknown("column for obs", name, present)))
        if list(obs).count(name) > 1:
            faults.add(f"obs names '{name}' twice")
    table.obs = tuple(dict.fromkeys(name for name in obs if name in present))
    columns.pop("obs", None)
    after = columns.get("next_obs")
    if after is not None and len(after.parts) != len(obs):
        del columns["next_obs"]
        faults.add(
            "with obs= the next observation is read in the same way; name its columns in the same "
            "order: columns={'next_obs': [...]}, or map it to ''"
        )
    elif after is not None:
        table.after = dict(zip(obs, after.parts, strict=True))
        columns["next_obs"] = replace(after, meaning=Meaning("seen"))


def _named(table: Table, wanted: Wanted, faults: Faults) -> Columns:
    """The columns that other arguments name, by their use."""
    uses: list[tuple[str, str, Kind]] = [
        (EXTRA + name, name, "number" if kind == "number" else "unit")
        for name, kind in wanted.extra.items()
    ]
    uses += [] if wanted.unit is None else [("unit", wanted.unit, "unit")]
    uses += [(f"rewards {name}", name, "number") for name in wanted.reward_columns]
    uses += [(f"obs {name}", name, "seen") for name in table.obs]
    found = {}
    for use, name, kind in uses:
        with faults.caught():
            shown = use if use.startswith(EXTRA) else use.partition(" ")[0]
            found[use] = named_column(table.source, name, shown, Meaning(kind))
    if wanted.rewards is not None:
        first = tuple(next(iter(reward_weights(wanted.rewards).values())))
        table.columns.pop("reward", None)
        if all(f"rewards {name}" in found for name in first):
            table.columns["reward"] = Column("reward", first, SCHEMA["reward"])
    return found


def _lacking(table: Table, wanted: Wanted, faults: Faults) -> list[str]:
    """The names of the schema that must be there, and are not."""
    there = {*table.columns, *(["obs"] if table.obs or wanted.obs else [])}
    there |= {name for name, column in (wanted.columns or {}).items() if column}  # or a fault
    there |= {"behavior_prob"} if there & {*BEHAVIOR, *BEHAVIOR_LOG, BEHAVIOR_WHOLE} else set()
    there |= {"reward"} if wanted.rewards is not None else set()
    needs = [
        "reward",
        "obs",
        *([] if table.single else ["episode_id", "terminated"]),
        *wanted.needs,
    ]
    if "allowed_actions" in there or any(map(is_model, wanted.policies.values())):
        needs.append("action")
    lacking = [n for n in dict.fromkeys(needs) if n not in there and n not in table.names]
    if lacking == ["terminated"] or ("terminated" in lacking and "episode_id" in table.columns):
        with faults.caught():
            if _one_row_each(table):
                lacking.remove("terminated")
    return lacking


def _one_row_each(table: Table) -> bool:
    """Whether no two rows have the same episode."""
    if "episode_id" not in table.columns:
        return False
    unit = replace(table.columns["episode_id"], meaning=Meaning("unit"))
    rows = table.source.rows
    if rows is None:
        chunks = table.source.read(unit.parts, 0, None, LOOK)
        rows = sum(chunk.batch.num_rows for chunk in chunks)
    return len(distinct(table.source, unit)) == rows


def _lack(table: Table, name: str) -> str:
    used = file_names(table.columns)
    close = difflib.get_close_matches(name, [n for n in table.names if n not in used], n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"there is no column '{name}'{hint}" + (f"; {WHY[name]}" if name in WHY else "")


def _proposals(table: Table, lacking: Sequence[str]) -> str:
    """A map of names, and columns for the observation, that may be meant."""
    import pyarrow.types as pt

    used = {*file_names(table.columns), *table.obs}
    free = {one.name: one.type for one in table.source.schemas[0] if one.name not in used}
    free = {name: k for name, k in free.items() if not name.startswith((TARGET, WHOLE))}
    found: dict[str, str] = {}
    for name in (name for name in lacking if name in HINTS):
        fits = {
            "reward": (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_decimal),
            "behavior_prob": (pt.is_floating, pt.is_decimal),
            "terminated": (pt.is_boolean, pt.is_integer),
        }.get(name, (pt.is_integer, pt.is_dictionary, values.is_text))
        left = (item for item in free.items() if item[0] not in found.values())
        some = [one for one, kind in left if any(test(kind) for test in fits)]
        close = difflib.get_close_matches(name, some, n=1, cutoff=0.6)
        close += [one for one in some if re.search(HINTS[name], one.lower())]
        if close:
            found[name] = close[0]
    texts = []
    if found:
        mapped = ",".join(f"{name}={column}" for name, column in found.items())
        texts.append(f"Perhaps columns={found!r} (--map {mapped}).")
    if "obs" in lacking:
        rest = [n for n, kind in free.items() if n not in found.values() and encode.kind_of(kind)]
        rest = [n for n in rest if not NOT_SEEN.search(n.lower())]
        texts += [f"Perhaps obs={rest!r} (--obs {','.join(rest)})."] if rest else []
    for name in [name for name in lacking if name in SCHEMA and not texts][:1]:
        texts.append(
            f"If it has another name, say so in the column map: columns={{'{name}': 'its_name'}}, "
            f"or --map {name}=its_name."
        )
    return " ".join(texts)


# Types and values


def discount_of(file: str, discount: float | None, columns: Columns) -> float | None:
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


def _types(table: Table, own: Columns) -> dict[str, Any]:
    """The Arrow type of each column by what it means, for files that have none."""
    import pyarrow as pa

    types = {"whole number": pa.int64(), "flag": pa.bool_(), "unit": pa.string()}
    untyped = ("action", "set", "time", "seen")
    found = {**table.columns, **own}.values()
    typed = {
        part: types.get(column.meaning.kind, pa.float64())
        for column in sorted(found, key=lambda column: column.meaning.kind != "unit")
        for part in column.parts  # one that is a number, too, is read as a number
        if column.meaning.kind not in untyped
    }
    for name in table.obs:  # a number that looks whole in the first rows may not stay so
        kind = encode.kind_of(table.kind(name))
        if kind in ("number", "level"):
            typed[name] = pa.float64() if kind == "number" else pa.string()
    return typed


def check_type(file: str, schema: Any, column: Column) -> None:
    """A column is of a type that it may have: known before any row is read."""
    meaning = column.meaning
    for name in column.parts:
        kind = schema.field(name).type
        if meaning.nullable and str(kind) == "null":
            continue  # a frame in which no row has a value
        expected, fine = "numbers", values.is_number(kind)
        if meaning.kind in ("vector", "distribution"):
            expected = "numbers or lists of numbers"
            fine = values.is_number(values.item_type(kind))
            if len(column.parts) > 1 and values.is_list(kind):
                expected, fine = "numbers, as one of several columns", False
        elif meaning.kind in ("unit", "time", "seen"):
            expected = "numbers, times, strings or levels"
            fine = encode.kind_of(kind) is not None
        elif meaning.kind == "set":
            expected, fine = "lists or strings", values.is_list(kind) or values.is_text(kind)
        elif meaning.kind == "action":
            fine = True
        if not fine:
            raise values.wrong_type(file, name, expected, kind)


def _check_rows(source: LogSource, columns: Columns, faults: Faults) -> None:
    """Check the values of every column in the first rows; of a frame, in all."""
    action = columns.get("action")
    most = 1.0
    if action is not None and values.is_continuous(source.schemas[0].field(str(action)).type):
        most = values.LARGEST_DENSITY
    end = None if isinstance(source, MemorySource) else LOOK
    pending = list(columns.values())

    def look(some: list[Column]) -> None:
        names = list(dict.fromkeys(part for column in some for part in column.parts))
        for chunk in source.read(names, 0, end, LOOK_BATCH):
            for column in [one for one in some if one in pending]:
                try:
                    check_values(chunk, column, most)
                except InputError as error:
                    faults.keep(error)
                    pending.remove(column)

    try:
        look(pending)
    except InputError:  # a text file stops at its first wrong value: column by column
        for column in pending.copy():
            with faults.caught():
                look([column])


def check_values(chunk: Chunk, column: Column, most: float) -> None:
    """The values of a column in some rows are within their bounds."""
    kind = column.meaning.kind
    if kind in ("vector", "distribution"):
        _check_lists(chunk, column)
    elif kind == "unit" or (kind == "action" and encode.kind_of(_type(chunk, column)) == "level"):
        present(chunk, column)
    elif kind == "time":
        encode.moments(chunk, str(column))
    elif kind in ("probability", "logged probability"):
        found, logged = values.floats(chunk, column), kind == "logged probability"
        values.probabilities(chunk, column, found, most, logged)
    elif kind == "log-probability":
        values.exp_of_logs(chunk, column, values.floats(chunk, column), most)
    elif kind in READERS:
        for part in column.parts:
            READERS[kind](chunk, part)


def _check_lists(chunk: Chunk, column: Column) -> None:
    if column.meaning.nullable:
        return  # it may not matter: read where it does
    array = chunk.batch.column(str(column))
    width = values.width(array.type, len(column.parts), array[0].as_py)
    if width and column.meaning.kind == "vector":
        values.require_finite(chunk, column, values.matrix(chunk, column.parts, width))
    elif width:
        found = values.matrix(chunk, column.parts, width, "probabilities")
        values.require_distributions(chunk, column, found)


def _type(chunk: Chunk, column: object) -> Any:
    return chunk.batch.column(str(column)).type


def _check_seen(chunk: Chunk, part: object) -> None:
    kind = encode.kind_of(_type(chunk, part))
    if kind in ("number", "time"):
        encode.numbers_of(chunk, str(part), kind)


READERS: dict[str, Callable[[Chunk, object], Any]] = {
    "whole number": values.whole_numbers, "flag": values.flags, "number": values.rewards,
    "discount": values.discounts, "kept": values.kept, "seen": _check_seen,
}  # fmt: skip
