"""Rows for fitting a behaviour policy: a bounded sample, and the actions in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.base.random import BEHAVIOR, Reservoir
from steadytd.logs.log import Log

MOST_ACTIONS = 1000


def numbered(action: NDArray[Any], actions: NDArray[Any]) -> Longs:
    """The place of each action among the sorted `actions`, -1 for one that is not there."""
    place = np.minimum(np.searchsorted(actions, action), len(actions) - 1)
    return np.where(actions[place] == action, place, -1)


def sample_rows_of(log: Log, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any], Longs, Longs]:
    """Observations, actions, episodes and row numbers of a uniform sample of at most n rows."""
    sample = Reservoir(n, seed, BEHAVIOR)
    for batch in log.batches(columns={"action"}):
        assert batch.action is not None
        if batch.action.ndim != 1:
            raise InputError(
                f"{log.files[0]}: a behaviour policy can be estimated for single discrete actions, "
                f"got lists of {batch.action.shape[1]} numbers; log behavior_prob."
            )
        sample.add(batch.obs[: len(batch)], batch.action, batch.episode, batch.rows)
    obs, action, episode, rows = sample.rows()
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
