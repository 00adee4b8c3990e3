"""For which amounts of a cure is the mean update stable? A set: none need be monotone.

Where M(a) = M_0 + a M_1, an eigenvalue crosses the imaginary axis only where M(a) or its
bialternate sum is singular. Both are linear in a, so those amounts are eigenvalues, and one look
between each two of them decides: the set is exact, unless rounding scatters eigenvalues that
coincide. Otherwise a fine scan looks, and what changes
between two neighbours is located by bisection; a very short interval may go unnoticed. Whole
numbers are looked at one by one as far as a theorem does not take over.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.linalg

from steadytd.base.arrays import Floats
from steadytd.mdp.scales import ROUNDING
from steadytd.theory.cures.cure import UNBOUNDED, Cure
from steadytd.theory.thresholds import LARGEST_EXACT, NEAR, Eigen, Interval, bialternate, real_ones

SCAN, COARSE = 200, 64  # amounts looked at in a scan; of matrices beyond the largest exact ones
SAFETY = 24  # amounts looked at beside the exact ones
EACH = 64  # whole numbers looked at one by one where no theorem takes over
GROWTH = 1.1  # then by this factor
NARROW = 1e-14  # relative width at which a bisection ends
SPLIT = 200  # halvings of a bisection, at most
HUGE = 1e9  # crossings that are so many times the scale of the cure, or so small, are rounding
BESIDE = 1e-9  # relative distance of two crossings between which nothing is looked at


class StableSet(NamedTuple):
    """The amounts that are not stable, and whether they are all of them."""

    unstable: list[Interval]  # of whole numbers, both ends are in it
    exact: bool
    until: float  # so far the amounts were looked at; those beyond are like it

    def first(self, cure: Cure) -> float | None:
        """The smallest stabilising amount: every larger one that is close enough is stable."""
        low = cure.low
        for lo, hi in self.unstable:
            if lo > low:
                break
            low = hi + 1.0 if cure.whole else hi
        never = low == UNBOUNDED or (not cure.whole and low >= cure.high)
        return None if never and self.unstable else low

    def stable_from(self, cure: Cure) -> float | None:
        """From here on every amount is stable; None: never."""
        if not self.unstable:
            return cure.low
        end = self.unstable[-1][1]
        if end == UNBOUNDED or (not cure.whole and end >= cure.high):
            return None
        return end + 1.0 if cure.whole else end


def stable_set(cure: Cure) -> StableSet:
    """The set of unstable amounts, exactly or as far as looked."""
    if cure.whole:
        return _whole(cure)
    if cure.line is not None and len(cure.line[0]) <= LARGEST_EXACT:
        scale, poles = reach(cure), Eigen.of(*cure.line).poles
        possible = [*poles, *_pairs(*cure.line)]
        marks = [a for a in possible if scale / HUGE < a - cure.low < scale * HUGE]
        exact = all(poles.get(a, 0.0) <= NEAR * (1.0 + abs(a)) for a in marks)
        end = max([cure.low + scale, *marks])
        marks += list(np.linspace(cure.low, 1.2 * end, SAFETY)[1:])
        return StableSet(_between(cure, marks, UNBOUNDED), exact, end)
    return _scanned(cure)


def _scanned(cure: Cure) -> StableSet:
    large = len(cure.system(0.5 * (cure.low + min(cure.high, cure.low + 1.0))).M) > LARGEST_EXACT
    points = COARSE if large else SCAN
    end = cure.high if cure.certain is None else max(cure.certain, cure.low)
    if end == UNBOUNDED:
        end = cure.low + reach(cure)
    if end <= cure.low:
        return StableSet([], True, cure.low)
    bounded = cure.high < UNBOUNDED
    share = np.linspace(0.0, 1.0, points)
    marks = cure.low + (end - cure.low) * (share if bounded else share**2)
    last = end if bounded or cure.certain is not None else UNBOUNDED
    return StableSet(_between(cure, marks[1:].tolist(), last), False, end)


def reach(cure: Cure) -> float:
    """An amount whose part of the mean update is large beside the rest."""
    plain = 4.0 * max(1.0, cure.setting.m.operator_norm)
    if cure.line is None:
        return plain
    rest, part = (float(np.linalg.norm(M, 2)) for M in cure.line)
    # without discount a target does not matter, nor does then what regularises it
    return 4.0 * rest / part if part > ROUNDING * rest else plain


def _pairs(M0: Floats, M1: Floats) -> list[float]:
    """Where a pair of eigenvalues of M_0 + a M_1 may cross the imaginary axis."""
    if len(M0) == 1:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        values = scipy.linalg.eigvals(bialternate(M0), bialternate(M1))
    return real_ones(-np.asarray(values, dtype=np.complex128))


def _between(cure: Cure, marks: list[float], last: float) -> list[Interval]:
    """The unstable intervals, from one look between each two neighbouring marks.

    `last` is the end of the range: UNBOUNDED if all is alike beyond the largest mark.
    """
    ends = sorted({cure.low, *marks})
    looks = [] if cure.open_below else [cure.low]
    looks += [(a + b) / 2.0 for a, b in pairwise(ends) if b - a > BESIDE * (1.0 + abs(a))]
    looks.append(2.0 * ends[-1] - cure.low + 1.0 if last == UNBOUNDED else last)
    verdicts = [cure.stable(a) for a in looks]
    intervals: list[Interval] = []
    start = None if verdicts[0] else cure.low
    for (a, b), (before, after) in zip(pairwise(looks), pairwise(verdicts), strict=True):
        if before is after:
            continue
        change = _bisect(cure.stable, a, b, before)
        if start is None:
            start = change
        else:
            intervals.append((start, change))
            start = None
    if start is not None:
        intervals.append((start, last))
    return intervals


def _bisect(stable: Callable[[float], bool], a: float, b: float, verdict: bool) -> float:
    """Where the verdict changes between a and b."""
    for _ in range(SPLIT):
        middle = (a + b) / 2.0
        if abs(b - a) <= NARROW * (abs(a) + abs(b)) or middle in (a, b):
            break
        if stable(middle) is verdict:
            a = middle
        else:
            b = middle
    return float(b if verdict is False else a)


def _whole(cure: Cure) -> StableSet:
    """Whole numbers: all below `certain`, or the first ones and then ever fewer up to `high`."""
    low = int(cure.low)
    if cure.certain is not None:
        looks, last = list(range(low, int(cure.certain) + 1)), cure.certain
    else:
        last = cure.high
        looks, n = list(range(low, min(low + EACH, int(last)) + 1)), float(low + EACH)
        while n < last:
            n = np.ceil(n * GROWTH)
            looks.append(int(min(n, last)))
    verdicts = [cure.stable(float(n)) for n in looks]
    intervals: list[Interval] = []
    start = None if verdicts[0] else low
    for pair, (before, after) in zip(pairwise(looks), pairwise(verdicts), strict=True):
        if before is after:
            continue
        a, b = pair
        while b - a > 1:
            middle = (a + b) // 2
            a, b = (middle, b) if cure.stable(float(middle)) is before else (a, middle)
        if start is None:
            start = b
        else:
            intervals.append((float(start), float(a)))
            start = None
    if start is not None:
        intervals.append((float(start), UNBOUNDED))
    exact = cure.certain is not None or len(looks) == looks[-1] - low + 1
    return StableSet(intervals, exact, float(looks[-1]))
