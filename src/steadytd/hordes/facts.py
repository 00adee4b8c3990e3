"""What a stretch of steps tells a Horde: features, cumulants, ratios and discounts, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Ints, Longs, read_only
from steadytd.base.jit import compiled


class ActiveFeatures(NamedTuple):
    """The active features of some steps: those of step t are first[t] to first[t + 1]."""

    first: Longs
    feature: Ints
    value: NDArray[Any]

    def part(self, begin: int, end: int) -> ActiveFeatures:
        """Steps `begin` to `end`."""
        low, high = self.first[begin], self.first[end]
        first = self.first[begin : end + 1] - low
        return ActiveFeatures(first, self.feature[low:high], self.value[low:high])

    def read_only(self) -> ActiveFeatures:
        """The same, as the compiled loops take it."""
        return ActiveFeatures(read_only(self.first), read_only(self.feature), read_only(self.value))

    @property
    def steps(self) -> int:
        """How many steps these are."""
        return len(self.first) - 1


class FactTables(NamedTuple):
    """The facts of some steps by column, as the compiled loops take them."""

    cumulants: Floats  # [steps, cumulants]
    discounts: Floats  # [steps, discounts], constant ones included
    rhos: Floats  # [steps, policies], and one column of ones
    pis: Floats
    mus: Floats
    peaks_min: Floats
    peaks_max: Floats
    interests: Floats  # [steps]
    carries: Floats  # [steps], 0 where an episode is cut off after the step

    def part(self, begin: int, end: int) -> FactTables:
        """Steps `begin` to `end`."""
        return FactTables(*(table[begin:end] for table in self))


class LiveSteps(NamedTuple):
    """Some steps: what was seen before and after each, and its facts."""

    x: ActiveFeatures
    x_next: ActiveFeatures
    tables: FactTables

    def part(self, begin: int, end: int) -> LiveSteps:
        """Steps `begin` to `end`."""
        x, x_next = self.x.part(begin, end), self.x_next.part(begin, end)
        return LiveSteps(x, x_next, self.tables.part(begin, end))

    def arguments(self, factors: Floats) -> tuple[NDArray[Any], ...]:
        """What the compiled loops take."""
        dots = np.empty((self.x.steps, 3))
        x, x_next = self.x.read_only(), self.x_next.read_only()
        products(x, x_next, dots)
        found: tuple[NDArray[Any], ...] = (*self.tables, factors, dots)
        return *map(read_only, found), *x, *x_next


@compiled
def products(x: ActiveFeatures, x_next: ActiveFeatures, out: Floats) -> None:
    """out[t] = x.x, x.x_next, x_next.x_next of each step; features stand in ascending order."""
    first, feature, value = x
    first_next, feature_next, value_next = x_next
    for t in range(len(out)):
        both = np.zeros(3)
        for p in range(first[t], first[t + 1]):
            both[0] += np.float64(value[p]) * np.float64(value[p])
        for p in range(first_next[t], first_next[t + 1]):
            both[2] += np.float64(value_next[p]) * np.float64(value_next[p])
        p, q = first[t], first_next[t]
        while p < first[t + 1] and q < first_next[t + 1]:
            k_p, k_q = feature[p], feature_next[q]
            if k_p == k_q:
                both[1] += np.float64(value[p]) * np.float64(value_next[q])
            p += k_p <= k_q
            q += k_q <= k_p
        for k in range(3):  # a row at once takes Numba seconds to compile
            out[t, k] = both[k]
