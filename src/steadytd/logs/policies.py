"""Probabilities under the targets and the behaviour policy, from columns or from functions.

Of each policy the probability of the logged action is needed; where the probabilities of all
actions are known, the policy is known as a whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs, read_only
from steadytd.base.errors import InputError, users_own
from steadytd.base.numbers import count
from steadytd.logs import values
from steadytd.logs.columns import BEHAVIOR, BEHAVIOR_LOG, BEHAVIOR_WHOLE, TARGET, WHOLE, Column
from steadytd.logs.models import is_model
from steadytd.logs.sources.source import Chunk
from steadytd.logs.values import Matrix, Numbers

Function = Callable[..., Any]  # see `docs/logs.md`: of observations alone, or with actions
Policy = Any  # a function, a fitted model, or the name of a column


@dataclass(frozen=True)
class PolicySource:
    """A target or the behaviour policy, and where its probabilities come from."""

    target: str | None  # its name; None: the behaviour policy
    logged: Column | None = None  # of the logged action
    all_actions: Column | None = None
    next_all_actions: Column | None = None  # in the state after the row
    function: Function | None = None  # in place of columns
    takes_action: bool = False  # a function of (obs, action), for the logged action alone

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

    def reads(self, fields: frozenset[str]) -> list[Column]:
        """The columns to read for these fields of a batch."""
        logged, everything = self.needs(fields)
        after = "probs" in fields
        some = [self.logged] * logged + [self.all_actions] * everything
        return [column for column in some + [self.next_all_actions] * after if column is not None]

    def logged_whole(self, chunk: Chunk, n_actions: int) -> Floats:
        """Probabilities of all actions [n, n_actions] from the columns."""
        assert self.all_actions is not None
        found = values.matrix(chunk, self.all_actions.parts, n_actions, "probabilities")
        values.require_distributions(chunk, self.all_actions, found)
        return found.astype(np.float64, copy=False)

    def logged_next_whole(self, chunk: Chunk, n_actions: int) -> Floats:
        """The same at the next observations; NaN where not given, or not read."""
        found = np.full((chunk.batch.num_rows, n_actions), np.nan)
        column = self.next_all_actions
        if column is None or column.parts[0] not in chunk.batch.schema.names:
            return found
        given, known = values.optional_matrix(chunk, column.parts, n_actions, "probabilities")
        if given is not None:
            found[known] = given[known]
            values.require_distributions(chunk, column, found[known], np.flatnonzero(known))
        return found

    def called_whole(self, chunk: Chunk, obs: Matrix, n_actions: int, led_by: Longs) -> Floats:
        """Probabilities of all actions from the function, at the chunk's observations and others.

        The others are next observations, to which the rows `led_by` lead.
        """
        found = self._answer(chunk, obs)
        if found.shape != (len(obs), n_actions) or found.dtype.kind not in "fiub":
            raise InputError(
                f"{self.label} must return the probabilities of all actions, an array of shape "
                f"({len(obs)}, {n_actions}), got an array of shape {found.shape} and type "
                f"{found.dtype}."
            )
        n = chunk.batch.num_rows
        values.require_distributions(chunk, self.whole_name, found[:n])
        values.require_distributions(chunk, f"next_{self.whole_name}", found[n:], led_by)
        return found.astype(np.float64)

    def logged_at(
        self, chunk: Chunk, obs: Matrix, action: Numbers | None, entries: Floats | None,
        most: float,
    ) -> Floats:  # fmt: skip
        """Probabilities of the logged actions, not yet checked.

        `entries` are those among the probabilities of all actions, where these were read; `most` is
        the largest that a probability or density may be.
        """
        column = self.logged
        if column is None:
            return self._called(chunk, obs, action) if entries is None else entries
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

    def _called(self, chunk: Chunk, obs: Matrix, action: Numbers | None) -> Floats:
        assert action is not None
        found = self._answer(chunk, obs, action)
        if found.shape != (len(obs),) or found.dtype.kind not in "fiub":
            raise InputError(
                f"{self.label} must return one probability per row, an array of shape "
                f"({len(obs)},), got an array of shape {found.shape} and type {found.dtype}; a "
                "function that returns the probabilities of all actions takes observations alone."
            )
        return found.astype(np.float64)

    def _answer(self, chunk: Chunk, obs: Matrix, *action: Numbers) -> NDArray[Any]:
        """What the user's function returns, as an array. It sees the log, and cannot change it."""
        assert self.function is not None
        given = f"{count(len(obs), 'observation')} from row {chunk.row} on (counted from 0)"
        with users_own(f"{chunk.file}: {self.label}, given {given},"):
            return np.asarray(self.function(*map(read_only, (obs, *action))))

    def returned_actions(self, chunk: Chunk, obs: Matrix) -> int:
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
        found = self._answer(chunk, obs)
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
