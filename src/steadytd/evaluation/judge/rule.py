"""The rule of trust: which lam of DRL(lam) is used, how wide its interval is, what it must carry.

The interval goes from J(lam) - H-(lam) to J(lam) + H+(lam), and its two sides are made alike:

    H = max(N(lam), R(lam)) + B(lam) + C(lam) N(0) + D(lam)
    N(lam): the largest over lam' <= lam of t se(lam') + 2 max_u |e_u|, e_u on this side
    R(lam): 2 (largest weight of an episode / episodes) (largest - least reward of the log);
            where the range of rewards is stated, at least what `unseen` finds
    B(lam): the largest of
            c(lam', lam) |J(lam) - J(lam')| for every lam' < lam, on the side away from J(lam')
            |J(lam) - J(lam')| for every lam' > lam that the log carries, on the side of J(lam')
            3/4 |J(lam) - J(0)| on the side of J(0)
            c(0, lam) se(J(lam) - J(0)) / 2 on both, with q = 0.9
    c(lam', lam) = (1 - lam) (1 - q lam') / ((lam - lam') (1 - q));  q = 0.9, or 0.97 if the log
    carries no higher lam

t is the 97.5 % point of Student's distribution with n - 1 degrees of freedom, n = (sum e^2)^2 / sum
e^4 the number of units that the error's estimate rests on. What is rare may be missing in the log:
N is as if two more units like the most extreme one on that side had been logged, and R as if two
more rewards had, as far from the expected ones as logged rewards are from each other, where the
target's weight is largest. Products of ratios vary more the higher lam is; where they seem to vary
less, their tail is missing, so lower lam count. B bounds the bias: if a share q of what the
features miss is left after each step, the bias of DRL(lam) is f(lam) = b (1 - lam) / (1 - q lam),
and c(lam', lam) |J(lam) - J(lam')| is just that, away from J(lam'). Whether more is left is seen at
higher lam; where the log carries none, q is larger. The last parts are chance and bias beyond the
cuts, which nothing in the log checks: C(lam) is the mean per start of |U rho gamma'| there, N(0)
the larger of its sides, and D(lam) half of the value beyond the cuts, or half of C(lam) times the
standard deviation of logged returns where that is less.

The log carries a lam if its units differ, the masses W_u = sum U rho (1 - gamma') have an effective
number of at least 20 (or a quarter of the units), and their sum M per start fits: M <= 1 + off and
M + C >= 1 - off, off = max(2.5 se(M), 0.03). Of those lam, the one with the shortest interval is
taken. Where n < 3 something rare is in the log, and t is large; where nothing is, the log must be
large enough to show it (`unseen.Resting`). No B holds a bias that grows: as q -> 1, J(0.8) is 4
times as far from J(0) as J(0.5) is.

Where units are stretches of episodes, each side of N is the largest over stretches of 1, 2, 4, ...
units while 25 are left, neighbours among the longest must be alike by less than 1 / sqrt(25), and
R is 0 but for what `unseen` finds. The largest weight of an episode is taken to be 1, and by how
much W_u exceeds the number of its unit's episodes at most.
The rule was made and graded on worlds of known value: docs/decisions/0018-trust.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.intervals import (
    SAME,
    Estimate,
    Interval,
    effective_number,
    nothing,
    student,
)
from steadytd.evaluation.intervals import correlation as neighbours
from steadytd.evaluation.intervals import standard_error as spread_of
from steadytd.evaluation.judge.unseen import BENDS, Bend, Tries

MEMORY = 0.9  # of a step's error, what is left in the next
UNCHECKED = 0.97  # the same where no higher lam shows whether that is so
UNSEEN = 2.0  # units like the most extreme one, or rewards, that may be missing
BACK = 0.75  # of |J(lam) - J(0)|: how far the interval reaches back towards J(0) at least
SURELY = 0.5  # standard errors of J(lam) - J(0) that are taken for a difference at least
FEW_SCORES, FEW_WEIGHTS = 3.0, 20.0  # effective units: fewer show something rare; of weights
MANY, NEAR = 2.5, 0.03  # standard errors, and distance, that the total weight may be off 1
FEW_STRETCHES = 25
DOUBT = 0.5  # of what lies beyond the cuts: what may be wrong with it unnoticed
MOST_CUT = 0.5  # of the discounted steps: as many may lie beyond the cuts
LEVEL = 0.95


class Reaches(NamedTuple):
    """How far an interval reaches below and above its value."""

    down: float
    up: float

    def around(self, value: float) -> Interval:
        """The interval."""
        return Interval(value - self.down, value + self.up)


class Noise(NamedTuple):
    """What chance can do, the effective number of units, and how much neighbours are alike."""

    reach: Reaches
    number: float
    like: float


def noise(influence: Floats, divided: bool, level: float = LEVEL) -> Noise:
    """Of influences by unit; with stretches of episodes the largest over longer and longer ones."""
    found = _noise(influence, level)
    while divided and len(influence) >= 2 * FEW_STRETCHES:
        influence = paired(influence)
        longer = _noise(influence, level)
        found = longer._replace(reach=largest([found.reach, longer.reach]))
    return found


def _noise(influence: Floats, level: float) -> Noise:
    number = max(effective_number(influence**2), 2.0)
    chance = student(0.5 + level / 2.0, number - 1.0) * spread_of(influence)
    ends = -float(influence.min(initial=0.0)), float(influence.max(initial=0.0))
    return Noise(Reaches(*(chance + UNSEEN * end for end in ends)), number, neighbours(influence))


def largest(found: Iterable[Reaches]) -> Reaches:
    """The largest of each side; none where one is not known.

    >>> largest([Reaches(1.0, 4.0), Reaches(2.0, 3.0)])
    Reaches(down=2.0, up=4.0)
    """
    down, up = zip(*found, strict=True)
    return Reaches(*(math.nan if math.isnan(sum(side)) else max(side) for side in (down, up)))


def paired(influence: Floats) -> Floats:
    """Neighbouring units joined: stretches of twice the length.

    >>> paired(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 3., 12.])
    """
    if len(influence) % 2:
        influence = np.append(influence[:-2], influence[-2] + influence[-1])
    return np.asarray(influence[::2] + influence[1::2])


def longest(influence: Floats, divided: bool) -> Floats:
    """Influences of the longest stretches; of the units where those are whole episodes."""
    while divided and len(influence) >= 2 * FEW_STRETCHES:
        influence = paired(influence)
    return influence


class Bias(NamedTuple):
    """A bound of the bias: `fixed` stays with more data, `chance` falls; the larger counts."""

    fixed: Reaches
    chance: float

    @property
    def reach(self) -> Reaches:
        """On either side."""
        return largest([self.fixed, Reaches(self.chance, self.chance)])


def left_over(lower: float, lam: float, memory: float) -> float:
    """c(lower, lam): what is left of the bias, in parts of what went from `lower` to `lam`.

    >>> round(left_over(0.0, 0.5, 0.9), 6), left_over(0.8, 1.0, 0.9)
    (10.0, 0.0)
    """
    return (1.0 - lam) * (1.0 - memory * lower) / ((lam - lower) * (1.0 - memory))


def bias(curve: dict[float, Estimate], lam: float, higher: list[float], divided: bool) -> Bias:
    """Of DRL(lam), from how it differs from the others; `higher` are those that are carried."""
    one, base = curve[lam], curve[0.0]
    memory = MEMORY if higher else UNCHECKED
    found = [_towards(one.value - base.value, -BACK)]
    for other in (x for x in curve if x < lam):
        found.append(_towards(one.value - curve[other].value, left_over(other, lam, memory)))
    found += [_towards(curve[other].value - one.value, 1.0) for other in higher]
    error = spread_of(longest(one.influence - base.influence, divided))
    return Bias(largest(found), SURELY * left_over(0.0, lam, MEMORY) * error)


def _towards(apart: float, times: float) -> Reaches:
    """`times` as far as `apart`, on its side; on the other one if `times` is negative."""
    reach = abs(times * apart)
    return Reaches(0.0, reach) if times * apart > 0.0 else Reaches(reach, 0.0)


class Weighing(NamedTuple):
    """What a lam rests on: units of scores and weights, and the mean weight M of a start.

    `scores` is 0 where all units have the same score.
    """

    scores: float
    weights: float
    wanted: float  # of the weights
    moment: float
    cut: float
    off: float

    @property
    def differ(self) -> bool:
        """Units have different scores."""
        return self.scores > 0.0

    @property
    def enough_weights(self) -> bool:
        """Enough units decide the value."""
        return self.weights >= self.wanted

    @property
    def fits(self) -> bool:
        """The weights add up to 1, up to what is cut off."""
        return self.moment <= 1.0 + self.off and self.moment + self.cut >= 1.0 - self.off

    @property
    def carried(self) -> bool:
        """The log can carry this lam."""
        return self.differ and self.enough_weights and self.fits


class Past(NamedTuple):
    """What lies beyond the cuts: its part of the value (NaN: not known), and of the weights."""

    value: float = 0.0
    own: float = 0.0  # the behaviour's value there
    weight: float = 0.0
    spread: float = 0.0  # of logged returns: their standard deviation

    def doubt(self, other: float = 0.0) -> float:
        """D: how wrong it may be, less what `other` shares with it.

        >>> Past(4.0, 3.0, 0.5, 1.0).doubt(), Past(4.0, 3.75, 0.5, 1.0).doubt(3.75)
        (0.25, 0.125)
        """
        if not self.weight:
            return 0.0
        apart = abs(self.value - other)
        limit = self.weight * self.spread
        return DOUBT * (min(apart, limit) if math.isfinite(apart) else limit)


NOTHING_CUT = Past()


STRAIGHT = Bend(0.0, 0.0, 0.0)


def _bend(curve: dict[float, Estimate], divided: bool) -> Bend:
    if not {0.5, 0.8} <= curve.keys():
        return STRAIGHT
    near, far = (curve[lam].minus(curve[0.0]) for lam in (0.5, 0.8))
    error = spread_of(longest(far.influence - BENDS * near.influence, divided))
    return Bend(near.value, far.value, error)


@dataclass(frozen=True)
class Ruled:
    """DRL at the lam that the rule takes; `reach` is H, made of the five parts named like it.

    `path` has DRL(lam') for all lam' up to it, itself as the last; `rewards` is how far they lie
    apart, 0 where units are stretches. `tries` are rows that say what was not seen, where the range
    of rewards is stated. `bend` is that of the curve.
    """

    path: tuple[Estimate, ...]
    own: Estimate  # the behaviour's own score, to compare with
    lam: float
    carried: bool
    weighing: Weighing
    noise: Noise
    unseen: float
    bias: Bias
    beyond: float
    divided: bool
    rewards: float
    tries: Tries | None = None
    past: Past = NOTHING_CUT
    bend: Bend = STRAIGHT

    @property
    def grows(self) -> bool:
        """Its bias grows with time, as far as the curve shows; of high lam little is left."""
        return self.lam < 0.9 and self.bend.grows

    @property
    def rare(self) -> bool:
        """So few units decide the error that something rare must be in them."""
        return self.noise.number < FEW_SCORES

    @property
    def estimate(self) -> Estimate:
        """DRL(lam)."""
        return self.path[-1]

    @property
    def value(self) -> float:
        """J(lam)."""
        return self.estimate.value

    @cached_property
    def reach(self) -> Reaches:
        """H(lam)."""
        both = zip(self.chance, self.bias.reach, strict=True)
        beyond = self.beyond + self.past.doubt()
        return Reaches(*(chance + apart + beyond for chance, apart in both))

    @property
    def chance(self) -> Reaches:
        """What chance can do, seen or not."""
        hidden = Reaches(0.0, 0.0) if self.tries is None else self.hidden
        return largest([self.noise.reach, Reaches(self.unseen, self.unseen), hidden])

    @cached_property
    def hidden(self) -> Reaches:
        """What outcomes within the stated range of rewards can do that were not seen."""
        assert self.tries is not None
        return Reaches(*self.tries.of(self.tries.weight))

    @property
    def interval(self) -> Interval:
        """J(lam) - H- to J(lam) + H+."""
        return self.reach.around(self.value)

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return sum(self.reach) / 2.0

    @property
    def known(self) -> bool:
        """There is a value with an interval."""
        return all(map(math.isfinite, (self.value, *self.reach)))

    @property
    def stretches(self) -> int:
        """How many of the longest stretches there are."""
        return len(longest(self.estimate.influence, divided=True))

    @property
    def mixes(self) -> bool:
        """Neighbours among the longest stretches are not alike."""
        return not self.divided or self.noise.like * np.sqrt(FEW_STRETCHES) < 1.0


def weighing(one: Estimate, scores: float, starts: Floats) -> Weighing:
    """What the estimate rests on; `starts` by unit."""
    k, share = len(starts), starts / starts.sum()
    masses = np.full(k, np.nan) if one.masses is None else one.masses
    off = max(MANY * spread_of(masses - share * one.moment), NEAR)
    wanted = min(FEW_WEIGHTS, k / 4)
    scores = scores if spread_of(one.influence) > SAME * abs(one.value) else 0.0
    return Weighing(scores, one.effective_masses, wanted, one.moment, one.cut, off)


class Data(NamedTuple):
    """What the rule must know of a log."""

    starts: Floats  # by unit
    divided: bool  # units are stretches of episodes
    rewards: tuple[float, float]  # the least and the largest
    tries: Callable[[Estimate], Tries | None] | None = None  # where a range of rewards is stated
    past: Callable[[float], float] | None = None  # by lam: the target's value beyond the cuts
    own_past: float = 0.0  # the behaviour's


def ruled(curve: dict[float, Estimate], own: Estimate, data: Data) -> Ruled:
    """The lam of the curve that the rule takes, lam = 0 aside; `own` is the behaviour's."""
    starts, divided, (least, most), tries, past, own_past = data
    curve = {0.0: nothing(len(starts))} | dict(sorted(curve.items()))
    chances = {lam: noise(one.influence, divided) for lam, one in curve.items()}
    weights = {lam: weighing(one, chances[lam].number, starts) for lam, one in curve.items()}
    bends = _bend(curve, divided)
    rewards = 0.0 if divided else most - least
    spread = spread_of(own.influence) * math.sqrt(starts.sum())
    found = []
    lams = list(curve)
    for i, lam in enumerate(lams[1:], 1):
        one, first = curve[lam], chances[0.0].reach
        reach = largest(chances[x].reach for x in lams[: i + 1])
        higher = [x for x in lams[i + 1 :] if weights[x].carried]
        made = Ruled(
            tuple(curve[x] for x in lams[: i + 1]), own, lam, weights[lam].carried, weights[lam],
            chances[lam]._replace(reach=reach), _unseen(one, starts, rewards),
            bias(curve, lam, higher, divided), abs(one.cut) * max(first), divided, rewards,
            None if tries is None else tries(one),
            NOTHING_CUT if past is None else Past(past(lam), own_past, abs(one.cut), spread), bends,
        )  # fmt: skip
        found.append(made if made.known else replace(made, carried=False))
    carried = [one for one in found if one.carried]
    return min(carried, key=lambda one: one.half) if carried else found[0]


def _unseen(one: Estimate, starts: Floats, rewards: float) -> float:
    """R, by the largest weight of an episode."""
    if one.masses is None:
        return 0.0
    n = starts.sum()
    return UNSEEN * rewards * float((one.masses - starts / n).max(initial=0.0) + 1.0 / n)
