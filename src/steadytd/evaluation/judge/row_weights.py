"""Sampled whole episodes row by row: the weight of every row, and what lies beyond the cuts.

The weight of a row is U_t rho_t (see `drl`): how often, discounted, the target does what that row
shows, for each time that the log does. It is found with w and beta of the whole log, and enters no
value: it says what the log could not show, and is held against limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.jit import compiled
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.sample import RETURN


class RowValues(NamedTuple):
    """V at a row's state, and gamma' V at the next one."""

    here: Floats
    ahead: Floats


@dataclass(frozen=True)
class RowWeights:
    """The sampled rows of a log; none where no whole episode could be sampled."""

    log: Evidence

    @property
    def number(self) -> int:
        """How many rows there are."""
        return 0 if self.log.sampled is None else len(self.log.sampled)

    @property
    def each(self) -> float:
        """How many rows of the log each of them stands for."""
        return float(self.log.rows.sum()) / max(self.number, 1)

    def _column(self, name: str) -> Floats:
        rows = self.log.sampled
        return np.empty(0) if rows is None else np.asarray(getattr(rows, name), dtype=np.float64)

    @cached_property
    def reward(self) -> Floats:
        """The rewards."""
        return self._column("reward")

    @cached_property
    def kinds(self) -> int:
        """How many different rewards there are."""
        return len(np.unique(self.reward))

    @cached_property
    def discount(self) -> Floats:
        """The discounts of the next states."""
        return self._column("discount")

    @cached_property
    def first(self) -> Bools:
        """Whether the row begins an episode."""
        return self._column("first") > 0.0

    def _ratio(self, target: int) -> Floats:
        rows = self.log.sampled
        return np.empty(0) if rows is None else np.asarray(rows.rho[target])

    @cached_property
    def _features(self) -> tuple[Floats, Floats]:
        rows = self.log.sampled
        if rows is None:
            none = np.empty((0, self.log.equations.features))
            return none, none
        return rows.X[: len(rows)], rows.X[rows.row_next]

    def _same(self, target: int, *more: Floats) -> tuple[Longs, Longs]:
        """Rows of the same features and ratio, and `more`: the set of each row, and their sizes."""
        ratio = self._ratio(target)
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
        rows = self.log.sampled
        action = None if rows is None else rows.action
        apart = self.reward - self.reward.mean()
        if action is None or action.ndim != 1 or not apart.any():
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
        return 1.0 if self.log.equations.where == "states" else 0.0

    def weights(self, target: int, lam: float) -> Floats | None:
        """U rho of every row; None where the equations of the log have no solution."""
        pair = self.log.equations.solution(target)
        if pair is None:
            return None
        rho = self._ratio(target)
        return self._followed(self._features[0] @ pair.beta, rho, lam)

    @cached_property
    def furthest(self) -> float:
        """Of all distances of returns from their median, the share of the largest twentieth."""
        returns = self.log.first.sample.outcomes[:, RETURN]
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
        pair = self.log.equations.solution(target)
        if pair is None:
            return None
        here, ahead = (x @ pair.w for x in self._features)
        return RowValues(here, self.discount * ahead)


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
