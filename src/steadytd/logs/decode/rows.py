"""From Arrow batches to checked rows: everything that is known before looking at other batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats
from steadytd.base.errors import InputError
from steadytd.logs.batch import Decoded
from steadytd.logs.columns import TARGET, Columns
from steadytd.logs.decode import arrays, checks
from steadytd.logs.decode.kernels import Cursor
from steadytd.logs.decode.order import advance
from steadytd.logs.faults import Place
from steadytd.logs.sources.source import Chunk

Policy = Callable[[NDArray[Any], NDArray[Any]], Any]


@dataclass(frozen=True)
class Meaning:
    """How the columns of a log become transitions."""

    columns: Columns
    width: int
    discount: float | None
    targets: tuple[str, ...]
    policies: Mapping[str, Policy] = field(default_factory=dict)  # targets that are functions
    behavior: Policy | None = None
    numeric_actions: bool = True
    dtype: str = "float64"  # of the observations, in all files

    def need_actions(self, file: str, why: str) -> None:
        """Fail if the log has no actions that are numbers."""
        if not self.numeric_actions:
            name = self.columns.action
            got = (
                f"column '{name}' does not hold numbers" if name else "there is no column 'action'"
            )
            raise InputError(
                f"{file}: {why}, but {got}; number the actions 0, 1, 2, ..., or name another "
                "column in the column map (action=its_name)."
            )

    def names(self, fields: frozenset[str]) -> list[str]:
        """The columns to read for these optional fields of a batch."""
        unwanted = set()
        if "action" not in fields and not self.calls(fields):
            unwanted.add(self.columns.action)
        if "target_prob" not in fields:
            unwanted.update(self.columns.targets.values())
        if "behavior_prob" not in fields or self.behavior is not None:
            unwanted.add(self.columns.behavior)
        return [name for name in self.columns.names() if name not in unwanted]

    def calls(self, fields: frozenset[str]) -> bool:
        """Whether a function of observation and action is called."""
        behaves = self.behavior is not None and "behavior_prob" in fields
        return behaves or (bool(self.policies) and "target_prob" in fields)


def decode(
    chunk: Chunk, meaning: Meaning, fields: frozenset[str], cursor: Cursor, row: int
) -> tuple[Decoded, Cursor]:
    """Check a chunk and turn it into rows; `row` is the number of its first row in the log."""
    place, batch = chunk
    c = meaning.columns
    ids = arrays.whole(batch.column(c.episode_id), c.episode_id, place)
    t = arrays.whole(batch.column(c.t), c.t, place)
    terminated = arrays.flags(batch.column(c.terminated), c.terminated, place)
    ended = terminated
    if c.truncated is not None:
        ended = terminated | arrays.flags(batch.column(c.truncated), c.truncated, place)
    cursor, first, number = advance(cursor, ids, t, ended, place, c)
    obs = arrays.matrix([batch.column(name) for name in c.obs], c.obs, place, meaning.width)
    checks.finite_rows(obs, c.obs[0], place)
    obs = obs.astype(meaning.dtype, copy=False)
    reward = arrays.values(batch.column(c.reward), c.reward, place)
    checks.finite(reward, c.reward, place)
    discount = _discount(batch, meaning, terminated, place)
    next_obs, has_next = _next_obs(batch, meaning, discount, place)
    action = None
    if c.action is not None and ("action" in fields or meaning.calls(fields)):
        action = _actions(batch.column(c.action), c.action, place)
    targets = _targets(batch, meaning, obs, action, place) if "target_prob" in fields else {}
    behavior = None
    if "behavior_prob" in fields:
        behavior = _behavior(batch, meaning, obs, action, targets, place)
    rows = Decoded(
        obs=obs, next_obs=next_obs, has_next=has_next, reward=reward, discount=discount,
        behavior_prob=behavior, episode=number, first=first, action=action, row=row,
        target_prob=list(targets.values()),
    )  # fmt: skip
    return rows, cursor


def _discount(batch: Any, meaning: Meaning, terminated: Bools, place: Place) -> Floats:
    name = meaning.columns.discount
    if name is None:
        return np.where(terminated, 0.0, np.float64(meaning.discount or 0.0))
    values = arrays.floats(batch.column(name), name, place)
    checks.discounts(values, name, place)
    return np.where(terminated, 0.0, values)


def _next_obs(
    batch: Any, meaning: Meaning, discount: Floats, place: Place
) -> tuple[NDArray[Any] | None, Bools | None]:
    """Next observations where they are given; a null means that none is."""
    names = meaning.columns.next_obs
    if not names:
        return None, None
    columns = [batch.column(name) for name in names]
    given = np.logical_or.reduce([c.is_valid().to_numpy(zero_copy_only=False) for c in columns])
    if given.all():
        values = arrays.matrix(columns, names, place, meaning.width)
    elif not given.any():
        return None, None
    else:
        # a null keeps its place: it is read as the row nearest before it that is given
        fill = np.maximum.accumulate(np.where(given, np.arange(len(given)), given.argmax()))
        values = arrays.matrix([c.take(fill) for c in columns], names, place, meaning.width)
    checks.finite_rows(values, names[0], place, given & (discount != 0.0))
    return values, given


def _actions(column: Any, name: str, place: Place) -> NDArray[Any]:
    """Actions as logged: numbers, or lists of one length."""
    if not arrays.is_list(column.type):
        return arrays.values(column, name, place)
    lengths = arrays.simple(column).value_lengths().to_numpy(zero_copy_only=False)
    width = int(lengths[0]) if lengths[0] == lengths[0] else 1
    return arrays.matrix([column], [name], place, width)


def _targets(
    batch: Any, meaning: Meaning, obs: NDArray[Any], action: NDArray[Any] | None, place: Place
) -> dict[str, NDArray[Any]]:
    found = {}
    for name in meaning.targets:
        policy = meaning.policies.get(name)
        if policy is None:
            column = meaning.columns.targets[name]
            values = arrays.values(batch.column(column), column, place)
        else:
            column = TARGET + name
            values = called(policy, f"the target '{name}'", obs, action)
        found[name] = checks.target(values, column, place)
    return found


def _behavior(
    batch: Any, meaning: Meaning, obs: NDArray[Any], action: NDArray[Any] | None,
    targets: dict[str, NDArray[Any]], place: Place,
) -> NDArray[Any] | None:  # fmt: skip
    c = meaning.columns
    if meaning.behavior is not None:
        values = called(meaning.behavior, "the behaviour policy", obs, action)
        return checks.behavior(values, "behavior_prob", place, False, targets)
    if c.behavior is None:
        return None
    values = arrays.values(batch.column(c.behavior), c.behavior, place)
    return checks.behavior(values, c.behavior, place, c.behavior_is_log, targets)


def called(policy: Policy, what: str, obs: NDArray[Any], action: NDArray[Any] | None) -> Floats:
    """Probabilities from a function of observations and actions, with its result checked."""
    if action is None:
        raise InputError(f"{what} is a function of the action, but the log has no column 'action'.")
    result = np.asarray(policy(obs, action))
    if result.shape != (len(obs),) or result.dtype.kind not in "fiub":
        raise InputError(
            f"{what} must return one probability per row, an array of shape ({len(obs)},), got an "
            f"array of shape {result.shape} and type {result.dtype}."
        )
    return result.astype(np.float64)
