"""Double reinforcement learning with values of actions, from marginal ratios to products (lam).

Along an episode, with omega(s) = x(s).beta the marginal ratio of states and V(s) the mean of
q(s, .) under the target,

    U_0 = (1 - lam) omega(s_0) + lam,   U_t = (1 - lam) omega(s_t) + lam gamma_t rho_{t-1} U_{t-1}
    score = V(s_0) + sum_t U_t rho_t (r_t + gamma_{t+1} V(s_{t+1}) - q(s_t, a_t))

(every state a start: + lam in each U_t). Units are dealt to five folds of neighbours; q (`lstdq`)
and beta (A' beta = phi0 with LSTD's A of states) come from the other folds. Where q is right, the
errors in brackets have mean 0 given state and action, so wrong ratios do no harm; where omega and
rho are right, a wrong q does none. No second pass is needed: U_t rho_t = (1 - lam) z_t.beta + c_t
with the traces of `action_sums`, linear in beta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.plan import Where
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.methods.lstdq import (
    ActionSystem,
    Solved,
    independent,
    sandwich,
    solved,
)

FOLDS = 5


class Corrected(NamedTuple):
    """What corrects the values of actions: the sums of one target, with lam at `lam_place`."""

    units: Statistics
    target: int  # its place among all targets,
    place: int  # and among those known as a whole
    lam: float
    lam_place: int
    where: Where


def drl_q(c: Corrected) -> Solved:
    """The mean score over starts, with the sandwich over units; theta is that of all units."""
    s = ActionSystem.of(c.units, c.place, c.where)
    if s.n_units < 2:
        return Solved(float("nan"), sandwich(float("nan"), s.starts, s.starts), s.start[0])
    scores = np.empty(s.n_units)
    for fold in np.array_split(np.arange(s.n_units), min(FOLDS, s.n_units)):
        others = np.ones(s.n_units)
        others[fold] = 0.0
        theta, beta = s.weights(others), ratios(c, others)
        scores[fold] = unit_scores(c, s, theta, beta)[fold]
    value = float(scores.sum() / s.starts.sum())
    theta = s.weights(np.ones(s.n_units))
    moved = through_weights(c, s, theta)
    return Solved(value, sandwich(value, scores + moved, s.starts), theta)


def through_weights(c: Corrected, s: ActionSystem, theta: Floats) -> Floats:
    """How much the errors of each unit move the sum of scores through theta.

    That is eta.(b_u - A_u theta) with A' eta = the sum of what theta counts for in the scores. It
    is 0 in the mean where ratios are right and no episode is cut off.
    """
    every = np.ones(s.n_units)
    beta, kept = ratios(c, every), s.kept(every)
    traced, weighted = (sums.sum(axis=0)[..., :-1] for sums in corrections(c))
    counts = s.start.sum(axis=0) - (1.0 - c.lam) * (beta @ traced) - weighted
    eta = np.zeros(len(theta))
    eta[kept] = solved(s.systems.sum(axis=0)[np.ix_(kept, kept)].T, counts[kept])
    return np.asarray(s.errors(theta) @ eta)


def corrections(c: Corrected) -> tuple[Floats, Floats]:
    """By unit, the sums of z (v, r)' [units, d, m + 1] and of c (v, r) [units, m + 1]."""
    at = 0 if c.where == "start" else 1
    u = c.units
    return u.q_traced[:, c.place, c.lam_place], u.q_weighted[:, c.place, c.lam_place, at]


def unit_scores(c: Corrected, s: ActionSystem, theta: Floats, beta: Floats) -> Floats:
    """Sums of the scores of each unit's episodes, for given q and omega."""
    traced, weighted = corrections(c)
    error = np.append(-theta, 1.0)  # r - v.theta
    marginal = np.einsum("uij,i,j->u", traced, beta, error)
    return np.asarray(s.start @ theta + (1.0 - c.lam) * marginal + weighted @ error)


def ratios(c: Corrected, use: Floats) -> Floats:
    """beta from the units of `use`: A' beta = phi0, the dual of LSTD."""
    u = c.units
    A = np.tensordot(use, u.systems[:, c.target, 0, :, :-1], axes=1)
    phi = use @ (u.x_start if c.where == "start" else u.x)
    kept = independent(np.tensordot(use, u.G, axes=1))
    beta = np.zeros(len(phi))
    beta[kept] = solved(A[np.ix_(kept, kept)].T, phi[kept])
    return beta
