"""Rows for fitting a behaviour policy: a bounded sample, dealt to folds by a hash."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.logs.log import Log

MOST_ACTIONS = 1000


def dealt(units: Longs, folds: int, seed: int) -> Longs:
    """The fold of each unit, by the SplitMix64 hash of its number and the seed."""
    key = (seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % 2**64
    z = (units.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z % np.uint64(folds)).astype(np.int64)


def numbered(action: NDArray[Any], actions: NDArray[Any]) -> Longs:
    """The place of each action among the sorted `actions`, -1 for one that is not there."""
    place = np.minimum(np.searchsorted(actions, action), len(actions) - 1)
    return np.where(actions[place] == action, place, -1)


def sample_rows_of(log: Log, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any], Longs, Longs]:
    """A uniform sample of rows without replacement: those with the n smallest random keys."""
    rng = np.random.default_rng([seed, 1])
    keys = np.empty(0)
    kept: list[NDArray[Any]] = []
    for batch in log.batches(columns={"action"}):
        assert batch.action is not None
        if batch.action.ndim != 1:
            raise InputError(
                f"{log.files[0]}: a behaviour policy can be estimated for single discrete actions, "
                f"got lists of {batch.action.shape[1]} numbers; log behavior_prob."
            )
        drawn = rng.random(len(batch))
        bound = np.partition(keys, n - 1)[n - 1] if len(keys) >= n else np.inf
        mine = np.flatnonzero(drawn < bound)
        new = [batch.obs[mine], batch.action[mine], batch.episode[mine], batch.rows[mine]]
        kept = [np.concatenate(pair) for pair in zip(kept, new, strict=True)] if kept else new
        keys = np.concatenate([keys, drawn[mine]])
        if len(keys) > 2 * n:
            chosen = np.sort(np.argsort(keys, kind="stable")[:n])
            keys, kept = keys[chosen], [array[chosen] for array in kept]
    chosen = np.sort(np.argsort(keys, kind="stable")[:n])
    obs, action, episode, rows = (array[chosen] for array in kept)
    return obs, action, episode, rows


def distinct(action: NDArray[Any], log: Log) -> NDArray[Any]:
    """The different actions in order; they must be whole numbers, and not too many."""
    actions = np.unique(action)
    whole = bool(np.all(actions == np.floor(actions))) if action.dtype.kind == "f" else True
    if len(actions) > MOST_ACTIONS or not whole:
        what = f"{len(actions)} different ones" if whole else f"{actions[actions % 1 != 0][0]}"
        raise InputError(
            f"{log.files[0]}: a behaviour policy can be estimated for at most {MOST_ACTIONS} "
            f"discrete actions (whole numbers), got {what}; log behavior_prob."
        )
    return actions
