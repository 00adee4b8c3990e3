"""One batch of a log as the evaluator sees it, and how it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs


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
    `row`                           number of the batch's first row in the log, over all files
    `rows`            [n]           number of each row in the log (left-out rows make gaps)
    `probs`           [m, p, a]     probabilities of all actions at each of `obs` under the
                                    policies known as a whole: the targets `Log.whole`, then the
                                    behaviour policy if it is; NaN at next observations where
                                    they are not known. None if there are none
    ================= ============= ===========================================================

    The arrays of numbers are contiguous, writable copies.
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
    row: int
    rows: Longs
    probs: Floats | None = None

    def __len__(self) -> int:
        return len(self.reward)


@dataclass(frozen=True)
class Decoded:
    """Decoded and checked rows of a log, before each is joined with its next observation.

    Numbers have the type of their column, until `join` makes them float64.
    """

    obs: NDArray[Any]
    next_obs: NDArray[Any] | None  # meaningful where has_next
    has_next: Bools | None
    reward: NDArray[Any]
    discount: Floats
    behavior_prob: NDArray[Any] | None
    target_prob: Sequence[NDArray[Any]] | Floats  # a row for each target
    episode: Longs
    first: Bools
    action: NDArray[Any] | None
    row: int
    probs: Floats | None = None  # [n, policies, actions]
    next_probs: Floats | None = None  # the same, NaN where not given

    def __len__(self) -> int:
        return len(self.reward)


def last(n: int, rows: Decoded) -> Decoded:
    """A copy of the last n rows alone, so that the batch they come from can be freed."""
    begin = len(rows) - n

    def cut(array: Any) -> Any:
        return None if array is None else array[begin:].copy()

    return Decoded(
        obs=cut(rows.obs), next_obs=cut(rows.next_obs), has_next=cut(rows.has_next),
        reward=cut(rows.reward), discount=cut(rows.discount),
        behavior_prob=cut(rows.behavior_prob), target_prob=[cut(p) for p in rows.target_prob],
        episode=cut(rows.episode), first=cut(rows.first), action=cut(rows.action),
        row=rows.row + begin, probs=cut(rows.probs), next_probs=cut(rows.next_probs),
    )  # fmt: skip


def join(held: Decoded | None, rows: Decoded) -> Decoded:
    """The held row followed by the new ones: one copy of each array."""
    if held is None:
        held = replace(last(0, rows), row=rows.row)
    if (held.next_obs is None) != (rows.next_obs is None):
        held, rows = _with_next(held), _with_next(rows)

    def both(a: Any, b: Any, dtype: Any = None) -> Any:
        return None if a is None or b is None else np.concatenate([a, b], dtype=dtype)

    targets = np.empty((len(rows.target_prob), len(held) + len(rows)))
    for p, a, b in zip(targets, held.target_prob, rows.target_prob, strict=True):
        np.concatenate([a, b], out=p)
    return Decoded(
        obs=both(held.obs, rows.obs), next_obs=both(held.next_obs, rows.next_obs),
        has_next=both(held.has_next, rows.has_next),
        reward=both(held.reward, rows.reward, np.float64),
        discount=both(held.discount, rows.discount),
        behavior_prob=both(held.behavior_prob, rows.behavior_prob, np.float64),
        target_prob=targets,
        episode=both(held.episode, rows.episode), first=both(held.first, rows.first),
        action=both(held.action, rows.action), row=held.row,
        probs=both(held.probs, rows.probs), next_probs=both(held.next_probs, rows.next_probs),
    )  # fmt: skip


def _with_next(rows: Decoded) -> Decoded:
    """The rows with a column of next observations, none of them given, if they had no column."""
    if rows.next_obs is not None:
        return rows
    return replace(rows, next_obs=rows.obs, has_next=np.zeros(len(rows), dtype=np.bool_))


def assemble(held: Decoded | None, new: Decoded) -> tuple[LogBatch | None, Decoded | None, int]:
    """The transitions that are complete, the row that waits for the next batch, rows left out.

    x_next of a row is its own `next_obs` if there is one, else the observation of the following
    row of the same episode. A row without either, and with a discount above 0, cannot be learned
    from and is left out; the last row of a batch waits for the next batch. So does one that has its
    own `next_obs` without probabilities there: the following row may have them.
    """
    rows = join(held, new)
    L = len(rows)
    follows = np.zeros(L, dtype=np.bool_)  # the next row belongs to the same episode
    np.logical_not(rows.first[1:], out=follows[:-1])
    stop = rows.discount == 0.0
    own = np.zeros(L, dtype=np.bool_)
    if rows.next_obs is not None and rows.has_next is not None:
        own = rows.has_next & ~stop
        same = (rows.next_obs[:-1] == rows.obs[1:]).all(axis=1)
        own[:-1] &= ~(follows[:-1] & same)
    complete = stop | own | follows
    if rows.next_probs is not None:
        complete[-1] = stop[-1] or (own[-1] and not np.isnan(rows.next_probs[-1]).any())
    waits = not complete[-1]
    n = L - 1 if waits else L
    left = n - int(np.count_nonzero(complete[:n]))
    kept = last(1, rows) if waits else None
    if left == n:
        return None, kept, left
    if left == 0 and not own.any():
        index = np.arange(n, dtype=np.int32)
        row_next = np.where(stop[:n], index, index + np.int32(1))
        return _batch(rows, slice(0, n), own_copy(rows.obs), row_next), kept, 0
    keep = np.flatnonzero(complete[:n])
    return _compact(rows, keep, stop, own), kept, left


def remaining(held: Decoded | None) -> LogBatch | None:
    """What can be learned from the row that still waits when the log is over."""
    if held is None or held.has_next is None or not held.has_next[0]:
        return None
    return _compact(held, np.zeros(1, np.int64), np.array([False]), np.array([True]))


def _compact(rows: Decoded, keep: Longs, stop: Bools, own: Bools) -> LogBatch:
    """A batch of the rows `keep`, with further rows in `obs` for next observations."""
    n = len(keep)
    after = keep + 1
    uses_following = ~(stop | own)[keep]
    position = np.full(len(rows) + 1, -1, dtype=np.int32)
    position[keep] = np.arange(n)
    dropped = after[uses_following & (position[after] < 0)]
    position[dropped] = n + np.arange(len(dropped))
    given = keep[own[keep]]
    m = n + len(dropped)
    obs = np.empty((m + len(given), rows.obs.shape[1]), rows.obs.dtype)
    np.take(rows.obs, keep, axis=0, out=obs[:n])
    obs[n:m] = rows.obs[dropped]
    row_next = np.where(uses_following, position[after], np.arange(n, dtype=np.int32))
    if rows.next_obs is not None:
        obs[m:] = rows.next_obs[given]
        row_next[own[keep]] = m + np.arange(len(given), dtype=np.int32)
    batch = _batch(rows, keep, obs, row_next)
    if rows.probs is None:
        return batch
    here = rows.probs[keep], rows.probs[dropped]
    return replace(batch, probs=np.concatenate([*here, _next_probs(rows, given)]))


def _next_probs(rows: Decoded, given: Longs) -> Floats:
    """At the next observations of rows: as given, else those of the following row."""
    assert rows.probs is not None and rows.next_probs is not None
    found = rows.next_probs[given]
    following = np.minimum(given + 1, len(rows) - 1)
    goes_on = ~rows.first[following] & (following > given)
    return np.where(np.isnan(found) & goes_on[:, None, None], rows.probs[following], found)


def _batch(rows: Decoded, keep: Longs | slice, obs: NDArray[Any], row_next: Ints) -> LogBatch:
    numbers = rows.row + (np.arange(keep.stop) if isinstance(keep, slice) else keep)
    return LogBatch(
        obs=obs,
        row_next=row_next,
        reward=own_copy(rows.reward[keep]),
        discount=own_copy(rows.discount[keep]),
        behavior_prob=None if rows.behavior_prob is None else own_copy(rows.behavior_prob[keep]),
        target_prob=own_copy(np.asarray(rows.target_prob)[:, keep]),
        episode=own_copy(rows.episode[keep]),
        first=own_copy(rows.first[keep]),
        action=None if rows.action is None else own_copy(rows.action[keep]),
        row=int(numbers[0]),
        rows=numbers,
        probs=None if rows.probs is None else own_copy(rows.probs),
    )


def own_copy(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied only if it is a view of Arrow's read-only memory or not contiguous."""
    return np.require(array, requirements=["C", "W"])
