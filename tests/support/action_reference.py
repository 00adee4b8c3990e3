"""The Q-form in plain Python: sums and scores of a log, one row after another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steadytd import Problem
from steadytd.base.arrays import Floats
from steadytd.logs.log import Log
from tests.support.log_helpers import fixed_lists, log_table, simulate


class ActionStep(NamedTuple):
    """One transition: `v` is x_a - gamma' sum pi' x'_a', None where pi' is not known."""

    x: Floats
    x_taken: Floats
    v: Floats | None
    start: Floats  # pi(a|s) x(s)
    reward: float
    rho: float
    discount: float
    first: bool
    row: int


def placed(x: Floats, weights: Any) -> Floats:
    """The features in the place of every action, times that action's weight."""
    return np.outer(np.asarray(weights), x).reshape(-1)


def action_episodes(log: Log, target: int = 0) -> list[list[ActionStep]]:
    """The transitions of a log whose targets are all known as a whole, episode by episode."""
    found: list[list[ActionStep]] = []
    for b in log.batches():
        assert b.probs is not None and b.action is not None and b.behavior_prob is not None
        X = np.asarray(b.obs, dtype=np.float64)
        eye = np.eye(log.n_actions)
        for i in range(len(b)):
            taken, gamma = placed(X[i], eye[int(b.action[i])]), float(b.discount[i])
            after = placed(X[b.row_next[i]], b.probs[b.row_next[i], target])
            v = taken if gamma == 0.0 else taken - gamma * after
            rho = float(b.target_prob[target, i] / b.behavior_prob[i])
            step = ActionStep(
                X[i], taken, None if np.isnan(v).any() else v, placed(X[i], b.probs[i, target]),
                float(b.reward[i]), rho, gamma, bool(b.first[i]),
                int(b.rows[i]),
            )  # fmt: skip
            if step.first:
                found.append([])
            found[-1].append(step)
    return found


def slow_action_system(episodes: list[list[ActionStep]]) -> Floats:
    """sum of x_a (v, r)'."""
    m = len(episodes[0][0].x_taken)
    total = np.zeros((m, m + 1))
    for episode in episodes:
        for step in episode:
            if step.v is not None:
                total += np.outer(step.x_taken, np.append(step.v, step.reward))
    return total


def slow_score(
    episode: list[ActionStep], theta: Floats, beta: Floats, lam: float, every: bool = False
) -> float:
    """An episode's score; with `every`, each of its states is a start."""
    total, U, rho, gamma = 0.0, 0.0, 0.0, 0.0
    for step in episode:
        starts = 1.0 if every or step.first else 0.0
        total += starts * float(step.start @ theta)
        U = (1.0 - lam) * float(step.x @ beta) + lam * (gamma * rho * U + starts)
        if step.v is not None:
            total += U * step.rho * (step.reward - float(step.v @ theta))
        rho, gamma = step.rho, step.discount
    return total


def whole_table(problem: Problem, *, next_probs: bool = True, **how: Any) -> Any:
    """`log_table` with `target_probs_pi`, and at cut-offs `next_target_probs_pi`."""
    c = simulate(problem, **{k: how[k] for k in ("episodes", "length", "seed")})
    table = log_table(problem, **how)
    pi = problem.pi
    table = table.append_column("target_probs_pi", fixed_lists(pi[c["s"]]))
    if next_probs:
        after = fixed_lists(pi[c["s_next"]], ~c["truncated"])
        table = table.append_column("next_target_probs_pi", after)
    return table
