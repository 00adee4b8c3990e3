"""Whole numbers and seeds: one rule, wherever they are given."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.numbers import all_seeds, from_text, one_seed, whole


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
        with pytest.raises(st.InputError, match="seeds must be different whole numbers"):
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
