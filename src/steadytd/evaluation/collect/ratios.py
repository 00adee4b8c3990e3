"""The ratios rho = pi/mu along a log, for all targets: products, traces F, and sums over them.

Eight targets go down the rows as one vector. What a row leaves behind (weights, ratios) is written
as eight numbers too, of which the last belong to no target where these are fewer than eight: they
fall on places that are written later, the next system's or the next row's. Behind the last row
there is room for them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.jit import compiled, compiled_disjoint
from steadytd.engine.vectors import LANES, eight, equal, least, most, put, spread
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.statistics import BINS, LARGEST_OF, RATIO_SUMS

LARGEST = 1e100  # products of ratios stop here: their squares must stay finite


class Steps(Protocol):
    """The rows of a batch; see `accumulate.Prepared`."""

    behavior: Floats
    target: Floats
    first: Bools
    gamma: Floats
    reward: Floats
    weight: Floats
    trajectory: Floats
    rho: Floats


class Sums(Protocol):
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
        self.state = np.zeros((groups, (2 + K) * LANES))
        self.sums = np.zeros((groups, len(RATIO_SUMS) * LANES))
        self.along = np.zeros((3, plan.horizon * T + LANES))  # numerator, denominator, ended
        self.histogram = np.zeros((T, BINS), dtype=np.int64)
        self.emphatic = np.array([s.emphatic for s in plan.systems])
        self.lam = np.array([s.lam for s in plan.systems])
        self.beta = np.array([-1.0 if s.beta is None else s.beta for s in plan.systems])

    def take(self, lo: int, hi: int, p: Steps, step: Longs, discounted: Floats, sums: Sums) -> None:
        """Go on over the rows lo..hi; `step` is a row's place in its episode."""
        steps = self.steps
        for g in reversed(range(len(self.state))):  # a group may write into the one before
            self.steps = follow(
                lo, hi, g * LANES, steps, self.horizon, p.target, p.behavior, p.first, p.gamma,
                discounted, step, p.reward, self.emphatic, self.lam, self.beta, self.state[g],
                self.sums[g], self.along, p.weight, p.trajectory, p.rho, np.zeros(LANES),
            )  # fmt: skip
        count(p.rho[lo:hi].view(np.int64), self.histogram)
        self._hand_over(sums, int(step[lo:hi].max()) + 2)

    def end_episode(self, sums: Sums) -> None:
        """Count the episode under way, if there is one."""
        if self.steps:
            for g in range(len(self.state)):
                finish(
                    self.steps, g * LANES, self.targets, self.horizon, self.state[g], self.sums[g],
                    self.along[2],
                )  # fmt: skip
            self._hand_over(sums, self.steps + 1)
            self.steps = 0

    def _hand_over(self, sums: Sums, steps: int) -> None:
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
            own[:, :H] += new[: H * T].reshape(H, T).T
            new[: H * T + LANES] = 0.0
        self.sums[:] = 0.0


@compiled_disjoint
def follow(
    lo: int,
    hi: int,
    first_target: int,
    steps: int,
    horizon: int,
    target: Floats,
    behavior: Floats,
    first: Bools,
    gamma: Floats,
    discounted: Floats,
    step: Longs,
    reward: Floats,
    emphatic: Bools,
    lam: Floats,
    beta: Floats,
    state: Floats,
    sums: Floats,
    along: Floats,
    weight: Floats,
    trajectory: Floats,
    rho: Floats,
    pi: Floats,
) -> int:
    """Eight targets on rows lo..hi; returns the number of steps of the episode under way.

    `weight[i, k T + t]` becomes rho M of system k and target t, `trajectory[i, t]` the discounted
    product of ratios up to row i. `state` = product, ratio of the previous row, then F per system;
    `along` = numerator, denominator and ended, step by step.
    """
    T, K = len(target), len(lam)
    used = min(T - first_target, LANES)
    weights, trajectories, ratios = weight.reshape(-1), trajectory.reshape(-1), rho.reshape(-1)
    numerator, denominator, ended = along[0], along[1], along[2]
    zero, one, top = spread(0.0), spread(1.0), spread(LARGEST)
    total, squares = eight(sums, 0), eight(sums, LANES)
    zeros, largest = eight(sums, 2 * LANES), eight(sums, 3 * LANES)
    product, before = eight(state, 0), eight(state, LANES)
    for i in range(lo, hi):
        if first[i]:
            if steps > 0:
                put(state, 0, product)
                finish(steps, first_target, T, horizon, state, sums, ended)
            product = one
        for t in range(used):
            pi[t] = target[first_target + t, i]
        r = eight(pi, 0) / spread(behavior[i]) if behavior[i] > 0.0 else zero
        for k in range(K):
            w = r
            if emphatic[k]:
                decay = beta[k] if beta[k] >= 0.0 and gamma[i] > 0.0 else gamma[i]
                at = (2 + k) * LANES
                F = least(spread(decay) * before * eight(state, at) + one, top)
                put(state, at, F)
                w = r * (spread(lam[k]) + spread(1.0 - lam[k]) * F)
            put(weights, (i * K + k) * T + first_target, w)
        product, before = least(product * r, top), r
        steps = step[i] + 1
        weighed = spread(discounted[i]) * product
        put(ratios, i * T + first_target, r)
        put(trajectories, i * T + first_target, weighed)
        at = min(step[i], horizon - 1) * T + first_target
        put(numerator, at, eight(numerator, at) + weighed * spread(reward[i]))
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
def finish(
    steps: int, first_target: int, targets: int, horizon: int, state: Floats, sums: Floats,
    ended: Floats,
) -> None:  # fmt: skip
    """Count an episode that has ended after so many steps."""
    product, at = eight(state, 0), 4 * LANES
    put(sums, at, eight(sums, at) + product)
    put(sums, at + LANES, eight(sums, at + LANES) + product * product)
    put(sums, at + 2 * LANES, most(eight(sums, at + 2 * LANES), product))
    if steps < horizon:
        at = steps * targets + first_target
        put(ended, at, eight(ended, at) + product)


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
