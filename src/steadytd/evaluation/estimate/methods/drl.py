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

Where episodes are cut off J rests on w too, since nothing corrects V there. So unit u moves J
through w as well, by

    eta.(b_u - A_u w) / n,      A' eta = sum x_start - sum U rho (x - gamma' x').
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from steadytd.evaluation.collect.plan import System
from steadytd.evaluation.estimate.estimators import LSTD, Estimator, Form, Pair, Sides
from steadytd.evaluation.estimate.sandwich import Estimate, nothing

GRID = (0.0, 0.5, 0.8, 0.95, 1.0)  # among these lam is chosen: see `estimate.rule`


def drl(e: Estimator, target: int, form: Form) -> Estimate:
    """DRL(lam) for the form's lam; its influences are those through w, too."""
    if form.lam is None:
        return nothing(e.n_units)
    found = at(e, target, form.lam)
    return through_weights(e, target, found) if e.any_cut and e.where == "start" else found


def curve(e: Estimator, target: int) -> dict[float, Estimate]:
    """DRL(lam) for every lam of the grid whose sums were made."""
    known = {0.0, *e.lams} & {1.0, *(s.lam for s in e.systems if not s.emphatic)}
    lams = [lam for lam in GRID if lam in known]
    return dict(zip(lams, along(e, target, lams), strict=True))


def at(e: Estimator, target: int, lam: float) -> Estimate:
    """DRL(lam) of one lam, whose sums must be among those of the pass."""
    return along(e, target, [lam])[0]


def along(e: Estimator, target: int, lams: list[float]) -> list[Estimate]:
    """DRL(lam) of several lam: they share the weights of the folds."""
    n, ks = len(lams), [e.systems.index(System(lam)) for lam in lams if lam < 1.0]
    score, mass, cut = np.zeros((n, e.n_units)), np.zeros((n, e.n_units)), [0.0] * n
    with np.errstate(over="ignore", invalid="ignore"):
        for here, pair in e.cross_fitted(target):
            if pair is None:
                return [nothing(e.n_units)] * n
            start = e.start[here] @ pair.w
            corrections = iter(e.all_corrections(target, ks, pair, here))
            for i, lam in enumerate(lams):
                found, weights = start, np.zeros(len(start))
                if lam < 1.0:
                    errors, masses = next(corrections)
                    found, weights = found + (1.0 - lam) * errors, weights + (1.0 - lam) * masses
                if lam > 0.0:
                    errors, masses = e.products(target, lam, pair.w, here)
                    found, weights = found + lam * errors, weights + lam * masses
                    cut[i] += e.at_cuts(target, lam, pair.beta, here)
                score[i, here], mass[i, here] = found, weights
        means = map(e.mean_of, score)
        return [
            Estimate(one.value, one.influence, lam, masses / e.n_starts, beyond / e.n_starts)
            for one, lam, masses, beyond in zip(means, lams, mass, cut, strict=True)
        ]


def through_weights(e: Estimator, target: int, found: Estimate) -> Estimate:
    """DRL(lam) with what each unit does to it through w, of the values at cuts."""
    lam, solution = found.lam or 0.0, e.solution(target, LSTD)
    if solution is None:
        return found
    A, b = e.total(target)
    at_cuts = e.start_sum() - e.passed(target, lam, solution.beta)
    inverse = e.inverse(A, e.gram(), Sides(b, at_cuts))
    if inverse is None:
        return found
    pair = Pair(solution.w, inverse.solve_transposed(at_cuts))
    moved = e.corrections(target, LSTD.system, pair).errors / e.n_starts
    return replace(found, influence=np.asarray(found.influence + moved))


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
