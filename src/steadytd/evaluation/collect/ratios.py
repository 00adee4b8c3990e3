"""The ratios rho = pi/mu along a log, for all targets: products, traces F, and sums over them.

Eight targets go down the rows as one vector. What a row leaves behind (weights, ratios) is written
as eight numbers too, of which the last belong to no target where there are fewer than eight: they
fall on places that are written later, the next system's or the next row's. Behind the last row
there is room for them, since the memory is `Padded`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.jit import compiled, compiled_disjoint
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.room import Padded, memory_of
from steadytd.evaluation.collect.scan import LARGEST
from steadytd.evaluation.collect.statistics import BINS, LARGEST_OF, RATIO_SUMS
from steadytd.evaluation.collect.vectors import LANES, eight, equal, least, most, put, spread

AHEAD = 32  # rows whose probabilities are put side by side: eight numbers wait for eight


class Steps(NamedTuple):
    """The rows of a batch: what is read of them, then the memory of what is written."""

    target: Floats  # [targets, n]
    behavior: Floats  # [n], as all up to the weights
    first: Bools
    gamma: Floats
    reward: Floats
    discounted: Floats  # the product of discounts so far
    step: Longs  # the row's place in its episode
    weight: Floats  # [n, systems * targets + 1]: rho M, and 1 for the behaviour
    rho: Floats  # [n, targets + 1]: and 1 for the behaviour


class Emphases(NamedTuple):
    """What the systems of equations ask for."""

    emphatic: Bools
    lam: Floats
    beta: Floats


class EightTargets(NamedTuple):
    """Eight targets, from target `first` on: where they stand, and their sums."""

    first: int
    targets: int  # of all groups together
    horizon: int
    state: Floats  # product of ratios, ratio of the previous row, then F per system
    sums: Floats
    numerator: Floats  # [horizon, targets], one memory for all groups, as the next two
    denominator: Floats
    ended: Floats


class RatioSums(Protocol):
    """The sums of a block that are over ratios only; see `statistics.Statistics`."""

    ratios: Floats
    numerator: Floats
    denominator: Floats
    ended: Floats


class Ratios:
    """Where the ratios of all targets stand, from one row to the next."""

    def __init__(self, plan: Plan) -> None:
        T, K = len(plan.targets), len(plan.systems)
        groups = -(-T // LANES)
        self.targets, self.horizon, self.steps = T, plan.horizon, 0
        self.sums = np.zeros((groups, len(RATIO_SUMS) * LANES))
        self.along = [Padded((plan.horizon, T)) for _ in range(3)]  # numerator, denominator, ended
        self.histogram = np.zeros((T, BINS), dtype=np.int64)
        self.kinds = Emphases(
            np.array([s.emphatic for s in plan.systems]),
            np.array([s.lam for s in plan.systems]),
            np.array([-1.0 if s.beta is None else s.beta for s in plan.systems]),
        )
        self.groups = [
            EightTargets(
                g * LANES, T, plan.horizon, np.zeros((2 + K) * LANES), self.sums[g],
                *map(memory_of, self.along),
            )
            for g in range(groups)
        ]  # fmt: skip

    def take(self, lo: int, hi: int, rows: Steps, sums: RatioSums) -> None:
        """Go on over the rows lo..hi."""
        T, steps = self.targets, self.steps
        for group in reversed(self.groups):  # a group may write into the one before
            self.steps = follow(lo, hi, steps, rows, self.kinds, group)
        R = T + 1
        count(rows.rho[lo * R : hi * R].reshape(-1, R).view(np.int64), self.histogram)
        self._hand_over(sums, int(rows.step[lo:hi].max()) + 2)

    def end_episode(self, sums: RatioSums) -> None:
        """Count the episode under way, if there is one."""
        if self.steps:
            for group in self.groups:
                finish(self.steps, group)
            self._hand_over(sums, self.steps + 1)
            self.steps = 0

    def _hand_over(self, sums: RatioSums, steps: int) -> None:
        """Add what was summed up to a block's sums, and begin from 0 again.

        No sum belongs to a step beyond so many.
        """
        T, H = self.targets, min(steps, self.horizon)
        found = self.sums.reshape(len(self.sums), -1, LANES).swapaxes(1, 2).reshape(-1, 7)[:T]
        for i in range(len(RATIO_SUMS)):
            merge = np.maximum if i in LARGEST_OF else np.add
            merge(sums.ratios[:, i], found[:, i], out=sums.ratios[:, i])
        own_sums = (sums.numerator, sums.denominator, sums.ended)
        for own, new in zip(own_sums, self.along, strict=True):
            own[:, :H] += new.array[:H].T
            new.memory[: H * T + LANES] = 0.0
        self.sums[:] = 0.0


@compiled_disjoint
def follow(lo: int, hi: int, steps: int, rows: Steps, kinds: Emphases, group: EightTargets) -> int:
    """Eight targets on rows lo..hi; returns the number of steps of the episode under way."""
    target, behavior, first, gamma = rows.target, rows.behavior, rows.first, rows.gamma
    step, discounted = rows.step, rows.discounted
    emphatic, lam, beta = kinds.emphatic, kinds.lam, kinds.beta
    state, sums, first_target, horizon = group.state, group.sums, group.first, group.horizon
    numerator, denominator = group.numerator, group.denominator
    T, K = group.targets, len(lam)
    used, pi = min(T - first_target, LANES), np.zeros(AHEAD * LANES)
    zero, one, top = spread(0.0), spread(1.0), spread(LARGEST)
    total, squares = eight(sums, 0), eight(sums, LANES)
    zeros, largest = eight(sums, 2 * LANES), eight(sums, 3 * LANES)
    product, before = eight(state, 0), eight(state, LANES)
    for i in range(lo, hi):
        if first[i]:
            if steps > 0:
                put(state, 0, product)
                finish(steps, group)
            product = one
        if (i - lo) % AHEAD == 0:
            for t in range(used):
                for j in range(min(AHEAD, hi - i)):
                    pi[j * LANES + t] = target[first_target + t, i + j]
        here = eight(pi, (i - lo) % AHEAD * LANES)
        r = here / spread(behavior[i]) if behavior[i] > 0.0 else zero
        for k in range(K):
            w = r
            if emphatic[k]:
                decay = beta[k] if beta[k] >= 0.0 and gamma[i] > 0.0 else gamma[i]
                at = (2 + k) * LANES
                F = least(spread(decay) * before * eight(state, at) + one, top)
                put(state, at, F)
                w = r * (spread(lam[k]) + spread(1.0 - lam[k]) * F)
            put(rows.weight, (i * K + k) * T + i + first_target, w)
        product, before = least(product * r, top), r
        steps = step[i] + 1
        weighed = spread(discounted[i]) * product
        put(rows.rho, i * (T + 1) + first_target, r)
        if first_target == 0:  # the last group to come: nothing is written over these
            rows.weight[(i + 1) * (K * T + 1) - 1] = rows.rho[(i + 1) * (T + 1) - 1] = 1.0
        at = min(step[i], horizon - 1) * T + first_target
        put(numerator, at, eight(numerator, at) + weighed * spread(rows.reward[i]))
        if step[i] < horizon:
            put(denominator, at, eight(denominator, at) + product)
        total, squares = total + r, squares + r * r
        zeros, largest = zeros + equal(r, zero), most(largest, r)
    put(state, 0, product)
    put(state, LANES, before)
    put(sums, 0, total)
    put(sums, LANES, squares)
    put(sums, 2 * LANES, zeros)
    put(sums, 3 * LANES, largest)
    return steps


@compiled
def finish(steps: int, group: EightTargets) -> None:
    """Count an episode that has ended after so many steps."""
    sums, product, at = group.sums, eight(group.state, 0), 4 * LANES
    put(sums, at, eight(sums, at) + product)
    put(sums, at + LANES, eight(sums, at + LANES) + product * product)
    put(sums, at + 2 * LANES, most(eight(sums, at + 2 * LANES), product))
    if steps < group.horizon:
        at = steps * group.targets + group.first
        put(group.ended, at, eight(group.ended, at) + product)


@compiled
def count(bits: Longs, histogram: Longs) -> None:
    """Count numbers >= 0, given by their bits, in bins that begin at 2^e and 1.5 2^e.

    Exponent and first bit of the fraction are the bin; 1 begins the middle one, bin 0 holds 0.
    """
    targets, bins = histogram.shape
    shift = bins // 2 - (1023 << 1)
    for i in range(len(bits)):
        for t in range(targets):
            place = min(max((bits[i, t] >> 51) + shift, 1), bins - 1)
            histogram[t, place if bits[i, t] != 0 else 0] += 1
