"""The rule of trust (docs/decisions/0018-trust.md), from the units' sums alone.

From J(lam) - H- to J(lam) + H+, where on either side

    H(lam) = max(N(lam), R(lam)) + B(lam) + C(lam) N(0) + D(lam)

N(lam) is the largest over lam' <= lam of t se + UNSEEN times the most extreme unit on that side; t
the 97.5 % point of Student's distribution with n - 1 degrees of freedom, n = (sum e^2)^2 / sum e^4
the number of units that the error's estimate rests on. R is for outcomes that the log does not
show: UNSEEN times the largest weight of an episode times the range of rewards. B bounds the bias:
from every lower lam' it is c(lam', lam) |J(lam) - J(lam')| on the side away from J(lam'), and
BACK |J(lam) - J(0)| towards J(0), but at least SURELY c(0, lam) se(J(lam) - J(0)); and it reaches
every higher lam' that the log carries. D is for what lies beyond the cuts: DOUBT of the value
there, or of C(lam) times the standard deviation of returns where that is less. Of the lam that the
log can carry, the one with the shortest interval is taken.

Where at least FEW_SCORES units decide the error, nothing rare is seen in the log; if rewards have
at most KINDS values, or a few returns lie far from the others, it must not rest on too few tries
for that, see `few`; fewer are enough where rewards come by chance, and none of them is rare. The
target must not go the more beyond the log the larger rewards are, see `rising`. Nor is a curve
trusted that bends more than any bias that dies away, see `grows`, nor a target that goes to where
the log hardly was: omega is a ratio of visits, so its part that is negative is extrapolated.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from benchmarks.worlds.drl import (
    LAMS,
    Floats,
    Rows,
    Units,
    by_chance,
    fold_of,
    furthest,
    paired,
    rising,
    scarce,
    unit_of,
    visits,
)
from numpy.typing import NDArray
from scipy.stats import t as student

GRID = (0.5, 0.8, 0.95, 1.0)  # besides 0
MEMORY = 0.9  # of a step's error, what is left in the next
UNCHECKED = 0.97  # the same where no higher lam shows whether that is so
UNSEEN = 2.0  # units like the most extreme one that may be missing, and rewards like none there
BACK = 0.75  # of |J(lam) - J(0)|: how far the interval reaches back towards J(0) at least
SURELY = 0.5  # standard errors of J(lam) - J(0) that are taken for a difference at least
FEW_SCORES, FEW_WEIGHTS = 3.0, 20.0  # effective units of scores and of weights
FEW_TRIES, FEW_MORE, SOME = 500.0, 300.0, 0.05  # effective rows, and where the target goes more
FEW_ALIKE = 50.0  # effective episodes
KINDS = 10  # different rewards: where there are more, their spread tells how far others can go
CHANCE, OFTEN = 0.1, 0.1  # of the variance of rewards: by chance; of episodes: show a reward
EASED = 0.2  # of rows and episodes: as many are enough where that is so
SKEWED, SHOWN = 0.2, 0.6  # `furthest`: their spread does not tell; it does, since the tail is seen
NEGATIVE = 0.08  # of omega: where more is below 0, the target goes to where the log hardly was
THIN = 0.1  # of the weights: as much may be beyond the log where it shows little
RISING = 0.1  # of the mean weight: growth with log size of rare rewards
PARTLY = 0.45  # `furthest`: enough of the tail is seen where few units decide the error
BENDS, SURE = 4.0, 1.5  # J(0.8) - J(0) in parts of J(0.5) - J(0); standard errors beyond
MANY, NEAR = 2.5, 0.03  # standard errors, and distance, that the total weight may be off 1
FEW_EPISODES, FEW_ROWS, FEW_STRETCHES = 20, 1000, 25
SAME = 1e-9  # relative difference up to which scores are the same
DOUBT = 0.5  # of what lies beyond the cuts: what may be wrong with it unnoticed
MOST_CUT = 0.5  # of the discounted steps: as many may lie beyond the cuts


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
    kinds: int  # different rewards
    negative: float  # of omega, the share that is negative beyond noise
    furthest: float  # of the returns' distances from their median, the largest twentieth
    rising: Floats  # by lam: growth of weights with the size of rare rewards
    scarce: Floats  # by lam: of the weights, those beyond the log where it shows little
    shows: bool  # few rewards, that come by chance, and none of them is rare


def facts_of(rows: Rows, discount: float, alarms: tuple[str, ...] = ()) -> Facts:
    """Of a log."""
    reward = float(rows.reward.min()), float(rows.reward.max())
    kinds = len(set(rows.reward.tolist()))
    far, found = furthest(rows), visits(rows, fold_of(rows, unit_of(rows)))
    omega = found.omega
    grown = rising(rows, omega) if SKEWED < far < SHOWN else np.zeros(len(LAMS))
    thin = scarce(rows, omega) if kinds <= KINDS and not rows.endless else np.zeros(len(LAMS))
    pairs = set(zip(rows.reward.tolist(), np.cumsum(rows.first).tolist(), strict=True))
    least = min(Counter(reward for reward, _ in pairs).values()) / rows.first.sum()
    shows = 1 < kinds <= KINDS and least >= OFTEN and by_chance(rows) >= CHANCE
    rest = found.negative, far, grown, thin, shows
    return Facts(rows.endless, alarms, reward, discount, kinds, *rest)


class Sums(NamedTuple):
    """Means of scores over the starts, how far chance reaches, and what that rests on."""

    J: Floats
    se: Floats
    reach: Floats  # below and above [2, L]: t se + UNSEEN times the most extreme unit
    number: Floats  # effective units
    like: Floats  # correlation of neighbouring units
    e: Floats  # influences [k, L]

    @classmethod
    def of(cls, score: Floats, starts: Floats) -> Sums:
        """The sandwich over units. Scores that are all the same rest on nothing."""
        k, n = len(starts), starts.sum()
        J = score.sum(axis=0) / n
        e = (score - starts[:, None] * J) / n
        square = np.maximum((e**2).sum(axis=0), 1e-300)
        number = np.maximum(square**2 / np.maximum((e**4).sum(axis=0), 1e-300), 2.0)
        like = (e[1:] * e[:-1]).sum(axis=0) / square
        se = np.sqrt(square * k / (k - 1))
        ends = np.maximum([(-e).max(axis=0), e.max(axis=0)], 0.0)
        reach = student.ppf(0.975, number - 1.0) * se + UNSEEN * ends
        return cls(J, se, reach, number, like, e)


def stretched(score: Floats, starts: Floats) -> Sums:
    """Of an endless log: the largest reach over stretches of 1, 2, 4, ... units.

    All the rest is that of the longest stretches.
    """
    found = Sums.of(score, starts)
    reach = found.reach
    while len(starts) >= 2 * FEW_STRETCHES:
        score, starts = paired(score), paired(starts)
        found = Sums.of(score, starts)
        reach = np.maximum(reach, found.reach)
    return found._replace(reach=reach)


def left_over(lower: float, lam: float, memory: float) -> float:
    """f(lam) / (f(lower) - f(lam)) for f(lam) = (1 - lam) / (1 - memory lam)."""
    return (1.0 - lam) * (1.0 - memory * lower) / ((lam - lower) * (1.0 - memory))


def bounded(s: Sums, grid: tuple[float, ...], carried: NDArray[np.bool_]) -> Floats:
    """The bound of the bias below and above [2, lams]; `carried` by lam of the grid."""
    at = [LAMS.index(lam) for lam in grid]
    found, k = np.zeros((2, len(grid))), len(s.e)
    for i, (lam, j) in enumerate(zip(grid, at, strict=True)):
        memory = MEMORY if carried[i + 1 :].any() else UNCHECKED
        for lower, m in ((0.0, 0), *zip(grid[:i], at[:i], strict=True)):
            d = s.J[j] - s.J[m]
            side = int(d > 0.0)
            found[side, i] = max(found[side, i], left_over(lower, lam, memory) * abs(d))
        d, apart = s.J[j] - s.J[0], s.e[:, j] - s.e[:, 0]
        found[int(d <= 0.0), i] = max(found[int(d <= 0.0), i], BACK * abs(d))
        for m in (at[x] for x in range(i + 1, len(grid)) if carried[x]):
            d = s.J[m] - s.J[j]
            found[int(d > 0.0), i] = max(found[int(d > 0.0), i], abs(d))
        error = np.sqrt((apart**2).sum() * k / (k - 1))
        found[:, i] = np.maximum(found[:, i], SURELY * left_over(0.0, lam, MEMORY) * error)
    return found


def unseen(units: Units, own: Units, facts: Facts) -> tuple[Floats, Floats]:
    """R by lam, of the value and of the difference; none where units are stretches."""
    if facts.endless:
        return np.zeros(len(LAMS)), np.zeros(len(LAMS))
    n, size = units.starts.sum(), UNSEEN * (facts.reward[1] - facts.reward[0])
    alone = np.maximum((units.weight - units.starts[:, None]).max(axis=0), 0.0) + 1.0
    apart = np.abs(units.weight - own.weight[:, -1:]).max(axis=0)
    return size * alone / n, size * apart / n


def doubts(units: Units, own: Units, facts: Facts) -> tuple[Floats, Floats]:
    """D by lam, of the value and of the difference; none where units are stretches."""
    if facts.endless:
        return np.zeros(len(LAMS)), np.zeros(len(LAMS))
    n = units.starts.sum()
    value, logged = units.beyond.sum(axis=0) / n, own.beyond[:, -1].sum() / n
    spread = Sums.of(own.score[:, -1:], own.starts).se[0] * np.sqrt(n)
    limit = np.abs(units.cut.sum(axis=0) / n) * spread
    both = np.abs(value), np.abs(value - logged)
    alone, apart = (DOUBT * np.minimum(x, limit) for x in both)
    return alone, apart


def few(units: Units, j: int, facts: Facts) -> bool:
    """Whether a lam rests on few rows, few that say what the target does more, or few episodes.

    Where rewards have many values, half as many of the second kind are enough; where they have few
    that come by chance, none of them rare, EASED of all.
    """
    part = EASED if facts.shows else 1.0
    sums = (x[:, j].sum() for x in units[4:8])
    total, square, more, more_square = (float(x) for x in sums)
    weight, n = units.weight[:, j], units.starts.sum()
    wanted = part * (FEW_MORE if facts.kinds <= KINDS else FEW_MORE / 2.0)
    episodes = weight.sum() ** 2 / (weight**2).sum() * n / len(weight)
    beyond = more**2 / max(more_square, 1e-300) if more > SOME * abs(total) else np.inf
    rows = total**2 / max(square, 1e-300)
    return bool(rows < part * FEW_TRIES or beyond < wanted or episodes < part * FEW_ALIKE)


def grows(s: Sums, lam: float) -> bool:
    """Whether J(0.8) is surely further from J(0) than if what is missed stayed for ever."""
    (d, far), (e, e_far) = (
        tuple(x[..., LAMS.index(y)] - x[..., 0] for y in (0.5, 0.8)) for x in (s.J, s.e)
    )
    error = np.sqrt(((e_far - BENDS * e) ** 2).sum() * len(e) / (len(e) - 1))
    return bool(lam < 0.9 and d * far > 0.0 and abs(far) - BENDS * abs(d) > SURE * error)


def answer(units: Units, own: Units, facts: Facts, grid: tuple[float, ...] = GRID) -> Answer:
    """The value, its interval, the difference to the behaviour, and whether to trust them."""
    at = [LAMS.index(lam) for lam in grid]
    sums = stretched if facts.endless else Sums.of
    s = sums(units.score, units.starts)
    apart = sums(units.score - own.score[:, -1:], units.starts)
    beyond = np.abs(units.cut.sum(axis=0)[at] / units.starts.sum()) * s.reach[:, 0].max()
    carried = _carried(units, s)[at]
    more = bounded(s, grid, carried) + beyond
    parts = zip((s, apart), unseen(units, own, facts), doubts(units, own, facts), strict=True)
    reach, away = (
        np.maximum(_rising(x.reach, at), hidden[at]) + more + doubt[at]
        for x, hidden, doubt in parts
    )
    carried &= np.isfinite(reach).all(axis=0)
    i = int(np.where(carried, reach.sum(axis=0), np.inf).argmin()) if carried.any() else 0
    J, difference = float(s.J[at[i]]), float(apart.J[at[i]])
    left = float(abs(own.cut[:, -1].sum() / own.starts.sum()))
    known = {
        "overlap": carried.any(),
        "few": units.starts.sum() >= (FEW_ROWS if facts.endless else FEW_EPISODES),
        "mixing": not facts.endless or s.like[at[i]] * np.sqrt(FEW_STRETCHES) < 1.0,
        "range": _in_range(J, facts),
        "cut off": facts.endless or left <= MOST_CUT,
        "few rows": facts.endless
        or not (facts.kinds <= KINDS or SKEWED < facts.furthest < SHOWN)
        or s.number[at[i]] < FEW_SCORES
        or not (few(units, at[i], facts) or facts.scarce[at[i]] > THIN),
        "larger": facts.rising[at[i]] <= RISING
        or (s.number[at[i]] < FEW_SCORES and facts.furthest >= PARTLY),
        "grows": not grows(s, grid[i]),
        "beyond": facts.negative <= NEGATIVE,
    }
    reasons = [f"probabilities: {name}" for name in facts.alarms]
    reasons += [name for name, fine in known.items() if not fine]
    lo, hi = J - float(reach[0, i]), J + float(reach[1, i])
    ends = difference - float(away[0, i]), difference + float(away[1, i])
    return Answer(J, lo, hi, grid[i], difference, *ends, tuple(reasons))


def _rising(reach: Floats, at: list[int]) -> Floats:
    """The largest over all lam' of the grid up to lam, 0 among them."""
    return np.asarray(np.maximum.accumulate(reach[:, [0, *at]], axis=1)[:, 1:])


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
    differ = (s.se > SAME * np.abs(s.J)) & s.e.any(axis=0)
    enough = differ & (counting >= min(FEW_WEIGHTS, k / 4))
    return np.asarray(enough & (total <= 1.0 + off) & (total + cut >= 1.0 - off))


def _in_range(J: float, facts: Facts) -> bool:
    """Between the least and the largest sum of rewards that the log's rewards allow."""
    low, high = facts.reward
    most = 1.0 / (1.0 - facts.discount) if facts.discount < 1.0 else np.inf
    steps = (most, most) if facts.endless else (1.0, most)
    return bool(min(low * x for x in steps) <= J <= max(high * x for x in steps))
