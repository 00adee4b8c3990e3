from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from steadytd import InputError, Problem, load_problem
from steadytd.base.arrays import Floats
from tests.support.helpers import random_problem, rewritten

ARRAYS = ("P", "r", "mu", "pi", "Phi", "w0", "start", "interest")


def parts(**changes: Any) -> dict[str, Any]:
    """The arguments of a valid problem with 3 states, 2 actions, 2 features; some changed."""
    P = np.array(
        [
            [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]],
            [[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]],
            [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]],
        ]
    )
    return {
        "name": "small",
        "P": P,
        "r": np.arange(18.0).reshape(3, 2, 3),
        "gamma": 0.9,
        "mu": np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]),
        "pi": np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]),
        "Phi": np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]),
        "w0": np.array([1.0, -1.0]),
        "start": np.array([0.5, 0.5, 0.0]),
        "interest": np.array([1.0, 2.0, 0.0]),
        **changes,
    }


def small(**changes: Any) -> Problem:
    return Problem(**parts(**changes))


def changed(name: str, index: tuple[int, ...], value: float) -> dict[str, Any]:
    """The valid arguments with one entry of one array changed."""
    array = np.array(parts()[name], dtype=np.float64)
    array[index] = value
    return {name: array}


# What is refused


SEVERAL = {"pi": np.stack([parts()["pi"]] * 2)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed("P", (1, 1, 2), 0.75), "row P[1, 1] must sum to 1, its sum is 1.25; divide it by"),
        (changed("P", (2, 0, 1), 1.0 - 1e-8), "row P[2, 0] must sum to 1, its sum is 0.99999999;"),
        (changed("mu", (1, 0), 0.75), "row mu[1] must sum to 1, its sum is 1.5;"),
        (changed("pi", (2, 0), 0.5), "row pi[2] must sum to 1, its sum is 0.5;"),
        (changed("start", (0,), 0.25), "start must sum to 1, its sum is 0.75;"),
        ({"P": [[[1.5, -0.5]], [[1.0, 0.0]]]}, "P[0, 0, 1] is a probability and must not be neg"),
        ({"mu": [[0.5, 0.5], [1.25, -0.25], [1, 0]]}, "mu[1, 1] is a probability and must not be"),
        ({"pi": [[-1, 2], [0.5, 0.5], [1, 0]]}, "pi[0, 0] is a probability and must not be neg"),
        ({"start": [0.5, 1, -0.5]}, "start[2] is a probability and must not be negative, got -0.5"),
        (
            {"pi": [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]},
            "pi[2, 1] = 0.5 but mu[2, 1] = 0: in state 2 the behaviour policy never takes action "
            "1, so nothing can be learned about it; give mu[2, 1] > 0.",
        ),
        (
            {"pi": [parts()["pi"], [[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]]]},
            "pi[1, 2, 1] = 0.25 but mu[2, 1] = 0: in state 2",
        ),
        ({"P": np.ones((3, 3)) / 3}, "P must have 3 dimensions, got shape (3, 3)."),
        (
            {"P": np.ones((3, 2, 4)) / 4},
            "P must have shape (3, 2, 3) for [s, a, s'], got (3, 2, 4)",
        ),
        ({"mu": np.ones((2, 3, 2)) / 2}, "mu must have 2 dimensions, got shape (2, 3, 2)."),
        ({"mu": np.ones((2, 2)) / 2}, "mu must have shape (3, 2) for [s, a], got (2, 2)."),
        ({"pi": np.ones((4, 2, 2)) / 2}, "pi must have shape (4, 3, 2) for [s, a] or [policy, s, "),
        ({"pi": [1.0]}, "pi must have 2 or 3 dimensions, got shape (1,)."),
        ({"r": np.ones(3)}, "r must have shape (3, 2, 3) for [s, a, s'] or (3, 2) for [s, a], got"),
        ({"gamma": np.ones((3, 2))}, "gamma must be a number, or have shape (3,) for [s'] or (3, "),
        ({"Phi": np.ones((2, 2))}, "Phi must have shape (3, 2) for [s, k], got (2, 2)."),
        ({"w0": np.ones(3)}, "w0 must have shape (2,) for [k], got (3,)."),
        ({"start": np.ones(2) / 2}, "start must have shape (3,) for [s], got (2,)."),
        ({"interest": 1.0}, "interest must have shape (3,) for [s], got ()."),
        (
            {**SEVERAL, "r": np.ones((2, 3, 2))},
            "r must have shape (3, 2, 3) for [s, a, s'] or (3, 2) for [s, a] or (2, 3, 2, 3) with "
            "a policy axis, got (2, 3, 2).",
        ),
        (
            {**SEVERAL, "gamma": np.ones((4, 3))},
            "gamma must be a number, or have shape (3,) for [s'] or (3, 2, 3) for [s, a, s'], or "
            "(2, 3), (2, 3, 2, 3) with a policy axis, got (4, 3).",
        ),
        (
            {**SEVERAL, "interest": np.ones((4, 3))},
            "interest must have shape (3,) for [s] or (2, 3",
        ),
        ({"gamma": 1.5}, "gamma must be between 0 and 1, got 1.5."),
        ({"gamma": [0.5, 1.01, 0.5]}, "gamma[1] must be between 0 and 1, got 1.01."),
        ({"interest": [1, -1, 1]}, "interest[1] must be between 0 and 1e+100, got -1."),
        ({"r": 1e308}, "r must be between -1e+100 and 1e+100, got 1e+308"),
        ({"Phi": [[1e150], [1.0], [1.0]]}, "Phi[0, 0] must be between -1e+100 and 1e+100, got 1e+"),
        ({"Phi": [[1.0, 1e-200], [1.0, 0.0], [1.0, 0.0]]}, "feature 1 of Phi must be 0 everywhere"),
        ({"w0": [1e300, 0.0]}, "w0[0] must be between"),
    ],
)
def test_bad_arrays(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        small(**changes)
    assert str(caught.value).startswith(message)


PLACES: dict[str, tuple[int, ...]] = {
    "P": (1, 0, 2), "r": (2, 1, 0), "gamma": (), "mu": (0, 1), "pi": (2, 0), "Phi": (1, 1),
    "w0": (1,), "start": (2,), "interest": (0,),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_what_no_array_may_hold(name: str) -> None:
    place = f"{name}{list(PLACES[name]) or ''}"
    wrong: list[tuple[Any, str]] = [
        (changed(name, PLACES[name], value)[name], rf"^{re.escape(place)} must be a finite number")
        for value in (np.nan, np.inf, -np.inf)
    ]
    wrong += [
        ("half", f"^{name} must be an array of numbers \\(could not convert string to float"),
        ([[1.0], [1.0, 2.0]], f"^{name} must be an array of numbers .*inhomogeneous shape"),
        ({"a": 1}, f"^{name} must be an array of numbers .*not 'dict'"),
        (10**400, f"^{name} must be an array of numbers .*int too large"),
        (np.zeros((0,) * max(1, len(PLACES[name]))), f"^{name} must not be empty, got shape"),
    ]
    for value, message in wrong:
        with pytest.raises(InputError, match=message):
            small(**{name: value})


def test_a_row_may_be_off_by_rounding() -> None:
    """Ten times 0.1 does not add up to 1 in floating point; it is a distribution all the same."""
    P = np.zeros((10, 1, 10))
    P[:] = 0.1 + 1e-12
    one = np.ones((10, 1))
    p = Problem(name="tenths", P=P, r=0.0, gamma=0.5, mu=one, pi=one, Phi=np.eye(10))
    np.testing.assert_allclose(p.d_mu, 0.1, rtol=1e-12)


def test_two_closed_classes_without_a_start() -> None:
    P = np.zeros((3, 2, 3))
    P[np.arange(3), :, np.arange(3)] = 1.0
    with pytest.raises(InputError, match="has 3 closed classes of states"):
        small(P=P, start=None)


# What is kept


def test_arrays_are_copies() -> None:
    given_parts = parts(gamma=np.full((3, 2, 3), 0.9))
    p = Problem(**given_parts)
    before = {name: np.array(getattr(p, name)) for name in (*ARRAYS, "gamma")}
    v = p.v_pi.copy()
    for name in before:
        given_parts[name][...] = 0.125
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(p, name), values)
    np.testing.assert_array_equal(p.v_pi, v)


@pytest.mark.parametrize("name", [*ARRAYS, "gamma", "active", "d_mu", "v_pi"])
@pytest.mark.parametrize("policies", [None, 2])
def test_arrays_are_read_only(name: str, policies: int | None) -> None:
    array = getattr(random_problem(1, policies=policies), name)
    with pytest.raises(ValueError, match="read-only"):
        array[(0,) * array.ndim] = 0.5


@pytest.mark.parametrize("name", ["P", "gamma", "name", "d_mu", "v_pi", "other"])
def test_attributes_cannot_be_set(name: str) -> None:
    with pytest.raises(
        AttributeError, match=f"^a problem is read-only; make a new one with another {name}$"
    ):
        setattr(small(), name, 0.5)


def test_defaults() -> None:
    p = small(w0=None, start=None, interest=None, doc="One line.\n\nMore.")
    assert p.w0.tolist() == [0.0, 0.0]
    assert p.interest.tolist() == [1.0, 1.0, 1.0]
    assert p.active.tolist() == [True, True, True]
    np.testing.assert_array_equal(p.start, p.d_mu)
    assert (p.summary, p.doc) == ("One line.", "One line.\n\nMore.")
    assert repr(p) == "<problem small: 3 states, 2 actions, 2 features>"


def test_rewards_by_state_and_action_or_one_number() -> None:
    by_action = np.arange(6.0).reshape(3, 2)
    full = np.broadcast_to(by_action[:, :, None], (3, 2, 3))
    np.testing.assert_array_equal(small(r=by_action).r, full)
    np.testing.assert_array_equal(small(r=2.0).r, np.full((3, 2, 3), 2.0))
    np.testing.assert_array_equal(small(r=by_action).v_pi, small(r=full).v_pi)


# Discounts and values


def test_three_ways_to_give_a_constant_discount() -> None:
    by_number = small(gamma=0.9)
    assert isinstance(by_number.gamma, float)
    for gamma in (np.full(3, 0.9), np.full((3, 2, 3), 0.9)):
        np.testing.assert_allclose(small(gamma=gamma).v_pi, by_number.v_pi, rtol=1e-14)


def test_discount_by_next_state_is_one_by_transition() -> None:
    by_state = np.array([0.9, 0.0, 0.5])
    by_transition = np.broadcast_to(by_state, (3, 2, 3))
    a, b = small(gamma=by_state), small(gamma=by_transition)
    np.testing.assert_allclose(a.v_pi, b.v_pi, rtol=1e-14)
    # pi in state 0 takes action 0: to 0 or 1 evenly, where the step to 1 is worth its reward only
    r = parts()["r"]
    assert a.v_pi[0] == pytest.approx(0.5 * (r[0, 0, 0] + 0.9 * a.v_pi[0]) + 0.5 * r[0, 0, 1])
    assert not np.allclose(a.v_pi, small(gamma=0.9).v_pi)


def test_termination_by_hand() -> None:
    """A corridor 0, 1, 2 that pi walks up; the step out of 2 pays 1, ends, and restarts at 0.

    With gamma 0.5 the values are those of a reward of 1 after 3, 2, 1 steps: 1/4, 1/2, 1. Ending
    by discount 0 keeps the restart from adding anything.
    """
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 2] = P[2, 0, 0] = 1.0  # forward
    P[:, 1, 0] = 1.0  # back to the start
    r = np.zeros((3, 2, 3))
    r[2, 0, 0] = 1.0
    gamma = np.full((3, 2, 3), 0.5)
    gamma[2, 0, 0] = 0.0
    forward = np.array([[1.0, 0.0]] * 3)
    ends = Problem(name="c", P=P, r=r, gamma=gamma, mu=np.full((3, 2), 0.5), pi=forward,
                   Phi=np.eye(3))  # fmt: skip
    np.testing.assert_allclose(ends.v_pi, [0.25, 0.5, 1.0], rtol=1e-15)
    goes_on = Problem(name="c", P=P, r=r, gamma=0.5, mu=np.full((3, 2), 0.5), pi=forward,
                      Phi=np.eye(3))  # fmt: skip
    np.testing.assert_allclose(goes_on.v_pi, np.array([0.25, 0.5, 1.0]) / (1 - 1 / 8), rtol=1e-15)


def test_undiscounted_episodes() -> None:
    """gamma 1 with termination: from state s, s + 1 steps of reward -1."""
    P = np.zeros((4, 1, 4))
    P[np.arange(4), 0, [3, 0, 1, 2]] = 1.0
    gamma = np.ones((4, 1, 4))
    gamma[0, 0, 3] = 0.0
    one = np.ones((4, 1))
    p = Problem(name="count", P=P, r=-1.0, gamma=gamma, mu=one, pi=one, Phi=np.eye(4))
    np.testing.assert_allclose(p.v_pi, [-1, -2, -3, -4], rtol=1e-14)


def test_values_that_are_not_finite() -> None:
    with pytest.raises(
        InputError,
        match=(
            r"^the target policy's values are not finite: with these discounts an episode under "
            r"pi need not end; use gamma < 1, or discount 0 where an episode ends\.$"
        ),
    ):
        _ = small(gamma=1.0).v_pi


def test_values_that_are_not_finite_in_one_corner() -> None:
    """pi circles between 0 and 1 for ever, although mu ends every episode through state 2."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 0] = P[2, 0, 0] = 1.0
    P[:, 1, 2] = 1.0
    gamma = np.array([1.0, 1.0, 0.0])
    common: dict[str, Any] = {"name": "c", "P": P, "r": 1.0, "gamma": gamma, "Phi": np.eye(3)}
    with pytest.raises(InputError, match="an episode under pi need not end"):
        _ = Problem(mu=np.full((3, 2), 0.5), pi=[[1, 0], [1, 0], [0, 1]], **common).v_pi
    half = np.full((3, 2), 0.5)
    assert np.isfinite(Problem(mu=half, pi=half, **common).v_pi).all()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=some.integers(0, 10**6), sparse=some.booleans())
def test_values_satisfy_the_bellman_equation(seed: int, sparse: bool) -> None:
    """Written with loops, state by state, from the problem's own arrays."""
    p = random_problem(seed, sparse=sparse)
    assert isinstance(p.gamma, np.ndarray)
    for s in range(p.n_states):
        value = 0.0
        for a in range(p.n_actions):
            for t in range(p.n_states):
                step = p.r[s, a, t] + p.gamma[s, a, t] * p.v_pi[t]
                value += p.pi[s, a] * p.P[s, a, t] * step
        assert value == pytest.approx(p.v_pi[s], abs=1e-12)


# Several target policies


def single(p: Problem, k: int) -> Problem:
    """The problem of target policy k alone."""
    assert isinstance(p.gamma, np.ndarray)
    return Problem(
        name=f"{p.name}_{k}", P=p.P, r=p.r[k], gamma=p.gamma[k], mu=p.mu, pi=p.pi[k], Phi=p.Phi,
        w0=p.w0, start=p.start, interest=p.interest[k],
    )  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=30)
@given(seed=some.integers(0, 10**6), policies=some.integers(1, 4))
def test_several_policies_are_single_ones_side_by_side(seed: int, policies: int) -> None:
    p = random_problem(seed, policies=policies, sparse=True, interest=True)
    w = np.random.default_rng(seed).normal(size=(policies, p.n_features))
    alone = [single(p, k) for k in range(policies)]
    assert (p.n_policies, p.v_pi.shape) == (policies, (policies, p.n_states))
    for k, one in enumerate(alone):
        np.testing.assert_allclose(p.v_pi[k], one.v_pi, rtol=1e-14)
        np.testing.assert_allclose(p.error_weights(k), one.error_weights(), rtol=1e-14)
    mean = sum(one.error(w[k]) for k, one in enumerate(alone)) / policies
    assert p.error(w) == pytest.approx(mean, rel=1e-14)


def test_policies_share_what_has_no_policy_axis() -> None:
    """r [s, a, s'], gamma [s'] and interest [s] serve every policy; gamma [policy, s'] does not."""
    pi = np.array([parts()["pi"], [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]])
    shared = small(pi=pi, gamma=[0.9, 0.5, 0.0])
    for k in range(2):
        one = small(pi=pi[k], gamma=[0.9, 0.5, 0.0])
        np.testing.assert_allclose(shared.v_pi[k], one.v_pi, rtol=1e-14)
        np.testing.assert_array_equal(shared.error_weights(k), one.error_weights())
    own = small(pi=pi, gamma=[[0.9, 0.5, 0.0], [0.1, 0.2, 0.3]])
    np.testing.assert_array_equal(own.v_pi[0], shared.v_pi[0])
    np.testing.assert_allclose(own.v_pi[1], small(pi=pi[1], gamma=[0.1, 0.2, 0.3]).v_pi, rtol=1e-14)


def test_moments_of_a_policy_that_does_not_exist() -> None:
    with pytest.raises(InputError, match=r"^policy must be from 0 to 1, got 2\.$"):
        random_problem(0, policies=2).moments(2)
    with pytest.raises(InputError, match=r"^policy must be 0: this problem has one, got -1\.$"):
        small().moments(-1)


# The error


def error_by_hand(p: Problem, w: Floats) -> float:
    total = weight = 0.0
    for s in range(p.n_states):
        value = sum(p.Phi[s, k] * w[k] for k in range(p.n_features))
        total += p.d_mu[s] * p.interest[s] * (value - p.v_pi[s]) ** 2
        weight += p.d_mu[s] * p.interest[s]
    return math.sqrt(total / weight)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=some.integers(0, 10**6), interest=some.booleans())
def test_error_by_hand(seed: int, interest: bool) -> None:
    p = random_problem(seed, interest=interest)
    w = np.random.default_rng(seed).normal(size=p.n_features)
    error = p.error(w)
    assert isinstance(error, float)
    assert error == pytest.approx(error_by_hand(p, w), rel=1e-12)


def test_error_counts_only_states_of_interest() -> None:
    """Interest 0 in states 1 and 2: the error is that of state 0, whatever d_mu is."""
    p = small(interest=[3.0, 0.0, 0.0])
    assert p.error([2.0, 1e9]) == pytest.approx(abs(2.0 - p.v_pi[0]), rel=1e-15)


def test_error_of_rows() -> None:
    p = small()
    w = np.random.default_rng(0).normal(size=(4, 5, 2))
    errors = p.error(w)
    assert isinstance(errors, np.ndarray) and errors.shape == (4, 5)
    for i in np.ndindex(4, 5):
        assert errors[i] == pytest.approx(p.error(w[i]), rel=1e-15)
    several = random_problem(3, policies=2)
    rows = np.random.default_rng(1).normal(size=(6, 2, 3))
    many = several.error(rows)
    assert isinstance(many, np.ndarray) and many.shape == (6,)
    for row, error in zip(rows, many, strict=True):
        assert error == pytest.approx(several.error(row), rel=1e-15)


def test_error_of_huge_weights_does_not_overflow() -> None:
    """1e200 squared is beyond the floats, the root of the mean square is not."""
    p = small(r=0.0)
    unit = p.error([1.0, -3.0])
    assert isinstance(unit, float) and unit > 0.0
    assert p.error([1e200, -3e200]) == pytest.approx(unit * 1e200, rel=1e-14)
    assert p.error([1e-200, -3e-200]) == pytest.approx(unit * 1e-200, rel=1e-14)
    assert p.error([0.0, 0.0]) == 0.0


def test_error_ignores_huge_values_where_the_weight_is_zero() -> None:
    """State 0 is transient: 1e200 there must not drown a difference of 1 where it counts."""
    P = np.zeros((2, 1, 2))
    P[:, 0, 1] = 1.0
    one = np.ones((2, 1))
    p = Problem(name="t", P=P, r=0.0, gamma=0.5, mu=one, pi=one, Phi=np.eye(2))
    assert p.error([1e200, 1.0]) == 1.0


def test_error_of_wrong_shape() -> None:
    for w in (1.0, [1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]]):
        with pytest.raises(InputError) as caught:
            small().error(w)
        assert str(caught.value) == f"w must have shape (..., 2), got {np.shape(w)}."
    with pytest.raises(InputError, match=r"^w must have shape \(\.\.\., 2, 3\), got \(3,\)\.$"):
        random_problem(0, policies=2).error([1.0, 2.0, 3.0])


def test_error_where_nothing_is_of_interest() -> None:
    with pytest.raises(
        InputError,
        match=r"^problem small: no state that mu visits has interest > 0 \(policy 0\); give one of "
        r"them interest > 0, and let it be active\.$",
    ):
        small(interest=[0.0, 0.0, 0.0]).error([1.0, 2.0])


# Files


def assert_same(a: Problem, b: Problem) -> None:
    assert (a.name, a.summary, a.doc) == (b.name, b.summary, b.doc)
    for name in (*ARRAYS, "gamma", "active", "d_mu", "v_pi"):
        left, right = getattr(a, name), getattr(b, name)
        assert type(left) is type(right)
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("gamma", [0.9, np.array([0.9, 0.5, 0.0]), np.full((3, 2, 3), 0.7)])
def test_save_and_load(tmp_path: Path, gamma: float | Floats) -> None:
    p = small(gamma=gamma, doc="Größe ≥ 0.\n\nZwei Zeilen.", summary="kurz")
    path = p.save(tmp_path / "mine.npz")
    assert path == tmp_path / "mine.npz"
    assert [f.name for f in tmp_path.iterdir()] == ["mine.npz"]
    assert_same(load_problem(path), p)
    assert_same(load_problem(str(path)), p)


def test_save_and_load_several_policies(tmp_path: Path) -> None:
    p = random_problem(4, policies=3, interest=True)
    assert_same(load_problem(p.save(tmp_path / "no_suffix")), p)


def saved(tmp_path: Path, **changes: Any) -> Path:
    """A saved problem in which some entries were changed, or with None left out."""
    return rewritten(small().save(tmp_path / "p.npz"), changes)


def test_load_what_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    with pytest.raises(InputError) as caught:
        load_problem(path)
    assert str(caught.value) == f"there is no file '{path}'."
    whole = small().save(path).read_bytes()
    for content in (b"", b"garbage", b"PK\x03\x04garbage", b"\x93NUMPY\x01\x00", whole[:-100]):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_problem(path)
        assert str(caught.value).startswith(f"'{path}' is not a saved problem (")
    np.save(tmp_path / "p.npy", np.eye(3))
    for other in (tmp_path, tmp_path / "p.npy"):
        with pytest.raises(InputError, match="is not a saved problem"):
            load_problem(other)


def test_load_another_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", P=np.eye(3), name=np.array("x"))
    with pytest.raises(
        InputError,
        match="is not a saved problem: it lacks format, r, gamma, mu, pi, Phi, w0, start, interest",
    ):
        load_problem(tmp_path / "p.npz")


@pytest.mark.parametrize("format_", [np.array(2), np.array("one"), np.array([1, 2])])
def test_load_another_format(tmp_path: Path, format_: Any) -> None:
    with pytest.raises(InputError) as caught:
        load_problem(saved(tmp_path, format=format_))
    assert f"has format {format_}, this version reads 1; save it again" in str(caught.value)


def test_load_checks_as_if_new(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a saved problem: it lacks mu, start\.$"):
        load_problem(saved(tmp_path, mu=None, start=None))
    with pytest.raises(InputError, match=r"row mu\[0\] must sum to 1, its sum is 2;"):
        load_problem(saved(tmp_path, mu=np.ones((3, 2))))


class Trap:
    """Writes a file when it is unpickled: what a hostile file would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_load_refuses_pickles(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    path = saved(tmp_path, mu=np.array([Trap(sprung)], dtype=object))
    with pytest.raises(InputError, match="Object arrays cannot be loaded when allow_pickle=False"):
        load_problem(path)
    assert not sprung.exists()
    with np.load(path, allow_pickle=True) as file:  # the trap does work where it is allowed to
        _ = file["mu"]
    assert sprung.exists()
