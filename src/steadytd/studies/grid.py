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
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steadytd.base.errors import InputError, unknown

Point = dict[str, float | str]
Axis = object
FORMS = ("log2", "linear")
MOST = 1_000_000  # points of one grid: beyond that it is a slip of the pen


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
    if isinstance(axis, Mapping):
        return [*_ranged(key, axis)]
    several = list(axis) if isinstance(axis, list | tuple) else [axis]
    if not several:
        raise GridError([key], f"{key} is an empty list; give at least one value.")
    return [_value(key, one) for one in several]


def _value(key: str, value: object) -> float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise GridError(
            [key],
            f"{key} must be a number, a text, a list of them, {{ log2 = [low, high] }} or "
            f"{{ linear = [low, high, count] }}, got {value!r}.",
        )
    return value if isinstance(value, str) else float(value)


def _ranged(key: str, axis: Mapping[str, object]) -> list[float]:
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
    if low > high or third < 1 or third != int(third):
        last = "step" if form == "log2" else "count"
        raise GridError(
            [key],
            f"{key}.{form} must be {usage} with low <= high and {last} a whole number >= 1, "
            f"got {bounds!r}.",
        )
    if form == "log2":
        return [2.0**exponent for exponent in range(low, high + 1, third)]
    return [float(f"{v:.12g}") for v in np.linspace(low, high, int(third))]  # 0.6, not 0.60...01


def points(axes: Mapping[str, Axis], when: Sequence[Mapping[str, Axis]] = ()) -> Iterator[Point]:
    """All points of a grid; every entry of `when` adds axes where its `if` holds."""
    spread = {key: values(key, axis) for key, axis in axes.items()}
    if np.prod([float(len(v)) for v in spread.values()]) > MOST:
        raise GridError([], f"this grid has more than {MOST:,} points; leave some values out.")
    for chosen in itertools.product(*spread.values()):
        yield from _extended(dict(zip(spread, chosen, strict=True)), when)


def _extended(point: Point, when: Sequence[Mapping[str, Axis]]) -> Iterator[Point]:
    """A point with the axes of the first condition that holds, then of the others."""
    if not when:
        yield point
        return
    condition, *others = when
    more = {key: axis for key, axis in condition.items() if key != "if"}
    for key in more:
        if key in point:
            raise GridError(["when"], f"{key} is already an axis; a condition adds other axes.")
    if _holds(condition, point):
        for extra in points(more):
            yield from _extended({**point, **extra}, others)
    else:
        yield from _extended(point, others)


def _holds(condition: Mapping[str, Axis], point: Point) -> bool:
    rule = condition.get("if")
    if not isinstance(rule, Mapping) or not rule:
        raise GridError(["when"], "a condition needs `if`, for instance if = { lam = [0.9] }.")
    for key in rule:
        if key not in point:
            raise GridError(["when"], str(unknown("axis in `if`:", key, point)))
    return all(point[key] in values(key, axis) for key, axis in rule.items())
