"""Automatic numbers of the online learners, from the first rows of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

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


def chosen(
    batch: LogBatch, X: Any, plan: Plan, online: Sequence[Request], seed: int
) -> list[list[Learner]]:
    """The online learners of every target, with their numbers from the pilot's rows."""
    found: Iterable[Stability | None] = [None] * len(plan.targets)
    if any(one.automatic for one in online):
        found = _stability(batch, plan, seed)
    pilot = sizes(batch, X)
    result: list[list[Learner]] = []
    for target, stability in enumerate(found):
        result.append([])
        for one in online:
            assert one.learner is not None
            learner = with_numbers(one.learner, stability)
            if one.auto_alpha:
                alpha = safe_alpha(pilot, batch, target, learner)
                learner = replaced(learner, ("alpha",), (alpha,))
            result[-1].append(learner)
    return result


def _stability(batch: LogBatch, plan: Plan, seed: int) -> Iterator[Stability]:
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
    return (assess(e, t, name, seed) for t, name in enumerate(plan.targets))


def safe_alpha(pilot: Sizes, batch: LogBatch, target: int, learner: Learner) -> float:
    """Half the inverse of the largest step that one of the pilot's rows asks for.

    A step moves w.x by about alpha rho (1 + eta) |x| max(|x|, |x - gamma' x'|) w.x; for a learner
    with a second vector by alpha ratio |x|^2 as well, and ETD multiplies by the follow-on trace F.
    The 99.9 % quantile stands for the largest.
    """
    assert batch.behavior_prob is not None
    mu = batch.behavior_prob
    rho = np.divide(batch.target_prob[target], mu, out=np.zeros(len(mu)), where=mu > 0.0)
    fixed = fixed_point(learner)
    names = ("eta", "lam") if fixed is None else (fixed.penalty, fixed.decays.lam)
    eta, lam = (float(learner.values.get(name, 0.0)) for name in names)
    steps = rho * pilot.x * np.maximum((1.0 + eta) * pilot.x, pilot.moved)
    if "F" in learner.law.memory or (fixed and fixed.system.emphatic):
        steps = steps * follow_on(rho, batch.discount, batch.first)
    steps = steps / max(1.0 - lam * float(batch.discount.max(initial=0.0)), 0.05)
    if "ratio" in learner.values and len(learner.law.vectors) > 1:
        steps = np.maximum(steps, float(learner.values["ratio"]) * pilot.x**2)
    largest = float(np.quantile(steps, 0.999))
    return float(f"{0.5 / largest:.2g}") if largest > 0.0 else 1.0


class Sizes(NamedTuple):
    """|x| and |x - gamma' x'| of the pilot's rows."""

    x: Floats
    moved: Floats


def sizes(batch: LogBatch, X: Any) -> Sizes:
    """The sizes of a batch with features X, an array or a sparse one."""
    here = X[: len(batch)]
    if isinstance(X, np.ndarray):
        moved = here - batch.discount[:, None] * X[batch.row_next]
        return Sizes(np.linalg.norm(here, axis=1), np.linalg.norm(moved, axis=1))
    from scipy.sparse.linalg import norm

    moved = here - X[batch.row_next].multiply(batch.discount[:, None])
    return Sizes(*(np.asarray(norm(one, axis=1), dtype=np.float64) for one in (here, moved)))


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
    numbers, names = {"eta": found.eta, "ratio": found.ratio, penalty: found.eta}, learner.automatic
    return replaced(learner, tuple(names), tuple(numbers[name] for name in names))


@lru_cache(maxsize=4096)
def replaced(learner: Learner, names: tuple[str, ...], numbers: tuple[float, ...]) -> Learner:
    """The learner with other numbers: many targets ask for the same ones."""
    return learner.replace(**dict(zip(names, numbers, strict=True)))


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

    def joined(name: str) -> Any:
        return np.concatenate([getattr(b, name) for b in found], axis=-1)[..., :n]

    x = np.concatenate([b.obs[: len(b)] for b in found])[:n]
    x_next = np.concatenate([b.obs[b.row_next] for b in found])[:n]
    return replace(
        found[0],
        obs=np.concatenate([x, x_next]),
        row_next=np.arange(len(x), 2 * len(x), dtype=np.int32),
        reward=joined("reward"),
        discount=joined("discount"),
        behavior_prob=joined("behavior_prob"),
        target_prob=joined("target_prob"),
        episode=joined("episode"),
        first=joined("first"),
        rows=joined("rows"),
        action=None,
    )
