"""From a world's log to the arrays that the prototype works on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from benchmarks.worlds.drl import Floats, Rows, sparse_if
from benchmarks.worlds.world import World
from numpy.typing import NDArray

from steadytd.features import feature_map


class Stated(NamedTuple):
    """What the log says about the behaviour's probabilities."""

    action: NDArray[np.int64]
    mu: Floats  # of the logged action
    whole: Floats | None  # [n, A]


def read(world: World, seed: int) -> tuple[Rows, Stated]:
    """The rows of a log with features, ratios and discounts."""
    c = world.columns(seed)
    d, s, a = world.dynamics, c["s"], c["action"]
    seen = np.unique(np.concatenate([s, c["s_next"]]))
    sample = d.obs[s]
    made: Any = feature_map(world.features, 0).fit(sample)
    table = np.zeros((len(d.obs), made.n_features))
    table[seen] = made(d.obs[seen])
    n = len(s)
    first = np.append(True, c["episode_id"][1:] != c["episode_id"][:-1])
    stated = world.mu if world.logged is None else world.logged
    mu = estimated(world, seed) if world.estimated else np.minimum(stated[s, a], 1.0)
    x = sparse_if(table[s])
    x_next = sparse_if(table[c["s_next"]] * ~c["terminated"][:, None])
    rows = Rows(
        x, x_next, c["reward"], world.pi[s, a] / mu, world.discount * ~c["terminated"], first,
        np.zeros(n, dtype=bool) if world.endless else c["truncated"], world.endless, a,
    )  # fmt: skip
    return rows, Stated(a, mu, None if world.estimated else stated[s])


def estimated(world: World, seed: int) -> Floats:
    """The product's own estimate of the behaviour's probabilities."""
    from steadytd.evaluation.behavior.behavior import with_estimated_behavior
    from steadytd.logs.log import open_log

    log = open_log(world.log(seed), discount=world.discount)
    batches: Any = with_estimated_behavior(log).batches()
    return np.concatenate([np.asarray(b.behavior_prob[: len(b)]) for b in batches])
