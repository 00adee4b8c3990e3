"""Sums over rows that the weights are solved from, by group of units: dense or sparse.

For every target and system, with the trace z = rho (gamma lam z + M x),

    A = sum z (x - gamma' x')',   b = sum r z,

for the behaviour policy the same with z = x, and G = sum x x'. Dense rows are multiplied by BLAS,
chunk by chunk; sparse ones by SciPy. Both kinds are asked in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.base.jit import compiled
from steadytd.base.numbers import count
from steadytd.evaluation.rows import GROUPS, RowTable

LARGEST = 1e100  # products of ratios and traces stop here: their squares must stay finite
CHUNK_BYTES, FEWEST_ROWS, MOST_ROWS = 1e6, 128, 2048  # of weighted features multiplied at once
TRACE_ROWS = 2048  # rows whose sparse traces are made at once
TRACE_END = 1e-14  # of a trace: smaller entries are dropped where features are sparse
MOST_BYTES = 4e9  # of dense sums
MOST_FEATURE = 1e30  # root mean square of a feature
RANK = 1e-10  # pivots below this share of the largest are zero
RIDGE = 1e-10  # on the diagonal of a scaled sparse matrix: dependent features have equal shares
REFINED = 4  # steps that take the ridge's part out of the solution again
SETTLED = 1e-9  # relative size of what the solution of a sparse system may leave
MOST_DENSE = 2500  # features up to which a sparse system that does not settle is solved as a full


class System(NamedTuple):
    """A linear system for w: sums of z (x - gamma' x')' and of r z, with one of two traces.

    z = rho (gamma lam z + M x); M = 1, or with `emphatic` M = lam + (1 - lam) F, where
    F = beta rho_prev F + 1 (beta = gamma unless given) restarts with every episode.
    """

    lam: float = 0.0
    emphatic: bool = False
    beta: float | None = None


TD = System()
ETD = System(emphatic=True)


class Solver(Protocol):
    """A generalised inverse of a matrix A."""

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""


class Sums(ABC):
    """A and b of every target and system, those of the behaviour, and G, by group of units.

    A column is a system k of a target t, number k T + t; the last one is the behaviour's.
    """

    def __init__(self, features: int, targets: int, systems: Sequence[System]) -> None:
        self.features, self.targets, self.systems = features, targets, tuple(systems)
        self.columns = targets * len(self.systems) + 1
        self.x = np.zeros((GROUPS, features))  # sums of x over all rows,
        self.x_start = np.zeros((GROUPS, features))  # and over first rows of episodes
        self.b = np.zeros((GROUPS, self.columns, features))
        self.rows = 0.0
        self._follow = np.zeros((self.columns, 2))  # F and rho of the last row

    def column(self, target: int, k: int = 0) -> int:
        """The column of a target's system; the target behind the last one is the behaviour."""
        return self.columns - 1 if target == self.targets else k * self.targets + target

    def add(self, rows: RowTable) -> None:
        """Add the rows of a table."""
        self.rows += len(rows)
        weight = np.empty((self.columns, len(rows)))
        weight[-1] = 1.0
        for k, system in enumerate(self.systems):
            for t in range(self.targets):
                c = self.column(t, k)
                if system.emphatic:
                    beta = -1.0 if system.beta is None else system.beta
                    emphasis(rows.rho[t], rows.gamma, system.lam, beta, self._follow[c], weight[c])
                else:
                    weight[c] = rows.rho[t]
        self._multiply(rows, weight)

    @abstractmethod
    def _multiply(self, rows: RowTable, weight: Floats) -> None:
        """Add the sums of z (x - gamma' x')', r z, x and x x'; `weight` [columns, n] is rho M."""

    @abstractmethod
    def matrix(self, column: int, use: Floats) -> Any:
        """A of a column: the sum over groups, each as often as `use` says."""

    @abstractmethod
    def gram(self, use: Floats) -> Any:
        """The sum of x x' over groups."""

    @abstractmethod
    def plus(self, A: Any, G: Any, eta: float, ridge: float) -> Any:
        """A + eta G + ridge I."""

    @abstractmethod
    def inverse(self, A: Any, G: Any, b: Floats, p: Floats) -> Solver | None:
        """A generalised inverse of A, for features with sum of x x' = G, and these right sides."""

    @abstractmethod
    def quadratic(self, column: int, y: Floats) -> Floats:
        """y'A_g y by group."""

    @abstractmethod
    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_g other by group."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All sums by name, for a file."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Add sums that `arrays` has named."""

    def independent(self) -> Longs:
        """A largest set of linearly independent features, in ascending order."""
        G = self.gram(np.ones(GROUPS))
        G = G.toarray() if hasattr(G, "toarray") else G
        largest = float(np.sqrt(G.diagonal().max() / max(self.rows, 1.0)))
        if largest > MOST_FEATURE:
            raise InputError(
                f"a feature has values of about {largest:.2g}; at most {MOST_FEATURE:g} is "
                "possible, since sums of products lose all digits of the others. Use features of a "
                "lower degree, or observations in another unit."
            )
        found = independent(G)
        if not len(found):
            raise InputError("all features are 0 in every row; nothing can be learned from them.")
        return found


class DenseSums(Sums):
    """Sums of dense rows."""

    def __init__(self, features: int, targets: int, systems: Sequence[System]) -> None:
        super().__init__(features, targets, systems)
        size = GROUPS * (self.columns + 1) * features * features * 8.0
        if size > MOST_BYTES:
            raise InputError(
                f"{count(features, 'feature')} and {count(targets, 'target')} need "
                f"{size / 1e9:.0f} GB for sums; use fewer features, or evaluate fewer targets at "
                "a time."
            )
        self.A = np.zeros((GROUPS, self.columns, features, features))
        self.G = np.zeros((GROUPS, features, features))
        self._z = np.zeros((self.columns, features))
        wide = (self.columns + 1) * features + 1
        self.chunk = int(np.clip(CHUNK_BYTES / (8 * wide), FEWEST_ROWS, MOST_ROWS))
        self._Z = np.empty((self.chunk, self.columns * features))
        self._V = np.empty((self.chunk, features + 1))

    def _multiply(self, rows: RowTable, weight: Floats) -> None:
        d, C = self.features, self.columns
        traced = self._traces(rows, weight)
        group = rows.group.astype(np.int8)
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(GROUPS + 1))
        for g in range(GROUPS):
            for lo in range(ends[g], ends[g + 1], self.chunk):
                some = order[lo : min(lo + self.chunk, ends[g + 1])]
                m = len(some)
                Z, V = self._Z[:m], self._V[:m]
                weigh(rows.X, some, rows.row_next, rows.discount, rows.reward, weight, Z, V)
                for c, z in traced.items():
                    Z[:, c * d : (c + 1) * d] = z[some]
                found = (Z.T @ V).reshape(C, d, d + 1)
                self.A[g] += found[..., :d]
                self.b[g] += found[..., d]
                X = Z[:, -d:]
                self.G[g] += X.T @ X
                self.x[g] += np.ones(m) @ X
                self.x_start[g] += rows.first[some].astype(np.float64) @ X

    def _traces(self, rows: RowTable, weight: Floats) -> dict[int, Floats]:
        """z of every row, for the columns of systems with lam > 0."""
        found = {}
        for k, system in enumerate(self.systems):
            for t in range(self.targets if system.lam > 0.0 else 0):
                c = self.column(t, k)
                decay = rows.rho[t] * rows.gamma * system.lam
                found[c] = np.empty((len(rows), self.features))
                traces(rows.X, decay, weight[c], self._z[c], found[c])
        return found

    def matrix(self, column: int, use: Floats) -> Floats:
        """A of a column: the sum over groups, each as often as `use` says."""
        return np.asarray(np.tensordot(use, self.A[:, column], axes=1))

    def gram(self, use: Floats) -> Floats:
        """The sum of x x' over groups."""
        return np.asarray(np.tensordot(use, self.G, axes=1))

    def plus(self, A: Floats, G: Floats, eta: float, ridge: float) -> Floats:
        """A + eta G + ridge I."""
        return A + eta * G + ridge * np.eye(len(G)) if eta or ridge else A

    def inverse(self, A: Floats, G: Floats, b: Floats, p: Floats) -> Solver | None:
        """A generalised inverse of A."""
        return Inverse.of(A, G)

    def quadratic(self, column: int, y: Floats) -> Floats:
        """y'A_g y by group."""
        return np.asarray((self.A[:, column] @ y) @ y)

    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_g other by group."""
        return np.asarray((self.G @ one) @ other)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All sums by name, for a file."""
        return {"A": self.A, "G": self.G, "b": self.b, "x": self.x, "x_start": self.x_start}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Add sums that `arrays` has named."""
        for name, own in self.arrays().items():
            np.add(own, arrays[name], out=own)


class SparseSums(Sums):
    """Sums of sparse rows: one matrix [groups d, d] for each column, and one for G."""

    def __init__(self, features: int, targets: int, systems: Sequence[System]) -> None:
        from scipy.sparse import csr_array

        super().__init__(features, targets, systems)
        none = csr_array((GROUPS * features, features))
        self.A: list[Any] = [none] * self.columns
        self.G: Any = none
        self._z = np.zeros((self.columns, features))

    def _multiply(self, rows: RowTable, weight: Floats) -> None:
        from scipy.sparse import csr_array, dia_array

        n, d = len(rows), self.features
        X = rows.X[:n]
        V = csr_array(X - dia_array((rows.discount[None], 0), shape=(n, n)) @ rows.X[rows.row_next])
        by_group = self._by_group(X, rows.group)
        for k, system in enumerate(self.systems):
            for t in range(self.targets):
                c = self.column(t, k)
                if system.lam > 0.0:
                    self._add_traced(c, rows, V, rows.rho[t] * rows.gamma * system.lam, weight[c])
                else:
                    self._add(c, by_group, V, weight[c], rows.reward)
        self._add(self.columns - 1, by_group, V, weight[-1], rows.reward)
        self.G = self.G + by_group.T @ X
        self.x += (by_group.T @ np.ones(n)).reshape(GROUPS, d)
        self.x_start += (by_group.T @ rows.first.astype(np.float64)).reshape(GROUPS, d)

    def _by_group(self, Z: Any, group: Longs) -> Any:
        """Rows whose features stand in the place of their group: [n, groups d]."""
        from scipy.sparse import csr_array

        d = self.features
        moved = Z.indices + np.repeat(group, np.diff(Z.indptr)) * d
        return csr_array((Z.data, moved, Z.indptr), shape=(Z.shape[0], GROUPS * d))

    def _add(self, c: int, Z: Any, V: Any, weight: Floats, reward: Floats) -> None:
        from scipy.sparse import dia_array

        n = len(weight)
        self.A[c] = self.A[c] + Z.T @ (dia_array((weight[None], 0), shape=(n, n)) @ V)
        self.b[:, c] += (Z.T @ (weight * reward)).reshape(GROUPS, self.features)

    def _add_traced(self, c: int, rows: RowTable, V: Any, decay: Floats, weight: Floats) -> None:
        """The same with traces, which are made for some rows at a time."""
        from scipy.sparse import csr_array

        X = rows.X
        for lo in range(0, len(rows), TRACE_ROWS):
            hi = min(lo + TRACE_ROWS, len(rows))
            ends, feature, value = sparse_traces(
                X.indptr[lo : hi + 1], X.indices, X.data, decay[lo:hi], weight[lo:hi], self._z[c]
            )
            Z = csr_array((value, feature, ends), shape=(hi - lo, self.features))
            by_group = self._by_group(Z, rows.group[lo:hi])
            self._add(c, by_group, V[lo:hi], np.ones(hi - lo), rows.reward[lo:hi])

    def matrix(self, column: int, use: Floats) -> Any:
        """A of a column: the sum over groups, each as often as `use` says."""
        return self._total(self.A[column], use)

    def gram(self, use: Floats) -> Any:
        """The sum of x x' over groups."""
        return self._total(self.G, use)

    def _total(self, by_group: Any, use: Floats) -> Any:
        from scipy.sparse import csr_array

        d = self.features
        used = np.flatnonzero(use)
        if len(used) == 0:
            return csr_array((d, d))
        parts = [use[g] * by_group[g * d : (g + 1) * d] for g in used.tolist()]
        return csr_array(sum(parts[1:], parts[0]))

    def plus(self, A: Any, G: Any, eta: float, ridge: float) -> Any:
        """A + eta G + ridge I."""
        from scipy.sparse import eye_array

        return A + eta * G + ridge * eye_array(self.features, format="csr")

    def inverse(self, A: Any, G: Any, b: Floats, p: Floats) -> Solver | None:
        """A generalised inverse of A; of the full matrix where the sparse one does not settle."""
        found = SparseInverse.of(A, G)
        if isinstance(found, SparseInverse) and not found.settled(b, p):
            return SparseInverse.full(A, G)
        return found

    def quadratic(self, column: int, y: Floats) -> Floats:
        """y'A_g y by group."""
        return np.asarray((self.A[column] @ y).reshape(GROUPS, -1) @ y)

    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_g other by group."""
        return np.asarray((self.G @ other).reshape(GROUPS, -1) @ one)

    @property
    def diagonal(self) -> bool:
        """Whether no two features are ever active together: one-hot features."""
        G = self.gram(np.ones(GROUPS)).tocoo()
        return bool((G.row == G.col).all())

    def independent(self) -> Longs:
        """A largest set of linearly independent features, in ascending order."""
        if self.diagonal:
            found = np.flatnonzero(self.gram(np.ones(GROUPS)).diagonal() > 0.0)
            if len(found):
                return found
        return super().independent()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All sums by name, for a file."""
        found = {"b": self.b, "x": self.x, "x_start": self.x_start}
        for c, one in enumerate([*self.A, self.G]):
            entries = one.tocsr()
            found |= {f"{c}.{name}": getattr(entries, name) for name in _CSR}
        return found

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Add sums that `arrays` has named."""
        from scipy.sparse import csr_array

        for name in ("b", "x", "x_start"):
            own = getattr(self, name)
            own += arrays[name]
        made = [
            csr_array(tuple(arrays[f"{c}.{name}"] for name in _CSR), shape=self.G.shape)
            for c in range(self.columns + 1)
        ]
        self.A = [own + new for own, new in zip(self.A, made[:-1], strict=True)]
        self.G = self.G + made[-1]


_CSR = ("data", "indices", "indptr")


@compiled
def weigh(
    X: Floats, some: Longs, row_next: Any, discount: Floats, reward: Floats, weight: Floats,
    Z: Floats, V: Floats,
) -> None:  # fmt: skip
    """Z = (weight_1 x, weight_2 x, ...) and V = (x - gamma' x', r) of some rows."""
    d = X.shape[1]
    for j in range(len(some)):
        i = some[j]
        ahead, by = row_next[i], discount[i]
        for k in range(d):
            V[j, k] = X[i, k] - by * X[ahead, k]
        V[j, d] = reward[i]
        for c in range(len(weight)):
            times, z = weight[c, i], Z[j, c * d : (c + 1) * d]
            for k in range(d):
                z[k] = times * X[i, k]


@compiled
def emphasis(
    rho: Floats, gamma: Floats, lam: float, beta: float, state: Floats, weight: Floats
) -> None:
    """Rho M of every row, M = lam + (1 - lam) F; `state` holds F and rho of the row before."""
    F, before = state[0], state[1]
    for i in range(len(rho)):
        decay = beta if beta >= 0.0 and gamma[i] > 0.0 else gamma[i]
        F = min(decay * before * F + 1.0, LARGEST)
        weight[i] = rho[i] * (lam + (1.0 - lam) * F)
        before = rho[i]
    state[0], state[1] = F, before


@compiled
def traces(X: Floats, decay: Floats, weight: Floats, z: Floats, out: Floats) -> None:
    """Z = decay z + weight x for every row; a decay of 0 forgets z."""
    for i in range(len(decay)):
        for k in range(len(z)):
            z[k] = min(max(decay[i] * z[k] + weight[i] * X[i, k], -LARGEST), LARGEST)
            out[i, k] = z[k]


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
        factoring, forming = _work_space(len(scaled))
        R, order, tau, *_ = lapack.dgeqp3(scaled, lwork=factoring)
        pivots = np.abs(R.diagonal())
        rank = int(np.count_nonzero(pivots > RANK * pivots[0]))
        Q = lapack.dorgqr(R, tau, lwork=forming)[0]
        inner = np.asfortranarray(R[:rank, :rank])  # what is below the diagonal is not looked at
        return Inverse(Q[:, :rank], inner, order[:rank] - 1, scale)

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""
        w = np.zeros(len(self.scale))
        if len(self.kept):
            w[self.kept] = lapack.dtrtrs(self.R, self.Q.T @ (b / self.scale))[0]
        return w / self.scale

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""
        if not len(self.kept):
            return np.zeros(len(self.scale))
        beta = lapack.dtrtrs(self.R, (p / self.scale)[self.kept], trans=1)[0]
        return np.asarray(self.Q @ beta / self.scale)


@lru_cache(maxsize=64)
def _work_space(n: int) -> tuple[int, int]:
    """The work space that factoring an n x n matrix and forming Q ask for."""
    R, _, tau, work, _ = lapack.dgeqp3(np.eye(n), lwork=-1)
    return int(work[0]), int(lapack.dorgqr(R, tau, lwork=-1)[1][0])


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
        from scipy.sparse import csc_array, diags_array, eye_array
        from scipy.sparse.linalg import splu

        if not np.isfinite(A.data).all():
            return None
        size = np.sqrt(G.diagonal())
        seen = np.asarray(abs(A).sum(axis=1)).reshape(-1) > 0.0
        kept = np.flatnonzero((size > 0.0) & seen)
        by = diags_array(1.0 / size[kept])
        scaled = csc_array(by @ A[kept][:, kept] @ by)
        try:
            lu = splu(csc_array(scaled + RIDGE * eye_array(len(kept))))
        except RuntimeError:  # exactly singular
            return SparseInverse.full(A, G)
        return SparseInverse(scaled, lu, kept, size)

    @staticmethod
    def full(A: Any, G: Any) -> Inverse | None:
        """The inverse of the same matrix as a full one, where it is not too large."""
        return Inverse.of(A.toarray(), G.toarray()) if G.shape[0] <= MOST_DENSE else None

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""
        return self._refined(b, self.A, "N")

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""
        return self._refined(p, self.A.T, "T")

    def settled(self, b: Floats, p: Floats) -> bool:
        """Whether both equations hold."""
        return self._holds(b, self.A, "N") and self._holds(p, self.A.T, "T")

    def _holds(self, b: Floats, A: Any, how: str) -> bool:
        given = b[self.kept] / self.scale[self.kept]
        found = self._refined(b, A, how)[self.kept] * self.scale[self.kept]
        return bool(np.linalg.norm(given - A @ found) <= SETTLED * np.linalg.norm(given))

    def _refined(self, b: Floats, A: Any, how: str) -> Floats:
        given = b[self.kept] / self.scale[self.kept]
        found = np.zeros(len(self.kept))
        for _ in range(REFINED):
            found = found + self.lu.solve(given - A @ found, how)
        w = np.zeros(len(self.scale))
        w[self.kept] = found / self.scale[self.kept]
        return w


def independent(G: Floats) -> Longs:
    """A largest set of linearly independent features, from the sum G of x x'."""
    scale = np.sqrt(np.diag(G))
    seen = np.flatnonzero(scale > 0.0)
    if not len(seen):
        return seen
    inner = G[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
    return np.sort(seen[order[:rank] - 1])
