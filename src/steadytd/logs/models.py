"""Target policies that are models: anything fitted with `predict_proba` and `classes_`.

A scikit-learn pipeline is one. It is given the raw columns that it was fitted on, as a data frame,
and its classes are matched with the logged actions by their names. Where rows have candidate sets,
its probabilities are restricted to them and divided by their sum.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, unknown, users_own, visible
from steadytd.logs import values
from steadytd.logs.columns import WHOLE, Finder
from steadytd.logs.encode import is_text
from steadytd.logs.sources.source import Chunk, MemorySource
from steadytd.logs.units import texts

MOST_ACTIONS = 1000  # different actions; more are hardly discrete
SEPARATOR = "|"  # between the actions of a text with several

Levels = tuple[str, ...] | tuple[float, ...]  # the actions by their numbers, sorted


def is_model(policy: object) -> bool:
    """Whether a policy is a fitted model."""
    return hasattr(policy, "predict_proba") and hasattr(policy, "classes_")


def inputs_of(model: Any, obs: Sequence[str]) -> tuple[str, ...]:
    """The columns that a model is given: those that it was fitted on, or those of `obs`."""
    return tuple(map(str, getattr(model, "feature_names_in_", obs)))


def item_texts(column: Any) -> Any:
    """A column of lists of actions, or of texts with several actions, as lists."""
    import pyarrow.compute as pc

    if is_text(column.type):
        return pc.split_pattern(column, SEPARATOR)
    return column


def action_levels(file: str, seen: Any, policies: Sequence[Any], least: int = 0) -> Levels:
    """All actions, sorted: the distinct ones of the log, an Arrow array, and models' classes.

    Actions that are numbers from 0 on stay what they are, at least `least` of them.
    """
    own = [one for model in policies for one in np.asarray(model.classes_).tolist()]
    found: set[Any]
    if is_text(seen.type):
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


def probabilities(
    model: Any, label: str, chunk: Chunk, inputs: Sequence[str], levels: Levels
) -> Floats:
    """The model's probabilities of all actions [n, actions] in the rows of a chunk."""
    n, given = chunk.batch.num_rows, f"from row {chunk.row} on (counted from 0)"
    with users_own(f"{chunk.file}: {label}, given {chunk.batch.num_rows} rows {given},"):
        found = np.asarray(model.predict_proba(rows_for(model, chunk.batch.select(list(inputs)))))
    classes = np.asarray(model.classes_).tolist()
    if found.shape != (n, len(classes)) or found.dtype.kind != "f":
        raise InputError(
            f"{label}: predict_proba must return a probability for each of classes_, an array of "
            f"shape ({n}, {len(classes)}), got {found.dtype} of shape {found.shape}."
        )
    place = {level: i for i, level in enumerate(levels)}
    by_name = [str(one) if isinstance(levels[0], str) else float(one) for one in classes]
    out = np.zeros((n, len(levels)))
    out[:, [place[one] for one in by_name]] = found
    return out


def restricted(chunk: Chunk, label: str, found: Floats, mask: Floats) -> Floats:
    """The probabilities inside the candidate sets, divided by their sum."""
    inside = found * mask
    total = inside.sum(axis=1)
    index = values.first_false(total > 0.0)
    if index is not None:
        rule, remedy = "an allowed action must have a probability above 0", "correct the list"
        raise values.fault(chunk, label, index, rule, "probability 0 for all", remedy)
    return np.asarray(inside / total[:, None])


def rows_for(model: Any, batch: Any) -> Any:
    """What a model is given: a data frame if it was fitted on named columns, else an array."""
    if not hasattr(model, "feature_names_in_"):
        return np.column_stack([np.asarray(column.to_pylist()) for column in batch.columns])
    try:
        importlib.import_module("pandas")
    except ImportError:
        return importlib.import_module("polars").from_arrow(batch)
    return batch.to_pandas()


def with_policy(frame: Any, name: str, model: Any, obs: Sequence[str] = ()) -> Any:
    """The frame with a column `target_probs_<name>`: what a model does in each of its rows.

    `model` has `predict_proba` and `classes_`; it is given the columns that it was fitted on, or
    those of `obs`. Entries follow the actions (column `action` or a name like it) in sorted order.
    A pandas or Polars frame comes back as what it was, anything else as an Arrow table.
    """
    if not is_model(model):
        raise InputError(
            f"the model for '{name}' needs predict_proba and classes_ (it must be fitted), got "
            f"{type(model).__name__}."
        )
    source = MemorySource.of(frame)
    table = source.table
    action = Finder(source.files[0], table.schema, {}).find("action")
    if action is None:
        raise InputError(f"{source.files[0]}: there is no column 'action'; rename the column.")
    column = str(action)
    inputs = inputs_of(model, obs)
    for one in (*inputs, *([] if inputs else ["obs"])):
        if one not in table.column_names:
            raise InputError(
                f"{unknown(f'column for the model {name!r}', one, table.column_names)}"
            )
    wanted = list(dict.fromkeys([*inputs, column]))
    batch = table.select(wanted).combine_chunks().to_batches()[0]
    chunk = Chunk(source.files[0], 0, batch)
    levels = action_levels(source.files[0], distinct_actions(batch.column(column)), [model])
    found = probabilities(model, f"the model for '{name}'", chunk, inputs, levels)
    return _with_column(frame, table, WHOLE + name, found)


def distinct_actions(column: Any) -> Any:
    """The distinct actions of an Arrow array, as texts or numbers; none is missing."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    found = texts(column) if is_text(kind) else column
    return found.drop_null().unique()


def _with_column(frame: Any, table: Any, name: str, found: NDArray[Any]) -> Any:
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1)), found.shape[1])
    module = type(frame).__module__.partition(".")[0]
    if module == "pandas":
        return frame.assign(**{name: list(found)})
    added = table.append_column(name, lists)
    return importlib.import_module("polars").from_arrow(added) if module == "polars" else added
