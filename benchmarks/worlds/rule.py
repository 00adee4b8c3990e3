"""The rule of trust (docs/decisions/0018-trust.md), from the units' sums alone.

    H(lam) = WIDER (t se(lam) + c(lam) |J(lam) - J(0)|),   c(lam) = (1 - lam) / (lam (1 - MEMORY))

t is the 97.5 % point of Student's distribution with N - 1 degrees of freedom, N = (sum e^2)^2 /
sum e^4 the number of units that the error's estimate rests on. The second part bounds the bias: if
what the features miss is forgotten by a share 1 - MEMORY per step, the bias of DRL(lam) is
b (1 - lam) / (1 - lam MEMORY), and c(lam) |J(lam) - J(0)| is just that. Of the lam that the log can
carry, the one with the least H is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from benchmarks.worlds.drl import LAMS, Floats, Units, paired
from scipy.stats import t as student

GRID = (0.5, 0.8, 0.95, 1.0)  # besides 0
MEMORY = 0.9  # of a step's error, what is left in the next
WIDER = 1.1  # the least of several half widths is a little too short
FEW_SCORES, FEW_WEIGHTS = 8.0, 20.0  # effective units of scores and of weights
MANY, NEAR = 2.5, 0.03  # standard errors, and distance, that the total weight may be off 1
FEW_EPISODES, FEW_ROWS, FEW_STRETCHES = 20, 1000, 25
DOUBT = 0.25  # of what lies beyond the cuts: what may be wrong with it unnoticed


class Answer(NamedTuple):
    """What is said about one target."""

    value: float
    lo: float
    hi: float
    lam: float
    difference: float  # to the policy that made the log
    difference_lo: float
    difference_hi: float
    reasons: tuple[str, ...]  # not to trust it

    @property
    def trusted(self) -> bool:
        """No reason speaks against it."""
        return not self.reasons

    @property
    def decision(self) -> str:
        """Better or worse than the policy that made the log, or neither can be said."""
        if self.difference_lo > 0.0:
            return "better"
        return "worse" if self.difference_hi < 0.0 else "cannot be told"


class Facts(NamedTuple):
    """What else the rule needs to know of a log."""

    endless: bool
    alarms: tuple[str, ...]  # of the checks of probabilities
    reward: tuple[float, float]  # least and largest
    discount: float


class Sums(NamedTuple):
    """Means of scores over the starts, their standard errors, and what those rest on."""

    J: Floats
    se: Floats
    number: Floats  # effective units
    like: Floats  # correlation of neighbouring units

    @classmethod
    def of(cls, score: Floats, starts: Floats) -> Sums:
        """The sandwich over units. Scores that are all the same rest on nothing."""
        k, n = len(starts), starts.sum()
        J = score.sum(axis=0) / n
        e = score - starts[:, None] * J
        square = np.maximum((e**2).sum(axis=0), 1e-300)
        number = square**2 / np.maximum((e**4).sum(axis=0), 1e-300)
        like = (e[1:] * e[:-1]).sum(axis=0) / square
        return cls(J, np.sqrt(square * k / (k - 1)) / n, np.maximum(number, 2.0), like)

    def noise(self) -> Floats:
        """t se."""
        return np.asarray(student.ppf(0.975, self.number - 1.0) * self.se)


def stretched(score: Floats, starts: Floats) -> Sums:
    """Of an endless log: the largest t se over stretches of 1, 2, 4, ... units.

    The number of units and the likeness of neighbours are those of the longest stretches.
    """
    found = Sums.of(score, starts)
    noise = found.noise()
    while len(starts) >= 2 * FEW_STRETCHES:
        score, starts = paired(score), paired(starts)
        found = Sums.of(score, starts)
        noise = np.maximum(noise, found.noise())
    t = student.ppf(0.975, found.number - 1.0)
    return found._replace(se=noise / t)


def answer(units: Units, own: Units, facts: Facts, grid: tuple[float, ...] = GRID) -> Answer:
    """The value, its interval, the difference to the behaviour, and whether to trust them."""
    at = [LAMS.index(lam) for lam in grid]
    lam, sums = np.array(grid), stretched if facts.endless else Sums.of
    s = sums(units.score, units.starts)
    apart = sums(units.score - own.score[:, -1:], units.starts)
    bias = (1.0 - lam) / (lam * (1.0 - MEMORY)) * np.abs(s.J[at] - s.J[0])
    beyond = units.cut.sum(axis=0)[at] / units.starts.sum() * s.noise()[0]
    half = WIDER * (s.noise()[at] + bias + beyond)
    carried = _carried(units, s)[at] & np.isfinite(half)
    i = int(np.where(carried, half, np.inf).argmin()) if carried.any() else 0
    J, difference = float(s.J[at[i]]), float(apart.J[at[i]])
    wide = float(half[i]), float(WIDER * (apart.noise()[at[i]] + bias[i] + beyond[i]))
    guessed = float(abs(units.beyond.sum(axis=0)[at[i]] / units.starts.sum()))
    known = {
        "overlap": carried.any(),
        "few": units.starts.sum() >= (FEW_ROWS if facts.endless else FEW_EPISODES),
        "mixing": not facts.endless or s.like[at[i]] * np.sqrt(FEW_STRETCHES) < 1.0,
        "range": _in_range(J, facts),
        "cut off": DOUBT * guessed <= wide[0],
    }
    reasons = [f"probabilities: {name}" for name in facts.alarms]
    reasons += [name for name, fine in known.items() if not fine]
    return Answer(
        J, J - wide[0], J + wide[0], grid[i], difference, difference - wide[1],
        difference + wide[1], tuple(reasons),
    )  # fmt: skip


def _carried(units: Units, s: Sums) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which lam the log can carry: enough units count, and the weights add up to 1.

    In truth the mean of sum U rho (1 - gamma') is 1 without cuts; with cuts, what is cut off is
    missing in the part that multiplies ratios, so it lies between 1 - cut and 1.
    """
    k, n = len(units.starts), units.starts.sum()
    total, cut = units.weight.sum(axis=0) / n, units.cut.sum(axis=0) / n
    e = units.weight - units.starts[:, None] * total
    off = np.maximum(MANY * np.sqrt((e**2).sum(axis=0) * k / (k - 1)) / n, NEAR)
    with np.errstate(all="ignore"):
        counting = units.weight.sum(axis=0) ** 2 / (units.weight**2).sum(axis=0)
    enough = (s.number >= FEW_SCORES) & (counting >= min(FEW_WEIGHTS, k / 4))
    return np.asarray(enough & (total <= 1.0 + off) & (total + cut >= 1.0 - off))


def _in_range(J: float, facts: Facts) -> bool:
    """Between the least and the largest sum of rewards that the log's rewards allow."""
    low, high = facts.reward
    most = 1.0 / (1.0 - facts.discount) if facts.discount < 1.0 else np.inf
    steps = (most, most) if facts.endless else (1.0, most)
    return bool(min(low * x for x in steps) <= J <= max(high * x for x in steps))
