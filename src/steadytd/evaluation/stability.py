"""Stability from the data: the threshold of eta with its interval, and the automatic choices.

`docs/evaluate.md` states the rules. All matrices are means over rows, on the features' span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.intervals import NONE, Interval, resampled, student
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.sums import full
from steadytd.mdp.scales import ROUNDING, Rates, rates_of, slowest
from steadytd.theory.thresholds import Pencil

RESAMPLED_RANK = 40  # up to here the threshold is found anew in every resample
EIGENVALUE_RANK = 100  # up to here matrices are full, and stability is known along the whole path
RESAMPLES = 200
LANCZOS = 40  # vectors of a Lanczos iteration
SURE = 0.95  # share of resamples in which TD has to be stable for eta = 0 to be chosen
CLEAR = 1.25  # times the upper limit of the threshold: the least eta that is tried
GRID = np.linspace(0.0, 1.0, 40) ** 2
ALONG = np.linspace(0.0, 1.0, 41) ** 2  # where the value is shown, as shares of the largest eta
DEFINITE = 1e-7  # matrices whose threshold is this far below 0 are definite whatever the rounding
RATIOS = 2.0 ** np.arange(0, 11)


@dataclass(frozen=True)
class Stability:
    """What the data say about the stability of TD and of its perturbed form, for one target."""

    target: str
    td_stable: bool
    td_stable_share: float | None  # of resamples; None: too many features to look
    eta_pd: float
    eta_pd_lo: float
    eta_pd_hi: float
    slowest: float  # the least real part of an eigenvalue of A; 0 where it is 0 up to rounding
    eta: float
    ratio: float
    rank: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def pencil(e: Equations, target: int) -> Pencil:
    """A_0, G and b of a target from all groups, found once; sparse for many one-hot features."""
    if target not in e.pencils:
        sparse = OneHotPencil.of_sums(e, target) if e.rank > EIGENVALUE_RANK else None
        e.pencils[target] = sparse or full_pencil(e, target, np.ones(GROUPS))
    return e.pencils[target]


def full_pencil(e: Equations, target: int, use: Floats) -> Pencil:
    """The same with full matrices, from groups that count as often as `use` says."""
    sums, column, Q = e.sums, e.sums.column(target), span(e)
    rows = float(use @ e.rows)
    A, G = sums.matrix(column, use) @ Q, sums.gram(use) @ Q
    b = use @ sums.b[:, column]
    return Pencil(Q=Q, A0=Q.T @ A / rows, G=Q.T @ G / rows, b=Q.T @ b / rows)


def span(e: Equations) -> Floats:
    """A basis [d, rank] of the weights that the features can tell apart: orthonormal, if it can be.

    It is the range of G, found from the features that are independent: their columns of G span it.
    """
    if e.rank == e.features:
        return np.eye(e.rank)
    G = full(e.sums.gram(np.ones(GROUPS)))
    scale = np.sqrt(np.diag(G)) + (np.diag(G) == 0.0)
    Q = np.asarray(np.linalg.qr(G[:, e.kept] / scale[e.kept])[0])
    try:
        pivots = np.diag(np.linalg.cholesky(Q.T @ G @ Q)) ** 2
        if (pivots > ROUNDING * pivots.max()).all():
            return Q
    except np.linalg.LinAlgError:
        pass
    # sizes so different that rounding hides the small ones: independent features alone, of size 1
    return np.asarray(np.eye(e.features)[:, e.kept] / scale[e.kept])


@dataclass(frozen=True, eq=False)
class OneHotPencil(Pencil):
    """The sparse pencil of one-hot features: G is diagonal, and A_0 an M-matrix.

    With one active feature per row, A_0 = sum rho x (x - gamma' x')' has no entry above 0 beside
    the diagonal, and its rows sum to sum rho (1 - gamma') >= 0. If it is regular, all its
    eigenvalues have positive real parts, and the one with the least is real, 1 over the spectral
    radius of A_0^-1, which has no entry below 0 (Perron and Frobenius): inverse iteration finds it.
    """

    Q: Any  # picks the features that are seen
    A0: Any
    G: Any

    @staticmethod
    def of_sums(e: Equations, target: int) -> OneHotPencil | None:
        """The pencil of all groups; None where features are not one-hot."""
        from scipy.sparse import diags_array, eye_array

        if not e.sums.diagonal:
            return None
        use, column, rows = np.ones(GROUPS), e.sums.column(target), float(e.rows.sum())
        Q: Any = eye_array(e.features, format="csc")[:, e.kept]
        A, G = (Q.T @ M @ Q / rows for M in (e.sums.matrix(column, use), e.sums.gram(use)))
        beside = A - diags_array(A.diagonal())
        if beside.max() > 0.0 or (A.sum(axis=1) < -ROUNDING * np.abs(A.diagonal())).any():
            return None
        return OneHotPencil(Q, A, G, Q.T @ (use @ e.sums.b[:, column]) / rows)

    def A(self, eta: float) -> Any:
        """A_0 + eta G."""
        return self.A0 + eta * self.G

    @cached_property
    def least(self) -> tuple[float, Floats]:
        """The least l with H y = l G y, and y, with y'G y = 1, from G^-1/2 H G^-1/2."""
        from scipy.linalg import eigh
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import ArpackError, eigsh

        size = np.sqrt(self.G.diagonal())
        by = diags_array(1.0 / size)
        scaled = by @ ((self.A0 + self.A0.T) / 2.0) @ by
        try:
            values, y = eigsh(scaled, 1, which="SA", v0=size, ncv=LANCZOS)
        except ArpackError:  # not settled
            values, y = eigh(scaled.toarray(), subset_by_index=[0, 0])
        return float(values[0]), np.asarray(y[:, 0] / size)

    @property
    def eta_pd(self) -> float:
        """The smallest eta with A(eta) positive definite just above it."""
        return -self.least[0]

    def slowest(self, eta: float) -> float:
        """The least real part of an eigenvalue of A(eta), 0 up to rounding."""
        from scipy.sparse.linalg import eigs

        A, size = self.A(eta), float(self.G.max())
        if not A.diagonal().all():  # a row of zeros, which SuperLU complains about on the terminal
            return 0.0
        try:
            found = eigs(A.tocsc(), 1, sigma=0.0, v0=np.ones(self.rank))[0]
        except RuntimeError:  # singular, or not settled
            return slowest(A.toarray(), size=size)
        return float(Rates(found, np.full(1, max(abs(A).max(), size))).real[0])


def assess(e: Equations, target: int, name: str, seed: int) -> Stability:
    """The stability of one target."""
    p = pencil(e, target)
    slowest = p.slowest(0.0)
    limits, share = _threshold(e, target, p, seed)
    upper = limits.hi if np.isfinite(limits.hi) else p.eta_pd
    td_is_safe = slowest > 0.0 and (share is None or share >= SURE)
    return Stability(
        target=name,
        td_stable=slowest > 0.0,
        td_stable_share=share,
        eta_pd=p.eta_pd,
        eta_pd_lo=limits.lo,
        eta_pd_hi=limits.hi,
        slowest=slowest,
        eta=0.0 if td_is_safe else automatic_eta(e, target, upper),
        ratio=automatic_ratio(upper),
        rank=p.rank,
    )


def _threshold(e: Equations, target: int, p: Pencil, seed: int) -> tuple[Interval, float | None]:
    """The interval of eta_pd, and the share of resamples in which TD is stable.

    A resample draws as many groups as have rows, with replacement, the same for every target.
    """
    n, groups = len(e.groups), e.groups
    if n < 2:
        return NONE, None
    if e.sums.sparse or e.rank > RESAMPLED_RANK:
        return first_order(e, target, p), None
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
    per_row = drawn / (drawn @ e.rows[groups])[:, None]
    both = (e.sums.A[e.sums.column(target)], e.sums.G)
    shape = GROUPS, e.features, e.features
    A, G = (np.tensordot(per_row, M.reshape(shape)[groups], axes=1) for M in both)
    A, G = p.Q.T @ A @ p.Q, p.Q.T @ G @ p.Q
    found = thresholds(A, G)
    return resampled(p.eta_pd, found, n), float(np.mean(stable(A, found)))


def stable(A: Floats, eta_pd: Floats) -> Bools:
    """Whether all eigenvalues of each A [n, rank, rank] have real parts above 0.

    They have where A is positive definite, eta_pd < 0: only elsewhere they are computed.
    """
    found = np.asarray(eta_pd < -DEFINITE)
    if not found.all():
        found[~found] = rates_of(A[~found]).real.min(axis=1) > 0.0
    return found


def thresholds(A: Floats, G: Floats) -> Floats:
    """eta_pd of many pairs of matrices [n, rank, rank]; NaN where G is not positive definite.

    With G = L L', -lambda_min of (H, G) is that of L^-1 H L^-T.
    """
    try:
        L = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        if len(G) == 1:
            return np.full(1, np.nan)
        return np.concatenate([thresholds(A[i : i + 1], G[i : i + 1]) for i in range(len(G))])
    half = np.linalg.solve(L, (A + A.swapaxes(1, 2)) / 2.0)
    return np.asarray(-np.linalg.eigvalsh(np.linalg.solve(L, half.swapaxes(1, 2)))[:, 0])


def first_order(e: Equations, target: int, p: Pencil) -> Interval:
    """The interval of eta_pd by the first-order change of the eigenvalue l = -eta_pd.

    With y its eigenvector, group g moves it by y'(H_g - l G_g)y.
    """
    from scipy.linalg import eigh

    if isinstance(p, OneHotPencil):
        value, vector = p.least
    else:
        values, vectors = eigh((p.A0 + p.A0.T) / 2.0, p.G, subset_by_index=[0, 0])
        value, vector = values[0], vectors[:, 0]
    y = np.asarray(p.Q @ vector)
    n, sums = len(e.groups), e.sums
    moved = sums.quadratic(sums.column(target), y) - value * sums.squares(y, y)
    moved = moved[e.groups] / e.rows[e.groups].mean()
    reach = student(0.975, n - 1) * float(np.sqrt(moved.var(ddof=1) / n))
    return Interval(p.eta_pd - reach, p.eta_pd + reach)


def automatic_eta(e: Equations, target: int, upper: float) -> float:
    """The stable eta of least held-out projected Bellman error.

    Tried are penalties from 1.25 times the threshold's upper limit to the larger of 1 and four
    times that limit: just above the threshold the fixed point has a pole. Each half of the groups
    is solved, and its residual b - A w is measured on the other half, in the norm of G^-1.
    """
    upper = max(upper, 0.0)
    low, high = CLEAR * upper + 1e-3, max(1.0, 4.0 * upper)
    grid = low + GRID * (high - low)
    all_groups, even = (e.rows > 0.0).astype(np.float64), np.zeros(GROUPS)
    even[e.groups[::2]] = 1.0
    halves = (even, all_groups - even) if len(e.groups) >= 4 else (all_groups,) * 2
    one, other = (full_pencil(e, target, half) for half in halves)
    G = full_pencil(e, target, all_groups).G
    errors = np.zeros(len(grid))
    for learned, tested in ((one, other), (other, one)):
        weights = np.stack([_solution(learned, eta) for eta in grid.tolist()], axis=1)
        left = tested.b[:, None] - tested.A0 @ weights
        errors += np.einsum("ij,ij->j", left, np.linalg.lstsq(G, left, rcond=None)[0])
    return float(grid[int(np.nanargmin(np.where(np.isfinite(errors), errors, np.inf)))])


def _solution(p: Pencil, eta: float) -> Floats:
    """y with A(eta) y = b; NaN where A(eta) is singular."""
    from scipy.sparse.linalg import splu

    try:
        if isinstance(p, OneHotPencil):
            A = p.A(eta).tocsc()
            singular = not A.diagonal().all()  # as in `slowest`
            return np.full(p.rank, np.nan) if singular else np.asarray(splu(A).solve(p.b))
        return np.asarray(np.linalg.solve(p.A(eta), p.b))
    except (np.linalg.LinAlgError, RuntimeError):
        return np.full(p.rank, np.nan)


def automatic_ratio(upper: float) -> float:
    """The least power of two from 1 on that is at least twice the threshold's upper limit."""
    return float(next((r for r in RATIOS if r >= 2.0 * upper), RATIOS[-1]))


@single_threaded
def path_rows(
    pencils: Sequence[Pencil], start: Floats, found: Sequence[Stability]
) -> list[dict[str, Any]]:
    """The value of each target over eta: target, eta, value, stable (None: not known).

    `start` is the mean of the features where the value is asked for.
    """
    rows = []
    for p, s in zip(pencils, found, strict=True):
        top = max(1.0, 2.0 * s.eta, 2.0 * s.eta_pd)
        for eta in np.unique(np.append(ALONG * top, s.eta)).tolist():
            stable: bool | None = True
            if eta <= s.eta_pd:
                known = p.rank <= EIGENVALUE_RANK or eta == 0.0
                stable = p.slowest(eta) > 0.0 if known else None
            value = float(start @ (p.Q @ _solution(p, eta)))
            rows.append({"target": s.target, "eta": eta, "value": value, "stable": stable})
    return rows
