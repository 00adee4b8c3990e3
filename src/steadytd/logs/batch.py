"""One batch of a log as the evaluator sees it, and how it is made from the log's columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.logs import values
from steadytd.logs.columns import Column
from steadytd.logs.order import Cursor, advance
from steadytd.logs.policies import Model, PolicySource
from steadytd.logs.schema import LogSchema
from steadytd.logs.sources.source import Chunk
from steadytd.logs.units import level_numbers, unit_numbers
from steadytd.logs.values import Matrix, Numbers


@dataclass(frozen=True)
class LogBatch:
    """Consecutive transitions in the log's order; an episode may span batches.

    ================= ============= ===========================================================
    `obs`             [m, k]        rows 0..n-1 are the observations of the n transitions, the
                                    others are next observations that no row has as its own
    `row_next`        [n]           where x_next of a transition stands in `obs` (its own row
                                    where the discount is 0: x_next then does not matter)
    `reward`          [n]
    `discount`        [n]           of the next state: 0 at termination
    `behavior_prob`   [n] or None   None: not known
    `target_prob`     [targets, n]  probability of the logged action under each target
    `episode`         [n]           running number of the episode in the log
    `first`           [n]           the transition begins an episode
    `action`          [n] or [n,k]  as logged; None if the log has no numeric actions
    `rows`            [n]           number of each row in the log (left-out rows make gaps)
    `probs`           [m, p, a]     probabilities of all actions at each of `obs` under the
                                    policies known as a whole: the targets `Log.whole`, then the
                                    behaviour policy if it is; NaN at next observations where
                                    they are not known. None if there are none
    `unit`            [n] or None   number of the row's unit, where the log has a column of units
    `weight`          [n] or None   1 / keep_prob, where rows were stored with a probability
    `extra`           [n] each      further columns by name: numbers, or places in `Log.levels`
    ================= ============= ===========================================================

    The arrays of numbers are contiguous and writable.
    """

    obs: NDArray[Any]
    row_next: Ints
    reward: Floats
    discount: Floats
    behavior_prob: Floats | None
    target_prob: Floats
    episode: Longs
    first: Bools
    action: NDArray[Any] | None
    rows: Longs
    probs: Floats | None = None
    unit: Longs | None = None
    weight: Floats | None = None
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def row(self) -> int:
        """The former name of the first of `rows`."""
        warnings.warn("LogBatch.row is now rows[0]", DeprecationWarning, stacklevel=2)
        return int(self.rows[0])


def decode(
    chunk: Chunk,
    following: Chunk | None,
    schema: LogSchema,
    fields: frozenset[str],
    cursor: Cursor,
    unit_values: Any = None,
    levels: Mapping[str, Any] | None = None,
) -> tuple[LogBatch, Cursor, int]:
    """The transitions of a chunk, checked; the cursor after it; how many rows were left out.

    `following` is the chunk after it; `unit_values` are those of all units, if there are any;
    `levels` those of further columns of levels.
    """
    c, before, kept = schema.columns, cursor.unit, cursor.keep
    ids, t = (values.whole_numbers(chunk, c[name]) for name in ("episode_id", "t"))
    terminated = values.flags(chunk, c["terminated"])
    ended = terminated
    if "truncated" in c:
        ended = terminated | values.flags(chunk, c["truncated"])
    cursor, first, episode = advance(cursor, ids, t, ended, chunk, c)
    unit = None
    if "unit" in c:
        unit = unit_numbers(chunk, c["unit"], unit_values, first, before)
        cursor = cursor._replace(unit=int(unit[-1]))
    weight = None
    if "keep_prob" in c:
        keep = values.kept_whole(chunk, c["keep_prob"], first, kept)
        weight, cursor = 1.0 / keep, cursor._replace(keep=float(keep[-1]))
    obs = _observations(chunk, schema)
    weighted = zip(schema.reward_weights, c["reward"].parts, strict=True)
    reward = np.sum([w * values.rewards(chunk, part) for w, part in weighted], axis=0)
    given = values.discounts(chunk, c["discount"]) if "discount" in c else schema.discount
    discount = np.where(terminated, 0.0, np.float64(given))
    column = schema.action_column(fields)
    action = None if column is None else values.actions(chunk, str(column))
    if following is not None:
        following = following.slice(0, 1)
        if values.whole_numbers(following, c["episode_id"])[0] != ids[-1]:
            following = None
    ahead = _next_observations(chunk, following, schema, obs, first, discount)
    targets, behavior, probs = _probabilities(chunk, following, schema, fields, ahead, action)
    batch = LogBatch(
        obs=_writable(ahead.table),
        row_next=ahead.row_next,
        reward=reward,
        discount=discount,
        behavior_prob=behavior,
        target_prob=np.array(list(targets.values())).reshape(-1, len(ids)),
        episode=episode,
        first=first,
        action=None if action is None else _writable(action),
        rows=chunk.log_row + np.arange(len(ids)),
        probs=probs,
        unit=unit,
        weight=weight,
        extra={
            name: values.rewards(chunk, column)
            if column.meaning.kind == "number"
            else level_numbers(chunk, column, (levels or {})[name])
            for name, column in schema.extra.items()
        },
    )
    left_out = int(np.count_nonzero(ahead.unknown))
    return _without(batch, ahead.unknown) if left_out else batch, cursor, left_out


def _observations(chunk: Chunk, schema: LogSchema) -> Matrix:
    column = schema.columns["obs"]
    obs = values.matrix(chunk, column.parts, schema.width)
    values.require_finite(chunk, column, obs)
    return obs.astype(schema.dtype, copy=False)


class _Next(NamedTuple):
    """Where the rows of a chunk lead."""

    table: Matrix  # the observations, that of the following row if it is needed, those of `own`
    row_next: Ints  # where each row's next observation is in the table, as in `LogBatch`
    own: Longs  # rows whose `next_obs` is not the observation of the row after them
    goes_on: Bools  # the row after it belongs to the same episode
    unknown: Bools  # the next observation is not known, though the discount is above 0

    @property
    def led_by(self) -> Longs:
        """The row that leads to each of the table's further observations."""
        n = len(self.row_next)
        following = np.full(len(self.table) - n - len(self.own), n - 1)
        return np.concatenate([following, self.own])


def _next_observations(
    chunk: Chunk, following: Chunk | None, schema: LogSchema, obs: Matrix, first: Bools,
    discount: Floats,
) -> _Next:  # fmt: skip
    """x_next of each row: its own `next_obs`, or the observation of the row after it.

    A row of which neither is known, and whose discount is above 0, cannot be learned from. An own
    `next_obs` that equals the observation after it needs no place in the table.
    """
    n, column, table = len(obs), schema.columns.get("next_obs"), obs
    if following is not None:
        table = np.concatenate([obs, _observations(following, schema)])
    goes_on = np.append(~first[1:], following is not None)
    stops = discount == 0.0
    row_next = np.arange(n, dtype=np.int32) + (goes_on & ~stops)
    unknown = ~stops & ~goes_on
    own = np.empty(0, dtype=np.int64)
    given = None
    if column is not None:
        given, is_given = values.optional_matrix(chunk, column.parts, schema.width)
    if given is not None:
        leads = is_given & ~stops
        values.require_finite(chunk, column, given, leads)
        given = given.astype(schema.dtype, copy=False)
        m = len(table) - 1
        leads[:m] &= ~(goes_on[:m] & (given[:m] == table[1:]).all(axis=1))
        own = np.flatnonzero(leads)
        row_next[own] = len(table) + np.arange(len(own))
        table = np.concatenate([table, given[own]])
        unknown &= ~leads
    return _Next(table, row_next, own, goes_on, unknown)


def _probabilities(
    chunk: Chunk, following: Chunk | None, schema: LogSchema, fields: frozenset[str], ahead: _Next,
    action: Numbers | None,
) -> tuple[dict[str, Floats], Floats | None, Floats | None]:  # fmt: skip
    """Of the logged actions under each target and the behaviour policy, and of all actions."""
    most = schema.most
    obs = ahead.table[: chunk.batch.num_rows]
    targets: dict[str, Floats] = {}
    behavior: Floats | None = None
    whole, taken = [], None
    named = None if action is None else schema.named(action)
    for policy in schema.policies:
        logged, everything = policy.needs(fields)
        entries = None
        if everything:
            assert action is not None
            if taken is None:
                column = schema.columns["action"]
                taken = values.action_indices(chunk, column, action, schema.n_actions)
            whole.append(_whole(policy, chunk, following, schema, ahead))
            entries = np.take_along_axis(whole[-1][: len(obs)], taken[:, None], axis=1)[:, 0]
        if logged:
            name = policy.logged_name
            found = policy.logged_at(chunk, obs, named, entries, most)
            if policy.target is None:
                behavior = values.probabilities(chunk, name, found, most, logged=True)
            else:
                targets[policy.target] = values.probabilities(chunk, name, found, most)
    every = np.stack(whole, axis=1) if whole and "probs" in fields else None
    return targets, behavior, every


def _whole(
    policy: PolicySource, chunk: Chunk, following: Chunk | None, schema: LogSchema, ahead: _Next
) -> Floats:
    """Probabilities of all actions at each row of the table; NaN where they are not known."""
    n, own, parts = schema.n_actions, ahead.own, [chunk]
    if following is not None:
        parts.append(following)
    if policy.function is None:
        here = np.concatenate([policy.logged_whole(part, n) for part in parts])
    elif policy.inputs is not None:
        rows = [(part, policy.inputs.rows(part.batch)) for part in parts]
        here = np.concatenate([policy.called_whole(part, given, n) for part, given in rows])
    else:
        found = policy.called_whole(chunk, ahead.table, n, ahead.led_by)
        here, after = np.split(found, [len(found) - len(own)])
    if policy.function is None or policy.inputs is not None:
        after = policy.next_whole(chunk, n, own)
    if "allowed_actions" in schema.columns:
        allowed = np.concatenate([_allowed(part, schema) for part in parts])
        if isinstance(policy.function, Model):
            here = _restricted(chunk, schema.columns["allowed_actions"], here, allowed)
            after[:] = np.nan  # the sets there are not known
        else:
            _require_allowed(policy, chunk, here, allowed)
    lacking = np.flatnonzero(np.isnan(after[:, 0]) & ahead.goes_on[own])
    after[lacking] = here[own[lacking] + 1]
    return np.concatenate([here, after])


def _allowed(chunk: Chunk, schema: LogSchema) -> Floats:
    """The candidate sets of the rows, as 1 and 0."""
    sets = schema.columns["allowed_actions"]
    known = values.list_size(chunk.batch.column(str(sets)).type) or 0
    allowed = np.zeros((chunk.batch.num_rows, schema.n_actions))
    allowed[:, :known] = values.matrix(chunk, sets.parts, known)
    return allowed


def _restricted(chunk: Chunk, sets: Column, probs: Floats, allowed: Floats) -> Floats:
    """A model's probabilities inside the candidate sets, divided by their sum."""
    inside = probs * allowed
    total = inside.sum(axis=1)
    index = values.first_false(total > 0.0)
    if index is not None:
        rule, remedy = "an allowed action must have a probability above 0", "correct the list"
        raise values.fault(chunk, sets, index, rule, "probability 0 for all", remedy)
    return np.asarray(inside / total[:, None])


def _require_allowed(policy: PolicySource, chunk: Chunk, probs: Floats, allowed: Floats) -> None:
    """A policy known as a whole is 0 outside the candidate sets."""
    outside = np.where(allowed > 0.0, 0.0, probs)
    index = values.first_false(np.all(outside <= values.SLACK, axis=1))
    if index is not None:
        rule = f"{policy.label} must give probability 0 to actions that are not allowed in the row"
        got = f"{outside[index].max():.6g} for action {outside[index].argmax()}"
        remedy = "set it to 0 and divide the others by their sum"
        raise values.fault(chunk, policy.whole_name, index, rule, got, remedy)


def _without(batch: LogBatch, left_out: Bools) -> LogBatch:
    """The batch without these rows. Their observations stay where they are next ones of others."""
    keep = np.flatnonzero(~left_out)
    row_next = batch.row_next[keep]
    order = np.concatenate([keep, np.setdiff1d(row_next, keep)])
    position = np.empty(len(batch.obs), dtype=np.int32)
    position[order] = np.arange(len(order))
    other = {"obs", "row_next", "target_prob", "probs", "extra"}
    per_row = [one.name for one in fields(batch) if one.name not in other]
    left: dict[str, Any] = {
        name: array[keep] for name in per_row if (array := getattr(batch, name)) is not None
    }
    return replace(
        batch,
        obs=batch.obs[order],
        row_next=position[row_next],
        target_prob=np.ascontiguousarray(batch.target_prob[:, keep]),
        probs=None if batch.probs is None else batch.probs[order],
        extra={name: array[keep] for name, array in batch.extra.items()},
        **left,
    )


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied if it is a view of Arrow's read-only memory, or not contiguous."""
    return np.require(array, requirements=["C", "W"])
