"""DRL(lam) row by row, as its equations stand: what the sums must give."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from tests.support.evaluate_helpers import Step

FOLDS = 5


def slow_drl(
    units: list[list[list[Step]]], target: int, lam: float, every: bool = False
) -> tuple[Floats, Floats, float]:
    """Scores and masses of units, and the weight at cuts.

    Units are lists of episodes or (`every` row a start) stretches.

    An endless episode is given in stretches: U goes on from one to the next.
    """
    n = len(units)
    scores, masses, cut = np.zeros(n), np.zeros(n), 0.0
    for fold in range(min(FOLDS, n)):
        number = min(FOLDS, n)
        held = range(fold, n, number)
        if every:
            held = range(-(-fold * n // number), -(-(fold + 1) * n // number))
        w, beta = _solved([units[i] for i in range(n) if i not in held], target, every)
        before, gamma = 0.0, 0.0  # rho U of the row before
        for i, unit in enumerate(units):
            for piece in unit:
                for step in piece:
                    gamma = 0.0 if step.first else gamma
                    start = float(every or step.first)
                    U = float((1.0 - lam) * step.x @ beta + lam * (gamma * before + start))
                    delta = step.reward + step.discount * step.x_next @ w - step.x @ w
                    before, gamma = float(step.rho[target]) * U, step.discount
                    if i in held:
                        scores[i] += start * step.x @ w + before * delta
                        masses[i] += before * (1.0 - step.discount)
                if i in held:  # a stretch is no episode, but then nobody asks
                    cut += before * gamma
    return scores, masses, float(cut)


def _solved(units: list[list[list[Step]]], target: int, every: bool) -> tuple[Floats, Floats]:
    """A w = b and A' beta = phi0."""
    steps = [step for unit in units for piece in unit for step in piece]
    d = len(steps[0].x)
    A, b, phi0 = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for step in steps:
        rho = float(step.rho[target])
        A += rho * np.outer(step.x, step.x - step.discount * step.x_next)
        b += rho * step.reward * step.x
        phi0 += step.x * float(every or step.first)
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64), np.asarray(
        np.linalg.solve(A.T, phi0), dtype=np.float64
    )
