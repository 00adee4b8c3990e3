"""The learning curve before any run: against many runs, enumeration and limits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.numbers import number
from steadytd.mdp.problem import ARRAYS
from steadytd.theory.exact import exact_error

RUNS = 1_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("three_state", "perturbed_td:alpha=0.05,eta=0.6"),
        ("three_state", "perturbed_td:alpha=0.1,eta=0.6,power=0.7,delay=20"),
        ("baird", "tdc:alpha=0.02,ratio=4"),
        ("theta2theta", "td:alpha=0.1"),
    ],
)
def test_the_curve_is_that_of_many_runs(name: str, text: str) -> None:
    """The mean square of 1,000 runs lies within five of its standard errors."""
    curve = st.certify(name).learning_curve(text, steps=60)
    runs = st.run(name, text, steps=60, seeds=RUNS)
    squares = runs.errors[0] ** 2
    steps = runs.steps.tolist()
    for t, error in zip(curve.step.tolist(), curve.error, strict=True):
        if t in steps:
            own = squares[:, steps.index(t)]
            apart = abs(own.mean() - error**2)
            assert apart <= 5.0 * own.std() / np.sqrt(RUNS) + 1e-9 * error**2, t


def test_bias_and_spread_are_those_of_all_paths() -> None:
    """Three steps of a decaying step size, enumerated: every path with its probability."""
    p = st.problem("three_state")
    learner = st.learner("perturbed_td:alpha=0.3,eta=0.6,power=1,delay=2")
    m, found = p.moments(), []
    for path in product(range(p.n_states), *[range(p.n_actions), range(p.n_states)] * 3):
        chance, w, s = p.start[path[0]], p.w0, path[0]
        for t in range(3):
            a, s_next = path[1 + 2 * t], path[2 + 2 * t]
            chance = chance * m.mu[s, a] * m.P[s, a, s_next]
            if chance == 0.0:
                break
            alpha = 0.3 / (1.0 + t / 2.0)
            x, x_next = m.Phi[s], m.Phi[s_next]
            delta = m.r[s, a, s_next] + m.gamma[s, a, s_next] * w @ x_next - 1.6 * w @ x
            w, s = w + alpha * m.pi[s, a] / m.mu[s, a] * delta * x, s_next
        if chance > 0.0:
            found.append((chance, m.Phi @ w))
    weights, chances = p.error_weights(), np.array([one[0] for one in found])
    values = np.array([one[1] for one in found])
    mean = chances @ values
    bias = np.sqrt(weights @ (mean - p.v_pi) ** 2)
    spread = np.sqrt(chances @ ((values - mean) ** 2 @ weights))
    curve = st.certify(p).learning_curve(learner, steps=3)
    assert chances.sum() == pytest.approx(1.0)
    assert curve.bias[-1] == pytest.approx(bias, rel=1e-12)
    assert curve.spread[-1] == pytest.approx(spread, rel=1e-9)
    assert curve.error[-1] == pytest.approx(np.hypot(bias, spread), rel=1e-12)


def test_powers_and_single_steps_agree() -> None:
    """A decay so slow that it is none gives the curve of the constant step size."""
    c = st.certify("three_state")
    one = c.learning_curve("perturbed_td", alpha=0.02, eta=0.6, steps=2000)
    other = c.learning_curve("perturbed_td", alpha=0.02, eta=0.6, power=1e-15, steps=2000)
    np.testing.assert_allclose(one.error, other.error, rtol=1e-9)
    known = exact_error(c.problem, one.learner, 2000)
    assert known is not None
    assert one.error[-1] == pytest.approx(known.root_mean_square, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_sentence_is_true(seed: int) -> None:
    """At the step that it names the error is near its end, and 6 % of the steps before it is not.

    The curve has 200 points, at most 5 % apart in steps.
    """
    drawn = st.problem("random_mdp", states=5, features=2, seed=seed).content()
    w0 = np.full(2, 10.0 if seed % 4 else 0.0)
    arrays: dict[str, Any] = {k: v for k, v in drawn.items() if k in ARRAYS}
    p = st.Problem(name="drawn", **arrays | {"w0": w0})
    c = st.certify(p)
    largest = c.largest_alpha("perturbed_td", eta=1.0)
    learner = st.learner("perturbed_td", alpha=0.02 * largest, eta=1.0)
    curve = c.learning_curve(learner, steps=20_000)
    limit = c.error(c.fixed_point(learner))
    assert curve.limit == pytest.approx(limit)
    reached = curve.reaches()
    if reached is None:
        assert f"that of the fixed point is {number(limit)}" in curve.text
        assert curve.error[-1] > 1.1 * limit
    elif reached == 0:
        assert "begins and stays" in curve.text
        assert max(curve.error) <= 1.1 * limit
    else:
        assert f"after about {reached:,} step" in curve.text
        at = c.learning_curve(learner, steps=reached)
        before = c.learning_curve(learner, steps=max(int(reached / 1.06), 1))
        assert at.error[-1] <= 1.1 * limit
        assert reached <= 30 or before.error[-1] > 1.1 * limit


def test_no_step_size_does_better_than_the_best() -> None:
    """The best step size for 500 steps, against a finer grid than it was searched on."""
    c = st.certify("three_state")
    best = c.learning_curve("perturbed_td", alpha="best", eta=0.6, steps=500)
    for alpha in np.geomspace(1e-4, 0.5, 60):
        other = c.learning_curve("perturbed_td", alpha=float(alpha), eta=0.6, steps=500)
        assert best.error[-1] <= other.error[-1] * (1.0 + 1e-6)


def test_divergence_is_infinite_and_none_in_json() -> None:
    """A curve that leaves the range of numbers says so."""
    curve = st.certify("theta2theta").learning_curve("td", alpha=0.5, steps=100_000)
    assert np.isinf(curve.error[-1])
    assert "beyond all numbers" in curve.text
    assert curve.to_dict()["error"][-1] is None
    assert curve.table.columns == ["step", "error", "spread", "bias"]


@pytest.mark.parametrize(
    "text", ["td:alpha=0.05,lam=0.8", "etd_beta:alpha=0.05,beta=0.4", "td:alpha=0.05,average=1"]
)
def test_what_does_not_close_is_estimated_and_says_so(text: str) -> None:
    """200 runs against 1,000 others: mean squares within five standard errors of the difference.

    Both have errors of their own, so that of 200 runs counts with that of 1,000.
    """
    p = st.problem("three_state")
    curve = st.certify(p).learning_curve(text, steps=60)
    assert curve.runs == 200 and curve.text.endswith("(estimated from 200 runs)")
    np.testing.assert_allclose(curve.error**2, curve.bias**2 + curve.spread**2)
    runs = st.run(p, text, steps=60, seeds=range(1_000, 2_000))
    squares, steps = runs.errors[0] ** 2, runs.steps.tolist()
    for t, error in zip(curve.step.tolist(), curve.error, strict=True):
        if t in steps:
            own = squares[:, steps.index(t)]
            slack = 5.0 * own.std() * np.sqrt(1.0 / RUNS + 1.0 / curve.runs)
            assert abs(own.mean() - error**2) <= slack + 1e-9 * error**2, t


def test_what_is_not_known_is_refused() -> None:
    c = st.certify("three_state")
    with pytest.raises(st.InputError, match="run it instead"):
        c.learning_curve("etd:alpha=0.1", steps=10**6)
    with pytest.raises(st.InputError, match="compare curves of several"):
        c.learning_curve("td", lam=0.5, alpha="best", steps=10)


@pytest.mark.slow
def test_the_curve_is_that_of_ten_thousand_runs() -> None:
    """As above, with a third of the tolerance."""
    curve = st.certify("three_state").learning_curve("perturbed_td:alpha=0.05,eta=0.6", steps=1000)
    runs = st.run("three_state", "perturbed_td:alpha=0.05,eta=0.6", steps=1000, seeds=10_000)
    squares, steps = runs.errors[0] ** 2, runs.steps.tolist()
    seen = [t for t in curve.step.tolist() if t in steps]
    assert len(seen) > 20
    for t in seen:
        own, error = squares[:, steps.index(t)], curve.error[curve.step.tolist().index(t)]
        assert abs(own.mean() - error**2) <= 5.0 * own.std() / 100.0 + 1e-9 * error**2, t


def test_many_steps_of_a_decay_are_refused() -> None:
    """They would be taken one by one."""
    with pytest.raises(st.InputError, match="ask for fewer steps"):
        st.certify("three_state").learning_curve("td", alpha=0.1, power=1.0, steps=10**7)
