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
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from steadytd.base.errors import InputError, unknown
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner

Value = float | str
Point = dict[str, Value]
MOST = 1_000_000  # points of one grid: beyond that it is a slip of the pen

Number = Annotated[float, Field(strict=True, ge=-1e300, le=1e300)]  # no booleans, not infinite
Exponent = Annotated[int, Field(strict=True, ge=-1000, le=1000)]
Several = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """A part of a study: unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Powers(Strict):
    """Powers of two: the exponents low, low + step, ..., high."""

    log2: tuple[Exponent, Exponent] | tuple[Exponent, Exponent, Several]

    def values(self) -> list[Value]:
        """All of them."""
        low, high, *step = self.log2
        return [2.0**exponent for exponent in range(low, high + 1, *step)]


class Even(Strict):
    """Evenly spaced numbers: low, high and how many."""

    linear: tuple[Number, Number, Several]

    @model_validator(mode="after")
    def _ordered(self) -> Even:
        if self.linear[0] > self.linear[1]:
            raise ValueError("low is above high")
        return self

    def values(self) -> list[Value]:
        """All of them."""
        require_few(self.linear[2])
        return [float(f"{v:.12g}") for v in np.linspace(*self.linear)]  # 0.6, not 0.60...01


_Single = Annotated[float, Field(strict=True)] | Annotated[str, Field(strict=True)]
_AXIS: TypeAdapter[Any] = TypeAdapter(Powers | Even | list[_Single] | _Single)


def axis_values(given: object) -> list[Value]:
    """The values of one axis.

    >>> axis_values({"log2": [-2, 0]}), axis_values([0, 0.9]), axis_values("auto")
    ([0.25, 0.5, 1.0], [0.0, 0.9], ['auto'])
    """
    if isinstance(given, range | np.ndarray):
        given = np.asarray(given).tolist()
    try:
        axis = _AXIS.validate_python(given)
    except ValidationError:
        axis = []
    values = axis.values() if isinstance(axis, Powers | Even) else axis
    values = values if isinstance(values, list) else [values]
    if not values:
        raise InputError(
            "an axis must be a number, a string, a list of at least one of them, { log2 = [low, "
            "high, step] } with whole exponents from -1000 to 1000, or { linear = [low, high, "
            f"count] }} with finite numbers, low <= high; got {given!r:.80}."
        )
    return values


Axis = Annotated[list[Value], PlainValidator(axis_values)]


class Condition(BaseModel):
    """Axes that are added where a point has some values of others: `if`, and the axes."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Axis]

    rule: dict[str, Axis] = Field(alias="if", min_length=1)

    @property
    def axes(self) -> Mapping[str, list[Value]]:
        """The axes that it adds."""
        return self.__pydantic_extra__

    def holds(self, point: Point) -> bool:
        """Whether a point has values for which the axes are added."""
        for key in self.rule:
            if key not in point:
                raise ConditionError(str(unknown("axis in `if`:", key, point)))
        return all(point[key] in allowed for key, allowed in self.rule.items())


class ConditionError(InputError):
    """A mistake in a condition of a grid."""


def require_few(points: int) -> None:
    """Fail if a grid would have too many points."""
    if points > MOST:
        raise InputError(
            f"this grid has at least {points:,} points, more than {MOST:,}; leave some values out."
        )


def grid(algorithm: str | Law, /, **axes: object) -> list[Learner]:
    """All learners of a grid: the product of the axes, the last one fastest.

    An axis is a value, a list, an array, or a range as in a study file: `{"log2": [-18, 0]}`,
    `{"linear": [0, 1, 6]}`.

    >>> [str(x) for x in grid("perturbed_td", alpha=[1e-4, 1e-3], eta=1)]
    ['perturbed_td:alpha=0.0001,eta=1', 'perturbed_td:alpha=0.001,eta=1']
    """
    values = {}
    for key, axis in axes.items():
        try:
            values[key] = axis_values(axis)
        except InputError as error:
            raise InputError(f"{key}: {error}") from None
    return [make_learner(algorithm, **point) for point in points(values)]


def points(axes: Mapping[str, Sequence[Value]], when: Sequence[Condition] = ()) -> Iterator[Point]:
    """All points of a grid; every entry of `when` adds axes where its `if` holds."""
    require_few(math.prod(map(len, axes.values())))
    if when:  # walked once without making a learner of every point
        require_few(sum(1 for _ in itertools.islice(_walk(axes, when), MOST + 1)))
    return _walk(axes, when)


def _walk(axes: Mapping[str, Sequence[Value]], when: Sequence[Condition]) -> Iterator[Point]:
    for chosen in itertools.product(*axes.values()):
        yield from _extended(dict(zip(axes, chosen, strict=True)), when)


def _extended(point: Point, when: Sequence[Condition]) -> Iterator[Point]:
    """A point with the axes of the first condition that holds, then of the others."""
    if not when:
        yield point
        return
    condition, *others = when
    for key in condition.axes:
        if key in point:
            raise ConditionError(f"{key} is already an axis; a condition adds other axes.")
    if not condition.holds(point):
        yield from _extended(point, others)
        return
    for chosen in itertools.product(*condition.axes.values()):
        extra = dict(zip(condition.axes, chosen, strict=True))
        yield from _extended({**point, **extra}, others)
