"""Solving sparse systems, of which some features may be unknown and some dependent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.estimate.inverse import Inverse

RIDGE = 1e-10  # on the diagonal of the scaled matrix: dependent features have equal shares
REFINED = 4  # steps that take the ridge's part out of the solution again
SETTLED = 1e-9  # relative size of what the solution leaves
MOST_DENSE = 2500  # features up to which a system that does not settle is solved as a full one


@dataclass(frozen=True)
class SparseInverse:
    """A generalised inverse of a sparse A, by LU of S^-1 A S^-1 + ridge I and refinement.

    S are the features' sizes. Features that no row shows, or only rows of ratio 0, get the weight 0
    and are left out. Dependent features (tiles) make A singular: the ridge makes the LU possible,
    and each step w + LU^-1 (b - A w) takes its part out again, as far as b lies in A's range. Both
    `solve` and `solve_transposed` are the same polynomial of LU^-1 and A, so that
    p.solve(b) = solve_transposed(p).b for all p and b.
    """

    A: Any  # [kept, kept], scaled
    lu: Any
    kept: Longs
    scale: Floats

    @staticmethod
    def of(A: Any, G: Any) -> SparseInverse | Inverse | None:
        """The inverse of A, for features whose sum of x x' is G; None where there is none."""
        from scipy.sparse import csc_matrix, diags, identity
        from scipy.sparse.linalg import splu

        if not np.isfinite(A.data).all():
            return None
        size = np.sqrt(G.diagonal())
        shown = np.asarray(abs(A).sum(axis=1)).reshape(-1) > 0.0
        kept = np.flatnonzero((size > 0.0) & shown)
        by = diags(1.0 / size[kept])
        scaled = csc_matrix(by @ A[kept][:, kept] @ by)
        try:
            lu = splu(csc_matrix(scaled + RIDGE * identity(len(kept))))
        except RuntimeError:  # exactly singular
            return SparseInverse.full(A, G)
        return SparseInverse(scaled, lu, kept, size)

    @staticmethod
    def full(A: Any, G: Any) -> Inverse | None:
        """The inverse of the same matrix as a full one, where it is not too large."""
        return Inverse.of(A.toarray(), G.toarray()) if len(G.diagonal()) <= MOST_DENSE else None

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""
        return self._refined(b, self.A, "N")

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""
        return self._refined(p, self.A.T, "T")

    def settled(self, b: Floats, p: Floats) -> bool:
        """Whether both equations hold."""
        return all(
            float(np.linalg.norm(left)) <= SETTLED * float(np.linalg.norm(right))
            for left, right in (self._left(b, self.A, "N"), self._left(p, self.A.T, "T"))
        )

    def _left(self, b: Floats, A: Any, how: str) -> tuple[Floats, Floats]:
        given = b[self.kept] / self.scale[self.kept]
        found = self._refined(b, A, how)[self.kept] * self.scale[self.kept]
        return given - A @ found, given

    def _refined(self, b: Floats, A: Any, how: str) -> Floats:
        given = b[self.kept] / self.scale[self.kept]
        found = np.zeros(len(self.kept))
        for _ in range(REFINED):
            found = found + self.lu.solve(given - A @ found, how)
        w = np.zeros(len(self.scale))
        w[self.kept] = found / self.scale[self.kept]
        return w
