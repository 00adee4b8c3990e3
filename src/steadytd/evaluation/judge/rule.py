"""The rule of trust: one interval for chance and bias, and what the log has to carry.

    H(lam) = 1.1 (t se(lam) + c(lam) |J(lam) - J(0)| + C(lam) t0 se(0)),
    c(lam) = (1 - lam) / (lam (1 - 0.9))

t is the 97.5 % point of Student's distribution with N - 1 degrees of freedom, N = (sum e^2)^2 / sum
e^4 the number of units that the error's estimate rests on. The second part bounds the bias: if nine
tenths of what the features miss are left after each step, the bias of DRL(lam) is
b (1 - lam) / (1 - 0.9 lam), and c(lam) |J(lam) - J(0)| is just that. The third is the chance in the
value beyond cuts: C(lam) is the mean per start of U rho gamma' there.

The log carries a lam if N >= 8, the masses W_u = sum U rho (1 - gamma') have an effective number of
at least 20 (or a quarter of the units), and their sum M per start fits: M <= 1 + off and
M + C >= 1 - off, off = max(2.5 se(M), 0.03). Of those lam, the one with the least H is taken.

Where units are stretches of episodes, t se is the largest over stretches of 1, 2, 4, ... units
while 25 are left, and neighbours among the longest must be alike by less than 1 / sqrt(25). The
rule was made and graded on worlds of known value: docs/decisions/0018-trust.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.evaluation.estimate.bootstrap import student
from steadytd.evaluation.estimate.sandwich import (
    Estimate,
    effective_number,
    neighbours,
    nothing,
    spread_of,
)

MEMORY = 0.9  # of a step's error, what is left in the next
WIDER = 1.1  # the least of several half widths is a little too short
FEW_SCORES, FEW_WEIGHTS = 8.0, 20.0  # effective units of scores and of weights
MANY, NEAR = 2.5, 0.03  # standard errors, and distance, that the total weight may be off 1
FEW_STRETCHES = 25
DOUBT = 0.25  # of what lies beyond the cuts: what may be wrong with it unnoticed
LEVEL = 0.95


class Noise(NamedTuple):
    """t se, the effective number of units, and how much neighbouring units are alike."""

    reach: float
    number: float
    like: float


def noise(influence: Floats, divided: bool, level: float = LEVEL) -> Noise:
    """Of influences by unit; with stretches of episodes the largest over longer and longer ones."""
    found = _noise(influence, level)
    while divided and len(influence) >= 2 * FEW_STRETCHES:
        influence = paired(influence)
        longer = _noise(influence, level)
        found = longer._replace(reach=max(found.reach, longer.reach))
    return found


def _noise(influence: Floats, level: float) -> Noise:
    number = max(effective_number(influence**2), 2.0)
    reach = student(0.5 + level / 2.0, number - 1.0) * spread_of(influence)
    return Noise(reach, number, neighbours(influence))


def paired(influence: Floats) -> Floats:
    """Neighbouring units joined: stretches of twice the length.

    >>> paired(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 3., 12.])
    """
    if len(influence) % 2:
        influence = np.append(influence[:-2], influence[-2] + influence[-1])
    return np.asarray(influence[::2] + influence[1::2])


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
    """DRL at the lam that the rule takes; `half` is H, made of `noise`, `bias` and `beyond`."""

    estimate: Estimate
    own: Estimate  # the behaviour's own score, to compare with
    lam: float
    carried: bool
    weighing: Weighing
    noise: Noise
    bias: float
    beyond: float
    divided: bool

    @property
    def value(self) -> float:
        """J(lam)."""
        return self.estimate.value

    @property
    def half(self) -> float:
        """H(lam)."""
        return WIDER * (self.noise.reach + self.bias + self.beyond)

    @property
    def known(self) -> bool:
        """There is a value with an interval."""
        return bool(np.isfinite([self.value, self.half]).all())

    @property
    def stretches(self) -> int:
        """How many of the longest stretches there are."""
        n = len(self.estimate.influence)
        while n >= 2 * FEW_STRETCHES:
            n //= 2
        return n

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
    least = noise(base.influence, divided).reach
    found = []
    for lam, one in curve.items():
        if lam == 0.0:
            continue
        chance = noise(one.influence, divided)
        apart = (1.0 - lam) / (lam * (1.0 - MEMORY)) * abs(one.value - base.value)
        w = weighing(one, chance.number, starts)
        made = Ruled(one, own, lam, w.carried, w, chance, apart, one.cut * least, divided)
        found.append(made if made.known else _not_carried(made))
    carried = [one for one in found if one.carried]
    return min(carried, key=lambda one: one.half) if carried else found[0]


def _not_carried(one: Ruled) -> Ruled:
    from dataclasses import replace

    return replace(one, carried=False)
