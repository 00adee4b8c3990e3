"""Automatic numbers of the online learners, from the first rows of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import norm

from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.evaluation.closed_form import fixed_point
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.passes import Plan
from steadytd.evaluation.requests import Request
from steadytd.evaluation.rows import ENOUGH_EPISODES, Division, RowTable, joined
from steadytd.evaluation.stability import Stability, assess
from steadytd.evaluation.sums import ETD, TD

PILOT_ROWS = 20_000  # of the log's beginning


def chosen(
    tables: Iterable[RowTable], plan: Plan, online: Sequence[Request]
) -> list[list[Learner]]:
    """The online learners of every target, with their numbers from the first rows of tables."""
    rows = first_rows(tables, PILOT_ROWS)
    if rows is None:
        return []
    rows = rows.with_features(plan.features)
    automatic = any(one.automatic for one in online)
    found = _stability(rows, plan) if automatic else [None] * len(plan.targets)
    norms = row_norms(rows)
    result: list[list[Learner]] = [[] for _ in found]
    for target, stability in enumerate(found):
        for one in online:
            assert one.learner is not None
            learner = with_numbers(one.learner, stability)
            if one.auto_alpha:
                learner = learner.replace(alpha=safe_alpha(norms, rows, target, learner))
            result[target].append(learner)
    return result


def _stability(rows: RowTable, plan: Plan) -> list[Stability | None]:
    """The stability of every target on the pilot's rows."""
    numbers = rows.number - rows.number[0]  # with gaps where rows were left out
    division = Division(int(numbers[-1]) + 1, bool(rows.first.sum() < ENOUGH_EPISODES))
    group = division.group(division.unit(numbers, rows.episode))
    e = Equations(plan.new_sums(plan.features, (TD,)), "states", division)
    e.sums.add(replace(rows, group=group))
    return [assess(e, t, name, plan.seed) for t, name in enumerate(plan.targets)]


def safe_alpha(
    norms: tuple[Floats, Floats], rows: RowTable, target: int, learner: Learner
) -> float:
    """Half the inverse of the largest step that one of the pilot's rows asks for.

    A step moves w.x by about alpha rho (1 + eta) |x| max(|x|, |x - gamma' x'|) w.x; for a learner
    with a second vector by alpha ratio |x|^2 as well, and ETD multiplies by the follow-on trace F.
    The 99.9 % quantile stands for the largest.
    """
    x, moved = norms
    rho, fixed = rows.rho[target], fixed_point(learner)
    names = ("eta", "lam") if fixed is None else (fixed.penalty, fixed.decays.lam)
    eta, lam = (float(learner.values.get(name, 0.0)) for name in names)
    if "F" in learner.law.memory or (fixed and fixed.system.emphatic):
        rho = ETD.weights(rho, rows.gamma, np.zeros(2))
    steps = rho * x * np.maximum((1.0 + eta) * x, moved)
    steps = steps / max(1.0 - lam * float(rows.discount.max(initial=0.0)), 0.05)
    if "ratio" in learner.values and len(learner.law.vectors) > 1:
        steps = np.maximum(steps, float(learner.values["ratio"]) * x**2)
    largest = float(np.quantile(steps, 0.999))
    return float(f"{0.5 / largest:.2g}") if largest > 0.0 else 1.0


def row_norms(rows: RowTable) -> tuple[Floats, Floats]:
    """|x| and |x - gamma' x'| of every row."""
    x, x_next, by = rows.X[: len(rows)], rows.X[rows.row_next], rows.discount[:, None]
    if issparse(rows.X):
        return np.asarray(norm(x, axis=1)), np.asarray(norm(x - x_next.multiply(by), axis=1))
    return np.linalg.norm(x, axis=1), np.linalg.norm(x - by * x_next, axis=1)


def with_numbers(learner: Learner, found: Stability | None) -> Learner:
    """The learner with its automatic numbers as the data ask for."""
    if found is None:
        return learner
    equations = fixed_point(learner)
    penalty = equations.penalty if equations is not None else ""
    numbers = {"eta": found.eta, "ratio": found.ratio, penalty: found.eta}
    return learner.replace(**{name: numbers[name] for name in learner.automatic})


def first_rows(tables: Iterable[RowTable], n: int) -> RowTable | None:
    """The first n rows of tables as one, however they are divided; None if there are none."""
    found: list[RowTable] = []
    for table in tables:
        found.append(table)
        if sum(map(len, found)) >= n:
            break
    return joined(found, np.arange(min(n, sum(map(len, found))))) if found else None
