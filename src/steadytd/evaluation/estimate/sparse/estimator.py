"""The estimators' equations from the rows themselves, for features of which few are active.

With V(s) = x(s).w, omega(s) = x(s).beta and delta_t = r_t + gamma_{t+1} V(s_{t+1}) - V(s_t), the
sums of a unit that the estimators ask for are sums over its rows of scalars:

    beta.(b - A w) = sum_t (beta.z_t) delta_t,
    beta.z_t = rho_t (gamma_t lam beta.z_{t-1} + M_t omega(s_t)),
    sum_t c_t r_t - (sum_t c_t (x_t - gamma_{t+1} x_{t+1})).w = sum_t c_t delta_t.

So nothing of size d x d is needed but the sparse A and G of the units that weights are solved from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.collect.plan import TD, System, Where
from steadytd.evaluation.collect.rows.table import RowTable
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.estimators import (
    Estimator,
    Form,
    Pair,
    Scores,
    Sides,
    Solver,
    Weights,
)  # fmt: skip
from steadytd.evaluation.estimate.sparse.inverse import SparseInverse
from steadytd.evaluation.estimate.sparse.loops import (
    Pairs,
    Part,
    Sparse,
    Traced,
    add_traced,
    dots,
    sparse_matrix,
    traced,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SparseEstimator(Estimator):
    """The same equations as `Estimator`'s, from kept rows.

    `parts` are the rows of units that were asked for.
    """

    parts: dict[tuple[int, int, int], Part] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def rows(self) -> RowTable:
        """The rows of the log."""
        return self.units.table

    @cached_property
    def X(self) -> Any:
        """The features of all rows, a sparse matrix [n, d]."""
        t = self.rows
        return sparse_matrix(t.length, t.feature, t.value, self.features)

    @cached_property
    def Y(self) -> Any:
        """x - gamma' x' of all rows."""
        from scipy.sparse import csr_matrix, diags

        t = self.rows
        ahead = sparse_matrix(t.next_length, t.next_feature, t.next_value, self.features)
        return csr_matrix(self.X - diags(t.discount) @ ahead)

    @cached_property
    def ends(self) -> Longs:
        """The first row of every unit, and the number of all rows."""
        return np.searchsorted(self.rows.piece, np.arange(self.n_units + 1))

    @cached_property
    def cut_off(self) -> Floats:
        """gamma' of the rows where episodes are cut off, 0 of all others."""
        return np.where(np.append(self.rows.first[1:], True), self.rows.discount, 0.0)

    @cached_property
    def diagonal(self) -> bool:
        """Whether no two features are ever active together: one-hot features."""
        return bool((self.rows.length <= 1).all())

    @cached_property
    def kept(self) -> Longs:
        """The numbers of the features that are independent in the log, in ascending order."""
        if self.diagonal:
            return self._some(np.flatnonzero(self.gram().diagonal() > 0.0))
        return self._independent(self.gram().toarray())

    def ratio(self, target: int) -> Floats:
        """rho of all rows; of the behaviour 1."""
        n = len(self.rows.first)
        return np.ones(n) if target == self.behavior else np.asarray(self.rows.rho[:, target])

    def emphasis(self, target: int, system: System) -> Floats:
        """rho M of all rows."""
        if not system.emphatic:
            return self.ratio(target)
        before = [s for s in self.systems if s.emphatic].index(system)
        return np.asarray(self.rows.emphasis[:, before * self.behavior + target])

    def total(self, target: int, k: int = 0, use: Weights | None = None) -> tuple[Any, Floats]:
        """A and b of system k, the sum over all units, or over some."""
        from scipy.sparse import csr_matrix, diags

        system, counted = self.systems[k], self._by_row(use)
        m, r = self.emphasis(target, system), self.rows.reward
        if system.lam > 0.0:
            Z = np.zeros((self.features, self.features + 1))
            decay = self.ratio(target) * self.rows.gamma * system.lam
            x, y = self.X, self.Y
            add_traced(
                Traced(m, decay, counted, r), Sparse(x.indptr, x.indices, x.data),
                Sparse(y.indptr, y.indices, y.data), Z,
            )  # fmt: skip
            return csr_matrix(Z[:, :-1]), np.array(Z[:, -1])
        weighed = m * counted
        if self.diagonal:
            return self.pairs.summed(weighed), np.asarray(self.X.T @ (weighed * r))
        return csr_matrix(self.X.T @ diags(weighed) @ self.Y), np.asarray(self.X.T @ (weighed * r))

    def gram(self, use: Weights | None = None) -> Any:
        """The sum of x x'."""
        from scipy.sparse import csr_matrix, diags

        counted = diags(self._by_row(use))
        if self.diagonal:
            return csr_matrix(diags(self.X.power(2).T @ counted.diagonal()))
        return csr_matrix(self.X.T @ counted @ self.X)

    @cached_property
    def pairs(self) -> Pairs:
        """Where the entries of x (x - gamma' x')' stand, of one-hot features."""
        return Pairs.of(self.X, self.Y)

    def matrix(self, A: Any, G: Any, form: Form) -> Any:
        """A + eta G + ridge I."""
        from scipy.sparse import identity

        return A + form.eta * G + form.ridge * identity(self.features, format="csr")

    def inverse(self, M: Any, G: Any, sides: Sides | None = None) -> Solver | None:
        """A generalised inverse of M; of the full matrix where the sparse one does not settle."""
        found = SparseInverse.of(M, G)
        if sides is not None and isinstance(found, SparseInverse) and not found.settled(*sides):
            return SparseInverse.full(M, G)
        return found

    def all_corrections(
        self, target: int, ks: list[int], pair: Pair, here: slice = slice(None)
    ) -> list[Scores]:
        """beta.(b_u - A_u w) by unit, and beta.(sum of (1 - gamma') z), by several systems."""
        some = self._part(here)
        traced = [self._traced(target, self.systems[k], pair.beta, some) for k in ks]
        return [self._scores(one, pair.w, some) for one in traced]

    def products(self, target: int, lam: float, w: Floats, here: slice = slice(None)) -> Scores:
        """The sums of c (r - (x - gamma' x').w) and of c (1 - gamma') by unit."""
        some = self._part(here)
        return self._scores(self._products(target, lam, some), w, some)

    def at_cuts(self, target: int, lam: float, beta: Floats, here: slice = slice(None)) -> float:
        """The sum of gamma' ((1 - lam) beta.z + lam c) over the rows where episodes are cut off."""
        if target == self.behavior:
            return 0.0
        some = self._part(here)
        z = self._weights(target, lam, beta, some)
        return float((z * self.cut_off[some.rows])[some.unit >= 0].sum())

    @cached_property
    def any_cut(self) -> bool:
        """Whether an episode is cut off."""
        return bool(self.cut_off.any())

    def passed(self, target: int, lam: float, beta: Floats) -> Floats:
        """The sum of ((1 - lam) beta.z + lam c) (x - gamma' x') over all rows [d]."""
        return np.asarray(self.Y.T @ self._weights(target, lam, beta, self._part()))

    def _weights(self, target: int, lam: float, beta: Floats, some: Part) -> Floats:
        """(1 - lam) beta.z + lam c of some rows."""
        z = lam * self._products(target, lam, some)
        if lam < 1.0:
            z = z + (1.0 - lam) * self._traced(target, System(lam), beta, some)
        return z

    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_u other by unit."""
        return self._by_unit((self.X @ one) * (self.X @ other), self._part())

    def quadratic(self, target: int, y: Floats) -> Floats:
        """y'A_u y of TD's system by unit."""
        by_row = self.ratio(target) * (self.X @ y) * (self.Y @ y)
        return self._by_unit(by_row, self._part())

    def _products(self, target: int, lam: float, some: Part) -> Floats:
        """The products c of some rows."""
        first = self.rows.first[some.rows].astype(np.float64)
        start = np.ones(len(first)) if self.where == "states" else first
        rho = self.ratio(target)[some.rows]
        return traced(rho * start, rho * self.rows.gamma[some.rows] * lam)

    def _traced(self, target: int, system: System, beta: Floats, some: Part) -> Floats:
        """beta.z of some rows."""
        weighed = self.emphasis(target, system)[some.rows] * dots(self.X, beta, some.rows)
        if system.lam == 0.0:
            return weighed
        return traced(weighed, (self.ratio(target) * self.rows.gamma)[some.rows] * system.lam)

    def _scores(self, z: Floats, w: Floats, some: Part) -> Scores:
        error = self.rows.reward[some.rows] - dots(self.Y, w, some.rows)
        mass = z * (1.0 - self.rows.discount[some.rows])
        return Scores(self._by_unit(z * error, some), self._by_unit(mass, some))

    def _part(self, here: slice = slice(None)) -> Part:
        """The rows of some units."""
        key = here.indices(self.n_units)
        if key not in self.parts:
            begins = np.append(0, np.flatnonzero(self.rows.first))
            self.parts[key] = Part.of(np.arange(*key), self.ends, begins)
        return self.parts[key]

    def _by_unit(self, numbers: Floats, some: Part) -> Floats:
        """Sums over the rows of units; rows before them do not count."""
        own = some.unit >= 0
        found = np.bincount(some.unit[own], weights=numbers[own], minlength=some.units)
        return np.asarray(found, dtype=np.float64)

    def _by_row(self, use: Weights | None) -> Floats:
        counted = np.ones(self.n_units) if use is None else use.astype(np.float64)
        return np.repeat(counted, np.diff(self.ends))


def estimator(
    units: Statistics,
    where: Where,
    systems: tuple[System, ...] = (TD,),
    lams: tuple[float, ...] = (1.0,),
) -> Estimator:
    """The estimator of a pass: from its rows where they were kept, else from sums."""
    kind = SparseEstimator if len(units.table.first) else Estimator
    return kind(units, where, systems, lams)
