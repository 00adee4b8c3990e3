"""LSTD-Q: the values of actions, solved from the sums; no ratio of probabilities is needed.

With q(s, a) = x(s).theta_a, x_a the features in the place of action a and zeros elsewhere,

    A theta = b,   A = sum x_a (x_a - gamma' sum_a' pi(a'|s') x'_a')',   b = sum r x_a

over all rows. The value is the mean of sum_a pi(a|s) x(s).theta_a over the starts. Its interval is
the sandwich over units u of the log: with phi the sum of pi x over the starts, A' beta = phi, N the
number of starts and J the value,

    e_u = beta.(b_u - A_u theta) + phi_u.theta - J N_u,   J +- t sqrt(n/(n - 1) sum_u e_u^2) / N.

It rests on the features, which have to represent q, and not on the behaviour's probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.collect.plan import Where
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.bootstrap import NONE, Interval, student
from steadytd.evaluation.estimate.inverse import RANK


class Solved(NamedTuple):
    """A value with its interval, and the weights theta [actions d] of q."""

    value: float
    interval: Interval
    theta: Floats


@dataclass(frozen=True)
class ActionSystem:
    """The units' sums of the Q-form for one target, with the starts that values are means over."""

    systems: Floats  # [units, m, m + 1] with m = actions d: sums of x_a (v, r)'
    G: Floats  # [units, actions, d, d]
    start: Floats  # [units, m]
    starts: Floats  # [units]

    @classmethod
    def of(cls, u: Statistics, place: int, where: Where) -> ActionSystem:
        """That of the target with this place among those known as a whole."""
        at = 0 if where == "start" else 1
        starts = u.counts[:, 1 - at]
        return cls(u.q_systems[:, place], u.q_G[:, place], u.q_start[:, place, at], starts)

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return len(self.systems)

    def kept(self, use: Floats) -> Longs:
        """Linearly independent features of each action, in the units of `use` (0 or 1)."""
        G = np.tensordot(use, self.G, axes=1)
        d = G.shape[1]
        return np.concatenate([a * d + independent(G[a]) for a in range(len(G))])

    def weights(self, use: Floats) -> Floats:
        """theta from the units of `use`; 0 for features that these do not determine."""
        total, kept = np.tensordot(use, self.systems, axes=1), self.kept(use)
        theta = np.zeros(len(total))
        theta[kept] = solved(total[np.ix_(kept, kept)], total[kept, -1])
        return theta

    def errors(self, theta: Floats) -> Floats:
        """Sums of x_a (r - v.theta) by unit [units, m]."""
        return np.asarray(self.systems[:, :, -1] - self.systems[:, :, :-1] @ theta)


def lstdq(s: ActionSystem) -> Solved:
    """The value by LSTD-Q."""
    use = np.ones(s.n_units)
    theta, kept = s.weights(use), s.kept(use)
    A = s.systems.sum(axis=0)[np.ix_(kept, kept)]
    beta = np.zeros(len(theta))
    beta[kept] = solved(A.T, s.start.sum(axis=0)[kept])
    scores = s.errors(theta) @ beta + s.start @ theta
    value = float(s.start.sum(axis=0) @ theta / s.starts.sum())
    return Solved(value, sandwich(value, scores, s.starts), theta)


def sandwich(value: float, scores: Floats, starts: Floats) -> Interval:
    """The 95 % interval of a ratio of sums over units, by Student's t."""
    n = len(scores)
    if n < 2 or not np.isfinite(value):
        return NONE
    e = scores - value * starts
    reach = student(0.975, n - 1) * np.sqrt(n / (n - 1.0) * (e**2).sum()) / starts.sum()
    return Interval(value - float(reach), value + float(reach)) if np.isfinite(reach) else NONE


def independent(G: Floats) -> Longs:
    """A largest set of linearly independent features, from their products G."""
    from scipy.linalg import lapack

    scale = np.sqrt(np.diag(G))
    shown = np.flatnonzero(scale > 0.0)
    if not len(shown):
        return shown
    inner = G[np.ix_(shown, shown)] / np.outer(scale[shown], scale[shown])
    _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
    return np.sort(shown[order[:rank] - 1])


def solved(A: Floats, b: Floats) -> Floats:
    """The solution of A w = b, NaN where A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b))
    except np.linalg.LinAlgError:
        return np.full(len(b), np.nan)
