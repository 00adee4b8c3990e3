"""Whole numbers and seeds: one rule, wherever they are given. Results: digits by uncertainty."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import steadytd as st
from steadytd.base.numbers import (
    all_seeds,
    count,
    from_text,
    interval,
    number,
    one_seed,
    whole,
    with_error,
)

SIZES = some.floats(1e-8, 1e8) | some.floats(-1e8, -1e-8)


@pytest.mark.parametrize("value", [7, 7.0, np.int32(7), np.uint8(7), np.float32(7), np.float64(7)])
def test_whole_numbers(value: Any) -> None:
    found = whole("n", value, 7, 7)
    assert found == 7 and type(found) is int


@pytest.mark.parametrize("value", [1.5, "7", True, None, float("nan"), float("inf"), [7], 1j, 0])
def test_what_is_no_whole_number_of_at_least_one(value: Any) -> None:
    expected = f"n must be a whole number >= 1, got {value!r}."
    with pytest.raises(st.InputError, match=f"^{re.escape(expected)}$"):
        whole("n", value, 1)


def test_the_largest_is_named_where_it_matters() -> None:
    with pytest.raises(st.InputError, match="n must be a whole number >= 1 and <= 9, got 10"):
        whole("n", 10, 1, 9)
    with pytest.raises(st.InputError, match=f">= 1 and <= {2**63 - 1}, got 1e[+]300"):
        whole("n", 1e300, 1)


def test_seeds() -> None:
    assert all_seeds(3) == all_seeds(3.0) == all_seeds(np.int64(3)) == [0, 1, 2]
    assert all_seeds(range(2, 4)) == all_seeds(np.arange(2, 4)) == all_seeds((2, 3)) == [2, 3]
    assert one_seed(2**63 - 1) == 2**63 - 1
    for bad in ([], [1, 1]):
        with pytest.raises(st.InputError, match="seeds must be one or more distinct whole numbers"):
            all_seeds(bad)
    for worse in ([-1], [1.0], [True], [2**63], ["1"]):
        with pytest.raises(st.InputError, match="each of seeds must be a whole number >= 0 and <"):
            all_seeds(worse)
    for no_number in (0, 1.5, "3", None):
        with pytest.raises(
            st.InputError, match=r"seeds must be a whole number >= 1 and <= 10+, got"
        ):
            all_seeds(no_number)


def test_numbers_in_texts() -> None:
    assert [from_text(t) for t in ("1e6", "1_000", "-3", "1.5")] == [1_000_000, 1000, -3, 1.5]
    assert type(from_text("1e6")) is int
    with pytest.raises(ValueError, match="could not convert"):
        from_text("many")


def walk(steps: Any) -> Any:
    ones: dict[str, Any] = {"value": lambda w, s: w[0], "gradient": lambda w, s: np.ones(1)}
    return st.nonlinear(
        "td", "three_state", **ones, w0=[0.0], alpha=0.1, steps=steps, compile=False
    )


@pytest.mark.parametrize(
    "of",
    [
        lambda n: st.run("baird", "td:alpha=0.01", steps=n).steps,
        lambda n: st.greedy_gq(st.ActionValues(st.problem("baird")), alpha=0.1, steps=n).steps,
        lambda n: walk(n).steps,
    ],
)
def test_steps_as_a_user_writes_them(of: Any) -> None:
    assert of(1e2).tolist() == of(100).tolist() == of(np.int64(100)).tolist()
    with pytest.raises(st.InputError, match=r"steps must be a whole number >= 1, got 1\.5\."):
        of(1.5)


def parsed(text: str) -> float:
    return float(text.replace(",", ""))


@given(SIZES, some.floats(1e-8, 1e8))
def test_a_value_and_its_error_are_shown_to_the_same_digit(value: float, stderr: float) -> None:
    text, _, power = with_error(value, stderr).removeprefix("(").partition(")e")
    scale = 10.0 ** int(power or 0)
    shown, error = text.split(" ± ")
    assert parsed(error) * scale == pytest.approx(stderr, rel=0.17)
    if "e" not in text and parsed(shown) != 0.0 and stderr > 1e-5 * abs(value) > 1e-9 * stderr:
        assert len(error.replace(".", "").replace(",", "").strip("0")) <= 2
        if abs(value) > stderr:
            assert shown.partition(".")[2].__len__() == error.partition(".")[2].__len__()
    assert parsed(shown) * scale == pytest.approx(value, rel=1e-5, abs=0.5 * stderr)


@given(SIZES, SIZES)
def test_the_ends_of_an_interval_stay_apart(one: float, other: float) -> None:
    low, high = sorted((one, other))
    ends = [parsed(end) for end in interval(low, high).split(" to ")]
    width = high - low
    assert ends[0] == pytest.approx(low, rel=1e-3, abs=0.3 * width)
    assert ends[-1] == pytest.approx(high, rel=1e-3, abs=0.3 * width)
    assert len(ends) == 2 or width <= 2e-3 * max(abs(low), abs(high))


@given(SIZES)
def test_a_number_has_four_digits_and_its_sign(value: float) -> None:
    assert parsed(number(value)) == pytest.approx(value, rel=6e-4)


@given(some.integers(0, 10**15))
def test_a_count_is_exact_below_a_million_and_short_above(n: int) -> None:
    amount, _, scale = count(n).partition(" ")
    sizes = {"": 1, "million": 10**6, "billion": 10**9, "trillion": 10**12}
    assert parsed(amount) * sizes[scale] == pytest.approx(n, rel=0.0 if n < 10**6 else 6e-3)
    assert len(amount) <= 7 and (n < 10**6) is not bool(scale)
