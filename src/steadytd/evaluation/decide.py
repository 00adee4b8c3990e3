"""Is a target better than the policy that made the log, or than another target?

Scores are compared unit by unit, so that what both policies share cancels. With d_u the difference
of the influences of unit u, the interval of the difference is, as in `rule`,

    J(lam) - J' -+ [ max( t se(d), R ) + B + T ]

    R      as in `rule`, with the differences of both weights of a unit
    B      that of the target; of two targets the sum
    T      1/2 min( |difference of the values beyond the cut-offs|, C sd(returns) )

J' is the mean of the behaviour's own scores (its returns, with V at cut-offs; the features do not
bias it), or J(lam') of the other target. Of all supported lam (pairs of lam) the shortest interval
is taken. Where m comparisons are made at once, each has the level 1 - 0.05 / m (Bonferroni), so
that all of them hold together with 95 %.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from steadytd.base.numbers import about, interval, rounded
from steadytd.evaluation.intervals import SAME
from steadytd.evaluation.rule import (
    LEVEL,
    Candidate,
    LoggedReturns,
    Selection,
    rare_outcome,
    rule_of_three,
    sampling_error,
    truncation_error,
)

Verdict = Literal["better", "worse", "undecided"]


class LoggedValue(NamedTuple):
    """What the policy that made the log is worth, with its 95 % interval."""

    value: float
    lo: float
    hi: float


class Difference(NamedTuple):
    """A difference of two values, and the terms of its interval."""

    value: float
    chance: float  # t se: falls with the square root of the number of units
    rare: float  # R: falls with their number
    fixed: float  # B + T: more of the same data leaves it as it is
    check: float = 0.0  # B where lam = 1 has no bias: chance alone makes it, and it falls alike

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return max(self.chance, self.rare) + self.check + self.fixed

    def wanted(self) -> tuple[float, float]:
        """How many times the units make `chance`, and `rare`, small enough, with `check` beside it.

        `chance` and `check` shrink with the root of that number, and `rare` with the number.
        """
        room = abs(self.value) - self.fixed
        if not room > SAME * self.half_width:
            return math.inf, math.inf
        root = (self.check + math.sqrt(self.check**2 + 4.0 * room * self.rare)) / (2.0 * room)
        return ((self.chance + self.check) / room) ** 2, root**2

    def more(self, units: int) -> int | None:
        """How many more units make the half width smaller than the difference; None: no number.

        >>> Difference(1.0, 1.5, 0.0, 0.25).more(100), Difference(0.2, 1.0, 0.0, 0.25).more(100)
        (300, None)
        >>> Difference(1.0, 0.5, 4.0, 0.0).more(100), Difference(1.0, 1.5, 0.0, 0.0, 0.5).more(100)
        (300, 300)
        """
        wanted = units * max(self.wanted())
        return max(math.ceil(wanted * (1.0 - SAME) - units), 1) if wanted < 1e15 else None


@dataclass(frozen=True)
class Decision:
    """Is `target` better than `other` (None: the policy that made the log)?

    `episodes_needed` more episodes like these (rows, where values are means over all rows) would
    decide in one of two cases, with some supported lam, if the difference stayed as it is. None: no
    number is known, since bias and truncation alone exceed the difference. 0 where it is decided.
    `level` is that of the interval; `reasons` are codes of the findings that speak against relying
    on it.
    """

    target: str
    other: str | None
    difference: float
    lo: float
    hi: float
    decision: Verdict
    trusted: bool
    episodes_needed: int | None
    level: float
    reasons: tuple[str, ...]
    counted: str = "episodes"
    same: bool = False  # in every row both give the logged action the same probability
    per_step: bool = False  # values are rewards per step

    @property
    def headline(self) -> str:
        """The decision as one sentence."""
        other = "the policy that made the log" if self.other is None else self.other
        if self.same:
            return f"{self.target} and {other} act alike in every row: there is nothing to decide."
        width = self.hi - self.lo
        unclear = f"The log does not show whether {self.target} is better than {other}"
        if not math.isfinite(width):
            return f"{unclear}: there is no interval."
        ends = (-self.hi, -self.lo) if self.decision == "worse" else (self.lo, self.hi)
        per_step = "per step " if self.per_step else ""
        limits = f"{per_step}({_level(self.level)} % interval {interval(*ends)})"
        if self.decision != "undecided":
            by = rounded(abs(self.difference), width / 2.0)
            return f"{self.target} is {self.decision} than {other} by {by} {limits}."
        return f"{unclear}: the difference is {rounded(self.difference, width / 2.0)} {limits}."

    @property
    def text(self) -> str:
        """The decision, what more data would tell, and the reasons not to rely on it."""
        more = doubt = ""
        if self.decision == "undecided" and not self.same and math.isfinite(self.hi - self.lo):
            more = " The possible bias is larger: more data of the same kind may not decide."
            if self.episodes_needed is not None:
                needed = f"{about(self.episodes_needed)} more {self.counted}"
                more = f" If the difference persists, {needed} would decide with probability 1/2."
        if self.reasons:
            doubt = f" Not trusted: {', '.join(self.reasons)}."
        return f"{self.headline}{more}{doubt}"

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
    selection: Selection
    reasons: tuple[str, ...]  # not to trust it
    as_logged: bool = False  # all its ratios are 1


def compared(one: Side, other: Side | None, log: LoggedReturns, together: int = 1) -> Decision:
    """One target against another, or against the policy that made the log."""
    level = 1.0 - (1.0 - LEVEL) / together
    differences = [
        difference(a, b, log, level)
        for a in one.selection.usable
        for b in ((None,) if other is None else other.selection.usable)
    ]
    apart = shortest(differences)
    lo, hi = apart.value - apart.half_width, apart.value + apart.half_width
    verdict: Verdict = "better" if lo > 0.0 else "worse" if hi < 0.0 else "undecided"
    persists = [d._replace(value=apart.value).more(int(log.starts.sum())) for d in differences]
    more = [found for found in persists if found is not None]
    reasons = tuple(dict.fromkeys((*one.reasons, *(() if other is None else other.reasons))))
    return Decision(
        target=one.name,
        other=None if other is None else other.name,
        difference=apart.value,
        lo=lo,
        hi=hi,
        decision=verdict,
        trusted=not reasons,
        episodes_needed=min(more, default=None) if verdict == "undecided" else 0,
        level=level,
        reasons=reasons,
        counted=counted(log),
        same=other is None and one.as_logged and verdict == "undecided",
        per_step=log.average,
    )


def shortest(differences: list[Difference]) -> Difference:
    """The one with the shortest interval."""
    widths = [d.half_width if math.isfinite(d.half_width) else math.inf for d in differences]
    return differences[widths.index(min(widths))]


def counted(log: LoggedReturns) -> str:
    """What more of the same data would be."""
    what = "rows" if log.continuing else "episodes"
    return f"{what} of new units" if log.by_column else what


def difference(
    one: Candidate, other: Candidate | None, log: LoggedReturns, level: float = LEVEL
) -> Difference:
    """The difference of two estimates; `other` None: from the behaviour's own scores."""
    if other is None:
        value, influence, weights = log.value, log.influence, log.starts
        bias, cut, at_cuts = one.bias, one.cut, log.own_at_cuts
    else:
        value, influence, weights = other.value, other.influence, other.weights
        bias, cut, at_cuts = one.bias + other.bias, max(one.cut, other.cut), other.at_cuts
    chance = log.inflation * sampling_error(one.influence - influence, log.stretches, level)
    chance += SAME * max(abs(one.value), abs(value))  # what rounding leaves is no difference
    truncation = 0.0 if log.continuing else truncation_error(one.at_cuts - at_cuts, cut, log)
    rare = rule_of_three(level) * rare_outcome(one.weights - weights, log)
    unbiased = one.unbiased and (other is None or other.unbiased)
    fixed, check = (truncation, bias) if unbiased else (bias + truncation, 0.0)
    return Difference(one.value - value, chance, rare, fixed, check)


def best(sides: list[Side], log: LoggedReturns) -> BestTarget:
    """The best of the targets that can be trusted, or of all if none can."""
    trusted = [side for side in sides if not side.reasons]
    result = _best_of(trusted or sides, log)
    if len(trusted) == len(sides) or len(sides) == 1:
        return result
    if not trusted:
        codes = ", ".join(dict.fromkeys(code for side in sides for code in side.reasons))
        return replace(result, text=f"{result.text} None of this is trusted: {codes}.")
    others = [side for side in sides if side.reasons]
    names = "; ".join(f"{side.name} ({', '.join(side.reasons)})" for side in others)
    text = f"{result.text} Not trusted and left out: {names}."
    return replace(result, text=text, left_out=tuple(side.name for side in others))


def _best_of(sides: list[Side], log: LoggedReturns) -> BestTarget:
    """The target that is better than every other one, all pairs compared at once."""
    if len(sides) == 1:
        alone = compared(sides[0], None, log)
        name = alone.target if alone.decision == "better" else None
        return BestTarget(name, alone.trusted, alone.text)
    pairs = len(sides) * (len(sides) - 1) // 2
    level = "95 % interval"
    if pairs > 1:
        level = f"{pairs} simultaneous comparisons at a joint level of 95 %"
    trusted = not any(side.reasons for side in sides)
    leading = max(sides, key=_value)
    others = [compared(leading, side, log, pairs) for side in sides if side is not leading]
    if all(d.decision == "better" for d in others):  # of no other target can that be true
        second = min(others, key=lambda d: d.difference)
        text = (
            f"{leading.name} is the best of {len(sides)} targets: it is better than "
            f"{second.other}, the second, by {interval(second.lo, second.hi)}"
            f"{' per step' if log.average else ''} ({level})."
        )
        return BestTarget(leading.name, trusted, text)
    first = f"{leading.name} has the largest value"
    if not math.isfinite(_value(leading)):
        first = "none has a value with an interval"
    text = f"The log does not show which of {len(sides)} targets is best; {first} ({level})."
    return BestTarget(None, trusted, text)


def _value(side: Side) -> float:
    s = side.selection
    return s.value if math.isfinite(s.hi - s.lo) else -math.inf


def _level(level: float) -> str:
    """A level in percent, with as many digits as show what is missing to 100.

    >>> _level(0.95), _level(1.0 - 0.05 / 3), _level(1.0 - 0.05 / 2000)
    ('95', '98.33', '99.9975')
    """
    places = max(2, 1 - math.floor(math.log10(100.0 * (1.0 - level)) + 1e-9))
    return f"{100.0 * level:.{places}f}".rstrip("0").rstrip(".")
