"""From Arrow batches to checked rows: everything that is known before looking at other batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.logs.batch import Decoded
from steadytd.logs.columns import BEHAVIOR, TARGET, WHOLE
from steadytd.logs.decode import arrays, checks
from steadytd.logs.decode.distributions import (
    OF_BEHAVIOR,
    Ends,
    RowsSoFar,
    called,
    distributions,
    entry,
    indices,
    label,
    next_distributions,
)
from steadytd.logs.decode.kernels import Cursor
from steadytd.logs.decode.meaning import Meaning
from steadytd.logs.decode.order import advance
from steadytd.logs.faults import Place
from steadytd.logs.sources.source import Chunk


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
    if c.action is not None and meaning.acts(fields):
        action = _actions(batch.column(c.action), c.action, place)
    rows = RowsSoFar(batch, obs, action, place)
    known = _Known(rows, meaning, distributions(rows, meaning, fields))
    targets = known.targets() if "target_prob" in fields else {}
    probs = next_probs = None
    if "probs" in fields and meaning.actions:
        probs = np.stack(list(known.whole.values()), axis=1)
        next_probs = next_distributions(rows, meaning, Ends(next_obs, has_next, first, discount))
        known.taken()
    decoded = Decoded(
        obs=obs, next_obs=next_obs, has_next=has_next, reward=reward, discount=discount,
        behavior_prob=known.behavior(targets) if "behavior_prob" in fields else None,
        episode=number, first=first, action=action, row=row,
        target_prob=list(targets.values()), probs=probs, next_probs=next_probs,
    )  # fmt: skip
    return decoded, cursor


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
    values, given = arrays.optional(columns, names, place, meaning.width)
    if values is None:
        return None, None
    checks.finite_rows(values, names[0], place, given & (discount != 0.0))
    return values, given


def _actions(column: Any, name: str, place: Place) -> NDArray[Any]:
    """Actions as logged: numbers, or lists of one length."""
    if not arrays.is_list(column.type):
        return arrays.values(column, name, place)
    lengths = arrays.simple(column).value_lengths().to_numpy(zero_copy_only=False)
    width = int(lengths[0]) if lengths[0] == lengths[0] else 1
    return arrays.matrix([column], [name], place, width)


class _Known(NamedTuple):
    """RowsSoFar with the policies that are known as a whole."""

    rows: RowsSoFar
    meaning: Meaning
    whole: dict[str, Floats]

    @property
    def most(self) -> float:
        return float(np.finfo(np.float64).max) if self.meaning.densities else 1.0

    def taken(self) -> Longs:
        """The logged actions as places in a distribution."""
        return indices(self.rows, self.meaning.columns.action or "action", self.meaning.actions)

    def targets(self) -> dict[str, NDArray[Any]]:
        """Each target's probability of the logged actions."""
        return {name: self._target(name) for name in self.meaning.targets}

    def _target(self, name: str) -> NDArray[Any]:
        rows, meaning, place = self.rows, self.meaning, self.rows.place
        column, policy = meaning.columns.targets.get(name), meaning.policies.get(name)
        entries = entry(self.whole[name], self.taken()) if name in self.whole else None
        if column is not None:
            values = arrays.values(rows.batch.column(column), column, place)
            if entries is not None:
                checks.same_entry(values, entries, column, place, WHOLE + name)
        elif entries is not None:
            values = entries
        else:
            assert policy is not None
            values = called(policy, label(name), rows)
        return checks.target(values, column or TARGET + name, place, self.most)

    def behavior(self, targets: dict[str, NDArray[Any]]) -> NDArray[Any] | None:
        """The behaviour policy's probability of the logged actions."""
        rows, meaning, place = self.rows, self.meaning, self.rows.place
        c, whole = meaning.columns, self.whole.get(OF_BEHAVIOR)
        entries = None if whole is None else entry(whole, self.taken())
        name, is_log = BEHAVIOR[0], False
        if meaning.behavior is not None:
            values = entries
            if values is None:
                values = called(meaning.behavior, label(OF_BEHAVIOR), rows)
        elif c.behavior is not None:
            name, is_log = c.behavior, c.behavior_is_log
            values = arrays.values(rows.batch.column(name), name, place)
            if entries is not None:
                logged = np.exp(values.astype(np.float64)) if is_log else values
                checks.same_entry(logged, entries, name, place, c.behavior_whole[0])
        elif entries is not None:
            name, values = c.behavior_whole[0], entries
        else:
            return None
        return checks.behavior(values, name, place, is_log, targets, self.most)
