"""The errors that a run records: how far the values are from the truth, or from consistency.

    value                sqrt(sum_s d(s) (phi(s).w - v_pi(s))^2), the paper's RMSE
    projected_bellman    sqrt((b - A w)' G^-1 (b - A w)), the root of the MSPBE at lam = 0

with d = d_mu, times the interest for the value error, over the states that count, scaled to sum 1.
Both have the form sqrt(sum_i weight_i (row_i.w - target_i)^2), so one compiled loop measures both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, unknown
from steadytd.engine.block import Goal
from steadytd.engine.rows import Rows, joined_rows, sparse_rows
from steadytd.mdp.action_values import Task
from steadytd.mdp.problem import Problem
from steadytd.theory.thresholds import Pencil

MEASURES = {
    "value": "root mean squared value error",
    "projected_bellman": "root mean squared projected Bellman error",
}


def goal(problem: Task, policy: int, measures: Sequence[str] = ("value",)) -> Goal:
    """What the named errors of one target policy are measured against."""
    parts = [_part(problem, policy, measure) for measure in measures]
    rows, weights, targets = zip(*parts, strict=True)
    ends = np.cumsum([len(weight) for weight in weights])
    return Goal(joined_rows(rows), np.concatenate(weights), np.concatenate(targets), ends)


def _part(problem: Task, policy: int, measure: str) -> tuple[Rows, Floats, Floats]:
    if measure not in MEASURES:
        raise unknown("error measure", measure, MEASURES)
    if measure == "value":
        weight = problem.error_weights(policy)
        table = problem.table
        if isinstance(problem, Problem) and problem.average_reward:
            table = problem.moments(policy).compared
        rows = sparse_rows(table if table.shape[0] == len(weight) else table[: len(weight)])
        return rows, weight, problem.targets[policy]
    if not isinstance(problem, Problem):
        raise InputError("the projected Bellman error is defined for state values; use 'value'.")
    if problem.average_reward:
        raise InputError("the projected Bellman error is defined with a discount; use 'value'.")
    return _projected_bellman(problem, policy)


def _projected_bellman(problem: Problem, policy: int) -> tuple[Rows, Floats, Floats]:
    """With G = L L' on the row space: rows L^-1 A and targets L^-1 b, weights 1 / sum(d)."""
    import scipy.linalg

    m = problem.moments(policy)
    pencil = Pencil.of(m)
    Q, L = pencil.Q, np.linalg.cholesky(pencil.G)
    rows = scipy.linalg.solve_triangular(L, Q.T @ m.A(), lower=True)
    target = scipy.linalg.solve_triangular(L, Q.T @ m.b(), lower=True)
    return sparse_rows(rows), np.full(len(target), 1.0 / m.d.sum()), target
