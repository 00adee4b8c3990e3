"""What a log cannot show: outcomes so rare that none of them needs to be in it.

An outcome that follows row t with chance p_t is missing in all rows with chance prod (1 - p_t). It
may be missing, at the level 95 %, if

    - sum_t log(1 - p_t) <= log 20 = 3.0        (the same chance in n rows: once in n / 3 times)

If it changes the return by d_t at that time, a value is off by sum_t p_t a_t / starts with
a_t = U_t rho_t d_t, the row's weight times that; a difference of two values has the difference of
both weights. The largest that this can be is found by Lagrange's rule:

    p_t = 1 - l / a_t where a_t > l, else 0;    sum over these of log(a_t / l) = log 20

so n is not the number of episodes, but of rows in which the target does what may have such an
outcome. How large d_t can be nobody knows from the log. Where the range of rewards is stated, an
outcome is any reward of that range, after which the episode ends or goes on from any state of the
log; with a horizon, any sum of so many rewards of that range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.intervals import effective_number
from steadytd.evaluation.judge.row_weights import RowWeights
from steadytd.evaluation.judge.stated import Stated

LEVEL = 0.95
FEW_ROWS, FEW_MORE, FEW_ALIKE = 500.0, 300.0, 50.0  # effective rows, of both kinds, and episodes
FEW_THERE, THIN = 30.0, 0.1  # rows of the same in the same place; of the weights, see `there`
SOME = 0.05  # of the weights: where so little goes beyond the log, it may rest on few rows
KINDS = 10  # different rewards: where there are more, their spread tells how far others can go
CHANCE, OFTEN = 0.1, 0.1  # of the variance of rewards; of episodes, that show a reward: `shows`
EASED = 0.2  # of rows and episodes: as many are enough there
SKEWED, SHOWN = 0.2, 0.6  # `furthest`: their spread does not tell; it does, since the tail is seen
PARTLY = 0.45  # `furthest`: the same where few units decide the error, so that intervals are wide
ALIKE, FREQUENT = 1.25, 0.05  # sizes that differ by less are one; of rows, what is not rare
SIZES, SEEN, RISING = 2, 10.0, 0.1  # rare sizes, rows that have the largest, growth: see `Larger`
TINY = 1e-6  # of the largest size: smaller ones are none
NEGATIVE = 0.08  # of omega: where more is below 0, the target goes to where the log hardly was

BENDS, SURE = 4.0, 1.5  # J(0.8) - J(0) in parts of J(0.5) - J(0); standard errors beyond


class Bend(NamedTuple):
    """How far J(0.5) and J(0.8) lie from J(0), and the error of BENDS times the first."""

    near: float
    far: float
    error: float

    @property
    def grows(self) -> bool:
        """What the features miss grows with time.

        >>> Bend(1.0, 5.0, 0.5).grows, Bend(1.0, 5.0, 1.0).grows, Bend(-1.0, 5.0, 0.5).grows
        (True, False, False)
        """
        beyond = abs(self.far) - BENDS * abs(self.near)
        return self.near * self.far > 0.0 and beyond > SURE * self.error


class Resting(NamedTuple):
    """How many tries an answer rests on: (sum a)^2 / sum a^2 of weights a.

    `rows` is of the weights U rho of rows, `more` of by how much they exceed those of the policy
    that made the log (a `share` of all weights), `episodes` of the weights of episodes; `kinds` is
    the number of different rewards, `furthest` what the twentieth of the episodes whose returns
    lie furthest from their median has of all distances from it. A tenth of all weights exceeds the
    log's where it has at most `there` rows of the same features and ratio. `chance` is the part of
    the variance of rewards within rows of the same features and action, and `least` the share of
    episodes that show the reward which the fewest show.
    """

    rows: float
    more: float
    share: float
    episodes: float
    kinds: int = 1
    furthest: float = 0.0
    there: float = math.inf
    sampled: int = 0  # rows that were looked at
    chance: float = 0.0
    least: float = 0.0

    @property
    def shows(self) -> bool:
        """Few rewards, which come by chance, and none of them is rare: nor may others be.

        Where a log misses a rare reward, those that it has mostly follow from place and action
        alone, or the larger ones among them are rare, too.
        """
        return 1 < self.kinds <= KINDS and self.chance >= CHANCE and self.least >= OFTEN

    @property
    def too_few(self) -> dict[str, tuple[float, float]]:
        """By name, those of which more are wanted, and how many; the worst first."""
        part = EASED if self.shows else 1.0
        found = {
            "rows": (self.rows, part * FEW_ROWS),
            "episodes": (self.episodes, part * FEW_ALIKE),
        }
        if self.share > SOME:
            more = FEW_MORE if self.kinds <= KINDS else FEW_MORE / 2.0
            found["more"] = self.more, part * more
        if self.kinds <= KINDS:
            found["there"] = self.there, FEW_THERE
        few = {name: pair for name, pair in found.items() if pair[0] < pair[1]}
        return dict(sorted(few.items(), key=lambda item: item[1][0] / item[1][1]))


def resting(rows: RowWeights, target: int, lam: float, episodes: float) -> Resting | None:
    """Of the sampled rows; None where there are none, or rewards and returns tell their spread."""
    silent = rows.kinds <= KINDS or SKEWED < rows.furthest < SHOWN
    weight = rows.weights(target, lam) if rows.number and silent else None
    if weight is None or not weight.any():
        return None
    more = np.maximum(weight - rows.own, 0.0)
    count, beyond = (rows.each * effective_number(x) for x in (weight, more))
    share = float(more.sum() / abs(weight.sum()))
    there = _there(rows, target, more, float(np.abs(weight).sum()))
    seen = rows.number, rows.chance(target), rows.least
    return Resting(count, beyond, share, episodes, rows.kinds, rows.furthest, there, *seen)


def _there(rows: RowWeights, target: int, more: Floats, total: float) -> float:
    """Up to how many rows of the same a tenth of the weights has that exceeds those of the log.

    Where the log itself has as large a part where it shows little, nothing comes often in it.
    """
    if rows.kinds > KINDS:
        return math.inf
    number = rows.alike(target)
    few = number < FEW_THERE
    if more[few].sum() / total <= rows.own[few].sum() / rows.own.sum():
        return math.inf
    order = np.argsort(number, kind="stable")
    reached = np.flatnonzero(np.cumsum(more[order]) > THIN * total)
    return float(number[order[reached[0]]]) if len(reached) else math.inf


class Larger(NamedTuple):
    """Rare rewards beyond the usual one, on one side: the larger, the more the target does there.

    Sizes are distances from the median reward; rare are the largest, down to one that a twentieth
    of the rows have. `largest` is the largest reward, and `seen` as many rows have one like it.
    `growth` is that of a row's weight with log size, by least squares, in parts of its mean.
    """

    sizes: int
    largest: float
    seen: float
    growth: float

    @property
    def rises(self) -> bool:
        """A still larger one, which would count even more, may well be missing."""
        return self.sizes >= SIZES and self.seen < SEEN and self.growth > RISING


def larger(rows: RowWeights, target: int, lam: float, rare: bool) -> Larger | None:
    """Of the sampled rows; None where such rewards are not found, or their tail is in the log."""
    shown = PARTLY if rare else SHOWN
    weight = rows.weights(target, lam) if SKEWED < rows.furthest < shown else None
    if weight is None or not rows.number:
        return None
    usual = float(np.median(rows.reward))
    found = [_beyond(rows, usual, np.abs(weight), side) for side in (1.0, -1.0)]
    return max((x for x in found if x.rises), key=lambda x: x.growth, default=None)


def _beyond(rows: RowWeights, usual: float, weight: Floats, side: float) -> Larger:
    """On one side of the usual reward."""
    size = side * (rows.reward - usual)
    order = np.argsort(-size, kind="stable")
    order = order[size[order] > TINY * float(np.abs(size).max())]
    sizes = size[order]
    place = np.cumsum(np.append(False, sizes[1:] * ALIKE <= sizes[:-1]))[: len(sizes)]
    often = np.flatnonzero(np.bincount(place) > FREQUENT * rows.number)
    kept = place < (often[0] if len(often) else len(sizes))
    if not kept.any():
        return Larger(0, usual, 0.0, 0.0)
    x, y = np.log(sizes[kept]), weight[order][kept]
    spread = float(((x - x.mean()) ** 2).sum())
    growth = float((x - x.mean()) @ y) / max(spread * float(y.mean()), 1e-300)
    seen = rows.each * float((place == 0).sum())
    return Larger(int(place[kept][-1]) + 1, usual + side * float(sizes[0]), seen, growth)


def once_in(tries: float) -> float:
    """How often something comes that is missing in one of twenty times so many tries.

    >>> round(once_in(300.0), 1)
    100.6
    """
    return float(-1.0 / np.expm1(math.log(1.0 - LEVEL) / tries))


@dataclass(frozen=True)
class Tries:
    """Rows of the log: weights of the target and of the behaviour, and what an outcome can do.

    Each stands for `each` rows. Where none were sampled, a single one is a bound (`sampled` is
    False). `up` and `down` say by how much an outcome that was not seen can
    raise and lower the return; none where no range of rewards is stated.
    """

    weight: Floats
    own: Floats
    up: Floats
    down: Floats
    each: float
    starts: float
    sampled: bool = True

    def of(self, weight: Floats, level: float = LEVEL) -> tuple[float, float]:
        """How far what was not seen can move a value of these weights down and up."""
        gain, loss = np.maximum(weight, 0.0), np.maximum(-weight, 0.0)
        budget = -math.log(1.0 - level)
        ends = (np.maximum(gain * self.down, loss * self.up),
                np.maximum(gain * self.up, loss * self.down))  # fmt: skip
        down, up = (most(a, budget, self.each) / self.starts for a in ends)
        return down, up

    def minus(self, other: Tries | None) -> tuple[Tries, Floats]:
        """With what an outcome can do to either, and the difference of the weights.

        `other` None: the policy that made the log.
        """
        if other is None:
            return self, self.weight - self.own
        both = Tries(
            self.weight, self.own, np.maximum(self.up, other.up),
            np.maximum(self.down, other.down), self.each, self.starts, self.sampled,
        )  # fmt: skip
        apart = self.weight - other.weight
        return both, apart if self.sampled else np.maximum(self.weight, other.weight)


def most(a: Floats, budget: float, each: float = 1.0) -> float:
    """The largest sum of p a with - sum log(1 - p) <= budget; each a counts `each` times.

    >>> a = np.full(1000, 2.0)  # many alike: budget times a
    >>> round(most(a, 3.0), 2), round(most(a[:1], 3.0), 2)
    (5.99, 1.9)
    """
    a = np.sort(a[a > 0.0])[::-1]
    if not len(a) or not np.isfinite(a[0]):
        return 0.0 if not len(a) else math.inf
    logs = np.log(a)
    level = (np.cumsum(logs) - budget / each) / np.arange(1, len(a) + 1)
    k = int(np.flatnonzero(level < logs)[-1]) + 1
    return float(each * (a[:k] - math.exp(level[k - 1])).sum())


class Fewer(NamedTuple):
    """What is known where no rows were sampled."""

    largest: float  # a bound, about, of the weights of rows
    rows: float
    starts: float


def tries(
    rows: RowWeights, target: int, lam: float, stated: Stated | None, fewer: Fewer
) -> Tries | None:
    """Of the sampled rows, or of one that stands for all; None where there is no solution."""
    discount = float(rows.log.first.ratios.extent[2])
    if not rows.number:
        if stated is None or not math.isfinite(fewer.largest):
            return None
        low, high = stated.sums(discount)
        one = np.array([high - low])
        weight = np.array([fewer.largest])
        return Tries(weight, np.zeros(1), one, one, fewer.rows, fewer.starts, sampled=False)
    found = rows.weights(target, lam)
    if found is None:
        return None
    if stated is None:
        none = np.zeros(rows.number)
        return Tries(found, rows.own, none, none, rows.each, fewer.starts)
    values = rows.values(target)
    if values is None:
        return None
    usual = rows.reward + values.ahead
    low, high = stated.sums(discount)
    low = min(low, stated.lo + discount * min(float(values.here.min()), 0.0))
    high = max(high, stated.hi + discount * max(float(values.here.max()), 0.0))
    up, down = np.maximum(high - usual, 0.0), np.maximum(usual - low, 0.0)
    return Tries(found, rows.own, up, down, rows.each, fewer.starts)
