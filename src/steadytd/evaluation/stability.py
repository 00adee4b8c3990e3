"""Stability from the data: the threshold of eta with its interval, and the automatic choices.

`docs/evaluate.md` states the rules. All matrices are means over rows, on the features' span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.parallel import single_threaded
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.intervals import NONE, Interval, resampled, student
from steadytd.evaluation.onehot_pencil import OneHotPencil
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.sums import DenseSums, SparseSums
from steadytd.mdp.scales import ROUNDING as ZERO
from steadytd.mdp.scales import rates_of
from steadytd.theory.thresholds import Pencil

RESAMPLED_RANK = 40  # up to here the threshold is found anew in every resample
EIGENVALUE_RANK = 100  # up to here stability is looked at along the whole path
RESAMPLES = 200
SURE = 0.95  # share of resamples in which TD has to be stable for eta = 0 to be chosen
CLEAR = 1.25  # times the upper limit of the threshold: the least eta that is tried
GRID = np.linspace(0.0, 1.0, 40) ** 2
ALONG = np.linspace(0.0, 1.0, 41) ** 2  # where the value is shown, as shares of the largest eta
ROUNDING = 1e-7  # of a matrix's largest entry: eigenvalues above are above 0 whatever the rounding
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


def pencil(e: Equations, target: int, use: Floats | None = None) -> Pencil:
    """A_0, G and b of a target (from groups that count as often as `use` says), means over rows."""
    use = np.ones(GROUPS) if use is None else use
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
    G = e.sums.gram(np.ones(GROUPS))
    G = G.toarray() if hasattr(G, "toarray") else G
    scale = np.sqrt(np.diag(G)) + (np.diag(G) == 0.0)
    Q = np.asarray(np.linalg.qr(G[:, e.kept] / scale[e.kept])[0])
    root = _roots(Q.T @ G @ Q)
    if root is not None and (np.diag(root) ** 2 > ZERO * np.diag(root).max() ** 2).all():
        return Q
    # sizes so different that rounding hides the small ones: the kept features alone, of size 1
    return np.asarray(np.eye(e.features)[:, e.kept] / scale[e.kept])


def quick_pencil(e: Equations, target: int) -> Pencil:
    """The pencil of all units, found once: for one-hot features a sparse one."""
    if target not in e.pencils:
        if isinstance(e.sums, SparseSums) and e.sums.diagonal:
            use, column = np.ones(GROUPS), e.sums.column(target)
            A, b, G = e.sums.matrix(column, use), use @ e.sums.b[:, column], e.sums.gram(use)
            e.pencils[target] = OneHotPencil.of_sums(A, b, G, e.kept, float(e.rows.sum()))
        else:
            e.pencils[target] = pencil(e, target)
    return e.pencils[target]


def dense_pencil(e: Equations, target: int) -> Pencil:
    """The pencil of all units with dense matrices."""
    p = quick_pencil(e, target)
    return pencil(e, target) if isinstance(p, OneHotPencil) else p


class Resampled(NamedTuple):
    """Resamples of the groups, and what they say of the features, for every target alike."""

    counts: Floats  # [resamples, groups]
    rows: Floats  # [resamples, 1, 1]
    G: Floats  # [resamples, rank, rank]
    L: Floats | None  # G = L L'; None where one of them is not positive definite
    least: Floats  # [resamples], the least eigenvalues of G

    @staticmethod
    def of(e: Equations, seed: int) -> Resampled:
        """So many groups as have rows, drawn with replacement."""
        n, none = len(e.groups), np.empty((0, 0, 0))
        counts = np.zeros((RESAMPLES, GROUPS))
        drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
        counts[:, e.groups] = drawn
        if not (isinstance(e.sums, DenseSums) and n > 1 and e.rank <= RESAMPLED_RANK):
            return Resampled(counts[:0], none, none, None, none)
        rows = (counts @ e.rows)[:, None, None]
        G = _spanned(e, np.tensordot(counts, e.sums.G, axes=1)) / rows
        return Resampled(counts, rows, G, _roots(G), np.asarray(np.linalg.eigvalsh(G)[:, 0]))


def _spanned(e: Equations, M: Floats) -> Floats:
    """Q'MQ of many matrices, with Q the basis of the features' span."""
    if e.rank == e.features:
        return M
    Q = span(e)
    return np.asarray(Q.T @ M @ Q)


def _roots(G: Floats) -> Floats | None:
    try:
        return np.asarray(np.linalg.cholesky(G))
    except np.linalg.LinAlgError:
        return None


def assess(e: Equations, target: int, name: str, drawn: Resampled) -> Stability:
    """The stability of one target."""
    p = quick_pencil(e, target)
    slowest = p.slowest(0.0)
    limits, share = _threshold(e, target, p, drawn)
    upper = limits.hi if np.isfinite(limits.hi) else p.eta_pd
    calm = slowest > 0.0 and (share is None or share >= SURE)
    return Stability(
        target=name,
        td_stable=slowest > 0.0,
        td_stable_share=share,
        eta_pd=p.eta_pd,
        eta_pd_lo=limits.lo,
        eta_pd_hi=limits.hi,
        slowest=slowest,
        eta=0.0 if calm else automatic_eta(e, target, dense_pencil(e, target), upper),
        ratio=automatic_ratio(p, upper),
        rank=p.rank,
    )


def _threshold(
    e: Equations, target: int, p: Pencil, drawn: Resampled
) -> tuple[Interval, float | None]:
    """The interval of eta_pd, and the share of resamples in which TD is stable.

    With many features by the first-order change of the eigenvalue: with y its eigenvector, group g
    moves it by y'(H_g - l G_g)y.
    """
    if len(e.groups) < 2:
        return NONE, None
    if not len(drawn.counts) or not isinstance(e.sums, DenseSums):
        return _first_order(e, target, p), None
    sums = np.tensordot(drawn.counts, e.sums.A[:, e.sums.column(target)], axes=1)
    A = _spanned(e, sums) / drawn.rows
    found = thresholds(A, drawn.G, drawn.L)
    share = float(np.mean(stable(A, found, drawn.least)))
    return resampled(p.eta_pd, found, len(e.groups)), share


def stable(A: Floats, eta_pd: Floats, least: Floats) -> Bools:
    """Whether all eigenvalues of each A [n, rank, rank] have real parts above 0.

    With `least` the least eigenvalue of its G, they are above -eta_pd least, since y'Ay is above
    -eta_pd y'Gy. Only where that does not settle it the eigenvalues are looked at.
    """
    found = np.asarray(-eta_pd * least > ROUNDING * np.abs(A).max(axis=(1, 2)))
    if not found.all():
        found[~found] = rates_of(A[~found]).real.min(axis=1) > 0.0
    return found


def thresholds(A: Floats, G: Floats, L: Floats | None = None) -> Floats:
    """eta_pd of many pairs of matrices [n, rank, rank]; NaN where G is not positive definite.

    With G = L L', -lambda_min of (H, G) is that of L^-1 H L^-T.
    """
    H = (A + A.swapaxes(1, 2)) / 2.0
    L = _roots(G) if L is None else L
    if L is None:
        return np.array([_threshold_of(h, g) for h, g in zip(H, G, strict=True)])
    half = np.linalg.solve(L, H)
    return np.asarray(-np.linalg.eigvalsh(np.linalg.solve(L, half.swapaxes(1, 2)))[:, 0])


def _threshold_of(H: Floats, G: Floats) -> float:
    import scipy.linalg

    try:
        return -float(scipy.linalg.eigh(H, G, eigvals_only=True)[0])
    except np.linalg.LinAlgError:
        return float("nan")


def _first_order(e: Equations, target: int, p: Pencil) -> Interval:
    import scipy.linalg

    if isinstance(p, OneHotPencil):
        value, vector = p.least
    else:
        H = (p.A0 + p.A0.T) / 2.0
        values, vectors = scipy.linalg.eigh(H, p.G, subset_by_index=[0, 0])
        value, vector = values[0], vectors[:, 0]
    y = np.asarray(p.Q @ vector)
    n, sums = len(e.groups), e.sums
    moved = sums.quadratic(sums.column(target), y) - value * sums.squares(y, y)
    moved = moved[e.groups] / e.rows[e.groups].mean()
    error = float(np.sqrt(moved.var(ddof=1) / n))
    reach = student(0.975, n - 1) * error
    return Interval(p.eta_pd - reach, p.eta_pd + reach)


def automatic_eta(e: Equations, target: int, p: Pencil, upper: float) -> float:
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
    errors = np.zeros(len(grid))
    for learn, test in (halves, halves[::-1]):
        a, b = pencil(e, target, learn), pencil(e, target, test)
        weights = _solutions(a, grid).T
        left = b.b[:, None] - b.A0 @ weights
        errors += np.einsum("ij,ij->j", left, np.linalg.lstsq(p.G, left, rcond=None)[0])
    return float(grid[int(np.nanargmin(np.where(np.isfinite(errors), errors, np.inf)))])


def _solutions(p: Pencil, etas: Floats) -> Floats:
    """The weights of every eta [etas, rank]; NaN where A(eta) is singular."""
    if isinstance(p, OneHotPencil):
        return np.stack([p.solution(eta) for eta in etas.tolist()])
    if p.rank <= RESAMPLED_RANK:  # with more, a system takes longer than a call
        try:
            b = np.broadcast_to(p.b[:, None], (len(etas), p.rank, 1))
            return np.asarray(np.linalg.solve(p.A0 + etas[:, None, None] * p.G, b)[:, :, 0])
        except np.linalg.LinAlgError:
            pass  # one of them
    return np.stack([_solution(p, eta) for eta in etas.tolist()])


def _solution(p: Pencil, eta: float) -> Floats:
    try:
        return np.asarray(np.linalg.solve(p.A(eta), p.b))
    except np.linalg.LinAlgError:
        return np.full(p.rank, np.nan)


def automatic_ratio(p: Pencil, upper: float) -> float:
    """The least power of two from 1 on that is at least twice the threshold's upper limit."""
    return float(next((r for r in RATIOS if r >= 2.0 * upper), RATIOS[-1]))


class OverEta(NamedTuple):
    """The value of one target over eta, worked out when somebody asks."""

    pencil: Pencil
    start: Floats  # the mean of the features where the value is asked for, on their span
    stability: Stability

    def rows(self) -> list[dict[str, Any]]:
        """Rows of target, eta, value, stable (None: too many features to look)."""
        p, stability = self.pencil, self.stability
        top = max(1.0, 2.0 * stability.eta, 2.0 * max(stability.eta_pd, 0.0))
        etas = np.unique(np.append(ALONG * top, stability.eta))
        rows = []
        for eta, w in zip(etas.tolist(), _solutions(p, etas), strict=True):
            stable: bool | None = True
            if eta <= stability.eta_pd:
                look = p.rank <= EIGENVALUE_RANK or eta == 0.0
                stable = p.slowest(eta) > 0.0 if look else None
            value = float(self.start @ w)
            rows.append({"target": stability.target, "eta": eta, "value": value, "stable": stable})
        return rows


def path(e: Equations, target: int, stability: Stability) -> OverEta:
    """The path of a target."""
    p = quick_pencil(e, target)
    return OverEta(p, np.asarray(p.Q.T @ e.start_mean), stability)


@single_threaded
def path_rows(paths: Sequence[OverEta]) -> list[dict[str, Any]]:
    """The rows of several targets, one after the other."""
    return [row for one in paths for row in one.rows()]
