"""Actions of any kind as numbers 0, 1, 2, ..., and the candidate sets of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, visible
from steadytd.logs import values
from steadytd.logs.sources.source import Chunk
from steadytd.logs.units import texts

MOST_ACTIONS = 1000  # different actions; more are hardly discrete
SEPARATOR = "|"  # between the actions of a text with several

Levels = tuple[str, ...] | tuple[float, ...]  # the actions by their numbers, sorted


def item_texts(column: Any) -> Any:
    """A column of lists of actions, or of texts with several actions, as lists."""
    import pyarrow.compute as pc

    if values.is_text(column.type):
        return pc.split_pattern(column, SEPARATOR)
    return column


def action_levels(file: str, seen: Any, policies: Sequence[Any], least: int = 0) -> Levels:
    """All actions, sorted: the distinct ones of the log, an Arrow array, and models' classes.

    Actions that are numbers from 0 on stay what they are, at least `least` of them.
    """
    own = [one for model in policies for one in np.asarray(model.classes_).tolist()]
    found: set[Any]
    if values.is_text(seen.type):
        found = {*seen.to_pylist(), *map(str, own)}
    else:
        strange = next((one for one in own if isinstance(one, str)), None)
        if strange is not None:
            raise InputError(
                f"{file}: a model's class {strange!r} is a string, but the logged actions are "
                f"numbers ({seen.type}); fit the model on the actions as they are logged."
            )
        found = {*map(float, seen.to_pylist()), *map(float, own)}
        if all(0 <= one < MOST_ACTIONS and one == int(one) for one in found):
            found = {*map(float, range(max(int(max(found, default=0)) + 1, least)))}
    if len(found) > MOST_ACTIONS:
        raise InputError(
            f"{file}: there are {len(found):,} different actions; policies over more than "
            f"{MOST_ACTIONS:,} need the columns behavior_prob and target_prob_<name>."
        )
    return tuple(sorted(found))


def level_indices(column: Any, levels: Levels) -> Any:
    """The numbers of actions in an Arrow array; null where one is none of the levels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if levels and isinstance(levels[0], str):
        return pc.index_in(texts(column), value_set=pa.array(levels, pa.large_string()))
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pc.index_in(plain.cast(pa.float64()), value_set=pa.array(levels, pa.float64()))


def action_numbers(chunk: Chunk, name: str, levels: Levels) -> Longs:
    """The number of every logged action."""
    found = level_indices(chunk.batch.column(name), levels)
    if found.null_count:
        index = int(values.as_numpy(found.is_null()).argmax())
        value = visible(str(chunk.batch.column(name)[index].as_py()))
        remedy = "fill it in, or drop the episode"
        raise values.fault(chunk, name, index, "every row needs an action", value, remedy)
    return np.asarray(values.as_numpy(found), dtype=np.int64)


def allowed(chunk: Chunk, name: str, levels: Levels, action: str) -> Floats:
    """Which actions may be taken in every row, as 1 and 0 [n, actions]; the logged one may be."""
    column = item_texts(chunk.batch.column(name))
    if column.null_count:
        index = int(values.as_numpy(column.is_null()).argmax())
        remedy = "list the allowed actions"
        raise values.fault(chunk, name, index, "every row needs its actions", "null", remedy)
    n = chunk.batch.num_rows
    row = values.as_numpy(column.value_lengths() if hasattr(column, "value_lengths") else column)
    place = level_indices(column.flatten(), levels)
    mask = np.zeros((n, len(levels)))
    known = values.as_numpy(place.is_valid())  # an action that nobody takes does not matter
    mask[np.repeat(np.arange(n), row)[known], values.as_numpy(place.drop_null())] = 1.0
    taken = action_numbers(chunk, action, levels)
    wrong = values.first_false(mask[np.arange(n), taken] > 0.0)
    if wrong is not None:
        rule, got = "the logged action must be among the allowed ones", levels[taken[wrong]]
        raise values.fault(chunk, name, wrong, rule, got, "correct the list or the action")
    return mask


def distinct_actions(column: Any) -> Any:
    """The distinct actions of an Arrow array, as texts or numbers; none is missing."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    found = texts(column) if values.is_text(kind) else column
    return found.drop_null().unique()
