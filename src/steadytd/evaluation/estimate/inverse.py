"""Solving square systems whose rank has to be found out first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steadytd.base.arrays import Floats, Longs

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
        from scipy.linalg import qr

        size = np.sqrt(np.diag(G))
        scale = np.where(size > 0.0, size, 1.0)
        scaled = A / np.outer(scale, scale)
        if not np.isfinite(scaled).all():
            return None
        Q, R, order = qr(scaled, pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(R))
        rank = int((pivots > RANK * pivots[0]).sum())
        return Inverse(Q[:, :rank], R[:rank, :rank], order[:rank], scale)

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""
        from scipy.linalg import solve_triangular

        w = np.zeros(len(self.scale))
        w[self.kept] = solve_triangular(self.R, self.Q.T @ (b / self.scale), check_finite=False)
        return w / self.scale

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""
        from scipy.linalg import solve_triangular

        inner = (p / self.scale)[self.kept]
        beta = solve_triangular(self.R, inner, trans="T", check_finite=False)
        return np.asarray(self.Q @ beta / self.scale)
