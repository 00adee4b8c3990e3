"""Fitted Q evaluation: one regression after another, each on the values of the one before.

    theta_{k+1} = G^-1 (b + C theta_k),   G = sum x_a x_a',   C = sum gamma' x_a (sum_a' pi' x'_a')'

from theta_0 = 0, from the same sums as `lstdq` (A = G - C). Where it settles, it is where `lstdq`
is. It settles from every start if and only if the spectral radius of G^-1 C is below 1; with few
features that is not so in general, however good the data are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimate.methods.lstdq import ActionSystem

MOST = 10_000  # iterations
SETTLED = 1e-10  # relative change of the weights in one iteration
GONE = 1e100


class Fitted(NamedTuple):
    """Where the iteration ended."""

    value: float  # NaN where it has diverged
    radius: float  # the spectral radius of G^-1 C
    iterations: int
    settled: bool

    @property
    def stable(self) -> bool:
        """Whether the iteration settles from every start, by the certificate of the sums."""
        return self.radius < 1.0


def fqe(s: ActionSystem) -> Fitted:
    """Iterate until the weights settle, grow beyond all bounds, or 10,000 regressions are done."""
    kept = s.kept(np.ones(s.n_units))
    total = s.systems.sum(axis=0)
    A, b = total[np.ix_(kept, kept)], total[kept, -1]
    G = _diagonal(s.G.sum(axis=0))[np.ix_(kept, kept)]
    M, g = np.eye(len(kept)) - np.linalg.solve(G, A), np.linalg.solve(G, b)
    radius = float(np.abs(np.linalg.eigvals(M)).max(initial=0.0))
    start = s.start.sum(axis=0)[kept] / s.starts.sum()
    theta = np.zeros(len(kept))
    for k in range(1, MOST + 1):
        after = g + M @ theta
        change, size = np.linalg.norm(after - theta), np.linalg.norm(after)
        theta = after
        if not size < GONE:
            return Fitted(float("nan"), radius, k, False)
        if change <= SETTLED * size:
            return Fitted(float(start @ theta), radius, k, True)
    ended = float(start @ theta) if radius < 1.0 else float("nan")
    return Fitted(ended, radius, MOST, False)


def _diagonal(G: Floats) -> Floats:
    """The matrices of all actions as blocks on the diagonal."""
    actions, d, _ = G.shape
    whole = np.zeros((actions, d, actions, d))
    whole[np.arange(actions), :, np.arange(actions), :] = G
    return whole.reshape(actions * d, actions * d)
