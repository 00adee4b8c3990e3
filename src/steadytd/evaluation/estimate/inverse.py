"""Solving square systems whose rank has to be found out first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack

from steadytd.base.arrays import Floats, Longs
from steadytd.base.jit import compiled

RANK = 1e-10  # pivots below this share of the largest are zero


@dataclass(frozen=True)
class Inverse:
    """A generalised inverse of A, from S^-1 A S^-1 P = Q R with the largest pivots first.

    S are the features' sizes. Only an independent set of features gets weights: those of pivots
    that are not 0; the others' are 0. `solve` and `solve_transposed` use the same set, so that
    p.solve(b) = solve_transposed(p).b for all p and b.
    """

    Q: Floats  # [d, rank]
    R: Floats  # [rank, rank]
    kept: Longs  # [rank], the features that get weights
    scale: Floats  # [d]

    @staticmethod
    def of(A: Floats, G: Floats) -> Inverse | None:
        """The inverse of A, for features whose sum of x x' is G; None where A is not finite."""
        scale = np.sqrt(G.diagonal())
        scale[~(scale > 0.0)] = 1.0
        scaled = A / (scale[:, None] * scale)
        if not np.isfinite(scaled).all():
            return None
        factoring, forming = _rooms(len(scaled))
        R, order, tau, *_ = lapack.dgeqp3(scaled, lwork=factoring)
        pivots = np.abs(R.diagonal())
        rank = int(np.count_nonzero(pivots > RANK * pivots[0]))
        Q = lapack.dorgqr(R, tau, lwork=forming)[0]
        inner = np.asfortranarray(R[:rank, :rank])  # what is below the diagonal is not looked at
        return Inverse(Q[:, :rank], inner, order[:rank] - 1, scale)

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""
        w = np.zeros(len(self.scale))
        if not len(self.kept):  # nothing is solved: LAPACK would complain on the terminal
            return w
        w[self.kept] = lapack.dtrtrs(self.R, self.Q.T @ (b / self.scale))[0]
        return w / self.scale

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""
        if not len(self.kept):
            return np.zeros(len(self.scale))
        beta = lapack.dtrtrs(self.R, (p / self.scale)[self.kept], trans=1)[0]
        return np.asarray(self.Q @ beta / self.scale)


@lru_cache(maxsize=64)
def _rooms(n: int) -> tuple[int, int]:
    """The work space that factoring an n x n matrix and forming Q ask for."""
    R, _, tau, work, _ = lapack.dgeqp3(np.eye(n), lwork=-1)
    return int(work[0]), int(lapack.dorgqr(R, tau, lwork=-1)[1][0])


@compiled
def divide(L: Floats, H: Floats) -> None:
    """H becomes L^-1 H, for many lower triangular matrices L."""
    resamples, d, columns = H.shape
    for r in range(resamples):
        for i in range(d):
            for k in range(i):
                for j in range(columns):
                    H[r, i, j] -= L[r, i, k] * H[r, k, j]
            for j in range(columns):
                H[r, i, j] /= L[r, i, i]
