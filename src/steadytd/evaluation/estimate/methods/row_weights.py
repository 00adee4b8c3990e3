"""Sampled whole episodes row by row: the weight of every row, and what lies beyond the cuts.

The weight of a row is U_t rho_t (see `drl`): how often, discounted, the target does what that row
shows, for each time that the log does. It is found with w and beta of the whole log, and enters no
value: it says what the log could not show, and is held against limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.outcomes import ACTION, DISCOUNT, RATIOS, RETURN, REWARD, Sampled
from steadytd.evaluation.estimate.estimators import LSTD, Estimator

ERRORS = 2.0  # standard errors of omega that are taken for noise


class RowValues(NamedTuple):
    """V at a row's state, and gamma' V at the next one."""

    here: Floats
    ahead: Floats


@dataclass(frozen=True)
class RowWeights:
    """The sampled rows of a log; none where no whole episode could be sampled."""

    sample: Sampled
    e: Estimator

    @property
    def number(self) -> int:
        """How many rows there are."""
        return len(self.sample.rows)

    @property
    def each(self) -> float:
        """How many rows of the log each of them stands for."""
        return float(self.e.units.counts[:, 0].sum()) / max(self.number, 1)

    @cached_property
    def reward(self) -> Floats:
        """The rewards."""
        return self.sample.rows[:, REWARD].astype(np.float64)

    @cached_property
    def kinds(self) -> int:
        """How many different rewards there are."""
        return len(np.unique(self.reward))

    @cached_property
    def discount(self) -> Floats:
        """The discounts of the next states."""
        return self.sample.rows[:, DISCOUNT].astype(np.float64)

    @cached_property
    def first(self) -> Bools:
        """Whether the row begins an episode."""
        episode = self.sample.marks[:, 1]
        return np.append(True, episode[1:] != episode[:-1])[: self.number]

    @cached_property
    def _features(self) -> tuple[Floats, Floats]:
        d, rows = self.e.features, self.sample.rows
        return np.ascontiguousarray(rows[:, -2 * d : -d]), np.ascontiguousarray(rows[:, -d:])

    def _same(self, target: int, *more: Floats) -> tuple[Longs, Longs]:
        """Rows of the same features and ratio, and `more`: the set of each row, and their sizes."""
        ratio = self.sample.rows[:, RATIOS + target]
        both = np.column_stack([self._features[0], ratio, *more]).astype(np.float32)
        both += np.float32(0.0)  # -0 is 0
        rows = both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel()
        _, place, number = np.unique(rows, return_inverse=True, return_counts=True)
        return place.ravel(), number

    def alike(self, target: int) -> Floats:
        """For every row: how many rows of the log have its features and its ratio."""
        place, number = self._same(target)
        return np.asarray(self.each * number[place])

    def chance(self, target: int) -> float:
        """Of the variance of rewards, the part within rows of the same features, ratio and action.

        0 where actions are not known.
        """
        action = self.sample.marks[:, ACTION]
        apart = self.reward - self.reward.mean()
        if not self.number or np.isnan(action).any() or not apart.any():
            return 0.0
        place, number = self._same(target, action)
        usual = np.bincount(place, apart) / number
        return float(((apart - usual[place]) ** 2).sum() / (apart**2).sum())

    @cached_property
    def least(self) -> float:
        """The share of episodes that show the reward which the fewest episodes show."""
        kind = np.unique(self.reward, return_inverse=True)[1]
        episode = np.cumsum(self.first)
        shown = np.unique(kind.ravel() * (self.number + 1) + episode) // (self.number + 1)
        return float(np.bincount(shown).min() / episode[-1]) if self.number else 0.0

    @property
    def _every(self) -> float:
        return 1.0 if self.e.where == "states" else 0.0

    def weights(self, target: int, lam: float) -> Floats | None:
        """U rho of every row; None where the equations of the log have no solution."""
        pair = self.e.solution(target, LSTD)
        if pair is None:
            return None
        rho = self.sample.rows[:, RATIOS + target].astype(np.float64)
        return self._followed(self._features[0] @ pair.beta, rho, lam)

    def negative(self, target: int) -> float:
        """Of the marginal ratio over the rows, the share that is negative beyond its noise.

            sum max(-omega - 2 s, 0) / sum |omega|,     s^2 = (K - 1) / K sum_k (omega_k - mean)^2

        with omega_k from all folds but k of K. 0 if not known.
        """
        pair = self.e.solution(target, LSTD)
        held = [one.pair for one in self.e.cross_fitted(target)]
        betas = [one.beta for one in held if one is not None]
        if pair is None or len(betas) < len(held):
            return 0.0
        X, B = self._features[0], np.stack(betas)
        omega, apart = X @ pair.beta, X @ (B - B.mean(axis=0)).T
        noise = np.sqrt((1.0 - 1.0 / len(B)) * (apart**2).sum(axis=1))
        beyond = np.maximum(-omega - ERRORS * noise, 0.0)
        return float(beyond.sum() / max(float(np.abs(omega).sum()), 1e-300))

    @cached_property
    def furthest(self) -> float:
        """Of all distances of returns from their median, the share of the largest twentieth."""
        returns = self.sample.outcomes[:, RETURN]
        if not len(returns):
            return 0.0
        apart = np.sort(np.abs(returns - np.median(returns)))[::-1]
        return float(apart[: max(len(apart) // 20, 1)].sum() / max(float(apart.sum()), 1e-300))

    @cached_property
    def own(self) -> Floats:
        """The same of the policy that made the log: products of discounts."""
        return self._followed(np.zeros(self.number), np.ones(self.number), 1.0)

    def _followed(self, omega: Floats, rho: Floats, lam: float) -> Floats:
        numbers = np.stack([omega, rho, self.discount, self.first]).astype(np.float64)
        return np.asarray(followed(numbers, lam, self._every))

    def values(self, target: int) -> RowValues | None:
        """V of the rows' states and of the next ones."""
        pair = self.e.solution(target, LSTD)
        if pair is None:
            return None
        here, ahead = (x @ pair.w for x in self._features)
        return RowValues(here, self.discount * ahead)

    def beyond(self, target: int, lam: float) -> float:
        """The mean per start of U rho gamma' V(s') where episodes are cut off; NaN if not known.

        Nothing in the log checks these values.
        """
        if self._none_cut:
            return 0.0
        return self._at_cuts(self.weights(target, lam), target)

    @cached_property
    def _last(self) -> Bools:
        """Whether the row ends an episode."""
        return np.append(self.first[1:], True)[: self.number]

    @cached_property
    def _none_cut(self) -> bool:
        """There are rows, and none of them has anything beyond its episode's end."""
        return self.number > 0 and not bool((self.discount[self._last] > 0.0).any())

    @cached_property
    def own_beyond(self) -> float:
        """The same of the policy that made the log."""
        return self._at_cuts(self.own, self.e.behavior)

    def _at_cuts(self, weights: Floats | None, target: int) -> float:
        if self._none_cut:
            return 0.0
        last = self._last
        values = self.values(target) if self.number else None
        if weights is None or values is None:
            return math.nan
        starts = self.number if self._every else int(self.first.sum())
        return float(weights[last] @ values.ahead[last] / starts)


@compiled
def followed(numbers: Floats, lam: float, every: float) -> Floats:
    """U rho of every row from omega, rho, the discount, and whether an episode begins."""
    omega, rho, discount, first = numbers
    U, n = 0.0, len(omega)
    found = np.empty(n)
    for i in range(n):
        if first[i] > 0.0:
            U = (1.0 - lam) * omega[i] + lam
        else:
            U = (1.0 - lam) * omega[i] + lam * (discount[i - 1] * rho[i - 1] * U + every)
        found[i] = U * rho[i]
    return found
