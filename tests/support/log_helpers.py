"""Small valid logs for tests: episodes of a finite problem with known P, mu and pi."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadytd import Problem
from steadytd.base.identity import digest
from steadytd.logs.log import Log
from steadytd.logs.write import write_log

Columns = dict[str, NDArray[Any]]


def simulate(problem: Problem, *, episodes: int, length: int, seed: int = 0) -> Columns:
    """Episodes of the behaviour policy, sorted by episode and t, as plain columns.

    An episode ends at a transition of discount 0 (`terminated`) or after `length` steps
    (`truncated`). `s`, `s_next` are the states; `discount` is 0 at termination.
    """
    rng = np.random.default_rng(seed)
    m = problem.moments(0)
    S, A = problem.mu.shape
    cumulative = np.cumsum((problem.mu[:, :, None] * problem.P).reshape(S, A * S), axis=1)
    state = rng.choice(S, size=episodes, p=problem.start)
    alive = np.arange(episodes)
    steps: list[Columns] = []
    for t in range(length):
        draw = rng.random(len(alive))[:, None] * cumulative[state, -1:]
        event = (cumulative[state] <= draw).sum(axis=1)
        a, s_next = event // S, event % S
        discount = m.gamma[state, a, s_next]
        terminated = discount == 0.0
        steps.append(
            {
                "episode_id": alive,
                "t": np.full(len(alive), t),
                "s": state,
                "action": a,
                "s_next": s_next,
                "reward": m.r[state, a, s_next],
                "discount": discount,
                "terminated": terminated,
                "truncated": np.full(len(alive), t == length - 1) & ~terminated,
            }
        )
        alive, state = alive[~terminated], s_next[~terminated]
        if not len(alive):
            break
    columns = {key: np.concatenate([step[key] for step in steps]) for key in steps[0]}
    order = np.lexsort((columns["t"], columns["episode_id"]))
    return {key: values[order] for key, values in columns.items()}


def fixed_lists(values: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> Any:
    """A matrix as an Arrow array of fixed-size lists; rows of `mask` are null."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    null = None if mask is None else pa.array(mask)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=null)


def log_table(
    problem: Problem,
    *,
    episodes: int = 20,
    length: int = 30,
    seed: int = 0,
    obs: str = "phi",
    next_obs: str = "truncated",
    targets: Mapping[str, NDArray[np.float64]] | None = None,
    dtype: type[np.floating[Any]] = np.float64,
) -> Any:
    """The log of `simulate` in the schema of INTERFACE.md, as an Arrow table.

    `obs`: "phi" (the rows of Phi) or "onehot" (the states). `next_obs`: "none" (no column),
    "truncated" (given in truncated rows, null elsewhere) or "all". `targets`: name -> pi [s, a];
    by default the problem's own, named "pi" (or "pi0", "pi1", ... where there are several). The
    column `discount` holds the discount of each transition.
    """
    c = simulate(problem, episodes=episodes, length=length, seed=seed)
    table = (problem.Phi if obs == "phi" else np.eye(problem.n_states)).astype(dtype)
    policies = targets
    if policies is None:
        several = problem.pi.ndim == 3
        policies = (
            {f"pi{i}": pi for i, pi in enumerate(problem.pi)} if several else {"pi": problem.pi}
        )
    columns: dict[str, Any] = {
        "episode_id": c["episode_id"],
        "t": c["t"],
        "obs": fixed_lists(table[c["s"]]),
        "action": c["action"],
        "reward": c["reward"],
        "discount": c["discount"],
        "terminated": c["terminated"],
        "truncated": c["truncated"],
        "behavior_prob": problem.mu[c["s"], c["action"]],
    }
    if next_obs != "none":
        hidden = None if next_obs == "all" else ~c["truncated"]
        columns["next_obs"] = fixed_lists(table[c["s_next"]], hidden)
    for name, pi in policies.items():
        columns[f"target_prob_{name}"] = pi[c["s"], c["action"]]
    return pa.table(columns)


def write_problem_log(
    path: Path, problem: Problem, *, row_group_rows: int = 1000, **kwargs: Any
) -> Path:
    """`log_table(problem, **kwargs)` as a Parquet file."""
    return write_log(path, log_table(problem, **kwargs), row_group_rows=row_group_rows)


def identity_of(log: Log) -> str:
    """All that decides the batches of a log."""
    return digest(log.reads(), log.read_contents())
