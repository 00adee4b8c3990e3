"""Probabilities under the targets and the behaviour policy: from columns, functions and models.

Of each policy the probability of the logged action is needed; where the probabilities of all
actions are known, the policy is known as a whole. A model is anything fitted that has
`predict_proba` and `classes_`. Where the observation was made of named columns, functions and
models are given these columns with their own values, else the observation as numbers [n, k].
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs, read_only
from steadytd.base.errors import InputError, listed, unknown, users_own
from steadytd.base.numbers import count
from steadytd.logs import values
from steadytd.logs.actions import Levels, action_levels, distinct_actions
from steadytd.logs.columns import (
    BEHAVIOR,
    BEHAVIOR_LOG,
    BEHAVIOR_WHOLE,
    TARGET,
    WHOLE,
    Column,
    Finder,
)
from steadytd.logs.encode import kind_of
from steadytd.logs.sources.selected import taken
from steadytd.logs.sources.source import Chunk, MemorySource
from steadytd.logs.values import Matrix

Function = Callable[..., Any]  # see `docs/logs.md`: of observations alone, or with actions
Policy = Any  # a function, a fitted model, or the name of a column


def is_model(policy: object) -> bool:
    """Whether a policy is a fitted model."""
    return hasattr(policy, "predict_proba") and hasattr(policy, "classes_")


@dataclass(frozen=True)
class Model:
    """A fitted model as a function of rows; its probabilities are in the order of `levels`."""

    model: Any
    levels: Levels

    def __call__(self, rows: Any) -> Floats:
        """The probabilities of all actions [n, actions]."""
        plain = not hasattr(self.model, "feature_names_in_")  # fitted on an array
        found = np.asarray(self.model.predict_proba(np.asarray(rows) if plain else rows))
        classes = self.model.classes_
        if found.shape != (len(rows), len(classes)) or found.dtype.kind != "f":
            raise TypeError(
                "predict_proba must return a probability for each of classes_, an array of shape "
                f"({len(rows)}, {len(classes)}), got {found.dtype} of shape {found.shape}"
            )
        place = {level: i for i, level in enumerate(self.levels)}
        name = str if isinstance(self.levels[0], str) else float
        out = np.zeros((len(rows), len(self.levels)))
        out[:, [place[name(one)] for one in np.asarray(classes).tolist()]] = found
        return out


@dataclass(frozen=True)
class Inputs:
    """What a function or model is given of a chunk: columns of the log with their own values.

    A function gets a data frame if one of them holds texts, categories or times, else an array of
    numbers [n, k], NaN where one is missing. A model gets what it was fitted on.
    """

    names: tuple[str, ...]
    frame: bool
    after: tuple[str, ...] = ()  # the columns with their values in the next state, where known

    @staticmethod
    def of(
        label: str, policy: Any, named: Sequence[str], schema: Any, after: Mapping[str, str]
    ) -> Inputs | None:
        """Those of a policy; None: it is given the observation as numbers.

        `named` are the columns that the observation was made of, `after` has their next columns.
        """
        fitted = getattr(policy, "feature_names_in_", None)
        names = tuple(named) if fitted is None else tuple(map(str, fitted))
        if not names:
            return None
        lacking = [repr(name) for name in names if name not in schema.names]
        if lacking:
            raise InputError(
                f"{label} was fitted on columns that the log does not have: {listed(lacking)}; add "
                "them to the log."
            )
        numbers = all(kind_of(schema.field(name).type) == "number" for name in names)
        known = tuple(after[name] for name in names) if after.keys() >= {*names} else ()
        return Inputs(names, fitted is not None or not numbers, known)

    def rows(self, batch: Any, columns: Sequence[str] = ()) -> Any:
        """What is given; `columns` stand for those of `names`."""
        import pyarrow as pa

        found = [batch.column(name) for name in columns or self.names]
        if not self.frame:
            floats = (one.cast(pa.float64()).fill_null(np.nan) for one in found)
            return np.column_stack([values.as_numpy(one) for one in floats])
        batch = pa.record_batch(found, names=list(self.names))
        try:
            importlib.import_module("pandas")
        except ImportError:
            return importlib.import_module("polars").from_arrow(batch)
        return batch.to_pandas()


@dataclass(frozen=True)
class PolicySource:
    """A target or the behaviour policy, and where its probabilities come from."""

    target: str | None  # its name; None: the behaviour policy
    logged: Column | None = None  # of the logged action
    all_actions: Column | None = None
    next_all_actions: Column | None = None  # in the state after the row
    function: Function | None = None  # in place of columns
    takes_action: bool = False  # a function of (obs, action), for the logged action alone
    inputs: Inputs | None = None  # of the function; None: the observation as numbers

    @property
    def label(self) -> str:
        """How a sentence names it."""
        return "the behaviour policy" if self.target is None else f"the target '{self.target}'"

    @property
    def logged_name(self) -> str:
        """The column with the probability of the logged action, or what it would be called."""
        column = self.logged or self.all_actions
        if column is not None:
            return str(column)
        return BEHAVIOR[0] if self.target is None else TARGET + self.target

    @property
    def whole_name(self) -> str:
        """What the columns with the probabilities of all actions are called in the schema."""
        return BEHAVIOR_WHOLE if self.target is None else WHOLE + self.target

    @property
    def known(self) -> bool:
        """Whether there are any probabilities."""
        return bool(self.function or self.logged or self.all_actions)

    @property
    def whole(self) -> bool:
        """Whether the probabilities of all actions are known."""
        return self.all_actions is not None or bool(self.function and not self.takes_action)

    def needs(self, fields: frozenset[str]) -> tuple[bool, bool]:
        """Whether these fields of a batch need the logged action's probability, and all actions'.

        Those of all actions are needed for themselves, or to look up the logged one.
        """
        name = "behavior_prob" if self.target is None else "target_prob"
        logged = self.known and name in fields
        return logged, self.whole and ("probs" in fields or (logged and self.logged is None))

    def needs_action(self, fields: frozenset[str]) -> bool:
        """Whether these fields of a batch need the logged actions."""
        logged, everything = self.needs(fields)
        return everything or (logged and self.takes_action)

    def reads(self, fields: frozenset[str]) -> list[str]:
        """The columns, by their names in the file, to read for these fields of a batch."""
        logged, everything = self.needs(fields)
        after = "probs" in fields
        some = [self.logged] * logged + [self.all_actions] * everything
        some += [self.next_all_actions] * after
        names = [part for column in some if column is not None for part in column.parts]
        if self.inputs is not None and (logged or everything):
            names += [*self.inputs.names, *(self.inputs.after if after else ())]
        return names

    def logged_whole(self, chunk: Chunk, n_actions: int) -> Floats:
        """Probabilities of all actions [n, n_actions] from the columns."""
        assert self.all_actions is not None
        found = values.matrix(chunk, self.all_actions.parts, n_actions, "probabilities")
        values.require_distributions(chunk, self.all_actions, found)
        return found.astype(np.float64, copy=False)

    def next_whole(self, chunk: Chunk, n_actions: int, wanted: Longs) -> Floats:
        """The same at the next observations of these rows; NaN where not known, or not read."""
        found = np.full((len(wanted), n_actions), np.nan)
        names = chunk.batch.schema.names
        if self.inputs is not None and {*self.inputs.after} & {*names}:
            rows = taken(chunk.batch.select(self.inputs.after), wanted)
            return self.called_whole(
                chunk, self.inputs.rows(rows, rows.schema.names), n_actions, wanted
            )
        column = self.next_all_actions
        if column is None or column.parts[0] not in names:
            return found
        given, known = values.optional_matrix(chunk, column.parts, n_actions, "probabilities")
        if given is not None:
            values.require_distributions(chunk, column, given[known], np.flatnonzero(known))
            found[known[wanted]] = given[wanted][known[wanted]]
        return found

    def called_whole(
        self, chunk: Chunk, rows: Any, n_actions: int, led_by: Longs | None = None
    ) -> Floats:
        """Probabilities of all actions from the function; `rows` are what it is given.

        `led_by` are the rows of the chunk that lead to the last of `rows`, next observations.
        """
        what = "the probabilities of all actions"
        found = self._answer(chunk, (len(rows), n_actions), what, rows)
        n = len(rows) - (0 if led_by is None else len(led_by))
        values.require_distributions(chunk, self.whole_name, found[:n])
        values.require_distributions(chunk, f"next_{self.whole_name}", found[n:], led_by)
        return found.astype(np.float64)

    def logged_at(
        self, chunk: Chunk, obs: Matrix, action: NDArray[Any] | None, entries: Floats | None,
        most: float,
    ) -> Floats:  # fmt: skip
        """Probabilities of the logged actions (which have the names of `action`), not yet checked.

        `entries` are those among the probabilities of all actions, where these were read; `most` is
        the largest that a probability or density may be.
        """
        column = self.logged
        if column is None:
            if entries is not None:
                return entries
            rows = obs if self.inputs is None else self.inputs.rows(chunk.batch)
            what = "one probability per row (of all actions, if it takes observations alone)"
            return self._answer(chunk, (len(rows),), what, rows, action).astype(np.float64)
        found = values.numbers(chunk, column).astype(np.float64)
        if column.name == BEHAVIOR_LOG[0]:
            found = values.exp_of_logs(chunk, column, found, most)
        if entries is not None:
            index = values.first_false(np.abs(found - entries) <= values.SLACK)
            if index is not None:
                raise values.fault(
                    chunk, column, index, f"must be the logged action's entry in "
                    f"'{self.all_actions}', {entries[index]:.10g}", found[index],
                    "correct one of them, or leave one out",
                )  # fmt: skip
        return found

    def _answer(
        self, chunk: Chunk, shape: tuple[int, ...] | None, what: str, *given: Any
    ) -> NDArray[Any]:
        """What the user's function returns, as an array. It sees the log, and cannot change it."""
        assert self.function is not None
        own = [read_only(one) if isinstance(one, np.ndarray) else one for one in given]
        rows = f"{count(len(own[0]), 'observation')} from row {chunk.row} on (counted from 0)"
        with users_own(f"{chunk.file}: {self.label}, given {rows},"):
            found = np.asarray(self.function(*own))
        if shape is not None and (found.shape != shape or found.dtype.kind not in "fiub"):
            raise InputError(
                f"{self.label} must return {what}, an array of shape {shape}, got an array of "
                f"shape {found.shape} and type {found.dtype}."
            )
        return found

    def returned_actions(self, chunk: Chunk, rows: Any) -> int:
        """How many actions a function of observations alone knows, tried with one observation.

        0: it is a function of (obs, action), by its signature or, where the action is optional, by
        the shape of what it returns.
        """
        assert self.function is not None
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return 0
        positional = [
            p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        required = [p for p in positional if p.default is p.empty]
        if len(required) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return 0
        found = self._answer(chunk, None, "", rows)
        if found.ndim == 2 and len(found) == 1:
            return int(found.shape[1])
        if len(positional) > 1:
            return 0
        raise InputError(
            f"{self.label} is a function of observations [n, k] alone, so it must return the "
            "probabilities of all actions [n, actions]; for one observation it returned the shape "
            f"{found.shape}. A function of (obs, action) may return [n], the probability of the "
            "logged action."
        )


def check_functions(targets: object, behavior: object) -> None:
    """Targets are a list of names or a dictionary of functions, behaviour is a function."""
    if isinstance(targets, str):
        raise InputError(f"targets must be a list of names, got '{targets}'; write ['{targets}'].")
    try:
        named = targets is None or all(isinstance(name, str) for name in targets)  # type: ignore[attr-defined]
    except TypeError:
        named = False
    if not named:
        raise InputError(
            "targets must be a list of names, or a dictionary from names to policies, got "
            f"{targets!r}."
        )
    for name, policy in targets.items() if isinstance(targets, Mapping) else ():
        if hasattr(policy, "predict_proba") and not is_model(policy):
            raise InputError(
                f"the model of the target '{name}' has predict_proba but no classes_; fit it first."
            )
        if not (callable(policy) or is_model(policy) or isinstance(policy, str)):
            raise InputError(
                f"the target '{name}' must be a function obs -> probabilities of all actions, or "
                "(obs, action) -> probability of that action, a fitted model with predict_proba "
                f"and classes_, or the name of a column, got {type(policy).__name__}."
            )
    if behavior is not None and not callable(behavior):
        raise InputError(
            "behavior must be a function (obs, action) -> probability, or in evaluate also "
            f'"estimate" or a classifier, got {behavior!r}.'
        )


def with_policy(frame: Any, name: str, model: Any, obs: Sequence[str] = ()) -> Any:
    """The frame with a column `target_probs_<name>`: what a model does in each of its rows.

    `model` has `predict_proba` and `classes_`; it is given the columns that it was fitted on, or
    those of `obs`. Entries follow the actions (column `action` or a name like it) in sorted order.
    A pandas or Polars frame comes back as what it was, anything else as an Arrow table.
    """
    import pyarrow as pa

    if not is_model(model):
        raise InputError(
            f"the model for '{name}' needs predict_proba and classes_ (it must be fitted), got "
            f"{type(model).__name__}."
        )
    source = MemorySource.of(frame)
    table, file = source.table, source.files[0]
    action = Finder(file, table.schema, {}).find("action")
    if action is None:
        raise InputError(f"{file}: there is no column 'action'; rename the column.")
    wanted = tuple(map(str, getattr(model, "feature_names_in_", obs))) or ("obs",)
    for one in wanted:
        if one not in table.column_names:
            raise unknown(f"column for the model '{name}'", one, table.column_names)
    batch = table.combine_chunks().to_batches()[0]
    levels = action_levels(file, distinct_actions(batch.column(str(action))), [model])
    policy = PolicySource(
        name,
        function=Model(model, levels),
        inputs=Inputs.of(f"the model for '{name}'", model, wanted, table.schema, {}),
    )
    assert policy.inputs is not None
    found = policy.called_whole(Chunk(file, 0, batch), policy.inputs.rows(batch), len(levels))
    if type(frame).__module__.startswith("pandas"):
        return frame.assign(**{WHOLE + name: list(found)})
    lists = pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1)), found.shape[1])
    added = table.append_column(WHOLE + name, lists)
    polars = type(frame).__module__.startswith("polars")
    return importlib.import_module("polars").from_arrow(added) if polars else added
