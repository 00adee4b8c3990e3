"""What the estimators share: the units' sums, their solutions, and cross-fitting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.errors import InputError
from steadytd.evaluation.collect.plan import TD, System, Where
from steadytd.evaluation.collect.statistics import Statistics
from steadytd.evaluation.estimate.inverse import RANK, Inverse
from steadytd.evaluation.estimate.sandwich import Estimate
from steadytd.theory.thresholds import Pencil

Weights = Bools | Floats  # how often each unit counts
FOLDS = 5  # of units: the sums of four give the weights for the fifth


class Form(NamedTuple):
    """How a value is computed; `estimate.methods` has a file for each kind.

    `solved`: (A + eta G + ridge I) w = b of the system with this number. `lam` is that of `drl`,
    None where it is to be chosen.
    """

    kind: Literal["solved", "pdis", "snpdis", "mis", "drl"]
    system: int = 0
    eta: float = 0.0
    ridge: float = 0.0
    lam: float | None = None


LSTD, PDIS, SNPDIS, MIS, DRL = (
    Form("solved"), Form("pdis"), Form("snpdis"), Form("mis"), Form("drl"),
)  # fmt: skip


class Solver(Protocol):
    """A generalised inverse of a matrix A."""

    def solve(self, b: Floats) -> Floats:
        """w with A w = b."""

    def solve_transposed(self, p: Floats) -> Floats:
        """beta with A' beta = p."""


class Sides(NamedTuple):
    """The right-hand sides of M w = b and of M' beta = start."""

    b: Floats
    start: Floats


class Pair(NamedTuple):
    """The solution of M w = b and that of M' beta = phi0."""

    w: Floats
    beta: Floats


class Scores(NamedTuple):
    """By unit: sums of temporal differences times weights, and of 1 - gamma' times them."""

    errors: Floats
    masses: Floats


class Some(NamedTuple):
    """Some units, and what their sums are for every target alike; `use` None: all of them."""

    use: Weights | None
    G: Any
    start: Floats


class Held(NamedTuple):
    """A fold of units, and the solutions from all others; None where there are none."""

    units: slice
    pair: Pair | None


@dataclass(frozen=True, eq=False)
class Estimator:
    """The units' sums, and the equations that they give.

    Systems are solved for a largest set of linearly independent features, the other weights being
    0; the values are those of any other choice. The set is found anew for every system that is
    solved. The value is the mean of phi(s).w over the episodes' first states (`start`), or over all
    logged states (`states`) where the log is one endless episode. The target behind the last one is
    the behaviour policy, with ratios of 1; it has no system but TD's.
    """

    units: Statistics
    where: Where
    systems: tuple[System, ...] = (TD,)
    lams: tuple[float, ...] = (1.0,)
    pencils: dict[int, Pencil] = field(init=False, default_factory=dict, repr=False)  # found so far
    _held: dict[int, list[Held]] = field(default_factory=dict, repr=False)
    _solved: dict[tuple[int, Form], Pair | None] = field(
        init=False, default_factory=dict, repr=False
    )

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return len(self.units.block)

    @cached_property
    def behavior(self) -> int:
        """The number of the behaviour policy among the targets."""
        return int(self.units.systems.shape[1])

    @cached_property
    def kept(self) -> Longs:
        """The numbers of the features that are independent in the log, in ascending order."""
        return self._independent(self.units.G.sum(axis=0))

    def _independent(self, G: Floats) -> Longs:
        """A largest set of features that are independent where the sum of x x' is G."""
        from scipy.linalg import lapack

        scale = np.sqrt(np.diag(G))
        shown = np.flatnonzero(scale > 0.0)
        inner = G[np.ix_(shown, shown)] / np.outer(scale[shown], scale[shown])
        self._some(shown)
        _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
        return np.sort(shown[order[:rank] - 1])

    def _some(self, shown: Longs) -> Longs:
        if not len(shown):
            raise InputError("all features are 0 in every row; nothing can be learned from them.")
        return shown

    @cached_property
    def features(self) -> int:
        """How many features there are."""
        return int(self.units.x.shape[1])

    @property
    def rank(self) -> int:
        """How many features are linearly independent."""
        return len(self.kept)

    @cached_property
    def start(self) -> Floats:
        """Sums of the features whose mean value is asked for [units, d]."""
        return self.units.x_start if self.where == "start" else self.units.x

    @cached_property
    def starts(self) -> Floats:
        """How many states those are, by unit."""
        return np.asarray(self.units.counts[:, 1 if self.where == "start" else 0])

    @cached_property
    def n_starts(self) -> float:
        """How many of them in all."""
        return float(self.starts.sum())

    @cached_property
    def start_mean(self) -> Floats:
        """The mean of all features where the value is asked for [d]."""
        return np.asarray(self.start.sum(axis=0) / self.n_starts)

    def system(self, target: int, k: int = 0) -> Floats:
        """A and b of system k by unit [units, d, d + 1]."""
        own = target == self.behavior
        return self.units.behavior if own else np.asarray(self.units.systems[:, target, k])

    def total(self, target: int, k: int = 0, use: Weights | None = None) -> tuple[Any, Floats]:
        """A and b of system k, the sum over all units, or over some."""
        found = summed(self.system(target, k), use)
        return found[:, :-1], found[:, -1]

    def gram(self, use: Weights | None = None) -> Any:
        """The sum of x x' over all units, or over some."""
        return summed(self.units.G, use)

    @cached_property
    def mean_gram(self) -> Floats:
        """The mean of x x' over rows."""
        rows = np.ones(self.n_units) @ self.units.counts[:, 0]
        return np.asarray(np.tensordot(np.ones(self.n_units), self.units.G, axes=1) / rows)

    def start_sum(self, use: Weights | None = None) -> Floats:
        """The sum of x where the value is asked for, over all units, or over some."""
        return summed(self.start, use)

    def _some_units(self, use: Weights | None = None) -> Some:
        return Some(use, self.gram(use), self.start_sum(use))

    @cached_property
    def _all_units(self) -> Some:
        return self._some_units()

    def matrix(self, A: Any, G: Any, form: Form) -> Any:
        """A + eta G + ridge I."""
        if not (form.eta or form.ridge):
            return A
        return A + form.eta * G + form.ridge * np.eye(len(G))

    def inverse(self, M: Any, G: Any, sides: Sides | None = None) -> Solver | None:
        """A generalised inverse of M, for features whose sum of x x' is G, and for these sides."""
        return Inverse.of(M, G)

    def solution(self, target: int, form: Form) -> Pair | None:
        """w and beta of a solved form from all units; None where there are none."""
        if (target, form) not in self._solved:
            self._solved[target, form] = self._solution(target, form, self._all_units)
        return self._solved[target, form]

    def _solution(self, target: int, form: Form, some: Some) -> Pair | None:
        A, b = self.total(target, form.system, some.use)
        sides = Sides(b, some.start)
        inverse = self.inverse(self.matrix(A, some.G, form), some.G, sides)
        if inverse is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            pair = Pair(inverse.solve(sides.b), inverse.solve_transposed(sides.start))
        return pair if np.isfinite(pair.w).all() and np.isfinite(pair.beta).all() else None

    def corrections(self, target: int, k: int, pair: Pair, here: slice = slice(None)) -> Scores:
        """beta.(b_u - A_u w) by unit, and beta.(sum of (1 - gamma') z)."""
        return self.all_corrections(target, [k], pair, here)[0]

    def all_corrections(
        self, target: int, ks: list[int], pair: Pair, here: slice = slice(None)
    ) -> list[Scores]:
        """The corrections by several systems."""
        minus = np.append(pair.w, -1.0)
        if target == self.behavior:  # nobody asks for its masses
            errors = -(self.units.behavior[here] @ minus) @ pair.beta
            return [Scores(errors, np.zeros(len(errors))) for _ in ks]
        first, end = min(ks, default=0), max(ks, default=-1) + 1
        left = -(self.units.systems[here, target, first:end] @ minus)
        mass = self.units.mass[here, target]
        return [Scores(left[:, k - first] @ pair.beta, mass[:, k] @ pair.beta) for k in ks]

    def products(self, target: int, lam: float, w: Floats, here: slice = slice(None)) -> Scores:
        """The sums of c (r - (x - gamma' x').w) and of c (1 - gamma') by unit."""
        c, d = self.units.weighted[here, target, self.lams.index(lam)], self.features
        return Scores(c[:, d] - c[:, :d] @ w, c[:, d + 1])

    def at_cuts(self, target: int, lam: float, beta: Floats, here: slice = slice(None)) -> float:
        """The sum of gamma' ((1 - lam) beta.z + lam c) over the rows where episodes are cut off."""
        if not self.any_cut or target == self.behavior:  # nobody asks for its own
            return 0.0
        found, d = self.units.cut[here, target, self.lams.index(lam)].sum(axis=0), self.features
        return float((1.0 - lam) * found[:d] @ beta + lam * found[d])

    @cached_property
    def any_cut(self) -> bool:
        """Whether an episode is cut off while the target's ratios are above 0."""
        return bool(self.units.cut.any())

    def passed(self, target: int, lam: float, beta: Floats) -> Floats:
        """The sum of ((1 - lam) beta.z + lam c) (x - gamma' x') over all rows [d]."""
        found = np.zeros(self.features)
        if lam > 0.0:
            c = self.units.weighted[:, target, self.lams.index(lam), : self.features]
            found += lam * summed(c)
        if lam < 1.0:
            found += (1.0 - lam) * (beta @ self.total(target, self.systems.index(System(lam)))[0])
        return found

    def squares(self, one: Floats, other: Floats) -> Floats:
        """one'G_u other by unit."""
        return np.asarray((self.units.G @ one) @ other)

    def quadratic(self, target: int, y: Floats) -> Floats:
        """y'A_u y of TD's system by unit."""
        return np.asarray((self.system(target) @ np.append(y, 0.0)) @ y)

    def weights(self, target: int, form: Form) -> Floats:
        """The weights w [d] of a solved form, from the whole log; NaN where there are none."""
        pair = self.solution(target, form)
        return np.full(self.features, np.nan) if pair is None else pair.w

    def folds(self) -> Iterator[slice]:
        """Five folds, or as many as there are units.

        Every fifth unit; consecutive ones where units are stretches of episodes, since neighbours
        are alike.
        """
        n, number = self.n_units, min(FOLDS, self.n_units)
        if not self.units.continues[1:].any():
            yield from (slice(i, None, number) for i in range(number))
            return
        ends = [-(-i * n // number) for i in range(number + 1)]
        yield from map(slice, ends[:-1], ends[1:])

    @cached_property
    def _folds(self) -> list[tuple[slice, Some]]:
        """Every fold, and the other units (itself if it is the only one)."""
        found = []
        for here in self.folds():
            others = np.ones(self.n_units, dtype=bool)
            others[here] = self.n_units < 2
            found.append((here, self._some_units(others)))
        return found

    def cross_fitted(self, target: int) -> list[Held]:
        """Every fold with lstd's w and beta from the others (from itself if it is the only one)."""
        if target not in self._held:
            self._held[target] = [
                Held(here, self._solution(target, LSTD, others)) for here, others in self._folds
            ]
        return self._held[target]

    def mean_of(self, scores: Floats) -> Estimate:
        """The sum of the units' scores over the number of starts, with the influences."""
        number = self.n_starts
        value = float(scores.sum() / number)
        return Estimate(value, np.asarray((scores - value * self.starts) / number))

    @cached_property
    def _halves(self) -> list[tuple[Some, Some, Solver | None]]:
        """Either half of the units, the other half, and the inverse of the first one's x x'."""
        even = np.arange(self.n_units) % 2 == 0
        one, other = map(self._some_units, (even, ~even))
        return [(a, b, self.inverse(a.G, a.G)) for a, b in ((one, other), (other, one))]

    def held_out(self, target: int) -> HeldOut:
        """The projected Bellman error of lstd's weights on episodes that did not make them.

        With A, b, G means over the rows of one half of the units and w solved from the other half:
        (b - A w)' G^-1 (b - A w), the mean of both halves; with w = 0 for comparison.
        """
        if self.n_units < 2:
            return NOT_KNOWN
        squares = np.zeros(2)
        with np.errstate(all="ignore"):  # weights that the other half does not determine
            for (half, *_), others, inner in self._halves:
                pair = self._solution(target, LSTD, others)
                if pair is None:
                    return HeldOut(float("inf"), float("nan"))
                A, b = self.total(target, 0, half)
                g = np.stack([b - A @ pair.w, b])
                x = None if inner is None else [inner.solve(one) for one in g]
                rows = self.units.counts[half, 0].sum()
                squares += np.nan if x is None else np.einsum("ik,ik->i", g, x) / rows / 2.0
            error, of_zero = np.sqrt(np.maximum(squares, 0.0)).tolist()
        return HeldOut(error if np.isfinite(error) else float("inf"), of_zero)


def summed(sums: Floats, use: Weights | None = None) -> Floats:
    """The sum over all units, or over some, of numbers by unit."""
    counted = np.ones(len(sums)) if use is None else use.astype(np.float64)
    return np.asarray((counted @ sums.reshape(len(sums), -1)).reshape(sums.shape[1:]))


class HeldOut(NamedTuple):
    """Root mean square projected Bellman errors on held-out episodes."""

    error: float
    error_of_zero: float  # that of the value 0

    @property
    def share(self) -> float:
        """What is left of the error: 0 is perfect, 1 no better than the value 0."""
        if self.error == float("inf"):
            return self.error
        return self.error / self.error_of_zero if self.error_of_zero > 0.0 else float("nan")


NOT_KNOWN = HeldOut(float("nan"), float("nan"))
