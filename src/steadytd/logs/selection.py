"""Some rows of a log, chosen by a column that is constant in an episode: units, or segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Longs
from steadytd.base.errors import InputError, visible
from steadytd.logs.columns import Column, Meaning
from steadytd.logs.log import Log
from steadytd.logs.sources import open_source
from steadytd.logs.sources.selected import SelectedSource
from steadytd.logs.sources.source import BATCH, LogSource
from steadytd.logs.units import distinct, level_numbers, named_column, unit_numbers
from steadytd.logs.values import whole_numbers


def groups(source: LogSource, name: str, use: str, episode: Column | None) -> tuple[Longs, Any]:
    """The number of every row's group, and the distinct values as an Arrow array of texts.

    A group has the rows with one value of the column `name`. With the column `episode` the value
    must be the same in all rows of an episode.
    """
    import pyarrow as pa

    source = source.with_types({name: pa.string()} if name != str(episode) else {})
    column = named_column(source, name, use, Meaning("unit"))
    values = distinct(source, column)
    parts, last_id, last = [np.empty(0, dtype=np.int64)], None, -1
    for chunk in source.read(list({name, str(episode or name)}), 0, None, BATCH):
        if episode is None:
            parts.append(level_numbers(chunk, column, values))
            continue
        ids = whole_numbers(chunk, episode)
        first = np.append(ids[0] != last_id, ids[1:] != ids[:-1])
        parts.append(unit_numbers(chunk, column, values, first, last, f"one {use}"))
        last_id, last = ids[-1], int(parts[-1][-1])
    return np.concatenate(parts), values


def unit_groups(log: Log, by: str | None = None) -> tuple[Longs, Any]:
    """The groups of a log by a column (default: its units, or else its episodes)."""
    episode = log.schema.columns["episode_id"]
    return groups(log.source, by or log.unit or str(episode), "unit", episode)


def selected(log: Log, keep: Bools) -> Log:
    """The log of some rows of a whole log; they must be whole episodes."""
    return replace(log, source=SelectedSource(log.source, np.flatnonzero(keep)), left_out=None)


def split(
    source: Any, *, by: str | None = None, share: float = 0.5, seed: int = 0
) -> tuple[Any, Any]:
    """Two logs with disjoint units: one to learn a policy from, one to evaluate it on.

    `source` is an open log or a data frame; both parts are of the same kind. `by` is the column of
    units; without it an open log is split by its own units, and a frame by `episode_id`. The first
    part has the `share` of the units, at random.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"share must lie between 0 and 1, got {share!r}.")
    if isinstance(source, Log):
        numbers, values = unit_groups(source, None if by == "unit" else by)
    else:
        numbers, values = frame_groups(source, by, "split")
    if len(values) < 2:
        raise InputError(
            f"a log of one unit cannot be split (column '{by or 'episode_id'}'); name another "
            "column with by=."
        )
    first = int(np.clip(round(share * len(values)), 1, len(values) - 1))
    chosen = np.zeros(len(values), dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(len(values))[:first]] = True
    return rows_of(source, chosen[numbers]), rows_of(source, ~chosen[numbers])


def frame_groups(
    frame: Any, by: str | None, what: str, episode: str = "episode_id"
) -> tuple[Longs, Any]:
    """The groups of a data frame by a column, its episodes, or its rows if it has no episodes."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(f"{what} takes a data frame, got {type(frame).__name__}; read it first.")
    opened = open_source(frame)
    known = episode in opened.schemas[0].names
    if by is None and not known:
        n = opened.rows or 0
        return np.arange(n), np.arange(n)
    whole = Column("episode_id", (episode,), Meaning("whole number")) if known else None
    return groups(opened, by or episode, "unit", whole)


def rows_of(source: Any, keep: Bools) -> Any:
    """Some rows of an open log or a frame, as the same kind."""
    import pyarrow as pa

    if isinstance(source, Log):
        return selected(source, keep)
    if hasattr(source, "loc"):  # Pandas
        return source.loc[keep]
    if type(source).__module__.startswith("polars"):
        return source.filter(keep)
    return pa.table(source).filter(pa.array(keep))


def require_disjoint(log: Log, other: Any) -> None:
    """Refuse a log or frame, on which targets were learned, that shares units with this log."""
    import pyarrow.compute as pc

    name = log.unit or str(log.schema.columns["episode_id"])
    source = other.source if isinstance(other, Log) else open_source(other)
    mine, theirs = (groups(one, name, "unit", None)[1] for one in (log.source, source))
    both = mine.filter(pc.is_in(mine, value_set=theirs))
    if len(both):
        named = ", ".join(visible(value) for value in both[:3].to_pylist())
        raise InputError(
            f"{len(both):,} of {len(mine):,} values of '{name}' are also in learned_on (such as "
            f"{named}): a target looks better on the data it was learned from. Split first: "
            f"learn, test = st.split(log, by='{name}')."
        )
