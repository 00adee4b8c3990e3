"""What the paper says of a curve, and how runs show it or do not.

Where ten runs of a learner need not look like ten others (emphatic TD's follow-on trace has
infinite variance), the paper's ten runs are not compared with ours but with what ten runs can look
like: `Spread`, from many more runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs

SHOWN_AS_ZERO = 0.01  # of the error at the start: less than a pixel on the axes of the figures
TEXT_TOLERANCE = 0.01  # relative, of a number in the text, which has three digits and no spread
LIKELY = (0.005, 0.995)  # of 100 experiments, 99 lie between these quantiles


class Spread(NamedTuple):
    """Many runs of one learner: how a run, and a mean of as many runs as in the paper, looks.

    `single` is [run, point], `means` [group, point]: means over groups drawn from the runs.
    """

    steps: Longs
    single: Floats
    means: Floats

    def likely(self, of: Floats) -> tuple[float, float]:
        """Where 99 of 100 of these numbers lie."""
        low, high = np.quantile(of, LIKELY, method="nearest")
        return float(low), float(high)


class Evidence(NamedTuple):
    """What a statement is held against: the runs' errors [run, point], and what theory knows."""

    steps: Longs
    errors: Floats
    stable: bool
    best: float
    rival: float  # the mean error of perturbed TD at the end
    spread: Spread | None

    @property
    def mean(self) -> Floats:
        """The curve that the paper shows: the mean over the runs."""
        return np.asarray(self.errors.mean(axis=0))

    @property
    def end(self) -> float:
        """Its last point."""
        return float(self.mean[-1])


@dataclass(frozen=True)
class Statement:
    """The text (and the number, if there is one), and the test whether runs show it."""

    text: str
    holds: Callable[[Evidence], bool]
    number: float | None = None


def _diverges(e: Evidence) -> bool:
    return not e.stable and e.end > max(e.mean[0], e.mean[len(e.steps) // 2])


def _wanders(e: Evidence) -> bool:
    """The runs end far apart (one run: it does not come to rest at zero)."""
    spread = float(e.errors[:, -1].std()) / e.end if e.end > 0.0 else 0.0
    return e.end > SHOWN_AS_ZERO * e.mean[0] and (len(e.errors) == 1 or spread > 0.3)


DIVERGES = Statement("diverges", _diverges)
TO_ZERO = Statement("converges to zero", lambda e: bool(e.end < SHOWN_AS_ZERO * e.mean[0]))
SLOWLY = Statement(
    "converges slowly", lambda e: e.stable and bool(SHOWN_AS_ZERO * e.mean[0] < e.end < e.mean[0])
)
OSCILLATES = Statement("oscillates", _wanders)
WORSE = Statement("worse than perturbed TD", lambda e: e.end > e.rival)
NOT_CLOSE = Statement("not close", lambda e: e.stable and e.end > 1.5 * e.best)


def ends_at(value: float, within: float, text: str = "") -> Statement:
    """The curve ends at this value, known to `within`; in the likely range where runs differ."""

    def holds(e: Evidence) -> bool:
        if e.spread is None:
            return abs(e.end - value) <= within
        low, high = e.spread.likely(e.spread.means[:, -1])
        return low - within <= value <= high + within

    return Statement(text or f"about {value:g}", holds, value)


def text_number(value: float) -> Statement:
    """A number of the paper's text."""
    return ends_at(value, TEXT_TOLERANCE * value, f"converges, {value:g}")


def leaves(cut: float, after: int, by: int, text: str) -> Statement:
    """The curve first exceeds the panel's upper end between two steps."""

    def holds(e: Evidence) -> bool:
        if e.spread is None:
            return after <= first_above(e.mean, cut, e.steps) <= by
        found = [first_above(curve, cut, e.spread.steps) for curve in e.spread.means]
        low, high = e.spread.likely(np.array(found))
        return low <= by and high >= after

    return Statement(text, holds)


def zero_by(step: int, visible: float, text: str) -> Statement:
    """From this step on the curve lies on the axis: below what the panel can show."""
    return Statement(text, lambda e: bool((e.mean[e.steps >= step] < visible).all()))


def turns_at(value: float, step: int, within: float, around: int, text: str) -> Statement:
    """The curve's least value, and the step at which it has it."""

    def holds(e: Evidence) -> bool:
        at = int(np.argmin(e.mean))
        return abs(float(e.mean[at]) - value) <= within and abs(int(e.steps[at]) - step) <= around

    return Statement(text, holds)


def rests_between(low: float, high: float, within: float, text: str) -> Statement:
    """Between bursts: the median run, at half of the points of the second half at least."""

    def holds(e: Evidence) -> bool:
        runs = e.errors if e.spread is None else e.spread.single
        typical = float(np.median(np.median(runs, axis=0)[runs.shape[1] // 2 :]))
        return low - within <= typical <= high + within

    return Statement(text, holds)


def both(one: Statement, other: Statement) -> Statement:
    """Two statements about one curve."""
    return Statement(
        f"{one.text}; {other.text}",
        lambda e: one.holds(e) and other.holds(e),
        one.number if other.number is None else other.number,
    )


def first_above(curve: Floats, cut: float, steps: Longs) -> float:
    """The first recorded step at which a curve exceeds a value; infinite if it never does."""
    above = np.flatnonzero(~(curve <= cut))
    return float(steps[above[0]]) if len(above) else float("inf")
