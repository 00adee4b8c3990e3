"""The health of each prediction, live: its unsigned error and its projected Bellman error.

The projected Bellman error of a prediction is g' G^-1 g with g = E[delta z] and G = E[x x'], and it
is zero at the fixed point of TD(lam) (z is the plain trace rho (gamma lam z + x)). White's RUPEE
(2015) estimates its root by a second vector and a running mean, both updated in O(active),

    h <- h + beta (delta z - (h.x) x),      u <- u + (delta z - u) / n,      sqrt|h.u|.

With thousands of features, u needs many more steps than features before it is more than noise, and
h and u would double the memory. So both are kept for a few *directions* only: fixed sums of
features with signs (a hash of a feature's number decides its direction and its sign; with at most
DIRECTIONS features they are the features themselves). The estimate is the part of the error that
these directions see: never more than the whole, zero where the whole is zero, and with a noise of
about delta^2 DIRECTIONS / n. A prediction costs the same few numbers whatever d is.

How large may an error be? With cumulants up to C in size, returns under any policy lie within C H,
where H = 1 + gamma + gamma gamma' + ... is the largest discounted number of steps, 1 / (1 - gamma)
for a constant discount. If v and v' do, too, so does c + gamma v', and |delta| <= 2 C H. So a mean
above 2 C H means that values have left the range of returns: no healthy prediction has it,
on-policy or off-policy, however noisy its stream. C and H are the largest seen so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base import random
from steadytd.base.arrays import Bools, Floats, Ints, Longs, read_only
from steadytd.base.finding import Finding
from steadytd.base.jit import compiled, compiled_disjoint
from steadytd.base.numbers import number
from steadytd.hordes.inputs import ActiveFeatures, FactTables
from steadytd.hordes.prediction import HordePrediction

if TYPE_CHECKING:
    import polars as pl

Singles = NDArray[np.float32]
DIRECTIONS = 8
RATE = 0.05  # beta, per largest squared length of a step's directions
RECENT, LONG = 100, 1000  # steps over which the running means are taken
CHUNK = 256  # predictions that are updated together
GROWS = 4.0  # times the long mean: a recent mean beyond that, and beyond C, grows
LARGE = 2.0  # times the largest return C H: no value within the returns has such an error
STABLE = "a smaller step size, or a learner that is stable off-policy"


class HealthNumbers(NamedTuple):
    """The state, one column per prediction."""

    h: Singles  # [directions, predictions]
    u: Singles
    z: Singles
    last: Singles  # discount of the step before
    means: Floats  # [2, predictions]: |delta| over RECENT and LONG steps
    diverged: Longs  # the first step whose delta was not finite, or -1
    scale: Floats  # [3, predictions]: largest |cumulant|, discounted steps so far, the most of them


class HealthColumns(NamedTuple):
    """The columns of each prediction's cumulant, ratio and discount, and its lam."""

    cumulant: Longs
    policy: Longs
    discount: Longs
    lam: Floats


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
        self.direction, self.sign = directions(n_features)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return {**self.numbers._asdict(), "longest": np.array([self.longest])}

    def project(self, x: ActiveFeatures) -> tuple[Singles, Singles]:
        """x along the directions [steps, DIRECTIONS], and the step size of h at each step."""
        found = np.zeros((x.steps, DIRECTIONS), dtype=np.float32)
        rates = np.zeros(x.steps, dtype=np.float32)
        x, direction, sign = x.read_only(), self.direction, self.sign
        self.longest = _project(x, direction, sign, self.longest, found, rates)
        return read_only(found), read_only(rates)

    def cut(self) -> None:
        """The episode was cut off after the last step."""
        self.numbers.last[:] = 0.0

    @property
    def diverged(self) -> Bools:
        """Which predictions had a TD error that is not finite."""
        return np.asarray(self.numbers.diverged >= 0)

    @property
    def limit(self) -> Floats:
        """2 C H: the largest TD error of each prediction while its values are possible returns."""
        largest, _, steps = self.numbers.scale
        return np.asarray(LARGE * largest * steps)

    @property
    def rupee(self) -> Floats:
        """sqrt|h.u| of each prediction; infinite where it exceeds single precision."""
        numbers = self.numbers
        with np.errstate(all="ignore"):
            product = (numbers.h.astype(np.float64) * numbers.u).sum(axis=0)
            return np.where(np.isfinite(product), np.sqrt(np.abs(product)), np.inf)


def directions(n_features: int) -> tuple[Ints, Floats]:
    """The direction and the sign of each feature."""
    features = np.arange(n_features)
    if n_features <= DIRECTIONS:
        return features.astype(np.int32), np.ones(n_features)
    with np.errstate(over="ignore"):
        mixed = random.mix((features.astype(np.uint64) + np.uint64(1)) * random.GOLDEN)
    direction = (mixed >> np.uint64(32)) % np.uint64(DIRECTIONS)
    return direction.astype(np.int32), np.where(mixed & np.uint64(1), 1.0, -1.0)


@compiled
def _project(
    x: ActiveFeatures, direction: Ints, sign: Floats, longest: float, found: Singles, rates: Singles
) -> float:
    """Fill in `Health.project`; return the largest squared length so far."""
    first, feature, value = x
    for t in range(len(found)):
        total = np.zeros(DIRECTIONS)
        for q in range(first[t], first[t + 1]):
            k = feature[q]
            total[direction[k]] += sign[k] * value[q]
        squares = 0.0
        for m in range(DIRECTIONS):
            squares += total[m] * total[m]
            found[t, m] = total[m]
        longest = max(longest, squares)
        if longest > 0.0:
            rates[t] = RATE / longest
    return longest


@compiled_disjoint
def follow(
    numbers: HealthNumbers,
    columns: HealthColumns,
    delta: Floats,
    directions: Singles,
    rates: Singles,
    tables: FactTables,
    step: int,
    low: int,
    high: int,
) -> None:
    """Update the estimates of predictions `low` to `high` with some steps from `step` on.

    `delta` is [steps, predictions]. Predictions are updated in chunks, whose numbers stay in the
    first-level cache.
    """
    scratch = np.empty((4, CHUNK), dtype=np.float32)
    d, scale, decay, h_x = scratch[0], scratch[1], scratch[2], scratch[3]
    for first in range(low, high, CHUNK):
        end = min(first + CHUNK, high)
        last = numbers.last[first:end]
        for t in range(len(delta)):
            n = step + t + 1
            recent, long = 1.0 / min(n, RECENT), 1.0 / min(n, LONG)
            share, rate = np.float32(long), rates[t]
            for i in range(end - first):
                p = first + i
                error = delta[t, p]
                rho = np.float32(tables.rhos[t, columns.policy[p]])
                d[i] = error
                scale[i] = rho
                decay[i] = rho * last[i] * np.float32(columns.lam[p])
                h_x[i] = 0.0
                cumulant = abs(tables.cumulants[t, columns.cumulant[p]])
                steps = 1.0 + last[i] * numbers.scale[1, p]
                numbers.scale[0, p] = max(numbers.scale[0, p], cumulant)
                numbers.scale[1, p] = steps
                numbers.scale[2, p] = max(numbers.scale[2, p], steps)
                last[i] = tables.discounts[t, columns.discount[p]] * tables.carries[t]
                size = abs(error)
                numbers.means[0, p] += (size - numbers.means[0, p]) * recent
                numbers.means[1, p] += (size - numbers.means[1, p]) * long
                if not size < np.inf and numbers.diverged[p] < 0:
                    numbers.diverged[p] = n
            for m in range(DIRECTIONS):
                x_m = directions[t, m]
                z, h = numbers.z[m, first:end], numbers.h[m, first:end]
                for i in range(end - first):
                    z[i] = decay[i] * z[i] + scale[i] * x_m
                    h_x[i] += h[i] * x_m
            for m in range(DIRECTIONS):
                x_m = directions[t, m]
                z, h, u = (
                    numbers.z[m, first:end], numbers.h[m, first:end], numbers.u[m, first:end],
                )  # fmt: skip
                for i in range(end - first):
                    pull = d[i] * z[i]
                    h[i] += rate * (pull - h_x[i] * x_m)
                    u[i] += (pull - u[i]) * share


def health_frame(predictions: Sequence[HordePrediction], health: Health, step: int) -> pl.DataFrame:
    """One row per prediction."""
    import polars as pl

    recent, long = health.numbers.means
    gone = health.diverged
    return pl.DataFrame(
        {
            "prediction": np.arange(len(predictions)),
            "learner": [str(p.learner) for p in predictions],
            "cumulant": [p.cumulant for p in predictions],
            "policy": pl.Series([p.policy for p in predictions], dtype=pl.Int64),
            "discount": pl.Series([p.discount for p in predictions], dtype=pl.Float64),
            "error": np.where(gone, np.inf, long),
            "recent_error": np.where(gone, np.inf, recent),
            "limit": health.limit,
            "rupee": np.where(gone, np.inf, health.rupee),
            "growing": _growing(health, step),
            "diverged_at": pl.Series(
                [int(n) if n >= 0 else None for n in health.numbers.diverged], dtype=pl.Int64
            ),
        }
    )


def _growing(health: Health, step: int) -> Bools:
    """Which predictions have a recent error far above the long one."""
    recent, long = health.numbers.means
    with np.errstate(all="ignore"):
        times = np.where(np.isinf(health.rupee), 1.0, GROWS)  # already so large: any growth counts
        above = recent > np.maximum(times * long, health.numbers.scale[0])
    return np.asarray((step > 2 * RECENT) & ~health.diverged & above)


def warnings_of(predictions: Sequence[HordePrediction], health: Health, step: int) -> list[Finding]:
    """A finding for each prediction that has diverged, or whose error grows or is too large."""
    (recent, long), limit = health.numbers.means, health.limit
    growing = _growing(health, step)
    # without a cumulant the range of returns is not known yet
    large = (step > 2 * RECENT) & (recent > limit) & (limit > 0.0) & ~health.diverged & ~growing
    found: list[Finding] = []

    def warn(kind: str, i: int, text: str, remedy: str, **facts: float) -> None:
        found.append(Finding(
            code=f"prediction_{kind}", target=str(i), level="warning",
            text=text, remedy=remedy, numbers={"prediction": i, **facts},
        ))  # fmt: skip

    for i in np.flatnonzero(health.diverged).tolist():
        at = int(health.numbers.diverged[i])
        text = f"Prediction {i} ({predictions[i]}) has diverged: its TD error first became "
        text += f"infinite or undefined at step {at}. Other predictions are not affected."
        warn("diverged", i, text, f"Give it {STABLE}.", step=at)
    for i in np.flatnonzero(growing).tolist():
        text = f"The unsigned error of prediction {i} ({predictions[i]}) grows: it is about "
        text += f"{number(recent[i], 3)} over the last {RECENT} steps and {number(long[i], 3)} "
        text += f"over the last {min(LONG, step)}."
        remedy = f"If this continues, give it {STABLE}."
        warn("grows", i, text, remedy, recent=float(recent[i]), long=float(long[i]))
    for i in np.flatnonzero(large).tolist():
        largest, _, steps = (number(one, 3) for one in health.numbers.scale[:, i])
        text = f"The unsigned error of prediction {i} ({predictions[i]}) is {number(recent[i], 3)} "
        text += f"over about the last {RECENT} steps. Values within the range of its returns have "
        text += f"at most {number(limit[i], 3)} (cumulants up to {largest}, {steps} discounted "
        text += "steps)."
        remedy = f"Give it {STABLE}, or start weights of the right size."
        warn("large", i, text, remedy, recent=float(recent[i]), limit=float(limit[i]))
    return found
