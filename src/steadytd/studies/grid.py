"""Grids of hyper-parameters: from the axes of a study to a list of learners.

An axis is a number or a text, a list of them, `{ log2 = [-18, 0] }` (the powers of two from 2^-18
to 2^0; a third number is the step of the exponent) or `{ linear = [0, 1, 6] }` (six values, evenly
spaced, ends included). The grid is the product of the axes, the last one fastest. Conditional axes
hold for some points only:

    [[learners.when]]
    if = { lam = [0.9, 0.95] }
    penalty = ["scaled", "outside"]
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steadytd.base.errors import InputError, unknown
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner

Point = dict[str, float | str]
Axis = object
FORMS = ("log2", "linear")
LARGEST_EXPONENT = 1000  # of a power of two
LARGEST = 1e300  # end of a range
MOST = 1_000_000  # points of one grid: beyond that it is a slip of the pen


def grid(algorithm: str | Law, /, **axes: object) -> list[Learner]:
    """All learners of a grid: the product of the axes, the last one fastest.

    An axis is a value, a list, an array, or a range as in a study file: `{"log2": [-18, 0]}`,
    `{"linear": [0, 1, 6]}`.

    >>> [str(x) for x in grid("perturbed_td", alpha=[1e-4, 1e-3], eta=1)]
    ['perturbed_td:alpha=0.0001,eta=1', 'perturbed_td:alpha=0.001,eta=1']
    """
    spread = {
        key: np.asarray(axis).tolist() if isinstance(axis, range | np.ndarray) else axis
        for key, axis in axes.items()
    }
    return [make_learner(algorithm, **point) for point in points(spread, ())]


class GridError(InputError):
    """A mistake in one axis; `key` says which."""

    def __init__(self, key: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.key = tuple(key)


def values(key: str, axis: Axis) -> list[float | str]:
    """The values of one axis.

    >>> values("alpha", {"log2": [-2, 0]}), values("lam", [0, 0.9]), values("eta", "auto")
    ([0.25, 0.5, 1.0], [0.0, 0.9], ['auto'])
    """
    _require_few(count(key, axis), [key])
    if isinstance(axis, Mapping):
        low, high, third = _bounds(key, axis)
        if "log2" in axis:
            return [2.0**exponent for exponent in range(int(low), int(high) + 1, third)]
        return [float(f"{v:.12g}") for v in np.linspace(low, high, third)]  # 0.6, not 0.60...01
    return [_value(key, one) for one in (axis if isinstance(axis, list | tuple) else [axis])]


def count(key: str, axis: Axis) -> int:
    """How many values an axis has, without making them.

    >>> count("alpha", {"linear": [0, 1, 10**12]}), count("alpha", {"log2": [-18, 0]})
    (1000000000000, 19)
    """
    if isinstance(axis, Mapping):
        low, high, third = _bounds(key, axis)
        return (int(high) - int(low)) // third + 1 if "log2" in axis else third
    several = len(axis) if isinstance(axis, list | tuple) else 1
    if not several:
        raise GridError([key], f"{key} is an empty list; give at least one value.")
    return several


def _require_few(points: int, key: Sequence[str | int]) -> None:
    if points > MOST:
        raise GridError(
            key, f"this grid has {points:,} points, more than {MOST:,}; leave some values out."
        )


def _too_large(value: float | str) -> bool:
    """Whether a whole number is beyond those that a double can hold."""
    return isinstance(value, int) and abs(value) > sys.float_info.max


def _value(key: str, value: object) -> float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or _too_large(value):
        raise GridError(
            [key],
            f"{key} must be a number, a text, a list of them, {{ log2 = [low, high] }} or "
            f"{{ linear = [low, high, count] }}, got {value!r}.",
        )
    return value if isinstance(value, str) else float(value)


def _bounds(key: str, axis: Mapping[str, object]) -> tuple[float, float, int]:
    """Low, high and the step of the exponent or the count of a range, checked."""
    if len(axis) != 1 or next(iter(axis)) not in FORMS:
        given = ", ".join(axis) or "nothing"
        raise GridError(
            [key], f"{key}: a range has one of the keys {' and '.join(FORMS)}, got {given}."
        )
    ((form, bounds),) = axis.items()
    usage = "[low, high] or [low, high, step]" if form == "log2" else "[low, high, count]"
    numbers = bounds if isinstance(bounds, list | tuple) else []
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    wanted = (2, 3) if form == "log2" else (3,)
    plain = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if len(numbers) not in wanted or not plain or (form == "log2" and not whole):
        kind = " of whole numbers" if form == "log2" else ""
        raise GridError([key], f"{key}.{form} must be {usage}{kind}, got {bounds!r}.")
    low, high, *rest = numbers
    third = rest[0] if rest else 1
    finite = all(abs(n) <= LARGEST for n in numbers)  # beyond it the distance overflows
    if not finite or low > high or third < 1 or third != int(third):
        last = "step" if form == "log2" else "count"
        raise GridError(
            [key],
            f"{key}.{form} must be {usage} with finite low <= high and {last} a whole number >= 1, "
            f"got {bounds!r}.",
        )
    if form == "log2" and not -LARGEST_EXPONENT <= low <= high <= LARGEST_EXPONENT:
        raise GridError(
            [key],
            f"{key}.log2 must lie between -{LARGEST_EXPONENT} and {LARGEST_EXPONENT}, got "
            f"{bounds!r}: other powers of two are no numbers of a computer.",
        )
    return low, high, int(third)


def points(axes: Mapping[str, Axis], when: Sequence[Mapping[str, Axis]] = ()) -> Iterator[Point]:
    """All points of a grid; every entry of `when` adds axes where its `if` holds."""
    _require_few(math.prod(count(key, axis) for key, axis in axes.items()), [])
    spread = {key: values(key, axis) for key, axis in axes.items()}
    conditions = [_Condition.of(condition) for condition in when]
    if conditions:  # walked once without making a learner of every point
        most = itertools.islice(_walk(spread, conditions), MOST + 1)
        if sum(1 for _ in most) > MOST:
            message = f"this grid has more than {MOST:,} points; leave some values out."
            raise GridError(["when"], message)
    return _walk(spread, conditions)


def _walk(
    spread: Mapping[str, Sequence[float | str]], when: Sequence[_Condition]
) -> Iterator[Point]:
    for chosen in itertools.product(*spread.values()):
        yield from _extended(dict(zip(spread, chosen, strict=True)), when)


class _Condition(NamedTuple):
    """Axes, as their values, that hold where a point has some of other values."""

    rule: dict[str, list[float | str]]
    more: dict[str, list[float | str]]

    @staticmethod
    def of(given: Mapping[str, Axis]) -> _Condition:
        rule = given.get("if")
        if not isinstance(rule, Mapping) or not rule:
            raise GridError(["when"], "a condition needs `if`, for instance if = { lam = [0.9] }.")
        added = {key: axis for key, axis in given.items() if key != "if"}
        _require_few(math.prod(count(key, axis) for key, axis in added.items()), ["when"])
        wanted, more = (
            {key: values(key, axis) for key, axis in part.items()} for part in (rule, added)
        )
        return _Condition(wanted, more)

    def holds(self, point: Point) -> bool:
        for key in self.rule:
            if key not in point:
                raise GridError(["when"], str(unknown("axis in `if`:", key, point)))
        return all(point[key] in allowed for key, allowed in self.rule.items())


def _extended(point: Point, when: Sequence[_Condition]) -> Iterator[Point]:
    """A point with the axes of the first condition that holds, then of the others."""
    if not when:
        yield point
        return
    condition, *others = when
    for key in condition.more:
        if key in point:
            raise GridError(["when"], f"{key} is already an axis; a condition adds other axes.")
    if condition.holds(point):
        for chosen in itertools.product(*condition.more.values()):
            extra = dict(zip(condition.more, chosen, strict=True))
            yield from _extended({**point, **extra}, others)
    else:
        yield from _extended(point, others)
