"""Sums over rows by unit, made with given weights: scalar recursions along episodes.

With V(s) = x(s).w and omega(s) = x(s).beta everything that an estimator asks of a unit is a sum
over its rows of numbers, each found from the row before. So no matrix by unit exists anywhere.
A `RowSums` names the weights that features are multiplied with, and adds up what it makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.evaluation.rows import FOLDS, RowTable, recursion
from steadytd.evaluation.sums import TD, Pair, System

TOGETHER = 16  # programs whose weights are multiplied with the features at once


@dataclass(frozen=True)
class Units:
    """The units that scores are summed by; neighbours are joined where there are many."""

    number: int
    before: int  # units before they were joined
    every: bool = False  # every row is a start, not only first rows of episodes
    average: bool = False  # the values asked for are rewards per step

    def of(self, unit: Longs) -> Longs:
        """The number of the unit that each of these is in."""
        return unit if self.number == self.before else unit * self.number // self.before


class Steps(NamedTuple):
    """Of every row: its unit, whether it is a start, whose value is asked for, and its weight.

    For an average reward (`average`) that value is the last weight, whatever the row.
    """

    unit: Longs
    start: Bools
    units: int
    weight: Floats
    average: bool = False

    @staticmethod
    def of(rows: RowTable, units: Units) -> Steps:
        """Those of a table."""
        start = np.ones(len(rows), dtype=bool) if units.every else rows.first
        return Steps(units.of(rows.unit), start, units.number, rows.weight, units.average)

    def values(self, rows: RowTable, V: Floats, weights: Floats) -> Floats:
        """What is asked for of every row; V is x.w, and the w of a fold is the first `weights`."""
        if self.average:
            return np.asarray(_by_fold(weights)[rows.fold[: len(rows)], 0, -1])
        return np.where(self.start, V, 0.0)

    def ends(self, rows: RowTable) -> Floats:
        """What the weights of rows are multiplied with, so that their mean is 1: 1 - gamma'."""
        return np.ones(len(rows)) if self.average else 1.0 - rows.discount

    def sums(self, values: Floats) -> Floats:
        """The weighted sums of values [n] by unit."""
        found = np.bincount(self.unit, values * self.weight, minlength=self.units)
        return np.asarray(found, dtype=np.float64)


class RowSums(ABC):
    """Sums by unit of what one estimator makes of the rows of one target and reward."""

    weights: Floats  # [folds or 1, k, d]: `add` receives x.weights of every observation
    reward = 0  # which of several

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
    by_reward = [rows.of_reward(r) for r in range(len(rows.rewards))]
    for lo in range(0, len(programs), TOGETHER):
        some = programs[lo : lo + TOGETHER]
        W = np.concatenate([_by_fold(one.weights) for one in some], axis=1)
        ends = np.cumsum([one.weights.shape[1] for one in some])[:-1]
        with np.errstate(all="ignore"):
            found = _products(rows, W)
            for one, products in zip(some, np.split(found, ends), strict=True):
                one.add(by_reward[one.reward], steps, products)


def _by_fold(weights: Floats) -> Floats:
    return np.broadcast_to(weights, (FOLDS, *weights.shape[1:]))


def _products(rows: RowTable, W: Floats) -> Floats:
    """x.W of every observation, with the weights of its fold [k, observations]."""
    out = np.empty((W.shape[1], rows.X.shape[0]))
    for f in range(FOLDS):
        mine = np.flatnonzero(rows.fold == f)
        out[:, mine] = (rows.X[mine] @ W[f].T).T
    return out


def _ratios(rows: RowTable, target: int | None) -> Floats:
    """The ratios of a target; None is the behaviour policy."""
    return np.ones(len(rows)) if target is None else np.asarray(rows.rho[target])


def drl_weights(
    rows: RowTable, steps: Steps, rho: Floats, omega: Floats, lams: Floats, carry: Floats
) -> Floats:
    """U rho of every row for every lam [lams, n]; `carry` [lams] holds that of the row before.

    U_t = (1 - lam) omega(s_t) + lam (gamma_t rho_{t-1} U_{t-1} + 1 at a start).
    """
    by, visits = lams[:, None], omega[: len(rows)]
    U = (1.0 - by) * visits + by * (rows.first * visits if steps.average else steps.start)
    return recursion(by * (rho * rows.gamma), rho * U, carry)


class CurveSums(RowSums):
    """DRL(lam) of one target for every lam, with the weights of the other folds."""

    def __init__(
        self,
        target: int | None,
        pairs: Sequence[Pair],
        lams: tuple[float, ...],
        units: Units,
        value: ActionValue | None = None,
    ) -> None:
        self.target, self.value = target, value
        own = [[pair.beta] if value else [pair.w, pair.beta] for pair in pairs]
        self.weights = np.array(own) if value is None else np.hstack([own, value.theta])
        self._lams, self._carry = np.array(lams), np.zeros(len(lams))
        self.sum_scores, self.sum_weights = np.zeros((2, len(lams), units.number))
        self.sum_cut, self.sum_at_cuts, self.sum_largest = np.zeros((3, len(lams)))

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        rho = _ratios(rows, self.target)
        if self.value is None:
            V, omega = products
            here, ahead = V[: len(rows)], V[rows.row_next]
            delta = rows.reward + rows.discount * ahead - here
        else:
            omega = products[0]
            here, ahead, delta = self.value.errors(rows, products[1:])
        weight = drl_weights(rows, steps, rho, omega, self._lams, self._carry)
        start = steps.values(rows, here, self.weights)
        for m, own in enumerate(weight):
            self.sum_scores[m] += steps.sums(own * delta + start)
            self.sum_weights[m] += steps.sums(own * steps.ends(rows))
        weight = weight * rows.weight
        self.sum_largest = np.maximum(self.sum_largest, np.abs(weight).max(axis=1))
        if steps.average:  # a row's weight does not depend on those before
            return
        left = weight[:, rows.cut] * rows.discount[rows.cut]
        self.sum_cut += np.abs(left).sum(axis=1)
        self.sum_at_cuts += left @ ahead[rows.cut]


class Gradient(RowSums):
    """How J depends on w: the sum of U rho (x - gamma' x') over rows, U rho as in DRL(lam).

    With a `place` among the policies known as a whole it is that of theta, by action: the sum of
    U rho (x_a - gamma' sum_a' pi(a'|s') x'_a').
    """

    def __init__(
        self, target: int | None, pair: Pair, lam: float, place: int | None = None
    ) -> None:
        self.target, self.place = target, place
        self.weights = pair.beta[None, None]
        self._lams, self._carry = np.array([lam]), np.zeros(1)
        self.sum_gradient = np.zeros((1, 1))  # [1 or actions, d], once a table has told how many

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        n, rho = len(rows), _ratios(rows, self.target)
        [weight] = drl_weights(rows, steps, rho, products[0], self._lams, self._carry)
        weight = weight * rows.weight
        taken, probs = np.zeros(n, dtype=np.int64), np.ones((1, len(rows.obs)))
        if self.place is not None:
            assert rows.probs is not None
            weight = np.where(known(rows, self.place), weight, 0.0)
            taken, probs = actions(rows), np.nan_to_num(rows.probs[:, self.place]).T
        by_obs = np.zeros(probs.shape)
        by_obs[taken, np.arange(n)] = weight
        ahead = -weight * rows.discount * probs[:, rows.row_next]
        for own, more in zip(by_obs, ahead, strict=True):
            np.add.at(own, rows.row_next, more)
        self.sum_gradient = self.sum_gradient + (rows.X.T @ by_obs.T).T


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
        n, rho = len(rows), _ratios(rows, self.target)
        V, ahead, omega = products[0, :n], products[0, rows.row_next], products[1, :n]
        weight = self.system.weights(rho, rows.gamma, self._follow)
        y = recursion(rho * rows.gamma * self.system.lam, weight * omega, self._carry)
        self.sum_errors += steps.sums(y * (rows.reward + rows.discount * ahead - V))
        self.sum_masses += steps.sums(y * steps.ends(rows))
        self.sum_squares += steps.sums(V * omega)
        self.sum_start += steps.sums(steps.values(rows, V, self.weights))


class SampledReturns(RowSums):
    """Of one target: `pdis` by unit, and the influences of `snpdis` with given means by step.

    `mean` [H] is N_t / D_t and `inverse` [H] 1 / D_t; an episode that has ended keeps its product.
    """

    def __init__(self, target: int, mean: Floats, inverse: Floats, units: Units, d: int) -> None:
        self.target, self.inverse, self.expected = target, inverse, np.append(mean * inverse, 0.0)
        self.tail = np.cumsum(self.expected[::-1])[::-1]
        self.weights = np.empty((1, 0, d))
        self._carry = np.ones(1)
        self.sum_pdis, self.sum_snpdis, self.sum_rows, self.sum_starts = np.zeros((4, units.number))

    def add(self, rows: RowTable, steps: Steps, products: Floats) -> None:
        """Add the rows of a table."""
        rho, H = rows.rho[self.target], len(self.inverse)
        product = recursion(np.where(rows.first, 0.0, rho), rho * rows.first, self._carry)
        earned = rows.discounted * product * rows.reward
        expected = self.expected[np.minimum(rows.step, H)]
        expected += np.where(rows.last, self.tail[np.minimum(rows.step + 1, H)], 0.0)
        change = earned * self.inverse[np.minimum(rows.step, H - 1)] - product * expected
        self.sum_pdis += steps.sums(earned)
        self.sum_snpdis += steps.sums(change)
        self.sum_rows += steps.sums(np.ones(len(rows)))
        self.sum_starts += steps.sums(steps.start.astype(np.float64))


@dataclass(frozen=True)
class ActionValue:
    """Values of actions q(s, a) = x(s).theta_a for one target that is known as a whole."""

    place: int  # of the target among the policies known as a whole
    theta: Floats  # [folds or 1, actions, d]

    def errors(self, rows: RowTable, q: Floats) -> tuple[Floats, Floats, Floats]:
        """V(s), V(s') and r + gamma' V(s') - q(s, a) of every row.

        The error is 0 where the probabilities at s' are not known.
        """
        assert rows.probs is not None
        n = len(rows)
        V = np.einsum("am,ma->m", q, np.nan_to_num(rows.probs[:, self.place]))
        ahead = V[rows.row_next]
        own = q[actions(rows), np.arange(n)]
        delta = rows.reward + rows.discount * ahead - own
        return V[:n], ahead, np.where(known(rows, self.place), delta, 0.0)


def actions(rows: RowTable) -> Longs:
    """The logged actions as numbers from 0 on."""
    return np.asarray(rows.action, dtype=np.int64)


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
        A = self.value.theta.shape[1]
        V, _, delta = self.value.errors(rows, products[:A])
        y = products[A + actions(rows), np.arange(len(rows))]
        self.sum_errors += steps.sums(y * delta)
        self.sum_start += steps.sums(np.where(steps.start, V, 0.0))
