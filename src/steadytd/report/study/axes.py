"""What the figures of a study share: error axes, ticks, labels, a shelf for what diverged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.report.figures import tick_axis
from steadytd.studies.analysis.tables import power_of_two

DECADES = 5.0  # a ratio beyond which an axis is logarithmic
LEAST = 1e-12  # errors below are drawn as this


def error_axis(values: Floats) -> tuple[bool, float, float]:
    """Whether an axis for these errors is logarithmic, and its ends."""
    found = np.maximum(values[np.isfinite(values)], LEAST)
    low, high = float(found.min()), float(found.max())
    if high > DECADES * low:
        room = (high / low) ** 0.04
        return True, low / room, high * room
    room = 0.06 * (high - low) or 0.05 * high
    return False, max(0.0, low - room), high + room


def interval_ends(mean: Floats, half: Floats, log: bool) -> tuple[Floats, Floats]:
    """The ends of a mean's interval of this half width; on a logarithmic axis of its logarithm.

    An error is positive. Where runs scatter much, the plain interval would reach below zero.

    >>> interval_ends(np.array([2.0]), np.array([3.0]), log=False)
    (array([-1.]), array([5.]))
    >>> [round(float(end[0]), 3) for end in interval_ends(np.ones(1), np.full(1, 0.1), log=True)]
    [0.905, 1.105]
    """
    if not log:
        return mean - half, mean + half
    factor = np.exp(np.divide(half, mean, out=np.zeros_like(half), where=mean > 0.0))
    with np.errstate(over="ignore"):  # just before a run overflows the upper end may be infinite
        return mean / factor, mean * factor


def interval_note(log: bool) -> str:
    """What a band is."""
    return f"band: 95 % interval of the mean{', of its logarithm' if log else ''}"


def least_note(errors: Iterable[float]) -> str:
    """What a caption says where errors are too small to be drawn.

    >>> least_note([1e-13, 1.0]), least_note([1e-12, 1.0])
    ('; errors below 1e-12 are drawn as that', '')
    """
    return f"; errors below {LEAST:g} are drawn as that" if min(errors) < LEAST else ""


def error_scale(log: bool, low: float, high: float) -> Any:
    """Altair's scale between two errors."""
    import altair as alt

    if log:
        return alt.Scale(type="log", domain=[low, high], nice=False)
    return alt.Scale(domain=[low, high], nice=False, zero=False)


def share_of(value: float, log: bool, low: float, high: float) -> float:
    """Where a value lies on an axis: 0 at its lower, 1 at its upper end."""
    value = min(max(value, low), high)
    if log:
        return float(np.log(value / low) / np.log(high / low))
    return (value - low) / (high - low)


def value_at(share: float, log: bool, low: float, high: float) -> float:
    """The value at a place of an axis; beyond its ends too."""
    return float(low * (high / low) ** share) if log else low + share * (high - low)


@dataclass(frozen=True)
class Shelf:
    """A vertical error axis from `low` to `clip` with room above for runs that have no error.

    `top` is the axis' upper end in the units of the errors; `height` and `room` are in pixels.
    """

    log: bool
    low: float
    clip: float
    height: float
    room: float

    @property
    def top(self) -> float:
        """The upper end of the scale."""
        return value_at(1.0 + self.room / self.height, self.log, self.low, self.clip)

    def place(self, pixels: float) -> float:
        """The value that lies so many pixels above the clip line."""
        return value_at(1.0 + pixels / self.height, self.log, self.low, self.clip)

    def scale(self) -> Any:
        """Altair's scale."""
        return error_scale(self.log, self.low, self.top)

    def axis(self, *shelves: str) -> Any:
        """Altair's axis; in place of numbers, the room above has the shelves' names."""
        import altair as alt

        style = {"labelFontSize": 11, "labelOverlap": "greedy", "labelSeparation": 1}  # low shelves
        axis = tick_axis(self.log, self.low, self.clip, **style)
        label = str(axis.labelExpr)
        high = self.room / max(len(shelves), 1)
        for i, name in enumerate(shelves):
            here = f"datum.value > {self.place((i + 0.01) * high)}"
            label = f"{here} ? {json.dumps(name)} : {label}"
            axis.values.append(self.place((i + 0.5) * high))
        axis.labelExpr = label
        axis.gridOpacity = alt.ExprRef(f"datum.value > {self.clip * (1 + 1e-9)} ? 0 : 1")
        return axis


def shelf(errors: Sequence[float], start: float, reach: float, height: float, room: float) -> Shelf:
    """An axis for these errors that reaches `reach` times the error at w0, if need be."""
    found = np.array([e for e in errors if np.isfinite(e)] or [start or 1.0])
    low = max(LEAST, float(found.min()))
    clip = max(min(float(found.max()), reach * start), 1.5 * low, 1.05 * start)
    log = clip > DECADES * low
    bottom = low / (clip / low) ** 0.06 if log else max(0.0, low - 0.08 * (clip - low))
    return Shelf(log, bottom, clip, height, room)


def power_labels(exponents: Sequence[float]) -> str:
    """A Vega expression for an axis of exponents: 2⁻⁵ for -5, the number itself in between.

    Looked up by three decimals: the last digit of a number may change on its way to the picture.

    >>> power_labels([5.0, 3.5])
    "({'5.000': '2⁵', '3.500': '11.3'})[format(datum.value, '.3f')]"
    """
    listed = []
    for exponent in exponents:
        key = f"{exponent:.3f}".replace("-", "\N{MINUS SIGN}")  # as Vega writes it
        whole = exponent == int(exponent)
        text = power_of_two(int(exponent)) if whole else f"{2.0**exponent:.3g}"
        listed.append(f"'{key}': '{text}'")
    return f"({{{', '.join(listed)}}})[format(datum.value, '.3f')]"


def spread(wanted: Sequence[float], gap: float, top: float) -> list[float]:
    """Positions near the wanted ones (in order), at least `gap` apart and within [0, top].

    >>> spread([10.0, 11.0, 12.0, 80.0], 10.0, 100.0)
    [1.0, 11.0, 21.0, 80.0]
    """
    groups: list[list[float]] = []  # [sum of wanted minus offset, count], merged while they touch
    for value in wanted:
        groups.append([value, 1.0])
        while len(groups) > 1:
            (a, n), (b, m) = groups[-2], groups[-1]
            if a / n + gap * n <= b / m + 1e-9:
                break
            groups[-2:] = [[a + b - gap * n * m, n + m]]
    placed = [total / n + gap * i for total, n in groups for i in range(int(n))]
    for i in range(len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap if i else 0.0)
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], placed[i + 1] - gap if i + 1 < len(placed) else top)
    return placed
