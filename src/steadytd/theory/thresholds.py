"""For which penalties eta is A(eta) = A_0 + eta G positive definite, and for which stable?

All matrices live on the row space of the features of the states that mu visits: there G is positive
definite, and weights outside it never change a value. `docs/theory.md` derives every statement.

The search for stable sets that every cure uses is here, too. Where the matrix of a mean update is
linear in the cure's parameter, `Line.crossings` are the parameters at which its eigenvalues cross
the imaginary axis. Elsewhere `sign_changes` finds them by a scan, and
`unstable_intervals` judges the intervals between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.mdp.cached import cached
from steadytd.mdp.moments import Moments
from steadytd.mdp.scales import EPS, Complexes, rates_of, slowest

LARGEST_EXACT = 40  # rank up to which all crossings are found exactly, as eigenvalues
SCAN_POINTS = 48  # penalties looked at beyond that rank, before refining
LARGE_PAIRS = 100  # rows of a bialternate sum from which on its eigenvalues are found with a shift,
WELL = 1e6  # if the shifted matrix has at most about this condition
REAL = 1e-7  # relative size below which an imaginary part is rounding
NEAR = 1e-6  # relative distance within which a scan finds the crossing that an eigenvalue is
SCATTER = 4.0  # times the scatter of a pole: so far from it a scan may see it cross
AT = 1e-12  # relative distance from a pole or a crossing within which a penalty is there

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Pencil:
    """A_0, G and b on the row space, and the penalties at which A(eta) changes character.

    The weights are w = Q y. With features of very different sizes the columns of Q are divided by
    `sizes`, so that the entries of G are about 1. A step of the learner then moves y by
    sizes^2 (b - A y): stability depends on the sizes, but definiteness, poles and values do not.
    """

    Q: Floats
    A0: Floats
    G: Floats
    b: Floats
    sizes: Floats | None = None  # None: all 1

    @staticmethod
    @cached(64)
    def of(m: Moments, lam: float = 0.0) -> Pencil:
        """The pencil of one problem and target policy (cached)."""
        Q, sizes = m.row_space, m.span.sizes
        if not Q.size:
            raise InputError(
                "every state that mu visits in the long run has the features 0, so nothing can be "
                "learned; give one of them a feature, or let mu return to other states."
            )
        if m.compact is None:
            return Pencil(Q=Q, A0=Q.T @ m.A(lam) @ Q, G=Q.T @ m.G @ Q, b=Q.T @ m.b(lam))
        return Pencil(Q / sizes, A0=m.equal.A(lam), G=m.equal.G, b=m.equal.b(lam), sizes=sizes)

    @property
    def rank(self) -> int:
        """Dimension of the row space."""
        return len(self.b)

    def A(self, eta: float) -> Floats:
        """A_0 + eta G."""
        return np.asarray(self.A0 + eta * self.G)

    @cached_property
    def definite_range(self) -> Interval:
        """A(eta) is negative definite below the first number, positive definite above the second.

        With H the symmetric part of A_0 these are -lambda_max and -lambda_min of (H, G), since
        y'A(eta)y / y'Gy = y'Hy / y'Gy + eta.
        """
        from scipy.linalg import eigh

        values = eigh((self.A0 + self.A0.T) / 2.0, self.G, eigvals_only=True)
        return -float(values[-1]), -float(values[0])

    @property
    def eta_pd(self) -> float:
        """The smallest eta with A(eta) positive definite just above it; negative: room to spare."""
        return self.definite_range[1]

    @cached_property
    def eigen(self) -> Eigen:
        """The eigenvalues l and eigenvectors of G^-1 A_0; w(eta) has a pole at every real -l."""
        return Eigen.of(self.A0, self.G)

    @cached_property
    def scatter(self) -> dict[float, float]:
        """Every pole, and how far rounding has scattered the eigenvalues that it stands for."""
        return self.eigen.poles

    @cached_property
    def poles(self) -> list[float]:
        """The real eta at which A(eta) is singular, in ascending order."""
        return sorted(self.scatter)

    def at_pole(self, eta: float) -> bool:
        """Whether A(eta) is singular up to rounding."""
        return any(abs(eta - p) <= AT * (1.0 + abs(p)) for p in self.poles)

    @property
    def exact(self) -> bool:
        """Whether the crossings are eigenvalues, or some of them those that a scan has found."""
        return self.rank <= LARGEST_EXACT and not self.blurred

    @property
    def blurred(self) -> bool:
        """Whether rounding scatters eigenvalues that are poles or crossings of usable penalties."""
        return self._crossings.blurred

    @property
    def crossings(self) -> list[float]:
        """Where an eigenvalue of A(eta) crosses the imaginary axis, inside the definite range."""
        return self._crossings.values

    @cached_property
    def _crossings(self) -> Crossings:
        """Those in the definite range; of large ranks only those of usable penalties, if any.

        They are scanned for beyond rank 40 and where rounding moves eigenvalues.
        """
        low, high = self.definite_range
        slack = 1e-9 * (1.0 + abs(low) + abs(high))
        usable = max(low, 0.0) if high > 0.0 else low
        exact = self.rank <= LARGEST_EXACT
        points: list[float] = []
        if not exact or (high > 0.0 and not self.eigen.sharp):
            even = np.linspace(usable, high, SCAN_POINTS if high > 0.0 else SCAN_POINTS // 4)
            inside = [usable, *(p for p in self.poles if usable < p < high), high]
            points = [*even.tolist(), *((a + b) / 2.0 for a, b in pairwise(inside))]
        line = Line(self.A0, self.G, self.sizes)
        within = (low - slack if exact else usable, high + slack)
        return line.crossings(self.scatter, within, self.slowest, points)

    def slowest(self, eta: float) -> float:
        """The least real part of an eigenvalue of A(eta), 0 up to rounding: stable if above 0."""
        return slowest(self.A(eta), self.sizes, float(np.abs(self.G).max()))

    def rates(self, eta: float) -> Complexes:
        """The eigenvalues of A(eta), by which the learner's steps change its modes."""
        return rates_of(self.A(eta), self.sizes).values

    @cached_property
    def unstable(self) -> list[Interval]:
        """The open intervals, between crossings, on which A(eta) is not stable."""
        low, high = self.definite_range
        margin = 1.0 + abs(low) + abs(high)
        usable = [0.0] if low < 0.0 < high else []
        ends = sorted([low - margin, *self.crossings, *usable, max([high, *self.crossings])])
        return unstable_intervals(self.slowest, ends, 1e-12 * margin)

    @property
    def eta_hurwitz(self) -> float:
        """From this eta on, A(eta) is stable for every larger one.

        Where crossings are only searched for, 0 stands for every usable penalty being stable.
        """
        return self.unstable[-1][1]

    def unstable_from(self, least: float = 0.0) -> list[Interval]:
        """The unstable intervals among the penalties that may be used, eta >= 0."""
        return [(max(least, lo), hi) for lo, hi in self.unstable if hi > least]

    def is_stable(self, eta: float) -> bool:
        """Whether the mean update with penalty eta leads to its fixed point."""
        slack = AT * (1.0 + abs(eta))
        inside = any(lo - slack <= eta <= hi + slack for lo, hi in self.unstable)
        return not (inside or self.at_pole(eta))

    def fixed_point(self, eta: float) -> Floats:
        """w(eta) in the original coordinates: A(eta) w = b."""
        return np.asarray(self.Q @ solution(self.A(eta), self.b))

    def sensitivity(self, eta: float) -> float:
        """|| d(Phi w)/d eta ||_D: how much the values move per unit of eta; infinite at a pole."""
        if self.at_pole(eta):
            return float("inf")
        w = solution(self.A(eta), self.b)
        slope = solution(self.A(eta), self.G @ w)
        return float(np.sqrt(slope @ self.G @ slope))


class Crossings(NamedTuple):
    """Where eigenvalues cross the imaginary axis, and whether rounding blurs some of them."""

    values: list[float]
    blurred: bool


class Line(NamedTuple):
    """Matrices M_0 + a M_1 for every a; with `sizes`, the learner's are sizes^2 times these."""

    M0: Floats
    M1: Floats
    sizes: Floats | None = None

    def crossings(
        self,
        poles: Mapping[float, float],
        within: Interval,
        slowest: Callable[[float], float],
        points: Iterable[float],
    ) -> Crossings:
        """Where an eigenvalue crosses the imaginary axis, within an interval of a.

        A real one crosses at a pole; `poles` says how far rounding has scattered each. A complex
        pair crosses where two eigenvalues sum to zero, which is where the bialternate sum is
        singular: it is linear in a, so those are eigenvalues again. Beyond rank 40 pairs are not
        computed. A scan of `points` adds what both have missed. What is as close to a pole as
        rounding has scattered its eigenvalues is that pole.
        """
        exact = len(self.M0) <= LARGEST_EXACT
        low, high = within
        known = [*poles, *(pair_crossings(*self) if exact else [])]
        known = [a for a in known if low <= a <= high]
        marks = np.array([*known, np.inf])
        scanned = sign_changes(slowest, points)
        missed = [c for c in scanned if np.abs(marks - c).min() > NEAR * (1.0 + abs(c))]
        far = {p: SCATTER * scatter for p, scatter in poles.items()}
        found = {
            c for c in (*known, *missed)
            if c in far or all(abs(c - p) > distance for p, distance in far.items())
        }  # fmt: skip
        usable = ((p, r) for p, r in poles.items() if p >= 0.0 and low <= p <= high)
        wide = any(scatter > NEAR * (1.0 + pole) for pole, scatter in usable)
        return Crossings(sorted(found), wide or (exact and bool(missed)))


def sign_changes(slowest: Callable[[float], float], points: Iterable[float]) -> list[float]:
    """Where the verdict `slowest(a) > 0` changes between neighbouring points, in ascending order.

    Two changes between the same neighbours go unnoticed.
    """
    from scipy.optimize import brentq

    grid = sorted(points)
    stable = [slowest(a) > 0.0 for a in grid]
    change = [i for i, (a, b) in enumerate(pairwise(stable)) if a is not b]
    return [float(brentq(slowest, grid[i], grid[i + 1], xtol=1e-14)) for i in change]


def unstable_intervals(
    slowest: Callable[[float], float], ends: Sequence[float], tiny: float
) -> list[Interval]:
    """The intervals between neighbouring ends in whose middle nothing is stable, joined.

    The verdict must not change inside an interval. Those of length `tiny` are passed over, and an
    infinite one is judged as far beyond its start as the other ends reach.
    """
    found: list[Interval] = []
    for left, right in pairwise(ends):
        middle = (left + right) / 2.0 if np.isfinite(right) else 2.0 * left - ends[0] + 1.0
        if right - left <= tiny or slowest(middle) > 0.0:
            continue
        adjacent = found and left - found[-1][1] <= tiny
        found.append((found.pop()[0] if adjacent else left, right))
    return found


def pair_crossings(M0: Floats, M1: Floats, sizes: Floats | None = None) -> list[float]:
    """The parameters a at which two eigenvalues of sizes^2 (M_0 + a M_1) sum to zero.

    There its bialternate sum is singular, which is linear in a.
    """
    if len(M0) == 1:
        return []
    if sizes is None:
        sums = bialternate(M0), bialternate(M1)
    else:  # rows of very different sizes are scaled to about 1
        rows, columns = np.tril_indices(len(M0), -1)
        squares = sizes[:, None] ** 2
        largest = np.maximum(squares[rows], squares[columns])
        sums = bialternate(squares * M0) / largest, bialternate(squares * M1) / largest
    with np.errstate(divide="ignore", invalid="ignore"):
        return real_ones(singular_at(*sums))


def singular_at(S0: Floats, S1: Floats) -> Complexes:
    """All a, infinite ones too, at which S_0 + a S_1 is singular.

    With a shift c, S_0 + a S_1 = S_c (1 + (a - c) S_c^-1 S_1). The eigenvalues of one matrix take a
    tenth of the time of those of two, which are found where S_c is nearly singular.
    """
    from scipy.linalg import eigvals

    if len(S0) > LARGE_PAIRS:
        shift = float(np.linalg.norm(S0) / np.linalg.norm(S1))
        shifted = S0 + shift * S1
        part = solution(shifted, S1)
        if np.linalg.norm(part) * np.linalg.norm(shifted) <= WELL * np.linalg.norm(S1):
            return np.asarray(shift - 1.0 / np.linalg.eigvals(part).astype(np.complex128))
    return -np.asarray(eigvals(S0, S1), dtype=np.complex128)


@cached(1)
def bounds(m: Moments) -> dict[str, float]:
    """Penalties that suffice for positive definiteness, from tight to loose; see `docs/theory.md`.

    With T = D^1/2 P_gamma D^-1/2 and c_j = (d'P_gamma)_j / d_j: numerical_range
    lambda_max(sym T) - 1, operator_norm ||T|| - 1, sqrt_kappa sqrt(gamma_max c_max) - 1, gershgorin
    (gamma_max + c_max)/2 - 1, paper max(c_max - 1, 0); and from the policies alone
    gamma_max sqrt(rho_max) - 1.
    """
    columns = (m.d @ m.onwards)[m.visited] / m.d[m.visited]
    largest = float(columns.max())
    gamma = m.gamma_max
    return {
        "numerical_range": m.numerical_range - 1.0,
        "operator_norm": m.operator_norm - 1.0,
        "sqrt_kappa": float(np.sqrt(gamma * largest)) - 1.0,
        "gershgorin": (gamma + largest) / 2.0 - 1.0,
        "paper": max(largest - 1.0, 0.0),
        "policies": gamma * float(np.sqrt(m.max_ratio)) - 1.0,
    }


def solution(A: Floats, b: Floats) -> Floats:
    """A^-1 b; the shortest w that comes nearest to A w = b where A is singular to the last bit.

    So it is where what tells two features apart, or a step, is lost in rounding beside the rest.
    """
    try:
        return np.asarray(np.linalg.solve(A, b))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])


class Eigen(NamedTuple):
    """Those l with A y = l G y, their y, and how far rounding may have moved each l."""

    values: Complexes
    vectors: Complexes
    moved: Floats

    @staticmethod
    def of(A: Floats, G: Floats) -> Eigen:
        """To first order a change E of A moves l by u*E y / u*G y, u and y its eigenvectors.

        Where m eigenvalues coincide and have one eigenvector, rounding scatters them on a circle,
        of which that is an m-th. No circle is much larger than the n-th root of rounding.
        """
        from scipy.linalg import eig

        found: Any = eig(A, G, left=True, right=True)  # three arrays; scipy-stubs knows of two
        finite = np.isfinite(found[0])
        values, left, right = (np.asarray(part)[..., finite] for part in found)
        along = np.abs(np.einsum("ij,ij->j", left.conj(), G @ right))
        size = np.linalg.norm(A, 2) + np.abs(values) * np.linalg.norm(G, 2)
        most = EPS ** (1.0 / len(G)) * (1.0 + np.abs(values))
        with np.errstate(divide="ignore"):
            return Eigen(values, right, np.minimum(EPS * size / along, most))

    @property
    def sharp(self) -> bool:
        """Whether rounding has moved none of them much."""
        return bool((self.moved <= REAL * (1.0 + np.abs(self.values))).all())

    @property
    def poles(self) -> dict[float, float]:
        """The real eta at which A + eta G is singular, and how far rounding has scattered them.

        Eigenvalues that rounding may have torn apart are one pole: their mean, which is sharp.
        """
        from scipy.sparse.csgraph import connected_components

        apart = np.abs(self.values[:, None] - self.values)
        _, group = connected_components(apart <= 2.0 * np.minimum(self.moved[:, None], self.moved))
        groups = [self.values[group == i] for i in np.unique(group)]
        found = [(pole, g) for g in groups for pole in real_ones(-g.mean(keepdims=True))]
        return {pole: float(np.abs(g + pole).max()) for pole, g in found}


def real_ones(values: Complexes) -> list[float]:
    """The real ones among complex numbers, and 0, up to rounding."""
    finite = values[np.isfinite(values)]
    real = [float(v.real) for v in finite if abs(v.imag) <= REAL * (1.0 + abs(v))]
    return [v if abs(v) > AT else 0.0 for v in real]


def bialternate(A: Floats) -> Floats:
    """The matrix, linear in A, whose eigenvalues are the sums of two eigenvalues of A (i < j).

    It is A (x) I + I (x) A on the antisymmetric tensors, of size n (n - 1)/2.
    """
    n = len(A)
    rows, columns = np.tril_indices(n, -1)
    p, q = rows[:, None], columns[:, None]
    r, s = rows[None, :], columns[None, :]
    same = np.equal
    result = A[p, r] * same(q, s) + A[q, s] * same(p, r)
    return np.asarray(result - A[p, s] * same(q, r) - A[q, r] * same(p, s))
