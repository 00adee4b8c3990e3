"""The learning curve before any run: against many runs, enumeration and limits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.numbers import about, number
from steadytd.mdp.problem import ARRAYS
from steadytd.theory.exact import exact_error
from steadytd.theory.histories import Chain
from steadytd.theory.learning_curve import MomentRecursion, learning_curve, spread_of_a_run

RUNS = 1_000
SCORE = 4.5  # standard errors: with a hundred comparisons in all, chance passes it once in 1,500
EXACT = [
    ("three_state", "perturbed_td:alpha=0.05,eta=0.6"),
    ("three_state", "perturbed_td:alpha=0.1,eta=0.6,power=0.7,delay=20"),
    ("baird", "tdc:alpha=0.02,ratio=4"),
    ("theta2theta", "td:alpha=0.1"),
    ("three_state", "nstep_td:alpha=0.005,n=3"),
    ("baird", "nstep_td:alpha=0.003,n=2,power=0.6,delay=10"),
    ("baird", "truncated_etd:alpha=0.001,n=2"),
    ("random_walk", "per_etd:alpha=0.05,b=3"),
    ("boyan", "etd:alpha=0.05"),
    ("theta2theta", "tree_backup:alpha=0.1,lam=0.5"),
    ("random_walk", "implicit_td:alpha=0.5"),
    ("average_baird", "perturbed_differential_td:alpha=0.01,eta=0.5"),
]


def scored(name: str, text: str, steps: int, seeds: int) -> None:
    """The curve against runs: mean square at every step, spread and bias after the last."""
    curve = st.certify(name).learning_curve(text, steps=steps)
    runs = st.run(name, text, steps=steps, seeds=seeds)
    assert curve.runs == 0
    assert not curve.stderr.any()
    at = {t: i for i, t in enumerate(runs.steps.tolist())}
    seen = [i for i, t in enumerate(curve.step.tolist()) if t in at]
    assert len(seen) > 20
    for i in seen:
        squares = runs.errors[0, :, at[int(curve.step[i])]] ** 2
        slack = SCORE * squares.std() / np.sqrt(seeds) + 1e-9 * curve.error[i] ** 2
        assert abs(squares.mean() - curve.error[i] ** 2) <= slack, curve.step[i]
    p = st.problem(name)
    values, share = runs.final_weights[0] @ p.moments().compared.T, p.error_weights()
    apart, off = values - values.mean(axis=0), values.mean(axis=0) - p.v_pi
    each = apart**2 @ share
    spread, noise = each.sum() / (seeds - 1), each.std() / np.sqrt(seeds)
    assert abs(spread - curve.spread[-1] ** 2) <= SCORE * noise + 1e-9 * spread
    # the mean of n runs is off by spread^2 / n in the mean square
    bias = off**2 @ share - spread / seeds
    noise = (2.0 * apart * off @ share).std() / np.sqrt(seeds) + spread / seeds
    assert abs(bias - curve.bias[-1] ** 2) <= SCORE * noise + 1e-9 * abs(bias)


@pytest.mark.parametrize(("name", "text"), EXACT)
def test_the_curve_is_that_of_many_runs(name: str, text: str) -> None:
    scored(name, text, steps=60, seeds=400)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), EXACT)
def test_the_curve_is_that_of_ten_thousand_runs(name: str, text: str) -> None:
    scored(name, text, steps=300, seeds=10_000)


@pytest.mark.parametrize(
    ("name", "text", "states"),
    [
        ("three_state", "nstep_td:alpha=0.1,n=2", 7),
        ("baird", "nstep_td:alpha=0.1,n=4", 28),
        ("baird", "truncated_etd:alpha=0.1,n=4", 11),
        ("theta2theta", "per_etd:alpha=0.1,b=4", 11),
        ("theta2theta", "td:alpha=0.1", 2),
        ("theta2theta", "nstep_td:alpha=0.1,n=6", 12),
        ("three_state", "nstep_td:alpha=0.1,n=6", 49),
        ("baird", "nstep_td:alpha=0.1,n=6", 42),
    ],
)
def test_what_is_remembered_are_few_states(name: str, text: str, states: int) -> None:
    """The chain moves as the problem's does, and no two of its states have the same future."""
    p = st.problem(name)
    chain = Chain.of(p, st.learner(text), 0)
    assert chain is not None
    maps = chain.maps
    assert maps.n_states == states
    np.testing.assert_allclose(np.bincount(maps.s, maps.p, states), 1.0)
    begin = np.bincount(chain.first, p.start, states)
    assert begin.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("text", "left"), [("td:alpha=0.1", 13), ("tdc:alpha=0.1,ratio=4", 35)])
def test_symmetry_leaves_few_moments(text: str, left: int) -> None:
    """As docs/theory.md says."""
    recursion = MomentRecursion.of(st.problem("baird"), st.learner(text), 0)
    assert recursion is not None
    assert len(recursion.start) == left


def test_what_is_not_affine_or_remembers_too_much_has_no_chain() -> None:
    @st.law(writes={"w": "x"})
    def bounded_td(
        reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
    ) -> float:
        """w += alpha rho max(min(delta, 1), -1) x."""
        return alpha * rho * max(min(reward + gamma_next * w_x_next - w_x, 1.0), -1.0)

    @st.law(memory={"last": None}, writes={"w": "x", "last": "value"})
    def smoothed_td(
        reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, last: float,
        alpha: float,
    ) -> tuple[float, float]:  # fmt: skip
        """w += alpha rho (delta + last) x, where last is the error before: it depends on w."""
        delta = reward + gamma_next * w_x_next - w_x
        return alpha * rho * (delta + last), delta

    p = st.problem("three_state")
    assert Chain.of(p, st.learner(bounded_td, alpha=0.1), 0) is None
    assert Chain.of(p, st.learner(smoothed_td, alpha=0.1), 0) is None
    assert Chain.of(p, st.learner("td:alpha=0.1,lam=0.9"), 0) is None
    assert st.certify(p).learning_curve(bounded_td, alpha=0.1, steps=10).runs == 200


@pytest.mark.parametrize(("scale", "runs"), [(0.0, 200), (1e100, 200), (1e-60, 0)])
def test_features_of_any_size(scale: float, runs: int) -> None:
    """Squares of products of huge features overflow, and no features have no moments."""
    given = st.problem("three_state").content()
    arrays: dict[str, Any] = {k: v for k, v in given.items() if k in ARRAYS}
    p = st.Problem(name="scaled", **arrays | {"Phi": scale * arrays["Phi"]})
    curve = learning_curve(p, st.learner("td:alpha=0.01"), 20)
    assert curve.runs == runs
    assert curve.error[0] == pytest.approx(p.error(p.w0))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("baird", "perturbed_td:alpha=0.01,eta=1"),
        ("baird", "truncated_etd:alpha=0.001,n=2"),
        ("three_state", "nstep_td:alpha=0.01,n=3"),
        ("random_mdp:states=4,features=2,seed=3", "tdc:alpha=0.01,ratio=1e-4"),
    ],
)
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_the_least_space_loses_nothing(
    name: str, text: str, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same curve from all moments; rewards in other units, so that kinds of moments differ."""
    given = st.problem(name).content()
    arrays: dict[str, Any] = {k: v for k, v in given.items() if k in ARRAYS}
    p = st.Problem(name="scaled", **arrays | {"r": unit * (arrays["r"] + 1.0)})
    small = learning_curve(p, st.learner(text), 2000)
    with monkeypatch.context() as m:
        m.setattr("steadytd.theory.learning_curve.MOST_REDUCED", 0)
        whole = learning_curve(p, st.learner(text), 2000)
    np.testing.assert_allclose(small.error, whole.error, rtol=1e-6)
    np.testing.assert_allclose(small.spread, whole.spread, rtol=1e-5, atol=1e-6 * whole.error[0])


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
        assert f"still more than 10 % above its fixed point's, {number(limit)}." in curve.text
        assert curve.error[-1] > 1.1 * limit
    elif reached == 0:
        assert "begins and stays" in curve.text
        assert max(curve.error) <= 1.1 * limit
    else:
        assert f"after {about(reached, 'step')}." in curve.text
        at = c.learning_curve(learner, steps=reached)
        before = c.learning_curve(learner, steps=max(int(reached / 1.06), 1))
        assert at.error[-1] <= 1.1 * limit
        assert reached <= 30 or before.error[-1] > 1.1 * limit


@pytest.mark.parametrize(
    ("name", "text", "steps"),
    [
        ("three_state", "perturbed_td:eta=0.6", 500),
        ("three_state", "td", 1000),  # two minima: to learn a little, or to grow for long
        ("three_state", "nstep_td:n=3", 1000),
        ("three_state", "td:power=0.7,delay=10", 100),
        ("theta2theta", "td", 1),
        ("theta2theta", "perturbed_td:eta=1,power=1,delay=100", 200),
        ("kolter", "td:power=0.7,delay=10", 300),
        ("kolter", "tdc:ratio=4", 3),
    ],
)
def test_no_step_size_does_better_than_the_best(name: str, text: str, steps: int) -> None:
    """Against 2,000 step sizes over a wider range; to 1e-3 of the error."""
    p = st.problem(name)
    curve = st.certify(p).learning_curve(text, steps=steps)
    alpha = float(curve.learner["alpha"])
    recursion = MomentRecursion.of(p, curve.learner, 0)
    assert recursion is not None
    grid = np.geomspace(min(1e-6, alpha / 100.0), 100.0 * max(1.0, alpha), 2000)
    ends = recursion.ends(grid, steps, curve.learner)
    assert curve.error[-1] <= ends.min() * (1.0 + 1e-3)
    assert len(f"{alpha:g}") <= 10 and alpha == float(f"{alpha:.4g}")


def test_without_a_stable_fixed_point_there_is_no_limit() -> None:
    curve = st.certify("three_state").learning_curve("td:alpha=0.01", steps=10)
    assert curve.limit is None and curve.reaches() is None
    assert curve.text.startswith("no stable fixed point is known. After 10 steps: error ")


def test_memories_that_fade_are_told_apart_to_many_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Boyan's chain episodes end, so that etd remembers few values at any number of digits."""
    p, learner = st.problem("boyan"), st.learner("etd:alpha=0.05")
    usual = learning_curve(p, learner, 100)
    with monkeypatch.context() as m:
        m.setattr("steadytd.theory.histories.DIGITS", 15)
        finer = learning_curve(p, learner, 100)
    assert usual.runs == finer.runs == 0
    np.testing.assert_allclose(usual.error, finer.error, rtol=1e-9)


def test_divergence_is_infinite_and_none_in_json() -> None:
    """A curve that leaves the range of numbers says so."""
    curve = st.certify("theta2theta").learning_curve("td", alpha=0.5, steps=100_000)
    assert np.isinf(curve.error[-1])
    assert "beyond all numbers" in curve.text
    assert curve.to_dict()["error"][-1] is None
    assert curve.table.columns == ["step", "error", "spread", "bias", "stderr"]


@pytest.mark.parametrize(
    "text", ["td:alpha=0.001,lam=0.8", "etd_beta:alpha=0.05,beta=0.4", "td:alpha=0.05,average=1"]
)
def test_what_does_not_close_is_estimated_and_says_so(text: str) -> None:
    """200 runs against 1,000 others: mean squares within five standard errors of the difference.

    Both have errors of their own, so that of 200 runs counts with that of 1,000.
    """
    p = st.problem("three_state")
    curve = st.certify(p).learning_curve(text, steps=60)
    stderr = number(curve.stderr[-1], 2)
    end = f"Estimated from 200 runs; the last error's standard error is {stderr}."
    assert curve.runs == 200 and curve.text.endswith(end)
    np.testing.assert_allclose(curve.error**2, curve.bias**2 + curve.spread**2)
    runs = st.run(p, text, steps=60, seeds=range(1_000, 2_000))
    squares, steps = runs.errors[0] ** 2, runs.steps.tolist()
    for t, error in zip(curve.step.tolist(), curve.error, strict=True):
        if t in steps:
            own = squares[:, steps.index(t)]
            slack = 5.0 * own.std() * np.sqrt(1.0 / RUNS + 1.0 / curve.runs)
            assert abs(own.mean() - error**2) <= slack + 1e-9 * error**2, t
    # 200 runs know a standard error to about a tenth or two; heavy tails, less well
    known = squares[:, -1].std() / (2.0 * curve.error[-1] * np.sqrt(200))
    assert 0.5 * known <= curve.stderr[-1] <= 2.0 * known


def test_what_is_not_known_is_refused() -> None:
    c = st.certify("three_state")
    with pytest.raises(st.InputError, match="run it instead"):
        c.learning_curve("etd:alpha=0.1", steps=10**6)
    with pytest.raises(st.InputError, match="compare curves of several"):
        c.learning_curve("td", lam=0.5, alpha="best", steps=10)


def test_many_steps_of_a_decay_are_refused() -> None:
    """They would be taken one by one."""
    with pytest.raises(st.InputError, match="ask for fewer steps"):
        st.certify("three_state").learning_curve("td", alpha=0.1, power=1.0, steps=10**7)


def test_the_spread_of_a_run_is_that_of_its_second_moments() -> None:
    """Within a tenth: on ten streams the estimate strayed by 2 %, the root of its mean square."""
    found = st.certify("three_state").mean_square("perturbed_td", eta=1.0)
    assert found is not None
    learner = st.learner("perturbed_td:alpha=0.01,eta=1")
    measured = spread_of_a_run(st.problem("three_state"), learner, 400_000)
    assert measured == pytest.approx(found.spread(0.01), rel=0.1)


def test_a_run_that_overflows_has_an_infinite_spread() -> None:
    assert spread_of_a_run(st.problem("rooms"), st.learner("etd:alpha=1"), 50_000) == np.inf
