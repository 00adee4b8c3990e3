"""The rule of trust: which lam of DRL(lam) is used, how wide its interval is, what it must carry.

The interval goes from J(lam) - H-(lam) to J(lam) + H+(lam), and its two sides are made alike:

    H = N(lam) + B(lam) + C(lam) N(0)
    N(lam): the largest over lam' <= lam of t se(lam') + 2 max_u |e_u|, e_u on this side
    B(lam): c(lam) max(d, se(d) / 2) on the side away from J(0), where d = |J(lam) - J(0)|;
            max(3/4 d, c(lam) se(d) / 2) on the other;   c(lam) = (1 - lam) / (lam (1 - 0.9))

t is the 97.5 % point of Student's distribution with n - 1 degrees of freedom, n = (sum e^2)^2 / sum
e^4 the number of units that the error's estimate rests on. What is rare may be missing in the log:
N is as if two more units like the most extreme one on that side had been logged. Products of ratios
vary more the higher lam is; where they seem to vary less, their tail is missing, so what was found
for a lower lam counts. B bounds the bias: if nine tenths of what the features miss are left after
each step, the bias of DRL(lam) is b (1 - lam) / (1 - 0.9 lam), and c(lam) d is just that, away from
J(0). The last part is the chance in the value beyond cuts: C(lam) is the mean per start of
|U rho gamma'| there, and N(0) the larger of its sides.

The log carries a lam if n >= 3, the masses W_u = sum U rho (1 - gamma') have an effective number of
at least 20 (or a quarter of the units), and their sum M per start fits: M <= 1 + off and
M + C >= 1 - off, off = max(2.5 se(M), 0.03). Of those lam, the one with the shortest interval is
taken.

Where units are stretches of episodes, each side of N is the largest over stretches of 1, 2, 4, ...
units while 25 are left, and neighbours among the longest must be alike by less than 1 / sqrt(25).
The rule was made and graded on worlds of known value: docs/decisions/0018-trust.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimate.bootstrap import Interval, student
from steadytd.evaluation.estimate.sandwich import (
    Estimate,
    effective_number,
    neighbours,
    nothing,
    spread_of,
)

MEMORY = 0.9  # of a step's error, what is left in the next
UNSEEN = 2.0  # units like the most extreme one that may be missing
BACK = 0.75  # of |J(lam) - J(0)|: how far the interval reaches back towards J(0) at least
SURELY = 0.5  # standard errors of J(lam) - J(0) that are taken for a difference at least
FEW_SCORES, FEW_WEIGHTS = 3.0, 20.0  # effective units of scores and of weights
MANY, NEAR = 2.5, 0.03  # standard errors, and distance, that the total weight may be off 1
FEW_STRETCHES = 25
DOUBT = 0.25  # of what lies beyond the cuts: what may be wrong with it unnoticed
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


def bias(one: Estimate, base: Estimate, lam: float, divided: bool) -> Bias:
    """Of DRL(lam), from how it differs from DRL(0), the `base`."""
    c = (1.0 - lam) / (lam * (1.0 - MEMORY))
    apart = one.value - base.value
    away, back = c * abs(apart), BACK * abs(apart)
    error = spread_of(longest(one.influence - base.influence, divided))
    fixed = Reaches(back, away) if apart > 0.0 else Reaches(away, back)
    return Bias(fixed, c * SURELY * error)


class Weighing(NamedTuple):
    """What a lam rests on: units of scores and weights, and the mean weight M of a start."""

    scores: float
    weights: float
    wanted: float  # of the weights
    moment: float
    cut: float
    off: float

    @property
    def enough_scores(self) -> bool:
        """Enough units decide the error."""
        return self.scores >= FEW_SCORES

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
        return self.enough_scores and self.enough_weights and self.fits


@dataclass(frozen=True)
class Ruled:
    """DRL at the lam that the rule takes; `reach` is H, made of `noise`, `bias` and `beyond`.

    `path` has DRL(lam') for all lam' up to it, itself as the last.
    """

    path: tuple[Estimate, ...]
    own: Estimate  # the behaviour's own score, to compare with
    lam: float
    carried: bool
    weighing: Weighing
    noise: Noise
    bias: Bias
    beyond: float
    divided: bool

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
        both = zip(self.noise.reach, self.bias.reach, strict=True)
        return Reaches(*(chance + apart + self.beyond for chance, apart in both))

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
    return Weighing(scores, one.effective_masses, wanted, one.moment, one.cut, off)


def ruled(curve: dict[float, Estimate], own: Estimate, starts: Floats, divided: bool) -> Ruled:
    """The lam of the curve that the rule takes, lam = 0 aside; `own` is the behaviour's."""
    base = curve.get(0.0, nothing(len(starts)))
    first = noise(base.influence, divided).reach
    path: tuple[Estimate, ...] = (base,)
    reach, found = first, []
    for lam, one in sorted(curve.items()):
        if lam == 0.0:
            continue
        chance = noise(one.influence, divided)
        path, reach = (*path, one), largest([reach, chance.reach])
        w = weighing(one, chance.number, starts)
        beyond = abs(one.cut) * max(first)
        made = Ruled(
            path, own, lam, w.carried, w, chance._replace(reach=reach),
            bias(one, base, lam, divided), beyond, divided,
        )  # fmt: skip
        found.append(made if made.known else replace(made, carried=False))
    carried = [one for one in found if one.carried]
    return min(carried, key=lambda one: one.half) if carried else found[0]
