"""From a table as people have it to the columns of a log: what is lacking is made, or asked for.

Named columns of any kind become the observation, actions of any kind are numbered, models and
candidate sets become columns, rows are put in order, and a log of single steps needs no columns of
episodes. What was assumed on the way are notes. What cannot be assumed is listed all at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.errors import InputError, listed, unknown
from steadytd.logs import actions, encode, values
from steadytd.logs.columns import (
    BEHAVIOR,
    BEHAVIOR_LOG,
    BEHAVIOR_WHOLE,
    SCHEMA,
    TARGET,
    WHOLE,
    Column,
    ColumnMap,
    Finder,
    Meaning,
)
from steadytd.logs.encode import Encoding
from steadytd.logs.policies import is_model
from steadytd.logs.sources.prepared import Made, PreparedSource, State
from steadytd.logs.sources.source import Chunk, LogSource, MemorySource
from steadytd.logs.units import distinct, level_numbers, texts

BATCH = 1 << 18  # rows read at a time
HINTS = {  # words in names of columns that may be what is lacking
    "episode_id": r"episode|session|visit|trip|traj|dialog|stay",
    "reward": r"reward|revenue|gain|profit|outcome|payoff|return|score|click|conver|cost",
    "terminated": r"termin|done|end|final|last",
    "action": r"action|arm|choice|chosen|offer|variant|treatment|decision|dose",
    "behavior_prob": r"prob|propens|^p$|^mu$|weight",
    "t": r"step|turn|time|when|date|order|rank|^t",
}

NOT_SEEN = re.compile(r"(^|_)id$|prob|propens|^(pi|mu|target)_")  # not of an observation


@dataclass
class Intake:
    """What a table is read as: a source with further columns, the map to them, and the notes."""

    source: LogSource
    columns: dict[str, str | Sequence[str]]
    notes: list[str] = field(default_factory=list)
    encoding: Encoding | None = None
    named: tuple[str, ...] = ()  # the columns that the observation is made of
    after: dict[str, str] = field(default_factory=dict)  # those of the next one, by these
    actions: actions.Levels = ()
    made: dict[str, Made] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The first file, for messages."""
        return self.source.files[0]

    def has(self, name: str) -> Column | None:
        """The column of a name of the schema, as it is found now."""
        return Finder(self.file, self.prepared().schemas[0], self.columns).find(name)

    def kind(self, column: object) -> Any:
        """The Arrow type of a column."""
        return self.source.schemas[0].field(str(column)).type

    def make(self, name: str, needs: Sequence[object], kind: Any, how: Callable[..., Any]) -> None:
        """Add a column that is made, for a name of the schema."""
        names, fresh = self.source.schemas[0].names, name
        while fresh in names or fresh in self.made:
            fresh += " (made)"
        self.made[fresh] = Made(tuple(map(str, needs)), kind, how)
        self.columns[name] = fresh

    def prepared(self) -> LogSource:
        """The source with the columns that are made."""
        return PreparedSource(self.source, self.made) if self.made else self.source


def take_in(
    source: LogSource,
    column_map: ColumnMap | None,
    obs: Sequence[str] | None,
    targets: Sequence[str] | Mapping[str, Any] | None,
    needs: Sequence[str] = (),
) -> Intake:
    """Read a table as a log; `needs` are optional names of the schema that must be there."""
    if column_map is not None and not isinstance(column_map, Mapping):
        raise InputError(
            f"columns must be a dictionary such as {{'reward': 'its_name'}}, got {column_map!r}."
        )
    given = Intake(source, dict(column_map or {}))
    policies = targets if isinstance(targets, Mapping) else {}
    by_model = {name: one for name, one in policies.items() if is_model(one)}
    _name_targets(given, policies)
    if by_model or given.has("allowed_actions"):
        needs = (*needs, "action")
    obs = _obs_columns(given, obs)
    single = _is_single_steps(given)
    _require(given, obs, needs, single, targets)
    _order(given, single)
    if obs is not None:
        _encode(given, obs)
    _number_actions(given, by_model)
    keep = given.has("keep_prob")
    if keep is not None:
        given.notes.append(f"episodes are weighted by 1 / '{keep}'")
    return given


# What is there, and what is lacking


def _name_targets(given: Intake, policies: Mapping[str, Any]) -> None:
    """Targets that are the names of columns: of the logged action, or lists of all actions."""
    for name, column in policies.items():
        own = any(given.has(prefix + name) is not None for prefix in (TARGET, WHOLE))
        if not isinstance(column, str) or (own and column == name):
            continue
        if column not in given.source.schemas[0].names:
            known = given.source.schemas[0].names
            raise InputError(
                f"{given.file}: {unknown(f'column for target {name!r}', column, known)}"
            )
        whole = values.is_list(given.kind(column))
        given.columns[(WHOLE if whole else TARGET) + name] = column


def _obs_columns(given: Intake, obs: Sequence[str] | None) -> list[str] | None:
    """The named columns of the observation; None: the log has it as numbers already."""
    present = given.source.schemas[0].names
    if obs is None:
        if given.has("obs") is not None:
            return None
        for stem in ("obs_", "context_", "state_"):
            found = [name for name in present if name.startswith(stem)]
            if found:
                given.notes.append(f"the observation is {listed(found)}, by their names")
                return found
        return None
    if isinstance(obs, str) or not all(isinstance(name, str) for name in obs) or not obs:
        raise InputError(f"obs must be a list of names of columns, got {obs!r}.")
    faults = [str(unknown("column for obs", name, present)) for name in obs if name not in present]
    for name in dict.fromkeys(name for name in obs if name in present):
        kind = given.kind(name)
        if encode.kind_of(kind) is None:
            faults.append(
                f"column '{name}' of obs must hold numbers, times, strings or levels, got {kind}"
            )
    faults += [f"obs names '{name}' twice" for name in set(obs) if list(obs).count(name) > 1]
    if faults:
        raise all_at_once(given.file, faults)
    return list(obs)


def _is_single_steps(given: Intake) -> bool:
    """Whether every row is an episode of its own: nothing says otherwise."""
    return all(given.has(name) is None for name in ("episode_id", "t", "terminated"))


def _require(
    given: Intake,
    obs: Sequence[str] | None,
    needs: Sequence[str],
    single: bool,
    targets: object,
) -> None:
    """Refuse a table that lacks something, with all that it lacks and a map that may be meant."""
    lacking = ["reward"] if given.has("reward") is None else []
    lacking += ["obs"] if obs is None and given.has("obs") is None else []
    if not single:
        lacking += [name for name in ("episode_id", "terminated") if given.has(name) is None]
        if lacking[-1:] == ["terminated"] and _one_row_each(given):
            lacking.pop()
    behavior = (*BEHAVIOR, *BEHAVIOR_LOG, BEHAVIOR_WHOLE)
    for name in dict.fromkeys(needs):
        names = behavior if name == "behavior_prob" else (name,)
        if all(given.has(one) is None for one in names):
            lacking.append(name)
    if not lacking:
        return
    name = lacking[0]
    proposed = _proposals(given, lacking) or (
        f" If it has another name, say so in the column map: columns={{'{name}': 'its_name'}}, or "
        f"--map {name}=its_name."
    )
    raise all_at_once(given.file, [_lack(given, name) for name in lacking], proposed)


def _lack(given: Intake, name: str) -> str:
    used = _used(given)
    free = [one for one in given.source.schemas[0].names if one not in used]
    close = difflib.get_close_matches(name, free, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    what = {
        "obs": "name the columns of the observation: obs=['a', 'b'], or --obs a,b",
        "terminated": "it says which row is the last of its episode (if every row is an episode "
        "of its own, say columns={'episode_id': ''})",
        "behavior_prob": "it is the probability of the logged action; to estimate it, say "
        'behavior="estimate" (--estimate-behavior)',
        "episode_id": "it says which rows belong together",
    }
    return f"there is no column '{name}'{hint}" + (f"; {what[name]}" if name in what else "")


def _used(given: Intake) -> set[str]:
    """The columns that are read as something already."""
    return {part for name in SCHEMA if (one := given.has(name)) for part in one.parts}


def _proposals(given: Intake, lacking: Sequence[str]) -> str:
    """A map of names, and columns for the observation, that may be meant."""
    import pyarrow.types as pt

    fields = {one.name: one.type for one in given.source.schemas[0]}
    used = _used(given)
    free = {name: kind for name, kind in fields.items() if name not in used}
    free = {name: k for name, k in free.items() if not name.startswith((TARGET, WHOLE))}
    found: dict[str, str] = {}
    for name in lacking:
        if name not in HINTS:
            continue
        fits = {
            "reward": (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_decimal),
            "behavior_prob": (pt.is_floating, pt.is_decimal),
            "terminated": (pt.is_boolean, pt.is_integer),
        }.get(name, (pt.is_integer, pt.is_dictionary, encode.is_text))
        left = (item for item in free.items() if item[0] not in found.values())
        some = [one for one, kind in left if any(test(kind) for test in fits)]
        close = difflib.get_close_matches(name, some, n=1, cutoff=0.6)
        close += [one for one in some if re.search(HINTS[name], one.lower())]
        if close:
            found[name] = close[0]
    text = ""
    if found:
        mapped = ",".join(f"{name}={column}" for name, column in found.items())
        text = f" Perhaps columns={found!r} (--map {mapped})."
    if "obs" in lacking:
        rest = [n for n, kind in free.items() if n not in found.values() and encode.kind_of(kind)]
        rest = [n for n in rest if not NOT_SEEN.search(n.lower())]
        text += f" Perhaps obs={rest!r} (--obs {','.join(rest)})." if rest else ""
    return text


def all_at_once(file: str, faults: Sequence[str], more: str = "") -> InputError:
    """One error for several faults."""
    if len(faults) == 1:
        fault = faults[0].rstrip(".")
        return InputError(f"{file}: {fault}.{more}")
    lines = "".join(f"\n  {i}. {one.rstrip('.')}." for i, one in enumerate(faults, 1))
    return InputError(f"{file}: {len(faults)} things are missing or wrong:{lines}\n{more.strip()}")


def size_of(source: LogSource, column: Column | None) -> int:
    """How many numbers a value has: by the schema, or in the first row; 0 where there is none."""
    if column is None:
        return 0
    if len(column.parts) > 1:
        return len(column.parts)
    kind = source.schemas[0].field(str(column)).type
    if str(kind) == "null":
        return 0
    size = values.list_size(kind)
    if size is None:
        [chunk] = source.read(column.parts, 0, 1, 1)
        size = len(chunk.batch.column(str(column))[0].as_py() or ())
    return size


# Rows in order


def _one_row_each(given: Intake) -> bool:
    """Whether no two rows have the same episode."""
    column = given.has("episode_id")
    if column is None:
        return False
    unit = Column("episode_id", column.parts, Meaning("unit"))
    rows = given.source.rows
    if rows is None:
        chunks = given.source.read(column.parts, 0, None, BATCH)
        rows = sum(chunk.batch.num_rows for chunk in chunks)
    return len(distinct(given.source, unit)) == rows


def _order(given: Intake, single: bool) -> None:
    """Columns of episodes and steps where they are lacking; the rows of a frame are sorted."""
    import pyarrow as pa

    if single:
        reward = given.has("reward")
        given.make("episode_id", [reward], pa.int64(), _row_numbers)
        given.make("t", [reward], pa.int64(), partial(_constant, value=0))
        given.make("terminated", [reward], pa.bool_(), partial(_constant, value=True))
        given.notes.append("every row is taken as an episode of one step, which terminates")
        return
    episode, step, time = (given.has(name) for name in ("episode_id", "t", "timestamp"))
    assert episode is not None
    if step is not None and not values.is_number(given.kind(step)):
        step, time = None, step
    key = step or time
    if isinstance(given.source, MemorySource):
        sort_frame(given, episode, key)
    if not values.is_number(given.kind(episode)) or not _growing(given, episode):
        unit = Column("episode_id", episode.parts, Meaning("unit"))
        known = distinct(given.source, unit)
        how = partial(_episode_numbers, column=unit, known=known)
        given.make("episode_id", episode.parts, pa.int64(), how)
    if step is None:
        needs = [*episode.parts, *(() if time is None else time.parts)]
        how = partial(_places, episode=str(episode), time=None if time is None else str(time))
        given.make("t", needs, pa.int64(), how)
        by = f"by '{time}'" if time is not None else "in the order in which they stand"
        given.notes.append(f"there is no column t: the rows of an episode are taken {by}")
    if given.has("terminated") is None:
        given.make("terminated", episode.parts, pa.bool_(), partial(_constant, value=True))
        given.notes.append("every episode has one row, which is taken to terminate it")


def _growing(given: Intake, episode: Column) -> bool:
    """Whether the numbers of a frame's episodes grow; those of files have to (see `order`)."""
    if not isinstance(given.source, MemorySource):
        return True
    column = given.source.table.column(str(episode))
    if column.null_count:
        return True  # refused when it is read
    ids = np.asarray(column.to_numpy())
    return not (ids[1:] < ids[:-1]).any()


def sort_frame(given: Intake, episode: Column, key: Column | None) -> None:
    """The rows of a frame by episode and time, if they are not: episodes by their first times."""
    assert isinstance(given.source, MemorySource)
    table = given.source.table
    column = table.column(str(episode)).combine_chunks()
    if column.null_count:
        return  # refused when it is read
    encoded = texts(column).dictionary_encode()
    code, known = values.as_numpy(encoded.indices), encoded.dictionary.to_pylist()
    by, gone = np.arange(len(code), dtype=np.float64), np.zeros(1, dtype=np.bool_)
    if key is not None:
        by, gone = _keys(table.column(str(key)).combine_chunks(), given.file, str(key))
    if gone.any() or "nan" in known:
        return
    changes = np.flatnonzero(code[1:] != code[:-1])
    apart = len(changes) + 1 > code.max() + 1
    falls = (by[1:] < by[:-1]) & (code[1:] == code[:-1])
    if not apart and not falls.any():
        return
    first = np.full(code.max() + 1, np.inf)
    timed = key is not None and key.name == "timestamp"
    np.minimum.at(first, code, by if timed else np.arange(len(code)))
    order = np.lexsort((by, code, first[code]))
    what = f"'{episode}'" if key is None else f"'{episode}' and '{key}'"
    given.source = MemorySource((f"the frame sorted by {what}",), given.source.schemas,
                                table.take(order))  # fmt: skip
    given.notes.append(f"the rows of the frame were sorted by {what}")


def _keys(column: Any, file: str, name: str) -> tuple[Floats, Bools]:
    """Steps or times as numbers, and where one is missing."""
    import pyarrow as pa

    kind = column.type
    if encode.is_text(kind) or pa.types.is_dictionary(kind):
        try:
            column = texts(column).cast(pa.timestamp("us"))
        except pa.ArrowException:
            raise values.wrong_type(file, name, "numbers or times", kind) from None
    is_time = encode.kind_of(column.type) == "time"
    chunk = Chunk(file, 0, pa.record_batch([column], names=[name]))
    return encode.numbers_of(chunk, name, "time" if is_time else "number")


# How columns are made


def _row_numbers(chunk: Chunk, state: State) -> Any:
    import pyarrow as pa

    return pa.array(chunk.log_row + np.arange(chunk.batch.num_rows))


def _constant(chunk: Chunk, state: State, value: Any) -> Any:
    import pyarrow as pa

    return pa.array(np.full(chunk.batch.num_rows, value))


def _episode_numbers(chunk: Chunk, state: State, column: Column, known: Any) -> Any:
    import pyarrow as pa

    return pa.array(level_numbers(chunk, column, known))


def _places(chunk: Chunk, state: State, episode: str, time: str | None) -> Any:
    """The place of each row in its episode, counted from the chunk before on."""
    import pyarrow as pa

    n = chunk.batch.num_rows
    ids = texts(chunk.batch.column(episode)).dictionary_encode()
    code, last = values.as_numpy(ids.indices.fill_null(-1)), ids[n - 1].as_py()
    begins = np.append(ids[0].as_py() != state.get("id"), code[1:] != code[:-1])
    row = np.arange(n)
    start = np.maximum.accumulate(np.where(begins, row, -state.get("steps", 0)))
    if time is not None:
        at, gone = _keys(chunk.batch.column(time), chunk.file, time)
        if gone.any():
            rule, remedy = "every row needs a time", "fill it in, or drop the episode"
            raise values.fault(chunk, time, int(gone.argmax()), rule, "none", remedy)
        earlier = at < np.append(state.get("time", -np.inf), at[:-1])
        index = values.first_false(begins | ~earlier)
        if index is not None:
            rule = "times must not go back within an episode: a stream is read as it stands"
            got = chunk.batch.column(time)[index].as_py()
            remedy = "sort the log by episode and time, or give it as a data frame"
            raise values.fault(chunk, time, index, rule, got, remedy)
        state["time"] = at[-1]
    place = row - start
    state["id"], state["steps"] = last, int(place[-1]) + 1
    return pa.array(place.astype(np.int64))


def _lists(found: Floats) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1)), found.shape[1])


def _encoded(chunk: Chunk, state: State, encoding: Encoding) -> Any:
    return _lists(encoding.numbers(chunk))


def _next_encoded(chunk: Chunk, state: State, encoding: Encoding) -> Any:
    """Null where no column has a value."""
    import pyarrow as pa

    found = encoding.numbers(chunk)
    gone = [values.as_numpy(chunk.batch.column(name).is_null()) for name in encoding.columns]
    mask = pa.array(np.logical_and.reduce(gone))
    items = pa.array(found.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(items, found.shape[1], mask=mask)


def _action_codes(chunk: Chunk, state: State, name: str, levels: actions.Levels) -> Any:
    import pyarrow as pa

    return pa.array(actions.action_numbers(chunk, name, levels))


def _allowed(chunk: Chunk, state: State, name: str, levels: actions.Levels, action: str) -> Any:
    return _lists(actions.allowed(chunk, name, levels, action))


# Observations and actions


def _encode(given: Intake, obs: Sequence[str]) -> None:
    """The named columns as one observation, and those of the next one in the same order."""
    import pyarrow as pa

    raw = given.source
    kinds = {name: encode.kind_of(given.kind(name)) for name in obs}
    raw = raw.with_types(_steady(given, kinds))
    given.source = raw
    given.named, given.encoding = tuple(obs), encode.fit(raw, obs)
    encoding = given.encoding
    after = given.columns.get("next_obs")
    if given.has("next_obs") is not None:
        if isinstance(after, str) or after is None or len(after) != len(obs):
            raise InputError(
                f"{given.file}: with obs= the next observation is read in the same way; name its "
                "columns in the same order: columns={'next_obs': [...]}, or map it to ''."
            )
        given.after = dict(zip(obs, after, strict=True))
        how = partial(_next_encoded, encoding=encoding.of(after))
        given.make("next_obs", after, pa.list_(pa.float64(), len(encoding.names)), how)
    how = partial(_encoded, encoding=encoding)
    given.make("obs", obs, pa.list_(pa.float64(), len(encoding.names)), how)
    given.notes += encoding.notes()


def _steady(given: Intake, kinds: Mapping[str, str | None]) -> dict[str, Any]:
    """Types that hold for all rows of a text file: a number that looks whole may not stay so."""
    import pyarrow as pa
    import pyarrow.types as pt

    numbers = [n for n, kind in kinds.items() if kind == "number"]
    numbers = [n for n in numbers if not pt.is_boolean(given.kind(n))]
    return {
        **dict.fromkeys(numbers, pa.float64()),
        **{name: pa.string() for name, kind in kinds.items() if kind == "level"},
    }


def _number_actions(given: Intake, by_model: Mapping[str, Any]) -> None:
    """Actions that are texts, or that models or candidate sets name, as numbers from 0 on."""
    import pyarrow as pa
    import pyarrow.types as pt

    column, sets = given.has("action"), given.has("allowed_actions")
    if column is None or values.is_list(given.kind(column)):
        return
    kind = given.kind(column)
    is_text = encode.kind_of(kind) == "level"
    if not (is_text or by_model or sets):
        return
    name = str(column)
    if is_text and not pt.is_dictionary(kind):
        given.source = given.source.with_types({name: pa.string()})
    chunks = given.source.read([name], 0, None, BATCH)
    parts = [actions.distinct_actions(chunk.batch.column(name)) for chunk in chunks]
    if sets is not None:
        for chunk in given.source.read(sets.parts, 0, None, BATCH):
            items = actions.item_texts(chunk.batch.column(str(sets))).flatten()
            parts.append(items.drop_null().cast(parts[0].type).unique())
    seen = pa.chunked_array(parts).unique()
    if len(seen) > actions.MOST_ACTIONS and not (by_model or sets):
        return  # known by their probabilities alone
    present = [n for n in given.source.schemas[0].names if n.startswith(WHOLE)]
    lists = [given.has(one) for one in (*present, BEHAVIOR_WHOLE)]
    least = max(size_of(given.source, one) for one in lists)
    given.actions = levels = actions.action_levels(given.file, seen, [*by_model.values()], least)
    if least > len(levels):
        raise InputError(
            f"{given.file}: the policies have probabilities of {least} actions, but only "
            f"{len(levels)} of them have names, so the entries cannot be told apart; number the "
            f"actions 0, 1, 2, ... in column '{name}'."
        )
    if levels != tuple(range(len(levels))):
        order = ", ".join(f"{i} = {level}" for i, level in enumerate(levels[:8]))
        more = ", ..." if len(levels) > 8 else ""
        given.notes.append(f"actions are numbered in the order of their names: {order}{more}")
    how = partial(_action_codes, name=name, levels=levels)
    given.make("action", [name], pa.int64(), how)
    if sets is None:
        return
    how = partial(_allowed, name=str(sets), levels=levels, action=name)
    size = pa.list_(pa.float64(), len(levels))
    given.make("allowed_actions", (str(sets), name), size, how)
    if by_model:
        given.notes.append(f"models are restricted to '{sets}' and rescaled to sum to 1")
