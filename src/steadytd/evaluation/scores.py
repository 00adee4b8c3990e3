"""Sums over rows by unit, made with given weights: scalar recursions along episodes.

With V(s) = x(s).w and omega(s) = x(s).beta everything that an estimator asks of a unit is a sum
over its rows of numbers, each found from the row before. So no matrix by unit exists anywhere.
A `RowSums` names the weights that features are multiplied with, and adds up what it makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.evaluation.rows import FOLDS, RowTable
from steadytd.evaluation.sums import LARGEST, TD, System, emphasis

PRODUCT_BYTES = 32e6  # of products of features and weights that are made at once


class Pair(NamedTuple):
    """The solution of M w = b and that of M' beta = phi0."""

    w: Floats
    beta: Floats


@dataclass(frozen=True)
class Units:
    """The units that scores are summed by: episodes, neighbours joined where there are many."""

    number: int
    before: int  # units before they were joined
    every: bool = False  # every row is a start, not only first rows of episodes

    def of(self, unit: Longs) -> Longs:
        """The number of the unit that each of these is in."""
        return unit if self.number == self.before else unit * self.number // self.before


class Steps(NamedTuple):
    """The columns of a table that the compiled loops read."""

    first: Bools
    last: Bools
    reward: Floats
    discount: Floats
    gamma: Floats
    row_next: Ints
    unit: Longs
    every: bool

    @staticmethod
    def of(rows: RowTable, units: Units) -> Steps:
        """Those of a table."""
        unit = units.of(rows.unit)
        return Steps(
            rows.first, rows.last, rows.reward, rows.discount, rows.gamma, rows.row_next, unit,
            units.every,
        )  # fmt: skip


class RowSums(ABC):
    """Sums by unit of what one estimator makes of the rows of one target."""

    weights: Floats  # [folds or 1, k, d]: `add` receives x.weights of every observation

    @abstractmethod
    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table; `products` [k, observations]."""

    def arrays(self) -> dict[str, Floats]:
        """The sums by name: those of several parts of a log are added."""
        return {name: value for name, value in vars(self).items() if name.startswith("sum_")}

    def merge(self, other: dict[str, Floats]) -> None:
        """Add the sums of another part."""
        for name, own in self.arrays().items():
            add = np.maximum if name.startswith("sum_largest") else np.add
            vars(self)[name] = add(own, other[name])


def add_rows(rows: RowTable, programs: Sequence[RowSums], units: Units) -> None:
    """Let programs add up the rows of a table: one product of features and weights for many."""
    steps = Steps.of(rows, units)
    for some in _together(programs, len(rows.obs)):
        with np.errstate(all="ignore"):
            _add(some, rows, steps)


def _together(programs: Sequence[RowSums], observations: int) -> Iterable[Sequence[RowSums]]:
    """Programs whose products fit into memory at once."""
    lo, size = 0, 0.0
    for i, one in enumerate(programs):
        size += 8.0 * one.weights.shape[1] * observations
        if size > PRODUCT_BYTES and i > lo:
            yield programs[lo:i]
            lo, size = i, 8.0 * one.weights.shape[1] * observations
    if lo < len(programs):
        yield programs[lo:]


def _add(programs: Sequence[RowSums], rows: RowTable, steps: Steps) -> None:
    by_fold = [one for one in programs if len(one.weights) == FOLDS]
    alike = [one for one in programs if len(one.weights) == 1]
    for some, folds in ((by_fold, FOLDS), (alike, 1)):
        if not some:
            continue
        W = np.concatenate([one.weights for one in some], axis=1)
        found = _products(rows, W, folds)
        at = 0
        for one in some:
            k = one.weights.shape[1]
            one.add(rows, steps, found[at : at + k])
            at += k


def _products(rows: RowTable, W: Floats, folds: int) -> Floats:
    """x.W of every observation, with the weights of its fold [k, observations]."""
    X = rows.X
    if not W.shape[1]:
        return np.empty((0, X.shape[0]))
    if folds == 1:
        return _times(X, W[0])
    out = np.empty((W.shape[1], X.shape[0]))
    for f in range(folds):
        mine = np.flatnonzero(rows.fold == f)
        if len(mine) == X.shape[0]:
            return _times(X, W[f])
        if len(mine):
            out[:, mine] = _times(X[mine], W[f])
    return out


def _times(X: Any, W: Floats) -> Floats:
    """W X' [k, observations]."""
    if isinstance(X, np.ndarray):
        return np.asarray(W @ X.T)
    return np.ascontiguousarray((X @ W.T).T)


class CurveSums(RowSums):
    """DRL(lam) of one target for every lam, with the weights of the other folds.

    A target of None is the behaviour policy: ratios of 1.
    """

    def __init__(
        self,
        target: int | None,
        pairs: Sequence[Pair],
        lams: tuple[float, ...],
        units: Units,
        value: ActionValue | None = None,
    ) -> None:
        self.target, self.lams, L = target, lams, len(lams)
        self.value = value
        own = [[*([] if value else [p.w]), p.beta] for p in pairs]
        more = [[]] * len(pairs) if value is None else [list(theta) for theta in value.theta]
        self.weights = np.array([one + two for one, two in zip(own, more, strict=True)])
        self._lams, self._carry = np.array(lams), np.zeros(L)
        self.sum_scores, self.sum_weights = np.zeros((2, L, units.number))
        self.sum_cut, self.sum_at_cuts, self.sum_largest = np.zeros((3, L))

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        n = len(rows)
        rho = np.ones(n) if self.target is None else rows.rho[self.target]
        if self.value is None:
            V, omega = products
            here, ahead = V[:n], V[rows.row_next]
            delta = rows.reward + rows.discount * ahead - here
        else:
            omega = products[0]
            here, ahead, delta = self.value.errors(rows, products[1:])
        sums = DrlSums(
            self.sum_scores, self.sum_weights, self.sum_cut, self.sum_at_cuts, self.sum_largest
        )
        numbers = DrlRows(rho, here, ahead, delta, omega[:n])
        drl(steps, numbers, self._lams, self._carry, sums)


class DrlRows(NamedTuple):
    """Of every row: rho, V(s), V(s'), the temporal difference, and omega(s)."""

    rho: Floats
    value: Floats
    ahead: Floats
    delta: Floats
    omega: Floats


class DrlSums(NamedTuple):
    """What `drl` adds to: by lam and unit, and by lam."""

    scores: Floats
    weights: Floats
    cut: Floats
    at_cuts: Floats
    largest: Floats


@compiled
def drl(steps: Steps, rows: DrlRows, lams: Floats, carry: Floats, sums: DrlSums) -> None:
    """Follow U of every lam; `carry` [lams] holds U rho of the row before."""
    for i in range(len(steps.first)):
        u, begins, ends = steps.unit[i], steps.first[i], steps.discount[i]
        rho, delta, omega = rows.rho[i], rows.delta[i], rows.omega[i]
        cut = steps.last[i] and ends > 0.0
        start = steps.every or begins
        for m in range(len(lams)):
            lam = lams[m]
            before = 0.0 if begins else steps.gamma[i] * carry[m]
            U = (1.0 - lam) * omega + lam * (before + (1.0 if start else 0.0))
            weight = min(max(U * rho, -LARGEST), LARGEST)
            carry[m] = weight
            sums.scores[m, u] += weight * delta + (rows.value[i] if start else 0.0)
            sums.weights[m, u] += weight * (1.0 - ends)
            sums.largest[m] = max(sums.largest[m], abs(weight))
            if cut:
                sums.cut[m] += abs(weight) * ends
                sums.at_cuts[m] += weight * ends * rows.ahead[i]


class Gradient(RowSums):
    """How J depends on w: the sum of U rho (x - gamma' x') over rows, U rho as in DRL(lam).

    With a `place` among the policies known as a whole it is that of theta, by action: the sum of
    U rho (x_a - gamma' sum_a' pi(a'|s') x'_a').
    """

    def __init__(
        self, target: int | None, pair: Pair, lam: float, place: int | None = None
    ) -> None:
        self.target, self.lam, self.place = target, lam, place
        self.weights = pair.beta[None, None]
        self._carry = np.zeros(1)
        self.sum_gradient = np.zeros((1, 1))  # [1 or actions, d], once a table has told how many

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        n = len(rows)
        rho = np.ones(n) if self.target is None else rows.rho[self.target]
        weight = np.empty(n)
        row_weights(steps, rho, products[0][:n], self.lam, self._carry, weight)
        if self.place is None:
            by_obs = np.zeros((1, len(rows.obs)))
            by_obs[0, :n] = weight
            np.add.at(by_obs[0], rows.row_next, -weight * rows.discount)
        else:
            assert rows.probs is not None and rows.action is not None
            weight = np.where(known(rows, self.place), weight, 0.0)
            probs = np.nan_to_num(rows.probs[:, self.place]).T
            by_obs = np.zeros((len(probs), len(rows.obs)))
            by_obs[np.asarray(rows.action, dtype=np.int64), np.arange(n)] = weight
            ahead = -weight * rows.discount * probs[:, rows.row_next]
            for own, more in zip(by_obs, ahead, strict=True):
                np.add.at(own, rows.row_next, more)
        self.sum_gradient = self.sum_gradient + (rows.X.T @ by_obs.T).T


@compiled
def row_weights(
    steps: Steps, rho: Floats, omega: Floats, lam: float, carry: Floats, out: Floats
) -> None:
    """U rho of every row; `carry` [1] holds that of the row before."""
    before = carry[0]
    for i in range(len(rho)):
        begins = steps.first[i]
        start = 1.0 if steps.every or begins else 0.0
        U = (1.0 - lam) * omega[i] + lam * ((0.0 if begins else steps.gamma[i] * before) + start)
        before = min(max(U * rho[i], -LARGEST), LARGEST)
        out[i] = before
    carry[0] = before


class SolvedSums(RowSums):
    """Of one target's w and beta: beta.(b_u - A_u w), beta.sum (1 - gamma') z, and w'G_u beta.

    beta.z_t = rho_t (gamma_t lam beta.z_{t-1} + M_t x_t.beta) is followed as a number.
    """

    def __init__(self, target: int | None, pair: Pair, units: Units, system: System = TD) -> None:
        self.target, self.system = target, system
        self.weights = np.stack([pair.w, pair.beta])[None]
        self._follow, self._carry = np.zeros(2), np.zeros(1)
        self.sum_errors, self.sum_masses, self.sum_squares, self.sum_start = np.zeros(
            (4, units.number)
        )

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        n, s = len(rows), self.system
        rho = np.ones(n) if self.target is None else rows.rho[self.target]
        weight = rho
        if s.emphatic:
            weight = np.empty(n)
            beta = -1.0 if s.beta is None else s.beta
            emphasis(rho, rows.gamma, s.lam, beta, self._follow, weight)
        sums = _Solved(self.sum_errors, self.sum_masses, self.sum_squares, self.sum_start)
        solved(steps, rho, weight, products, s.lam, self._carry, sums)


class _Solved(NamedTuple):
    errors: Floats
    masses: Floats
    squares: Floats
    start: Floats


@compiled
def solved(
    steps: Steps, rho: Floats, weight: Floats, products: Floats, lam: float, carry: Floats,
    sums: _Solved,
) -> None:  # fmt: skip
    """Follow beta.z; `carry` [1] holds that of the row before."""
    y = carry[0]
    for i in range(len(rho)):
        u, ends = steps.unit[i], steps.discount[i]
        V, omega = products[0, i], products[1, i]
        y = rho[i] * steps.gamma[i] * lam * y + weight[i] * omega
        y = min(max(y, -LARGEST), LARGEST)
        sums.errors[u] += y * (steps.reward[i] + ends * products[0, steps.row_next[i]] - V)
        sums.masses[u] += y * (1.0 - ends)
        sums.squares[u] += V * omega
        if steps.every or steps.first[i]:
            sums.start[u] += V
    carry[0] = y


class SampledReturns(RowSums):
    """Of one target: `pdis` by unit, and the influences of `snpdis` with given means by step.

    `mean` [H] is N_t / D_t and `inverse` [H] 1 / D_t; an episode that has ended keeps its product.
    """

    def __init__(self, target: int, mean: Floats, inverse: Floats, units: Units, d: int) -> None:
        self.target, self.inverse, self.expected = target, inverse, mean * inverse
        self.tail = np.append(np.cumsum(self.expected[::-1])[::-1], 0.0)
        self.weights = np.empty((1, 0, d))
        self._carry = np.ones(1)
        self.sum_pdis, self.sum_snpdis, self.sum_rows, self.sum_starts = np.zeros((4, units.number))

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        sums = _Returns(self.sum_pdis, self.sum_snpdis, self.sum_rows, self.sum_starts)
        by_step = _ByStep(self.inverse, self.expected, self.tail)
        along = rows.discounted, rows.step
        sampled(steps, rows.rho[self.target], along, by_step, self._carry, sums)


class _Returns(NamedTuple):
    pdis: Floats
    snpdis: Floats
    rows: Floats
    starts: Floats


class _ByStep(NamedTuple):
    inverse: Floats
    expected: Floats
    tail: Floats


@compiled
def sampled(
    steps: Steps, rho: Floats, along: tuple[Floats, Longs], by_step: _ByStep, carry: Floats,
    sums: _Returns,
) -> None:  # fmt: skip
    """Follow the product of ratios; `carry` [1] holds that of the row before."""
    discounted, step = along
    H, product = len(by_step.inverse), carry[0]
    for i in range(len(rho)):
        u, t = steps.unit[i], step[i]
        if steps.first[i]:
            product = 1.0
        product = min(product * rho[i], LARGEST)
        earned = discounted[i] * product * steps.reward[i]
        sums.pdis[u] += earned
        sums.snpdis[u] += earned * by_step.inverse[min(t, H - 1)]
        if t < H:
            sums.snpdis[u] -= product * by_step.expected[t]
        if steps.last[i] and t + 1 < H:
            sums.snpdis[u] -= product * by_step.tail[t + 1]
        sums.rows[u] += 1.0
        if steps.every or steps.first[i]:
            sums.starts[u] += 1.0
    carry[0] = product


@dataclass(frozen=True)
class ActionValue:
    """Values of actions q(s, a) = x(s).theta_a for one target that is known as a whole."""

    place: int  # of the target among the policies known as a whole
    theta: Floats  # [folds or 1, actions, d]

    def errors(self, rows: RowTable, q: Floats) -> tuple[Floats, Floats, Floats]:
        """V(s), V(s') and r + gamma' V(s') - q(s, a) of every row.

        The error is 0 where the probabilities at s' are not known.
        """
        assert rows.probs is not None and rows.action is not None
        n = len(rows)
        V = np.einsum("am,ma->m", q, np.nan_to_num(rows.probs[:, self.place]))
        ahead = V[rows.row_next]
        own = q[np.asarray(rows.action, dtype=np.int64), np.arange(n)]
        delta = rows.reward + rows.discount * ahead - own
        return V[:n], ahead, np.where(known(rows, self.place), delta, 0.0)


def known(rows: RowTable, place: int) -> Bools:
    """Whether the probabilities of all actions are known at a row's next state, if it matters."""
    assert rows.probs is not None
    return np.asarray((rows.discount == 0.0) | ~np.isnan(rows.probs[rows.row_next, place, 0]))


class ActionSums(RowSums):
    """Of one target's theta and beta: beta.(b_u - A_u theta), and the sums of V over starts."""

    def __init__(self, value: ActionValue, beta: Floats, units: Units) -> None:
        self.value = value
        self.weights = np.concatenate([value.theta, beta[None]], axis=1)
        self.sum_errors, self.sum_start = np.zeros((2, units.number))

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        n, A = len(rows), self.value.theta.shape[1]
        V, _, delta = self.value.errors(rows, products[:A])
        assert rows.action is not None
        y = products[A + np.asarray(rows.action, dtype=np.int64), np.arange(n)]
        size = len(self.sum_errors)
        self.sum_errors += np.bincount(steps.unit, y * delta, minlength=size)
        begins = np.ones(n, bool) if steps.every else rows.first
        self.sum_start += np.bincount(steps.unit, np.where(begins, V, 0.0), minlength=size)
