"""The pencil A_0 + eta G of one-hot features: G is diagonal, and A_0 an M-matrix.

With one active feature per row, A_0 = sum rho x (x - gamma' x')' has no entry above 0 beside the
diagonal, and its rows sum to sum rho (1 - gamma') >= 0. If it is regular, it is an M-matrix: all
its eigenvalues have positive real parts, and the one with the least is real, 1 over the spectral
radius of A_0^-1, which has no entry below 0 (Perron and Frobenius). So one LU finds the slowest
eigenvalue, and Lanczos steps find eta_pd = -lambda_min(G^-1/2 H G^-1/2), H the symmetric part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.mdp.scales import Rates, slowest
from steadytd.theory.thresholds import Pencil

FEW = 40  # features up to which full matrices are as fast
SAME = 1e-12  # relative size of rounding in sums of rows


@dataclass(frozen=True, eq=False)
class OneHotPencil(Pencil):
    """`Q` picks the features that are seen; `A0` and `G` are sparse."""

    Q: Any
    A0: Any
    G: Any

    @staticmethod
    def of_sums(A: Any, b: Floats, G: Any, kept: Longs, rows: float) -> OneHotPencil:
        """The pencil of sums over so many rows, for the features that are seen."""
        from scipy.sparse import identity

        Q = identity(len(b), format="csc")[:, kept]
        return OneHotPencil(Q, A[kept][:, kept] / rows, G[kept][:, kept] / rows, b[kept] / rows)

    def A(self, eta: float) -> Any:
        """A_0 + eta G."""
        return self.A0 + eta * self.G

    @cached_property
    def least(self) -> tuple[float, Floats]:
        """The least l with H y = l G y, and y, with y'G y = 1."""
        from scipy.linalg import eigh
        from scipy.sparse import diags
        from scipy.sparse.linalg import ArpackError, eigsh

        size = np.sqrt(self.G.diagonal())
        by = diags(1.0 / size)
        scaled = by @ ((self.A0 + self.A0.T) / 2.0) @ by
        try:
            many = self.rank > FEW
            found = eigsh(scaled, 1, which="SA", v0=size, ncv=FEW) if many else None
        except ArpackError:  # not settled
            found = None
        values, y = eigh(scaled.toarray(), subset_by_index=[0, 0]) if found is None else found
        return float(values[0]), np.asarray(y[:, 0] / size)

    @property
    def eta_pd(self) -> float:
        """The smallest eta with A(eta) positive definite just above it."""
        return -self.least[0]

    def slowest(self, eta: float) -> float:
        """The least real part of an eigenvalue of A(eta), 0 up to rounding."""
        from scipy.sparse.linalg import ArpackError, eigs

        A = self.A(eta)
        down = np.asarray(A.sum(axis=1)).reshape(-1) >= -SAME * np.abs(A.diagonal())
        positive = (A - _diagonal(A)).max() > 0.0
        if self.rank > FEW and down.all() and not positive:
            try:
                found = eigs(A.tocsc(), 1, sigma=0.0, v0=np.ones(self.rank))[0]
                return float(Rates(found, np.full(1, max(abs(A).max(), self.G.max()))).real[0])
            except (ArpackError, RuntimeError):  # not settled, or singular
                pass
        return slowest(A.toarray(), size=float(self.G.max()))

    def solution(self, eta: float) -> Floats:
        """w(eta); NaN where A(eta) is singular."""
        from scipy.sparse.linalg import splu

        try:
            return np.asarray(splu(self.A(eta).tocsc()).solve(self.b))
        except RuntimeError:
            return np.full(self.rank, np.nan)


def _diagonal(A: Any) -> Any:
    from scipy.sparse import diags

    return diags(A.diagonal())
