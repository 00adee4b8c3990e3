"""Sums over rows that the weights are solved from, by group of units: dense or sparse.

For every target and system, with the trace z = rho (gamma lam z + w M x),

    A = sum z (x - gamma' x')',   b = sum r z  (for every reward r),

for the behaviour policy the same with z = w x, and G = sum w x x', where w is the weight of the
episode: 1, or the inverse of the probability with which it was stored. Dense rows are multiplied by
BLAS, chunk by chunk; sparse ones by SciPy. A matrix of all groups is stored as [groups d, d], an
array or a `csr_array`, so that both kinds are read in the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular
from scipy.sparse import csc_array, csr_array, dia_array, diags_array, eye_array, issparse, kron

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.base.jit import compiled
from steadytd.base.numbers import count
from steadytd.evaluation.rows import GROUPS, LARGEST, RowTable, recursion

CHUNK_BYTES, FEWEST_ROWS, MOST_ROWS = 1e6, 128, 2048  # of weighted features multiplied at once
TRACE_ROWS = 2048  # rows whose sparse traces are made at once
TRACE_END = 1e-14  # of a trace: smaller entries are dropped where features are sparse
MOST_BYTES = 4e9  # of dense sums
MOST_FEATURE = 1e30  # root mean square of a feature
RANK = 1e-10  # pivots below this share of the largest are zero
RIDGE = 1e-10  # on the diagonal of a scaled sparse matrix: dependent features have equal shares
REFINED = 4  # steps that take the ridge's part out of the solution again
SETTLED = 1e-9  # relative residual that the solution of a sparse system may leave
MOST_DENSE = 2500  # features up to which a sparse system that does not settle is solved as a full


class System(NamedTuple):
    """A linear system for w: sums of z (x - gamma' x')' and of r z, with one of two traces.

    z = rho (gamma lam z + M x); M = 1, or with `emphatic` M = lam + (1 - lam) F, where
    F = beta rho_prev F + 1 (beta = gamma unless given) restarts with every episode.
    """

    lam: float = 0.0
    emphatic: bool = False
    beta: float | None = None

    def weights(self, rho: Floats, gamma: Floats, carry: Floats) -> Floats:
        """Rho M of every row; `carry` holds F and rho of the row before."""
        if not self.emphatic:
            return rho
        decay = gamma if self.beta is None else np.where(gamma > 0.0, self.beta, gamma)
        F = recursion(decay * np.append(carry[1], rho[:-1]), np.ones(len(rho)), carry[:1])
        carry[1] = rho[-1]
        return np.asarray(rho * (self.lam + (1.0 - self.lam) * F))


TD = System()
ETD = System(emphatic=True)


class Pair(NamedTuple):
    """The solution of A w = b and that of A' beta = p."""

    w: Floats
    beta: Floats


class Sums:
    """A and b of every target and system, those of the behaviour, and G, by group of units.

    A column is a system k of a target t, number k T + t; the last one is the behaviour's.
    """

    def __init__(
        self,
        features: int,
        targets: int,
        systems: Sequence[System],
        sparse: bool = False,
        rewards: int = 1,
    ) -> None:
        self.features, self.targets, self.systems = features, targets, tuple(systems)
        self.columns, self.sparse = targets * len(self.systems) + 1, sparse
        self.x = np.zeros((GROUPS, features))  # sums of x over all rows,
        self.x_start = np.zeros((GROUPS, features))  # and over first rows of episodes
        self.right = np.zeros((rewards, GROUPS, self.columns, features))
        self.counts = np.zeros((GROUPS, 2))  # weights of rows, and of episodes
        size = GROUPS * (self.columns + 1) * features * features * 8.0
        if not sparse and size > MOST_BYTES:
            raise InputError(
                f"{count(features, 'feature')} and {count(targets, 'target')} need "
                f"{size / 1e9:.0f} GB for sums; use fewer features, or evaluate fewer targets at "
                "a time."
            )
        shape = GROUPS * features, features
        empty: Any = csr_array(shape) if sparse else np.zeros(shape)
        self.A: Any = [empty] * self.columns if sparse else np.zeros((self.columns, *shape))
        self.G: Any = empty
        self._follow = np.zeros((self.columns, 2))  # F and rho of the last row
        self._z = np.zeros((self.columns, features))

    @property
    def b(self) -> Floats:
        """The right-hand sides of the first reward [groups, columns, d]."""
        return np.asarray(self.right[0])

    def of_reward(self, r: int) -> Sums:
        """The sums of one reward."""
        found = copy.copy(self)
        found.right = self.right[r : r + 1]
        return found

    def column(self, target: int, k: int = 0) -> int:
        """The column of a target's system; the target behind the last one is the behaviour."""
        return self.columns - 1 if target == self.targets else k * self.targets + target

    def add(self, rows: RowTable) -> None:
        """Add the rows of a table."""
        for i, weights in enumerate((rows.weight, rows.first * rows.weight)):
            self.counts[:, i] += np.bincount(rows.group, weights, GROUPS)
        weight, decay = np.ones((2, self.columns, len(rows)))  # z = decay z + weight x
        decay[-1] = 0.0
        for k, system in enumerate(self.systems):
            for t, rho in enumerate(rows.rho):
                c = self.column(t, k)
                weight[c] = system.weights(rho, rows.gamma, self._follow[c])
                decay[c] = rho * rows.gamma * system.lam
        weight *= rows.weight
        traced = [self.column(t, k) for k, s in enumerate(self.systems) if s.lam > 0.0
                  for t in range(self.targets)]  # fmt: skip
        (self._add_sparse if self.sparse else self._add_dense)(rows, weight, decay, traced)

    def _add_dense(
        self, rows: RowTable, weight: Floats, decay: Floats, traced: Sequence[int]
    ) -> None:
        d, C, X, R = self.features, self.columns, rows.X, len(rows.rewards)
        x_t = np.ascontiguousarray(X[: len(rows)].T) if traced else None
        traces = {c: recursion(decay[c], weight[c] * x_t, self._z[c]).T for c in traced}
        chunk = int(np.clip(CHUNK_BYTES / (8 * ((C + 1) * d + 1)), FEWEST_ROWS, MOST_ROWS))
        order = np.argsort(rows.group.astype(np.int8), kind="stable")
        ends = np.searchsorted(rows.group[order], np.arange(GROUPS + 1))
        for g in range(GROUPS):
            here = slice(g * d, (g + 1) * d)
            for lo in range(ends[g], ends[g + 1], chunk):
                some = order[lo : min(lo + chunk, ends[g + 1])]
                x = X[some]
                ahead = rows.discount[some, None] * X[rows.row_next[some]]
                V = np.column_stack([x - ahead, rows.rewards[:, some].T])
                Z = weight[:, some].T[:, :, None] * x[:, None]  # [rows, columns, d]
                for c, z in traces.items():
                    Z[:, c] = z[some]
                found = (Z.reshape(len(some), C * d).T @ V).reshape(C, d, d + R)
                self.A[:, here] += found[..., :d]
                self.right[:, g] += np.moveaxis(found[..., d:], -1, 0)
                own = rows.weight[some]
                scaled = np.sqrt(own)[:, None] * x
                self.G[here] += scaled.T @ scaled
                self.x[g] += own @ x
                self.x_start[g] += (rows.first[some] * own) @ x

    def _add_sparse(
        self, rows: RowTable, weight: Floats, decay: Floats, traced: Sequence[int]
    ) -> None:
        n, shape = len(rows), (GROUPS, self.features)
        X = rows.X[:n]
        V = csr_array(X - dia_array((rows.discount[None], 0), shape=(n, n)) @ rows.X[rows.row_next])
        by_group = self._by_group(X, rows.group)
        for c in range(self.columns):
            if c not in traced:
                by = dia_array((weight[c][None], 0), shape=(n, n))
                self.A[c] = self.A[c] + by_group.T @ (by @ V)
                for right, reward in zip(self.right, rows.rewards, strict=True):
                    right[:, c] += (by_group.T @ (weight[c] * reward)).reshape(shape)
                continue
            for lo in range(0, n, TRACE_ROWS):
                some = slice(lo, min(lo + TRACE_ROWS, n))
                Z = self._traces(X[some], decay[c, some], weight[c, some], self._z[c])
                Z = self._by_group(Z, rows.group[some])
                self.A[c] = self.A[c] + Z.T @ V[some]
                for right, reward in zip(self.right, rows.rewards, strict=True):
                    right[:, c] += (Z.T @ reward[some]).reshape(shape)
        self.G = self.G + by_group.T @ (dia_array((rows.weight[None], 0), shape=(n, n)) @ X)
        self.x += (by_group.T @ rows.weight).reshape(shape)
        self.x_start += (by_group.T @ (rows.first * rows.weight)).reshape(shape)

    def _by_group(self, Z: Any, group: Longs) -> Any:
        """Rows whose features stand in the place of their group: [n, groups d]."""
        moved = Z.indices + np.repeat(group, np.diff(Z.indptr)) * self.features
        return csr_array((Z.data, moved, Z.indptr), shape=(Z.shape[0], GROUPS * self.features))

    def _traces(self, X: Any, decay: Floats, weight: Floats, z: Floats) -> Any:
        ends, feature, value = sparse_traces(X.indptr, X.indices, X.data, decay, weight, z)
        return csr_array((value, feature, ends), shape=X.shape)

    def matrix(self, column: int, use: Floats) -> Any:
        """A of a column: the sum over groups, each as often as `use` says."""
        return self._total(self.A[column], use)

    def gram(self, use: Floats) -> Any:
        """The sum of x x' over groups."""
        return self._total(self.G, use)

    def _total(self, by_group: Any, use: Floats) -> Any:
        return kron(csr_array(use[None]), eye_array(self.features), format="csr") @ by_group

    def quadratic(self, column: int, y: Floats) -> Floats:
        """y'A_g y by group."""
        return np.asarray((self.A[column] @ y).reshape(GROUPS, -1) @ y)

    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_g other by group."""
        return np.asarray((self.G @ other).reshape(GROUPS, -1) @ one)

    @property
    def diagonal(self) -> bool:
        """Whether rows are sparse, and no two features are ever active together: one-hot ones."""
        if not self.sparse:
            return False
        G = self.gram(np.ones(GROUPS)).tocoo()
        return bool((G.row == G.col).all())

    def independent(self) -> Longs:
        """A largest set of linearly independent features, in ascending order."""
        G = self.gram(np.ones(GROUPS))
        size = G.diagonal()
        largest = float(np.sqrt(size.max() / max(self.counts[:, 0].sum(), 1.0)))
        if largest > MOST_FEATURE:
            raise InputError(
                f"a feature has values of about {largest:.2g}; at most {MOST_FEATURE:g} is "
                "possible, since sums of products lose all digits of the others. Use features of a "
                "lower degree, or observations in another unit."
            )
        found = np.flatnonzero(size > 0.0) if self.diagonal else independent(full(G))
        if not len(found):
            raise InputError("all features are 0 in every row; nothing can be learned from them.")
        return found

    def merge(self, other: Sums) -> None:
        """Add the sums of another part of the log."""
        for name in ("right", "x", "x_start", "counts"):
            own = getattr(self, name)
            own += getattr(other, name)
        both = list(zip([*self.A, self.G], [*other.A, other.G], strict=True))
        *A, self.G = (one + more for one, more in both)
        self.A = A if self.sparse else np.stack(A)


@compiled
def sparse_traces(
    indptr: Any, indices: Any, data: Floats, decay: Floats, weight: Floats, z: Floats
) -> tuple[Longs, Longs, Floats]:
    """The traces of sparse rows as the three arrays of a CSR matrix; `z` [d] goes on."""
    n = len(decay)
    active = [np.int64(k) for k in range(len(z)) if z[k] != 0.0]
    ends = np.zeros(n + 1, dtype=np.int64)
    feature = [np.int64(0) for _ in range(0)]
    value = [0.0 for _ in range(0)]
    for i in range(n):
        kept = [np.int64(0) for _ in range(0)]
        for k in active:
            z[k] = min(max(decay[i] * z[k], -LARGEST), LARGEST)
            if abs(z[k]) > TRACE_END:
                kept.append(k)
            else:
                z[k] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            k = np.int64(indices[j])
            if z[k] == 0.0:
                kept.append(k)
            z[k] += weight[i] * data[j]
        active = kept
        for k in active:
            feature.append(k)
            value.append(z[k])
        ends[i + 1] = len(feature)
    return ends, np.array(feature), np.array(value)


def full(M: Any) -> Floats:
    """The matrix as an array."""
    return np.asarray(M.toarray() if hasattr(M, "toarray") else M)


def independent(G: Floats) -> Longs:
    """A largest set of linearly independent features, from the sum G of x x'."""
    scale = np.sqrt(np.diag(G))
    seen = np.flatnonzero(scale > 0.0)
    if not len(seen):
        return seen
    inner = G[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
    return np.sort(seen[order[:rank] - 1])


def solve(A: Any, G: Any, b: Floats, p: Floats) -> Pair | None:
    """w with A w = b and beta with A' beta = p, for features whose sum of x x' is G.

    None where A is not finite, or too large to be solved as a full matrix. Both come from one
    generalised inverse, so that p.w = beta.b also where features depend on each other.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = _solve_sparse(A, G, b, p) if issparse(A) else None
        if found is None and A.shape[0] <= (MOST_DENSE if issparse(A) else np.inf):
            found = _solve_full(full(A), G.diagonal(), b, p)
    finite = found is not None and all(np.isfinite(one).all() for one in found)
    return found if finite else None


def _solve_full(A: Floats, squares: Floats, b: Floats, p: Floats) -> Pair | None:
    """By S^-1 A S^-1 P = Q R with the largest pivots first, S the features' sizes.

    Only an independent set of features gets weights: those of pivots that are not 0.
    """
    size = np.sqrt(squares)
    size[~(size > 0.0)] = 1.0
    scaled = A / (size[:, None] * size)
    if not np.isfinite(scaled).all():
        return None
    Q, R, order = qr(scaled, pivoting=True, check_finite=False)
    pivots = np.abs(R.diagonal())
    rank = int(np.count_nonzero(pivots > RANK * pivots[0]))
    Q, R, order = Q[:, :rank], R[:rank, :rank], order[:rank]
    w, beta = np.zeros((2, len(size)))
    if rank:
        w[order] = solve_triangular(R, Q.T @ (b / size), check_finite=False)
        beta = Q @ solve_triangular(R, (p / size)[order], trans=1, check_finite=False)
    return Pair(w / size, beta / size)


def _solve_sparse(A: Any, G: Any, b: Floats, p: Floats) -> Pair | None:
    """By LU of S^-1 A S^-1 + ridge I and refinement; None where that does not solve both.

    Features that no row shows, or only rows of ratio 0, get the weight 0 and are left out.
    Dependent features (tiles) make A singular: the ridge makes the LU possible, and each step
    w + LU^-1 (b - A w) takes its part out again, as far as b lies in A's range.
    """
    from scipy.sparse.linalg import splu

    if not np.isfinite(A.data).all():
        return None
    size = np.sqrt(G.diagonal())
    seen = np.asarray(abs(A).sum(axis=1)).reshape(-1) > 0.0
    kept = np.flatnonzero((size > 0.0) & seen)
    by = diags_array(1.0 / size[kept])
    scaled = csc_array(by @ A[kept][:, kept] @ by)
    try:
        lu: Any = splu(csc_array(scaled + RIDGE * eye_array(len(kept))))
    except RuntimeError:  # exactly singular
        return None
    found = []
    for M, how, given in ((scaled, "N", b), (scaled.T, "T", p)):
        right, y = given[kept] / size[kept], np.zeros(len(kept))
        for _ in range(REFINED):
            y = y + lu.solve(right - M @ y, how)
        if not np.linalg.norm(right - M @ y) <= SETTLED * np.linalg.norm(right):
            return None
        weights = np.zeros(len(size))
        weights[kept] = y / size[kept]
        found.append(weights)
    return Pair(*found)
