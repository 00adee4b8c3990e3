"""Automatic numbers of the online learners, from the first rows of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.jit import compiled
from steadytd.engine.learner import Learner
from steadytd.evaluation.closed_form import fixed_point
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.passes import Plan, sums_of
from steadytd.evaluation.requests import Request
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, tables
from steadytd.evaluation.stability import Stability, assess
from steadytd.evaluation.sums import LARGEST, TD
from steadytd.logs.log import LogBatch

PILOT_ROWS = 20_000  # of the log's beginning


def chosen(batch: LogBatch, X: Any, plan: Plan, online: Sequence[Request]) -> list[list[Learner]]:
    """The online learners of every target, with their numbers from the pilot's rows."""
    automatic = any(one.automatic for one in online)
    found = _stability(batch, plan) if automatic else [None] * len(plan.targets)
    norms = row_norms(batch, X)
    result: list[list[Learner]] = [[] for _ in found]
    for target, stability in enumerate(found):
        for one in online:
            assert one.learner is not None
            learner = with_numbers(one.learner, stability)
            if one.auto_alpha:
                learner = learner.replace(alpha=safe_alpha(norms, batch, target, learner))
            result[target].append(learner)
    return result


def _stability(batch: LogBatch, plan: Plan) -> list[Stability | None]:
    """The stability of every target on the pilot's rows."""
    few = batch.first.sum() < ENOUGH_EPISODES
    numbers = batch.rows - batch.rows[0]  # with gaps where rows were left out
    division = Division(int(numbers[-1]) + 1, bool(few))
    rows = [
        table.with_features(plan.features)
        for table in tables([replace(batch, rows=numbers)], division)
    ]
    sums, counts = sums_of(rows, plan.new_sums(plan.features, (TD,)))
    e = Equations(sums, counts, "states", division)
    return [assess(e, t, name, plan.seed) for t, name in enumerate(plan.targets)]


def safe_alpha(
    norms: tuple[Floats, Floats], batch: LogBatch, target: int, learner: Learner
) -> float:
    """Half the inverse of the largest step that one of the pilot's rows asks for.

    A step moves w.x by about alpha rho (1 + eta) |x| max(|x|, |x - gamma' x'|) w.x; for a learner
    with a second vector by alpha ratio |x|^2 as well, and ETD multiplies by the follow-on trace F.
    The 99.9 % quantile stands for the largest.
    """
    assert batch.behavior_prob is not None
    x, moved = norms
    mu = batch.behavior_prob
    rho = np.divide(batch.target_prob[target], mu, out=np.zeros(len(mu)), where=mu > 0.0)
    fixed = fixed_point(learner)
    names = ("eta", "lam") if fixed is None else (fixed.penalty, fixed.decays.lam)
    eta, lam = (float(learner.values.get(name, 0.0)) for name in names)
    steps = rho * x * np.maximum((1.0 + eta) * x, moved)
    if "F" in learner.law.memory or (fixed and fixed.system.emphatic):
        steps = steps * follow_on(rho, batch.discount, batch.first)
    steps = steps / max(1.0 - lam * float(batch.discount.max(initial=0.0)), 0.05)
    if "ratio" in learner.values and len(learner.law.vectors) > 1:
        steps = np.maximum(steps, float(learner.values["ratio"]) * x**2)
    largest = float(np.quantile(steps, 0.999))
    return float(f"{0.5 / largest:.2g}") if largest > 0.0 else 1.0


def row_norms(batch: LogBatch, X: Any) -> tuple[Floats, Floats]:
    """|x| and |x - gamma' x'| of the rows of a batch with features X, an array or a sparse one."""
    x, x_next = X[: len(batch)], X[batch.row_next]
    if isinstance(X, np.ndarray):
        moved = x - batch.discount[:, None] * x_next
        return np.linalg.norm(x, axis=1), np.linalg.norm(moved, axis=1)
    from scipy.sparse.linalg import norm

    moved = x - x_next.multiply(batch.discount[:, None])
    return np.asarray(norm(x, axis=1)), np.asarray(norm(moved, axis=1))


@compiled
def follow_on(rho: Floats, discount: Floats, first: Bools) -> Floats:
    """F of ETD on the rows of a batch: F = gamma rho_prev F + 1, from 1 at an episode's start."""
    F = np.ones(len(rho))
    for i in range(1, len(rho)):
        if not first[i]:
            F[i] = min(discount[i - 1] * rho[i - 1] * F[i - 1] + 1.0, LARGEST)
    return F


def with_numbers(learner: Learner, found: Stability | None) -> Learner:
    """The learner with its automatic numbers as the data ask for."""
    if found is None:
        return learner
    equations = fixed_point(learner)
    penalty = equations.penalty if equations is not None else ""
    numbers = {"eta": found.eta, "ratio": found.ratio, penalty: found.eta}
    return learner.replace(**{name: numbers[name] for name in learner.automatic})


def first_rows(batches: Iterable[LogBatch], n: int) -> LogBatch | None:
    """The first n rows of a log as one batch, however they are divided; None if there are none.

    The next observations stand behind all others, one for each row.
    """
    found: list[LogBatch] = []
    for batch in batches:
        found.append(batch)
        if sum(map(len, found)) >= n:
            break
    if not found:
        return None

    names = ("reward", "discount", "behavior_prob", "target_prob", "episode", "first", "rows")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(b, name) for b in found], axis=-1)[..., :n] for name in names
    }
    x = np.concatenate([b.obs[: len(b)] for b in found])[:n]
    x_next = np.concatenate([b.obs[b.row_next] for b in found])[:n]
    row_next = np.arange(len(x), 2 * len(x), dtype=np.int32)
    obs = np.concatenate([x, x_next])
    return replace(found[0], obs=obs, row_next=row_next, action=None, **columns)
