"""A log of a policy in a Gymnasium environment, with all that an evaluation can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed, whole
from steadytd.streams.gymnasium_env import action_count, factory, vectoriser
from steadytd.streams.gymnasium_stream import ACTIONS, RESETS, Policy, draw, probabilities

if TYPE_CHECKING:
    import pyarrow as pa

LOG = 4  # what a seed's numbers are for: see `gymnasium_stream`


def gym_log(
    env: Any,
    *,
    behavior: Policy,
    targets: Mapping[str, Policy] | None = None,
    episodes: int = 100,
    limit: int | None = None,
    seed: int = 0,
) -> pa.Table:
    """Episodes of the policy `behavior` as an Arrow table, for `evaluate` and `write_log`.

    `env` is an id or a function that makes the environment; its actions must be Discrete. Policies
    are functions from an observation to the probabilities of all actions, or constant ones. An
    episode is cut off where the environment says so, or after `limit` steps. The columns are those
    of `docs/logs.md`; `behavior_probs`, `target_probs_<name>` and, at cut-offs,
    `next_target_probs_<name>` hold the probabilities of all actions.
    """
    episodes, seed = whole("episodes", episodes, 1), one_seed(seed)
    most = None if limit is None else whole("limit", limit, 1)
    made = factory(env)()
    count, vector = action_count(made), vectoriser(made)
    acts = probabilities("behavior", behavior, count)
    policies = {n: probabilities(f"target '{n}'", p, count) for n, p in (targets or {}).items()}
    uniform = np.random.default_rng([LOG, ACTIONS, seed])
    resets = np.random.default_rng([LOG, RESETS, seed])
    rows: list[dict[str, Any]] = []
    for episode in range(episodes):
        obs, _ = made.reset(seed=int(resets.integers(2**31)))
        t, over = 0, False
        while not over:
            chances = acts(obs)
            action = draw(chances, float(uniform.random()))
            after, reward, terminated, truncated, _ = made.step(action)
            t += 1
            cut = (bool(truncated) or t == most) and not terminated
            over = bool(terminated) or cut
            row = {
                "episode_id": episode, "t": t - 1, "obs": vector(obs), "action": action,
                "reward": float(reward), "terminated": bool(terminated), "truncated": cut,
                "next_obs": vector(after) if cut else None,
                "behavior_prob": chances[action], "behavior_probs": chances,
            }  # fmt: skip
            for name, policy in policies.items():
                row[f"target_probs_{name}"] = policy(obs)
                row[f"next_target_probs_{name}"] = policy(after) if cut else None
            rows.append(row)
            obs = after
    made.close()
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows]
        known = next((value for value in (first, *values) if value is not None), None)
        if known is None:  # no episode was cut off: the column is empty
            continue
        wide = isinstance(known, list | np.ndarray)
        columns[name] = pa.array(values, pa.list_(pa.float64(), len(known)) if wide else None)
    try:
        return pa.table(columns)
    except pa.ArrowInvalid as error:
        raise InputError(f"the observations cannot be a column of the log: {error}") from None
