"""Nonlinear TD, TDC and GTD2: the equations, the linear case, and the spiral."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.streams.finite import FiniteStream
from tests.support.cases import off_policy_problem
from tests.support.draws import thinned
from tests.support.scope import everything

SPIRAL = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "spiral.py"))
spiral: Callable[..., st.Curves] = SPIRAL["spiral"]
STATES = 5
CENTRES = np.linspace(-1.0, 1.0, STATES)


def bumpy(w: Floats, s: int) -> float:
    """A value function with a Hessian that is neither zero nor diagonal."""
    return float(w[0] * np.tanh(w[1] * CENTRES[s] + w[2]))


def bumpy_gradient(w: Floats, s: int) -> Floats:
    f = np.tanh(w[1] * CENTRES[s] + w[2])
    g = 1.0 - f * f
    return np.array([f, w[0] * g * CENTRES[s], w[0] * g])


def bumpy_hessian(w: Floats, s: int) -> Floats:
    c = CENTRES[s]
    f = np.tanh(w[1] * c + w[2])
    g, k = 1.0 - f * f, -2.0 * w[0] * f * (1.0 - f * f)
    return np.array([[0.0, g * c, g], [g * c, k * c * c, k * c], [g, k * c, k]])


def bumpy_hessian_vector(w: Floats, s: int, h: Floats) -> Floats:
    c = CENTRES[s]
    f = np.tanh(w[1] * c + w[2])
    g, k = 1.0 - f * f, -2.0 * w[0] * f * (1.0 - f * f)
    u = c * h[1] + h[2]
    return np.array([g * u, g * c * h[0] + k * c * u, g * h[0] + k * u])


BUMPY: dict[str, Any] = {
    "value": bumpy,
    "gradient": bumpy_gradient,
    "hessian_vector": bumpy_hessian_vector,
    "w0": [0.5, 1.0, -0.3],
}


def differences(f: Callable[[Floats], Any], w: Floats, size: float = 1e-5) -> Floats:
    """The derivative of f in each direction, by central differences: error about 1e-10."""
    steps = size * np.eye(len(w))
    return np.array([(np.asarray(f(w + e)) - np.asarray(f(w - e))) / (2 * size) for e in steps])


def reference(
    rule: str, problem: st.Problem, seed: int, steps: int, alpha: float, ratio: float
) -> Floats:
    """The equations with a whole Hessian, on the problem's arrays."""
    m, stream = problem.moments(), FiniteStream(problem)
    events, _ = stream.take(stream.begin(seed), steps)
    w, h = np.array(BUMPY["w0"]), np.zeros(3)
    for s, a, t in zip(stream.s[events], stream.a[events], stream.s_next[events], strict=True):
        rho, gamma = m.pi[s, a] / m.mu[s, a], m.gamma[s, a, t]
        x, x_next = bumpy_gradient(w, s), bumpy_gradient(w, t)
        delta = m.r[s, a, t] + gamma * bumpy(w, t) - bumpy(w, s)
        psi = (delta - x @ h) * bumpy_hessian(w, s) @ h
        change = {
            "td": delta * x,
            "tdc": delta * x - gamma * x_next * (x @ h) - psi,
            "gtd2": (x - gamma * x_next) * (x @ h) - psi,
        }[rule]
        w, h = w + alpha * rho * change, h + ratio * alpha * rho * (delta - x @ h) * x
    return w


@pytest.mark.parametrize("at", [-30.0, -1.0, 0.0, 4.0])
def test_derivatives_of_the_spiral(at: float) -> None:
    w, h = np.array([at]), np.array([0.7])
    for s in range(3):
        slope = differences(partial(SPIRAL["value"], s=s), w)
        np.testing.assert_allclose(SPIRAL["gradient"](w, s), slope, rtol=1e-6, atol=1e-7)
        curve = differences(partial(SPIRAL["gradient"], s=s), w)[0] * h
        np.testing.assert_allclose(SPIRAL["hessian_vector"](w, s, h), curve, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rule", ["td", "tdc", "gtd2"])
@pytest.mark.parametrize("fast", [True, False], ids=["compiled", "interpreted"])
def test_equals_the_equations(rule: str, fast: bool) -> None:
    """On a stream with ends of episodes and rho = 0, from the problem's own arrays."""
    problem = off_policy_problem(3, states=STATES)
    found = st.nonlinear(rule, problem, **BUMPY, alpha=0.05, ratio=2.0, steps=300, seed=4,
                         points=4, compile=fast)  # fmt: skip
    expected = reference(rule, problem, 4, 300, 0.05, 2.0)
    assert found.compiled == fast
    np.testing.assert_allclose(found.weights[-1], expected, rtol=1e-9)
    assert np.abs(expected - BUMPY["w0"]).max() > 0.05
    error = np.array([bumpy(expected, s) for s in range(STATES)]) - problem.v_pi
    assert found.error == pytest.approx(np.sqrt(problem.error_weights() @ error**2))


@pytest.mark.parametrize("rule", ["td", "tdc", "gtd2"])
def test_a_linear_value_function_gives_the_linear_update(rule: str) -> None:
    """On-policy exactly the engine's td, tdc and gtd2: rho = 1, so it matters nowhere."""
    p = off_policy_problem(5)
    problem = st.Problem(name="on", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi)
    Phi = p.Phi
    settings: dict[str, Any] = {} if rule == "td" else {"ratio": 3.0}
    learner = st.learner(rule, alpha=0.02, **settings)
    linear = st.run(problem, learner, steps=400, seeds=[7], points=5)
    found = st.nonlinear(
        rule, problem, value=lambda w, s: Phi[s] @ w, gradient=lambda w, s: Phi[s],
        hessian_vector=lambda w, s, h: np.zeros(3), w0=np.zeros(3), alpha=0.02,
        **settings, steps=400, seed=7, points=5, compile=False,
    )  # fmt: skip
    np.testing.assert_allclose(found.weights[-1], linear.weights(learner)[0], rtol=1e-11)
    np.testing.assert_allclose(found.errors, linear.errors[0, 0], rtol=1e-11)
    assert np.abs(found.weights[-1]).max() > 0.05


def weighted(rule: str, problem: st.Problem, alpha: float, ratio: float) -> Floats:
    """400 steps of the linear laws with one change, h += beta rho (delta - h.x) x."""
    m, stream = problem.moments(), FiniteStream(problem)
    events, _ = stream.take(stream.begin(7), 400)
    w, h = problem.w0, np.zeros(len(problem.w0))
    for s, a, t in zip(stream.s[events], stream.a[events], stream.s_next[events], strict=True):
        rho, gamma = m.pi[s, a] / m.mu[s, a], m.gamma[s, a, t]
        x, x_next = m.Phi[s], m.Phi[t]
        delta, h_x = m.r[s, a, t] + gamma * x_next @ w - x @ w, h @ x
        w = w + alpha * rho * ((delta if rule == "tdc" else h_x) * x - gamma * h_x * x_next)
        h = h + ratio * alpha * rho * (delta - h_x) * x
    return w


@pytest.mark.parametrize("rule", ["tdc", "gtd2"])
def test_off_policy_rho_weighs_all_of_h(rule: str) -> None:
    problem = off_policy_problem(5)
    Phi = problem.Phi
    found = st.nonlinear(
        rule, problem, value=lambda w, s: Phi[s] @ w, gradient=lambda w, s: Phi[s],
        hessian_vector=lambda w, s, h: np.zeros(3), w0=problem.w0, alpha=0.02, ratio=3.0,
        steps=400, seed=7, compile=False,
    )  # fmt: skip
    expected = weighted(rule, problem, 0.02, 3.0)
    np.testing.assert_allclose(found.weights[-1], expected, rtol=1e-11)
    plain = st.run(problem, f"{rule}:alpha=0.02,ratio=3", steps=400, seeds=[7], points=2)
    assert np.abs(found.weights[-1] - plain.final_weights[0, 0, 0]).max() > 1e-4


# The spiral


def test_the_mean_update_of_td_leads_outwards_everywhere() -> None:
    p, value, gradient = (SPIRAL[name] for name in ("SPIRAL", "value", "gradient"))
    np.testing.assert_allclose(p.d_mu, 1 / 3)
    for at in np.linspace(-20.0, 20.0, 101):
        w = np.array([at])
        V = np.array([value(w, s) for s in range(3)])
        x = np.array([gradient(w, s)[0] for s in range(3)])
        delta = 0.9 * p.P[:, 0] @ V - V
        grown = np.exp(0.1 * at)
        assert x @ delta / 3 == pytest.approx(1573.4 * grown, rel=1e-4)
        assert (x @ delta / 3) ** 2 / (x @ x / 3) == pytest.approx(624.7 * grown, rel=1e-4)
        assert np.sqrt(V @ V / 3) == pytest.approx(72.57 * np.sqrt(grown), rel=1e-4)


@pytest.mark.parametrize("seed", thinned(range(3), 3))
def test_td_diverges_on_the_spiral(seed: int) -> None:
    """The error follows 72.57 / sqrt(1 - 2 0.05 1573.4 alpha t), which ends at t = 635,567.

    Up to 400,000 steps single seeds are within 1 % of it; at 600,000 within 10 %, as the noise is
    blown up along with the error.
    """
    found = spiral("td", alpha=1e-8, steps=600_000, seed=seed)
    mean = 72.57 / np.sqrt(1 - 157.34 * 1e-8 * found.steps)
    np.testing.assert_allclose(found.errors[:4], mean[:4], rtol=0.01)
    np.testing.assert_allclose(found.errors, mean, rtol=0.1)
    assert (np.diff(found.errors) > 0.0).all()
    assert found.error > 4 * found.errors[0]


def test_td_leaves_the_finite_range() -> None:
    found = spiral("td", alpha=1e-6, steps=20_000, seed=1)
    assert found.diverged
    assert found.errors[1] > found.errors[0] and np.isinf(found.errors[2:]).all()
    assert np.isnan(found.weights[-1]).all() and found.weights[0, 0] == 0.0


@pytest.mark.parametrize("rule", ["tdc", "gtd2"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tdc_and_gtd2_converge_on_the_spiral(rule: str, seed: int) -> None:
    found = spiral(rule, alpha=1e-4, steps=500_000, seed=seed)
    assert (np.diff(found.errors) < 0.0).all()
    assert found.error < 0.08 * found.errors[0]


@pytest.mark.parametrize("rule", ["tdc", "gtd2"])
def test_small_steps_descend_the_projected_bellman_error(rule: str) -> None:
    """dw = -alpha/2 dJ/dw with J = 624.7 e^(0.1 w): the error is 72.57 / sqrt(1 + 3.12 alpha t).

    Within 2 %: h starts at 0, and for larger steps it is correlated with the sample it meets (the
    chain stays where it is half of the time), in terms that all but cancel in the mean.
    """
    found = spiral(rule, alpha=2e-7, steps=600_000)
    mean = 72.57 / np.sqrt(1 + 0.05 * 0.1 * 624.7 * 2e-7 * found.steps)
    np.testing.assert_allclose(found.errors, mean, rtol=0.02)
    assert mean[-1] < 0.9 * mean[0]


def test_what_cannot_be_compiled_is_interpreted() -> None:
    table = {s: float(c) for s, c in enumerate(CENTRES)}  # Numba knows no such dictionary

    def value(w: Floats, s: int) -> float:
        return float(w[0]) * table[int(s)]

    def gradient(w: Floats, s: int) -> Floats:
        return np.array([table[int(s)]])

    problem = off_policy_problem(3, states=STATES)
    found = st.nonlinear("td", problem, value=value, gradient=gradient, w0=[1.0], alpha=0.1,
                         steps=50)  # fmt: skip
    same = st.nonlinear("td", problem, value=lambda w, s: w[0] * CENTRES[s], w0=[1.0], alpha=0.1,
                        gradient=lambda w, s: np.array([CENTRES[s]]), steps=50,
                        compile=everything())  # fmt: skip
    assert not found.compiled and same.compiled == everything()
    np.testing.assert_allclose(found.weights, same.weights, rtol=1e-12)


def test_overflow_in_python_is_divergence() -> None:
    found = st.nonlinear(
        "td", off_policy_problem(3, states=STATES), value=lambda w, s: math.exp(w[0]), w0=[0.0],
        gradient=lambda w, s: np.array([-math.exp(w[0])]), alpha=1.0, steps=500, compile=False,
    )  # fmt: skip
    assert found.diverged and np.isinf(found.error)


def test_errors() -> None:
    problem = off_policy_problem(3, states=STATES)
    good: dict[str, Any] = {**BUMPY, "alpha": 0.1, "steps": 10}
    with pytest.raises(
        st.InputError, match=r"unknown rule of nonlinear: 'gtd'; did you mean 'gtd2'"
    ):
        st.nonlinear("gtd", problem, **good)
    with pytest.raises(st.InputError, match=r"tdc needs hessian_vector\(w, s, h\)"):
        st.nonlinear("tdc", problem, **{**good, "hessian_vector": None})
    with pytest.raises(st.InputError, match=r"value\(w0, 0\) must be a number"):
        st.nonlinear("td", problem, **{**good, "value": lambda w, s: w})
    with pytest.raises(st.InputError, match=r"gradient\(w0, 0\) .* shape \(3,\), .* got \(2,\)"):
        st.nonlinear("td", problem, **{**good, "gradient": lambda w, s: w[:2]})
    with pytest.raises(st.InputError, match=r"hessian_vector\(w0, 0, w0\) must be an array"):
        st.nonlinear("gtd2", problem, **{**good, "hessian_vector": lambda w, s, h: 0.0})
    with pytest.raises(st.InputError, match=r"nonlinear: alpha .* must be > 0, got 0"):
        st.nonlinear("td", problem, **{**good, "alpha": 0.0})
    with pytest.raises(st.InputError, match="has 2 target policies"):
        st.nonlinear("td", off_policy_problem(3, policies=2), **good)
    with pytest.raises(st.InputError, match=r"w0 must have 1 dimensions, got shape \(\)"):
        st.nonlinear("td", problem, **{**good, "w0": 0.0})
