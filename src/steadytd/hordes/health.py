"""How each prediction fares, live: unsigned error, and an estimate of the projected Bellman error.

The projected Bellman error of a prediction is g' G^-1 g with g = E[delta z] and G = E[x x'], and it
is zero at the fixed point of TD(lam) (z is the plain trace rho (gamma lam z + x)). White's RUPEE
(2015) estimates its root by a second vector and a running mean, both updated in O(active),

    h <- h + beta (delta z - (h.x) x),      u <- u + (delta z - u) / n,      sqrt|h.u|.

With thousands of features, u needs many more steps than features before it is not all noise, and h
and u would double the memory. So both live on a few *directions*: fixed sums of features with
signs (each feature has one direction and one sign, by a hash of its number; with at most
DIRECTIONS features they are the features themselves). What is estimated is the part of the error
that these directions see: never more than the whole, zero where the whole is zero, and with a
noise of about delta^2 DIRECTIONS / n. A prediction costs the same few numbers whatever d is.

How large may an error be? With cumulants up to C in size, returns under any policy lie within C H,
where H = 1 + gamma + gamma gamma' + ... is the largest discounted number of steps, 1 / (1 - gamma)
for a constant discount. If v and v' do, too, so does c + gamma v', and |delta| <= 2 C H. So a mean
above 2 C H says that values have left the range of returns: no healthy prediction has it, on-policy
or off-policy, however noisy its stream. C and H are the largest seen so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base import random
from steadytd.base.arrays import Floats, Ints, Longs, read_only
from steadytd.base.jit import compiled, compiled_disjoint
from steadytd.hordes.facts import ActiveFeatures

Singles = NDArray[np.float32]
DIRECTIONS = 8
RATE = 0.05  # beta, per largest squared length of a step's directions
RECENT, LONG = 100, 1000  # steps that the running means look back
CHUNK = 256  # predictions that are looked at together
GROWS = 4.0  # times the long mean: a recent mean beyond that, and beyond C, grows
LARGE = 2.0  # times the largest return C H: no value within the returns has such an error


class HealthNumbers(NamedTuple):
    """The state, one column per prediction."""

    h: Singles  # [directions, predictions]
    u: Singles
    z: Singles
    last: Singles  # discount of the step before
    means: Floats  # [2, predictions]: |delta| over RECENT and LONG steps
    diverged: Longs  # the step whose delta was the first that is not finite, or -1
    scale: Floats  # [3, predictions]: largest |cumulant|, discounted steps so far, the most of them


class HealthColumns(NamedTuple):
    """Where each prediction's cumulant, ratio and discount stand, and its lam."""

    cumulant: Longs
    policy: Longs
    discount: Longs
    lam: Floats


class HealthSteps(NamedTuple):
    """What some steps bring."""

    delta: Floats  # [steps, predictions]
    directions: Singles  # [steps, directions]
    rates: Singles  # [steps]
    cumulants: Floats
    rhos: Floats
    discounts: Floats
    carries: Floats


class Health:
    """The running estimates of all predictions."""

    def __init__(self, n_features: int, columns: HealthColumns) -> None:
        count = len(columns.lam)
        self.columns = HealthColumns(*map(read_only, columns))
        h, u, z = (np.zeros((DIRECTIONS, count), dtype=np.float32) for _ in range(3))
        last = np.zeros(count, dtype=np.float32)
        diverged = np.full(count, -1, dtype=np.int64)
        means, scale = np.zeros((2, count)), np.zeros((3, count))
        self.numbers = HealthNumbers(h, u, z, last, means, diverged, scale)
        self.longest = 0.0  # squared length of a step's directions
        self.place, self.sign = directions(n_features)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return {**self.numbers._asdict(), "longest": np.array([self.longest])}

    @property
    def nbytes(self) -> int:
        """The memory of all that changes."""
        return sum(array.nbytes for array in self.numbers)

    def look(self, x: ActiveFeatures) -> tuple[Singles, Singles]:
        """The directions [steps, DIRECTIONS] of some steps, and the step size of h for each."""
        found = np.zeros((x.steps, DIRECTIONS), dtype=np.float32)
        rates = np.zeros(x.steps, dtype=np.float32)
        self.longest = _look(x.read_only(), self.place, self.sign, self.longest, found, rates)
        return found, rates

    def cut(self) -> None:
        """The episode was cut off after the last step."""
        self.numbers.last[:] = 0.0

    @property
    def limit(self) -> Floats:
        """2 C H: the largest TD error of each prediction while its values are possible returns."""
        largest, _, steps = self.numbers.scale
        return np.asarray(LARGE * largest * steps)

    @property
    def rupee(self) -> Floats:
        """sqrt|h.u| of each prediction; infinite where it has left the single precision."""
        numbers = self.numbers
        with np.errstate(all="ignore"):
            product = (numbers.h.astype(np.float64) * numbers.u).sum(axis=0)
            return np.where(np.isfinite(product), np.sqrt(np.abs(product)), np.inf)


def directions(n_features: int) -> tuple[Ints, Floats]:
    """The direction and the sign of each feature."""
    number = np.arange(n_features)
    if n_features <= DIRECTIONS:
        return number.astype(np.int32), np.ones(n_features)
    with np.errstate(over="ignore"):
        mixed = random.mix((number.astype(np.uint64) + np.uint64(1)) * random.GOLDEN)
    place = (mixed >> np.uint64(32)) % np.uint64(DIRECTIONS)
    return place.astype(np.int32), np.where(mixed & np.uint64(1), 1.0, -1.0)


@compiled
def _look(
    x: ActiveFeatures, place: Ints, sign: Floats, longest: float, found: Singles, rates: Singles
) -> float:
    """Fill in the directions of some steps and the step sizes; return the longest so far."""
    first, feature, value = x
    for t in range(len(found)):
        total = np.zeros(DIRECTIONS)
        for q in range(first[t], first[t + 1]):
            k = feature[q]
            total[place[k]] += sign[k] * value[q]
        squares = 0.0
        for m in range(DIRECTIONS):
            squares += total[m] * total[m]
            found[t, m] = total[m]
        longest = max(longest, squares)
        if longest > 0.0:
            rates[t] = RATE / longest
    return longest


@compiled_disjoint
def _follow(
    numbers: HealthNumbers,
    columns: HealthColumns,
    seen: HealthSteps,
    step: int,
    low: int,
    high: int,
) -> None:
    """The same, all at once."""
    size = high - low
    scratch = np.empty((4, size), dtype=np.float32)
    d, scale, decay, h_x = scratch[0], scratch[1], scratch[2], scratch[3]
    last = numbers.last[low:high]
    for t in range(len(seen.delta)):
        n = step + t + 1
        recent, long = 1.0 / min(n, RECENT), 1.0 / min(n, LONG)
        share, rate = np.float32(long), seen.rates[t]
        for i in range(size):
            delta = seen.delta[t, low + i]
            rho = np.float32(seen.rhos[t, columns.policy[low + i]])
            d[i] = delta
            scale[i] = rho
            decay[i] = rho * last[i] * np.float32(columns.lam[low + i])
            h_x[i] = 0.0
            cumulant = abs(seen.cumulants[t, columns.cumulant[low + i]])
            steps = 1.0 + last[i] * numbers.scale[1, low + i]
            numbers.scale[0, low + i] = max(numbers.scale[0, low + i], cumulant)
            numbers.scale[1, low + i] = steps
            numbers.scale[2, low + i] = max(numbers.scale[2, low + i], steps)
            gamma = seen.discounts[t, columns.discount[low + i]]
            last[i] = gamma * seen.carries[t]
            size_d = abs(delta)
            numbers.means[0, low + i] += (size_d - numbers.means[0, low + i]) * recent
            numbers.means[1, low + i] += (size_d - numbers.means[1, low + i]) * long
            if not size_d < np.inf and numbers.diverged[low + i] < 0:
                numbers.diverged[low + i] = n
        for m in range(DIRECTIONS):
            x_m = seen.directions[t, m]
            z, h = numbers.z[m, low:high], numbers.h[m, low:high]
            for i in range(size):
                z[i] = decay[i] * z[i] + scale[i] * x_m
                h_x[i] += h[i] * x_m
        for m in range(DIRECTIONS):
            x_m = seen.directions[t, m]
            z, h, u = numbers.z[m, low:high], numbers.h[m, low:high], numbers.u[m, low:high]
            for i in range(size):
                pull = d[i] * z[i]
                h[i] += rate * (pull - h_x[i] * x_m)
                u[i] += (pull - u[i]) * share


@compiled
def follow(
    numbers: HealthNumbers,
    columns: HealthColumns,
    seen: HealthSteps,
    step: int,
    low: int,
    high: int,
) -> None:
    """Update the estimates of predictions `low` to `high` with some steps from `step` on.

    Some at a time, so that what they need stays in the first-level cache.
    """
    for begin in range(low, high, CHUNK):
        _follow(numbers, columns, seen, step, begin, min(begin + CHUNK, high))
