"""From a table as people have it to the columns of a log: what is lacking is made.

Named columns of any kind become the observation, actions of any kind are numbered, rows are put in
order, and a log of single steps needs no columns of episodes. What was assumed are notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.errors import InputError
from steadytd.logs import actions, encode, values
from steadytd.logs.check import Table
from steadytd.logs.columns import BEHAVIOR_WHOLE, SCHEMA, WHOLE, Column, Meaning
from steadytd.logs.encode import Encoding
from steadytd.logs.sources.prepared import Made, PreparedSource, State
from steadytd.logs.sources.source import BATCH, Chunk, LogSource, MemorySource
from steadytd.logs.units import distinct, level_numbers, texts


def take_in(table: Table, by_model: Sequence[Any]) -> LogSource:
    """The source with the columns that are made; `by_model` are the targets that are models."""
    made: dict[str, Made] = {}

    def make(
        name: str,
        needs: Sequence[object],
        kind: Any,
        how: Callable[..., Any],
        follows: bool = False,
    ) -> None:
        fresh = name
        while fresh in table.names or fresh in made:
            fresh += " (made)"
        made[fresh] = Made(tuple(map(str, needs)), kind, how, follows)
        meaning = Meaning("vector") if name == "allowed_actions" else SCHEMA[name]
        table.columns[name] = Column(name, (fresh,), meaning)

    _order(table, make)
    if table.obs:
        _encode(table, make)
    _number_actions(table, by_model, make)
    keep = table.columns.get("keep_prob")
    if keep is not None:
        table.notes.append(f"episodes are weighted by 1 / '{keep}'")
    return PreparedSource(table.source, made) if made else table.source


Make = Callable[..., None]  # name of the schema, needed columns, Arrow type, how[, follows]


def size_of(source: LogSource, column: Column | None) -> int:
    """How many numbers a value has: by the schema, or in the first row; 0 where there is none."""
    if column is None:
        return 0

    def first() -> Any:
        [chunk] = source.read(column.parts, 0, 1, 1)
        return chunk.batch.column(str(column))[0].as_py()

    return values.width(source.schemas[0].field(str(column)).type, len(column.parts), first)


# Rows in order


def _order(table: Table, make: Make) -> None:
    """Columns of episodes and steps where they are lacking; the rows of a frame are sorted."""
    import pyarrow as pa

    columns = table.columns
    if table.single:
        reward = columns["reward"].parts[:1]
        make("episode_id", reward, pa.int64(), _row_numbers)
        make("t", reward, pa.int64(), partial(_constant, value=0))
        make("terminated", reward, pa.bool_(), partial(_constant, value=True))
        table.notes.append("every row is taken as an episode of one step, which terminates")
        return
    episode, step, time = columns["episode_id"], columns.get("t"), columns.pop("timestamp", None)
    if step is not None and step.meaning.kind == "time":
        step, time = None, step
    numbered = episode.meaning.kind != "unit"
    if isinstance(table.source, MemorySource):
        _sort_frame(table, episode, step or time)
        ids = table.source.table.column(str(episode))
        numbered = numbered and not (np.diff(values.as_numpy(ids.combine_chunks())) < 0).any()
    if not numbered:
        unit = Column("episode_id", episode.parts, Meaning("unit"))
        how = partial(level_numbers, column=unit, known=distinct(table.source, unit))
        make("episode_id", episode.parts, pa.int64(), how)
    if step is None:
        needs = [*episode.parts, *(() if time is None else time.parts)]
        how = partial(_places, episode=str(episode), time=None if time is None else str(time))
        make("t", needs, pa.int64(), how, follows=True)
        by = f"by '{time}'" if time is not None else "in the order in which they stand"
        table.notes.append(f"there is no column t: the rows of an episode are taken {by}")
    if "terminated" not in columns:
        make("terminated", episode.parts, pa.bool_(), partial(_constant, value=True))
        table.notes.append("every episode has one row, which is taken to terminate it")


def _sort_frame(table: Table, episode: Column, key: Column | None) -> None:
    """The rows of a frame by episode and time, if they are not: episodes by their first times."""
    assert isinstance(table.source, MemorySource)
    frame = table.source.table
    encoded = texts(frame.column(str(episode)).combine_chunks()).dictionary_encode()
    code = values.as_numpy(encoded.indices)
    by = np.arange(len(code), dtype=np.float64)
    if key is not None:
        [batch] = frame.select([str(key)]).combine_chunks().to_batches()
        by = encode.moments(Chunk(table.file, 0, batch), str(key))
    apart = np.count_nonzero(code[1:] != code[:-1]) > code.max()
    falls = (by[1:] < by[:-1]) & (code[1:] == code[:-1])
    if not apart and not falls.any():
        return
    first = np.full(code.max() + 1, np.inf)
    timed = key is not None and key.name == "timestamp"
    np.minimum.at(first, code, by if timed else np.arange(len(code)))
    order = np.lexsort((by, code, first[code]))
    what = f"'{episode}'" if key is None else f"'{episode}' and '{key}'"
    label = (f"the frame sorted by {what}",)
    table.source = MemorySource(label, table.source.schemas, frame.take(order))
    table.notes.append(f"the rows of the frame were sorted by {what}")


def _row_numbers(chunk: Chunk) -> Longs:
    return chunk.log_row + np.arange(chunk.batch.num_rows)


def _constant(chunk: Chunk, value: Any) -> NDArray[Any]:
    return np.full(chunk.batch.num_rows, value)


def _places(chunk: Chunk, state: State, episode: str, time: str | None) -> Longs:
    """The place of each row in its episode, counted from the chunk before on."""
    n = chunk.batch.num_rows
    ids = texts(chunk.batch.column(episode)).dictionary_encode()
    code, last = values.as_numpy(ids.indices.fill_null(-1)), ids[n - 1].as_py()
    begins = np.append(ids[0].as_py() != state.get("id"), code[1:] != code[:-1])
    if time is not None:
        at = encode.moments(chunk, time)
        _require_order(chunk, time, at, begins, state.get("time", -np.inf))
        state["time"] = at[-1]
    row = np.arange(n)
    place = row - np.maximum.accumulate(np.where(begins, row, -state.get("steps", 0)))
    state["id"], state["steps"] = last, int(place[-1]) + 1
    return np.asarray(place, dtype=np.int64)


def _require_order(chunk: Chunk, time: str, at: Floats, begins: Bools, before: float) -> None:
    index = values.first_false(begins | (at >= np.append(before, at[:-1])))
    if index is not None:
        rule = "times must not go back within an episode: a stream is read as it stands"
        got = chunk.batch.column(time)[index].as_py()
        remedy = "sort the log by episode and time, or give it as a data frame"
        raise values.fault(chunk, time, index, rule, got, remedy)


# Observations and actions


def _encode(table: Table, make: Make) -> None:
    """The named columns as one observation, and those of the next one in the same order."""
    import pyarrow as pa

    table.encoding = encoding = encode.fit(table.source, table.obs)
    kind = pa.list_(pa.float64(), len(encoding.names))
    make("obs", table.obs, kind, encoding.numbers)
    if table.after:
        after = tuple(table.after.values())
        make("next_obs", after, kind, partial(_next_numbers, encoding=encoding.of(after)))
    table.notes += encoding.notes()


def _next_numbers(chunk: Chunk, encoding: Encoding) -> Floats:
    """NaN where no column has a value."""
    found = encoding.numbers(chunk)
    gone = [values.as_numpy(chunk.batch.column(name).is_null()) for name in encoding.columns]
    found[np.logical_and.reduce(gone)] = np.nan
    return found


def _number_actions(table: Table, by_model: Sequence[Any], make: Make) -> None:
    """Actions that are texts, or that models or candidate sets name, as numbers from 0 on."""
    import pyarrow as pa

    columns = table.columns
    column, sets = columns.get("action"), columns.get("allowed_actions")
    if column is None or values.is_list(table.kind(column)):
        return
    kind, name = table.kind(column), str(column)
    is_text = encode.kind_of(kind) == "level"
    if not (is_text or by_model or sets):
        return
    if is_text and not pa.types.is_dictionary(kind):
        table.source = table.source.with_types({name: pa.string()})
    chunks = table.source.read([name], 0, None, BATCH)
    parts = [actions.distinct_actions(chunk.batch.column(name)) for chunk in chunks]
    if sets is not None:
        for chunk in table.source.read(sets.parts, 0, None, BATCH):
            items = actions.item_texts(chunk.batch.column(str(sets))).flatten()
            parts.append(items.drop_null().cast(parts[0].type).unique())
    seen = pa.chunked_array(parts).unique()
    if len(seen) > actions.MOST_ACTIONS and not (by_model or sets):
        return  # known by their probabilities alone
    lists = [c for key, c in columns.items() if key.startswith(WHOLE) or key == BEHAVIOR_WHOLE]
    least = max((size_of(table.source, one) for one in lists), default=0)
    table.actions = levels = actions.action_levels(table.file, seen, by_model, least)
    if least > len(levels):
        raise InputError(
            f"{table.file}: the policies have probabilities of {least} actions, but only "
            f"{len(levels)} of them have names, so the entries cannot be told apart; number the "
            f"actions 0, 1, 2, ... in column '{name}'."
        )
    if levels != tuple(range(len(levels))):
        order = ", ".join(f"{i} = {level}" for i, level in enumerate(levels[:8]))
        more = ", ..." if len(levels) > 8 else ""
        table.notes.append(f"actions are numbered in the order of their names: {order}{more}")
    make("action", [name], pa.int64(), partial(actions.action_numbers, name=name, levels=levels))
    if sets is None:
        return
    how = partial(actions.allowed, name=str(sets), levels=levels, action=name)
    make("allowed_actions", (str(sets), name), pa.list_(pa.float64(), len(levels)), how)
    if by_model:
        table.notes.append(f"models are restricted to '{sets}' and rescaled to sum to 1")
