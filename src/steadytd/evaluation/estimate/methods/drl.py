"""DRL(lam): V(s_0) corrected by temporal differences, from marginal ratios to products of ratios.

Along an episode, with V(s) = x(s).w and omega(s) = x(s).beta (`mis`) from the *other* units,

    U_0 = (1 - lam) omega(s_0) + lam,   U_t = (1 - lam) omega(s_t) + lam gamma_t rho_{t-1} U_{t-1},
    score = V(s_0) + sum_t U_t rho_t (r_t + gamma_{t+1} V(s_{t+1}) - V(s_t)).

Without episodes every row is a start:

    U_t = (1 - lam) omega(s_t) + lam (gamma_t rho_{t-1} U_{t-1} + 1).

J is the sum of the scores over the number of starts. lam = 0 is double reinforcement learning
(Kallus and Uehara, 2020), lam = 1 corrects by products of ratios over whole episodes. Bias of poor
features falls with lam, variance rises.

U_t rho_t = (1 - lam) beta.z_t + lam c_t with z_t = rho_t (gamma_t lam z_{t-1} + x_t) and
c_t = rho_t (gamma_t lam c_{t-1} + 1 at a start). So a unit's score comes from its sums:

    x_start.w + (1 - lam) beta.(b_lam - A_lam w) + lam (sum c r - (sum c (x - gamma' x')).w).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from steadytd.evaluation.collect.plan import System
from steadytd.evaluation.estimate.estimators import Estimator, Form
from steadytd.evaluation.estimate.sandwich import Estimate, nothing

GRID = (0.0, 0.5, 0.8, 0.95, 1.0)  # among these lam is chosen: see `estimate.rule`


def drl(e: Estimator, target: int, form: Form) -> Estimate:
    """DRL(lam) for the form's lam."""
    return nothing(e.n_units) if form.lam is None else at(e, target, form.lam)


def curve(e: Estimator, target: int) -> dict[float, Estimate]:
    """DRL(lam) for every lam of the grid whose sums were made."""
    known = {0.0, *e.lams} & {1.0, *(s.lam for s in e.systems if not s.emphatic)}
    return {lam: at(e, target, lam) for lam in GRID if lam in known}


def at(e: Estimator, target: int, lam: float) -> Estimate:
    """DRL(lam) of one lam, whose sums must be among those of the pass."""
    score, mass, cut = np.zeros(e.n_units), np.zeros(e.n_units), 0.0
    number = e.starts.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        for held in e.cross_fitted(target):
            if held.pair is None:
                return nothing(e.n_units)
            pair, here = held.pair, held.units
            score[here] = e.start[here] @ pair.w
            if lam < 1.0:
                found = e.corrections(target, e.systems.index(System(lam)), pair, here)
                score[here] += (1.0 - lam) * found.errors
                mass[here] += (1.0 - lam) * found.masses
            if lam > 0.0:
                found = e.products(target, lam, pair.w, here)
                score[here] += lam * found.errors
                mass[here] += lam * found.masses
                cut += e.at_cuts(target, lam, pair.beta, here)
        one = e.mean_of(score)
        return replace(one, lam=lam, masses=mass / number, cut=float(cut / number))


def needed(lams: Iterable[float]) -> tuple[tuple[System, ...], tuple[float, ...]]:
    """The systems and the decays of products that these lams need beside the grid's.

    >>> needed([0.9])[1]
    (0.5, 0.8, 0.9, 0.95, 1.0)
    """
    wanted = sorted({*GRID, *lams})
    return (
        tuple(System(lam) for lam in wanted if lam < 1.0),
        tuple(lam for lam in wanted if lam > 0.0),
    )
