"""The JavaScript target: each construct of a law gives Python's number, and the rest is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from py_mini_racer import MiniRacer

from steadytd.base.errors import InputError
from steadytd.engine.law import Law
from steadytd.engine.step.layouts.lanes import Browser
from steadytd.engine.step.program import step_program
from steadytd.engine.step.targets.javascript import script, translated
from steadytd.learners import algorithm, names

HALF, FAR = 0.5, -math.inf
ODD = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 1e300, -1e-300, math.inf, -math.inf, math.nan]
Scalar = Callable[..., Any]


@njit()
def helper(a: float, b: float) -> float:
    return min(a, b) if a >= 0.0 else 0.25


def arithmetic(a: float, b: float) -> Any:
    return a + b * a - (a - b) / 3 + -a * -(0.5 - b) - (a - (b - 1)) / (a * (b / 2))


def written(a: float, b: float) -> Any:
    return a * 1e-150 + b / 3e22 + HALF - (-2) * a + math.pi + np.e + 2.0**-3


def outside(a: float, b: float) -> Any:
    return max(a, FAR) + min(b, math.inf)


def square(a: float, b: float) -> Any:
    return (a + b) ** 2 + b**2


def remainder(a: float, b: float) -> Any:
    return a % b


def least(a: float, b: float) -> Any:
    return min(a, b), min(b, a), max(a, b), max(b, a), min(a, b, 0.0), max(0.0, a, b)


def library(a: float, b: float) -> Any:
    return abs(a), np.abs(b), math.fabs(a - b), np.sqrt(abs(a)), float(a), np.isnan(a) + 1.0


def compared(a: float, b: float) -> Any:
    return (a < b) * 1.0, (a <= b) + (a > b), (a >= b) - 1, (a == b) * b, (a != b) * 2


def conditional(a: float, b: float) -> Any:
    return (a if a < b else b) * 2, 1.0 if a else 0.0, (a if a else b), 1 if not a < b else 2


def joined(a: float, b: float) -> Any:
    return (a or b), (a and b), (a or b or 1.0), 1.0 if (a < b and a < 2.0) or not b else 0.0


def branches(a: float, b: float) -> Any:
    """With a text of its own."""
    if a < b:
        c = a
    elif a:
        c = 2.0 * b
    else:
        pass
        c = 7
    c += a
    c *= 2
    d: float = c - b
    return d


def early(a: float, b: float) -> Any:
    if abs(a) > 1.0 or math.isnan(b):
        return b
    return a


def unpacked(a: float, b: float) -> Any:
    c, d = b, a
    pair = c, d
    (e, f), g = (c * 2, d), a
    return pair, (e + f, g), c


def helped(a: float, b: float) -> Any:
    return helper(a, b) + helper(b, a)


def loops(a: float, b: float) -> Any:
    total, last = 0.0, 0
    for i in range(3):
        for k in range(i, 5, 2):
            total += a * k + b * i
        last = k
    for i in range(3, -2, -2):
        total -= i * a
    while last > 1:
        last = last - 1
        total = total / 2
    return total, i, last


def taken(new: float, function: float) -> Any:
    """Names that JavaScript has for itself."""
    var = new + function
    default = abs(var) * 2
    min_ = square_of(new)
    return var, default, min_


def square_of(mod: float) -> Any:
    int_ = mod
    return mod * int_


def whole(a: float, b: float) -> Any:
    return (int(a) % 3, 1 / (int(a) + 0.5), int(b) * 2) if abs(a) < 9 and abs(b) < 9 else (0, 0, 0)


def made(by: float) -> Scalar:
    def closed(a: float, b: float) -> Any:
        return a * by + b

    return closed


DRAWN = np.random.default_rng(0).normal(scale=3.0, size=(40, 2)).tolist()
PAIRS = [*DRAWN, *([a, b] for a in ODD for b in ODD)]
FUNCTIONS = [
    arithmetic, written, outside, square, remainder, least, library, compared, conditional, joined,
    branches, early, unpacked, helped, loops, taken, whole, made(-0.75), lambda a, b: (a - b, b),
]  # fmt: skip
SHOWN = """(x) => [x].flat(9).map(Number).map(
    (x) => Number.isFinite(x) ? (Object.is(x, -0) ? "-0.0" : x) : String(x))"""


@pytest.fixture(scope="module")
def v8() -> MiniRacer:
    return MiniRacer()


def flat(value: Any) -> list[float]:
    return [x for one in value for x in flat(one)] if isinstance(value, tuple) else [float(value)]


def in_v8(v8: MiniRacer, function: Scalar, pairs: list[list[float]]) -> list[list[float]]:
    """What the translated function returns for some pairs of numbers."""
    text = "\n".join(translated({"f": function}))
    f = f"{script([f'(() => {{ {text} return f; }})()'])}[0]"
    given = str(pairs).replace("inf", "Infinity").replace("nan", "NaN")
    found = json.loads(str(v8.eval(f"JSON.stringify({given}.map((p) => {f}(...p)).map({SHOWN}))")))
    return [[float(str(x).replace("Infinity", "inf")) for x in row] for row in found]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_construct_gives_pythons_number(v8: MiniRacer, function: Scalar) -> None:
    """On drawn numbers and on odd ones: signs of zero, infinities, nan."""
    for (a, b), own in zip(PAIRS, in_v8(v8, function, PAIRS), strict=True):
        with np.errstate(all="ignore"):
            wanted = flat(function(np.float64(a), np.float64(b)))
        np.testing.assert_array_equal(own, wanted, err_msg=f"{a}, {b}")
        signs = [[math.copysign(1.0, x) for x in some if x == 0.0] for some in (own, wanted)]
        assert signs[0] == signs[1], (a, b)


def test_where_languages_differ_numba_agrees_with_python(v8: MiniRacer) -> None:
    def delicate(a: float, b: float) -> Any:
        return min(a, b), max(a, b), a % b, a**2, (a or b), 1.0 if a else 0.0

    compiled = njit(error_model="numpy")(delicate)
    for (a, b), own in zip(PAIRS, in_v8(v8, delicate, PAIRS), strict=True):
        np.testing.assert_array_equal(own, compiled(a, b), err_msg=f"{a}, {b}")


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (lambda a, b: np.sin(a - b), "np.sin(a - b)"),
        (lambda a, b: math.exp(a), "math.exp(a)"),
        (lambda a, b: a**3 + b, "a ** 3"),
        (lambda a, b: a**b, "a ** b"),
        (lambda a, b: a // b, "a // b"),
        (lambda a, b: a < b < 1.0, "a < b < 1.0"),
        (lambda a, b: helper(a, b=b), "helper(a, b=b)"),
        (lambda a, b: a + helper, "helper"),
        (lambda a, b: [a, b], "[a, b]"),
        (lambda a, b: a.real, "a.real"),
        (lambda a, b: a + "b", "'b'"),
    ],
)
def test_what_cannot_be_translated_is_named(function: Scalar, place: str) -> None:
    with pytest.raises(InputError) as refused:
        translated({"f": function})
    assert str(refused.value).startswith(f"<lambda>: '{place}' cannot be translated for the browse")


def over_a_tuple(a: float) -> Any:
    for b in (1.0, 2.0):
        a += b
    return a


def started(a: float) -> Any:
    first, *_ = a, a, a
    return first


def asserted(a: float) -> Any:
    assert a > 0.0
    return a


@pytest.mark.parametrize("function", [over_a_tuple, started, asserted])
def test_statements_too(function: Scalar) -> None:
    with pytest.raises(InputError, match=f"{function.__name__}: '.*' cannot be translated"):
        translated({"f": function})


def test_a_function_without_a_text_or_a_number() -> None:
    scope: dict[str, Any] = {}
    exec("def hidden(a):\n    return a", scope)
    with pytest.raises(InputError, match=r"hidden cannot be found.*; put it into a file"):
        translated({"f": scope["hidden"]})
    twins = (lambda a: a, lambda a: -a)  # which of them is not to be known
    with pytest.raises(InputError, match=r"lambda> cannot be found.*, in a line of its own"):
        translated({"f": twins[0]})

    def nothing(a: float) -> Any:
        a += 1

    with pytest.raises(InputError, match="nothing returns nothing"):
        translated({"f": nothing})


def paths(law: Law) -> list[Browser]:
    return [Browser(step_program(law, traced)) for traced in {False, bool(law.traces)}]


def test_every_law_that_takes_steps_has_a_loop_on_each_path(v8: MiniRacer) -> None:
    laws = [one for one in map(algorithm, names()) if one.block is None]
    variants = [v or law for law in laws for v in (law.variants or {"": None}).values()]
    layouts = [one for law in variants for one in paths(law)]
    kinds = v8.eval(f"{script([one.script() for one in layouts])}.map((f) => typeof f).join()")
    assert str(kinds).split(",") == ["function"] * len(layouts)
