"""Is a target better than the policy that made the log, or than another target?

Scores are compared unit by unit, so that what both policies share cancels:

    H = max(N, R)(score - other score) + the bounds of bias + what is beyond cuts, of both

on either side, as in `rule`. N is the largest over lam' up to the lam of the rule; two targets go
up together, each as far as its own lam. R takes the largest difference of both weights in a unit,
or in a row where the range of rewards is stated; D the difference of both values beyond the cuts.
What may make one target larger makes the difference larger, or smaller if it is the other one. The
behaviour's own scores are its returns (with V at cuts), and have no bias by features. Where several
comparisons are made at once, each has the level 1 - 0.05 / their number (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.wording import beside, count, decimals, listed
from steadytd.evaluation.intervals import SAME, Estimate
from steadytd.evaluation.judge.rule import UNSEEN, Reaches, Ruled, largest, noise
from steadytd.evaluation.judge.unseen import Tries

Said = Literal["better", "worse", "undecided"]


class LoggedValue(NamedTuple):
    """What the policy that made the log is worth, with its 95 % interval."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Decision:
    """Is `target` better than `other` (None: the policy that made the log)?

    `episodes_needed` more episodes like these (rows, where values are means over all rows) would
    decide in one of two cases, if the difference stayed as it is: with n' in place of n episodes
    the part of the interval that is due to chance shrinks by sqrt(n / n'), the bound of the bias
    does not (but for its least, half a standard error). None: no number is known, since the bound
    alone is larger than the difference (more data may lower it). 0 where it is decided.
    `level` is that of the interval; `reasons` are codes of findings that forbid to rely on it.
    """

    target: str
    other: str | None
    difference: float
    lo: float
    hi: float
    decision: Said
    trusted: bool
    episodes_needed: int | None
    level: float
    reasons: tuple[str, ...]
    counted: str = "episodes"
    same: bool = False  # in every row both give the logged action the same probability

    @property
    def text(self) -> str:
        """The decision as a sentence, and what forbids to rely on it."""
        doubt = f" This cannot be trusted: {', '.join(self.reasons)}." if self.reasons else ""
        return f"{self._text}{doubt}"

    @property
    def _text(self) -> str:
        other = "the policy that made the log" if self.other is None else self.other
        width = self.hi - self.lo
        ends = (-self.hi, -self.lo) if self.decision == "worse" else (self.lo, self.hi)
        lo, hi, by = (_number(x, width) for x in (*ends, abs(self.difference)))
        interval = f"({percent(self.level)} % interval {lo} to {hi})"
        if self.same:
            return (
                f"As far as this log shows, {self.target} is the policy that made it: in every row "
                "both give the action the same probability, so there is no difference to decide."
            )
        if not math.isfinite(width):
            return f"It cannot be told whether {self.target} is better than {other}: no interval."
        if self.decision != "undecided":
            return f"{self.target} is {self.decision} than {other} by {by} {interval}."
        known = (
            f"It cannot be told whether {self.target} is better or worse than {other}: the "
            f"difference is {_number(self.difference, width)} {interval}"
        )
        if abs(self.difference) <= SAME * width:
            return f"{known}; they look alike, so it cannot be said how much more data would tell."
        if self.episodes_needed is None:
            return (
                f"{known}; the possible bias, as far as this log shows, is larger than the "
                f"difference, so it cannot be said how many more {self.counted} would tell."
            )
        return (
            f"{known}; about {_rounded(self.episodes_needed):,} more {self.counted} like these "
            "would be needed for an even chance to tell, if the difference stays as it is."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "reasons": list(self.reasons), "text": self.text}


@dataclass(frozen=True)
class BestTarget:
    """The best target, None if it cannot be told; with one target, whether it is better at all.

    Where some targets can be trusted and others cannot, it is the best of those that can; the names
    of the others are `left_out`.
    """

    target: str | None
    trusted: bool
    text: str
    left_out: tuple[str, ...] = ()


class Side(NamedTuple):
    """A target in a comparison."""

    name: str
    rule: Ruled
    reasons: tuple[str, ...]  # not to trust it
    as_logged: bool = False  # all its ratios are 1


class Counted(NamedTuple):
    """How much data there is."""

    number: int
    what: str


def compared(one: Side, other: Side | None, data: Counted, together: int = 1) -> Decision:
    """One target against another, or against the policy that made the log."""
    level = 1.0 - 0.05 / together
    a, b = one.rule, None if other is None else other.rule
    paths = a.path, (a.own,) if b is None else b.path
    apart = paths[0][-1].minus(paths[1][-1])
    beyond = a.beyond + (0.0 if b is None else b.beyond)
    unseen = _unseen(paths[0][-1], paths[1][-1], a.rewards)
    hidden = _hidden(a.tries, None if b is None else b.tries, level)
    rare, seen = largest([Reaches(unseen, unseen), hidden]), _chance(*paths, a.divided, level)
    chance = Reaches(*(side + beyond for side in largest([seen, rare])))
    bounds = [(a.bias.fixed, a.bias.chance)]
    if b is not None:
        bounds.append((Reaches(b.bias.fixed.up, b.bias.fixed.down), b.bias.chance))
    doubt = _doubt(a, b)
    bounds.append((Reaches(doubt, doubt), 0.0))
    ends = (chance[i] + sum(max(fixed[i], least) for fixed, least in bounds) for i in (0, 1))
    lo, hi = Reaches(*ends).around(apart.value)
    said: Said = "better" if lo > 0.0 else "worse" if hi < 0.0 else "undecided"
    codes = (*one.reasons, *(() if other is None else other.reasons))
    reasons = tuple(dict.fromkeys(codes))
    side = int(apart.value < 0.0)  # the limit that lies towards 0
    open_ends = [(fixed[side], least) for fixed, least in bounds]
    falling = Falling(seen[side] + beyond, rare[side], beyond)
    needed = 0 if said != "undecided" else more(apart.value, falling, open_ends, data.number)
    against = None if other is None else other.name
    return Decision(
        one.name, against, apart.value, lo, hi, said, not reasons, needed, level, reasons,
        data.what, same=other is None and one.as_logged and said == "undecided",
    )  # fmt: skip


def _chance(
    one: tuple[Estimate, ...], other: tuple[Estimate, ...], divided: bool, level: float
) -> Reaches:
    """What chance can do to the difference: the largest on the way up."""
    found = []
    for i in range(max(len(one), len(other))):
        apart = one[min(i, len(one) - 1)].minus(other[min(i, len(other) - 1)]).influence
        if not np.isfinite(apart).all():
            return Reaches(math.nan, math.nan)
        found.append(noise(apart, divided, level).reach)
    return largest(found)


def _doubt(a: Ruled, b: Ruled | None) -> float:
    """How wrong what lies beyond the cuts may make the difference."""
    if b is None:
        return a.past.doubt(a.past.own)
    return max(a.past.doubt(b.past.value), b.past.doubt(a.past.value))


def _hidden(one: Tries | None, other: Tries | None, level: float) -> Reaches:
    """The same within the stated range of rewards."""
    if one is None:
        return Reaches(0.0, 0.0)
    both, weight = one.minus(other)
    return Reaches(*both.of(weight, level))


def _unseen(one: Estimate, other: Estimate, rewards: float) -> float:
    """What rewards that were not seen could do to the difference."""
    if one.masses is None or other.masses is None:
        return 0.0
    return UNSEEN * rewards * float(np.abs(one.masses - other.masses).max(initial=0.0))


class Falling(NamedTuple):
    """What falls with more data: chance with sqrt(n), beside it what was not seen with n."""

    chance: float
    rare: float = 0.0
    beyond: float = 0.0  # cuts; a part of `chance`, and added to `rare`


def more(
    difference: float, falling: Falling, bounds: list[tuple[float, float]], number: int
) -> int | None:
    """How many more would make the reach towards 0 smaller than the difference.

    That is max(s chance, s^2 rare + s beyond) + sum max(fixed, s part) with s = sqrt(n / n');
    `bounds` are pairs of what stays fixed and what falls with s.

    >>> more(1.0, Falling(1.5), [(0.25, 0.0)], 100), more(0.2, Falling(1.0), [(0.25, 0.0)], 100)
    (300, None)
    >>> more(1.0, Falling(0.5, 4.0), [], 100)
    300
    """
    if not all(map(math.isfinite, (*falling, *(part for both in bounds for part in both)))):
        return None

    def reach(s: float) -> float:
        chance = max(s * falling.chance, s * s * falling.rare + s * falling.beyond)
        rest = 0.0
        for fixed, part in bounds:
            rest += max(fixed, s * part)
        return chance + rest

    low, high = 0.0, 1.0
    if reach(low) >= abs(difference):
        return None
    while reach(high) < abs(difference) and high < 1e12:
        high *= 2.0
    for _ in range(200):
        s = (low + high) / 2.0
        if s in (low, high):  # no number lies between them
            break
        low, high = (s, high) if reach(s) < abs(difference) else (low, s)
    wanted = number / high**2 if high < 1e12 else math.inf
    return max(math.ceil(wanted * (1.0 - 1e-9) - number), 1) if wanted < 1e15 else None


def best(sides: list[Side], data: Counted) -> BestTarget:
    """The best of the targets that can be trusted, or of all if none can."""
    known, others = ([s for s in sides if bool(s.reasons) is no] for no in (False, True))
    if not known:
        found = best_of(sides, data)
        if len(sides) == 1:
            return found
        codes = ", ".join(dict.fromkeys(code for side in sides for code in side.reasons))
        return replace(found, text=f"{found.text} None of this can be trusted: {codes}.")
    found = best_of(known, data)
    if not others:
        return found
    said = "; ".join(f"{side.name} ({', '.join(side.reasons)})" for side in others)
    text = f"{found.text} Nothing is said about targets that cannot be trusted: {said}."
    return replace(found, text=text, left_out=tuple(side.name for side in others))


def best_of(sides: list[Side], data: Counted) -> BestTarget:
    """The target that is better than every other one, all pairs compared at once."""
    if len(sides) == 1:
        (one,) = sides
        found = compared(one, None, data)
        name = one.name if found.decision == "better" else None
        return BestTarget(name, found.trusted, found.text)
    pairs = len(sides) * (len(sides) - 1) // 2
    trusted = not any(side.reasons for side in sides)
    leading = max(sides, key=lambda side: side.rule.value if side.rule.known else -math.inf)
    others = [compared(leading, two, data, pairs) for two in sides if two is not leading]
    if all(d.decision == "better" for d in others):  # of no other target can that be true
        nearest = min(others, key=lambda d: d.difference)
        lowest, width = min(d.lo for d in others), nearest.hi - nearest.lo
        text = f"{leading.name} is the best of {len(sides)} targets: better than "
        if len(others) == 1:
            apart, low, high = (
                _number(x, width) for x in (nearest.difference, nearest.lo, nearest.hi)
            )
            text += f"{nearest.other} by {apart} (95 % interval {low} to {high})."
        else:
            text += (
                f"each of the others by at least {beside(lowest, width)} "
                f"({count(pairs, 'comparison')} at once, 95 % level for all). {nearest.other} "
                f"comes next, {beside(nearest.difference, width)} below it."
            )
        return BestTarget(leading.name, trusted, text)
    equal = [side.name for side in sides if side.rule.value == leading.rule.value]
    first = f"{leading.name} has the largest value"
    if len(equal) > 1:
        first = f"the largest value is that of {listed(equal)}"
    if not leading.rule.known:
        first = "none has a value with an interval"
    text = (
        f"It cannot be told which of {len(sides)} targets is best; {first} "
        f"({count(pairs, 'comparison')} at once, 95 % level for all)."
    )
    return BestTarget(None, trusted, text)


def _number(value: float, width: float) -> str:
    """With as many digits as two of half the width."""
    known = width > 0.0 and math.isfinite(width) and width < 1e9
    if not known or not 1e-4 <= abs(value) < 1e9:
        return beside(value, width)
    digits = min(1 - math.floor(math.log10(width / 2)), 5 - math.floor(math.log10(abs(value))))
    return decimals(value, digits, width)


def percent(level: float) -> str:
    """A level, with as many digits as show what is missing to 100.

    >>> percent(0.95), percent(1.0 - 0.05 / 3), percent(1.0 - 0.05 / 2000)
    ('95', '98.33', '99.9975')
    """
    places = max(2, 1 - math.floor(math.log10(100.0 * (1.0 - level)) + 1e-9))
    return f"{100.0 * level:.{places}f}".rstrip("0").rstrip(".")


def _rounded(number: int) -> int:
    """Two digits are enough.

    >>> _rounded(1234), _rounded(87)
    (1200, 87)
    """
    digits = max(len(str(number)) - 2, 0)
    return int(round(number, -digits))
