"""Fixed points, mean dynamics and exact expected errors against independent answers."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.facts import fact_table, named
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.theory.certificate import Certificate
from steadytd.theory.dynamics import (
    best_error,
    decay_rates,
    expectation,
    fixed_point,
    is_stable,
    largest_alpha,
    mean_weights,
)
from steadytd.theory.exact import exact_error
from steadytd.theory.reading import affine_step, closes
from tests.support.cases import CASES
from tests.support.helpers import random_problem
from tests.support.made import follow_on_growth

# THEORY.md's table of three_state and the facts of PROBLEMS.md, to the printed digits
FIXED_POINT_ERRORS = {
    "perturbed_td:alpha=1,eta=0.5": 3.015,
    "perturbed_td:alpha=1,eta=0.6": 5.14,
    "etd:alpha=1": 7.49,
    "td:alpha=1": 12.27,
    "tdc:alpha=1": 12.27,
    "gtd2:alpha=1": 12.27,
}


@pytest.mark.parametrize(("text", "error"), FIXED_POINT_ERRORS.items())
def test_fixed_point_errors_on_three_state(text: str, error: float) -> None:
    p = st.problem("three_state")
    found = float(p.error(fixed_point(p, st.learner(text))))
    digits = len(str(error).partition(".")[2])
    assert round(found, digits) == pytest.approx(error, abs=1.01 * 10**-digits)


def test_closed_form_of_the_perturbed_fixed_point() -> None:
    p = st.problem("three_state")
    for eta in (0.45, 0.5, 1.0, 8.0):
        w = fixed_point(p, st.learner("perturbed_td", alpha=1, eta=eta))
        a = 12 / (14 * (1 + eta) - 19.8)
        assert p.Phi @ w == pytest.approx(a * np.array([1, 2, 1]), rel=1e-10)


@pytest.mark.parametrize(
    ("problem", "learner", "stable"),
    [
        ("theta2theta", "td:alpha=1", False),
        ("theta2theta", "perturbed_td:alpha=1,eta=0.0799", False),
        ("theta2theta", "perturbed_td:alpha=1,eta=0.0801", True),
        ("baird", "td:alpha=1", False),
        ("baird", "perturbed_td:alpha=1,eta=0.1220", False),
        ("baird", "perturbed_td:alpha=1,eta=0.1221", True),
        ("three_state", "td:alpha=1", False),
        ("three_state", "perturbed_td:alpha=1,eta=0.4142", False),
        ("three_state", "perturbed_td:alpha=1,eta=0.4143", True),
        ("three_state", "tdc:alpha=1,ratio=0.41", False),
        ("three_state", "tdc:alpha=1,ratio=0.42", True),
        ("theta2theta", "tdrc:alpha=1,reg=1", False),
        ("three_state", "tdrc:alpha=1,reg=1", False),
        ("three_state", "tdrc:alpha=1,reg=0", True),
        ("baird", "gtd2:alpha=1,ratio=0.01", True),
        ("baird", "etd:alpha=1", True),
    ],
)
def test_stability(problem: str, learner: str, stable: bool) -> None:
    assert is_stable(st.problem(problem), st.learner(learner)) is stable


def test_best_error_and_variance() -> None:
    assert best_error(st.problem("three_state")) == pytest.approx(2.5482, abs=5e-5)
    assert best_error(st.problem("baird")) == pytest.approx(0.0, abs=1e-12)
    assert follow_on_growth(st.problem("theta2theta")) == pytest.approx(0.81 * 2)
    assert follow_on_growth(st.problem("baird")) == pytest.approx(0.99**2 * 7)
    on_policy = random_problem(3)
    same = st.Problem(
        name="on", P=on_policy.P, r=on_policy.r, gamma=0.9, mu=on_policy.mu, pi=on_policy.mu,
        Phi=on_policy.Phi,
    )  # fmt: skip
    assert follow_on_growth(same) == pytest.approx(0.81)


def test_mean_weights_are_the_iterated_mean_update() -> None:
    p = random_problem(5)
    for text in (
        "td:alpha=0.01,lam=0.4",
        "tdc:alpha=0.01",
        "td:alpha=0.01,power=0.7,delay=10",
        "tdc_as_published:alpha=0.01,h0=2,weight=pi",
    ):
        learner = st.learner(text)
        e = expectation(p, learner)
        h0 = float(learner.values.get("h0", 0.0))
        y = np.concatenate([p.w0, h0 * p.w0])[: len(e.g)]
        for t in range(200):
            alpha = 0.01 / (1 + t / 10) ** 0.7 if "power" in text else 0.01
            y = y + alpha * (e.g - e.M @ y)
        assert mean_weights(p, learner, 200) == pytest.approx(y[: p.n_features], rel=1e-9)


def mean_of_a_period(p: st.Problem, b: int) -> tuple[Floats, Floats]:
    """M and g of PER-ETD over whole periods: every path of b steps from d_mu, its last one learns.

    Written from the update's equations; the change in the last step is alpha (g - M w).
    """
    m, paths = p.moments(), [(q, s, 0.0, 0.0) for s, q in enumerate(p.d_mu)]
    M, g = np.zeros((p.n_features, p.n_features)), np.zeros(p.n_features)
    for k in range(b):
        following = []
        for q, s, F, gamma_rho in paths:
            F_now = gamma_rho * F + m.interest[s]
            for a, t in np.argwhere(p.mu[s][:, None] * p.P[s] > 0.0):
                chance, rho = q * p.mu[s, a] * p.P[s, a, t], p.pi[s, a] / p.mu[s, a]
                gamma = m.gamma[s, a, t]
                following.append((chance, t, F_now, gamma * rho))
                if k == b - 1:
                    x = chance * rho * F_now * p.Phi[s]
                    M += np.outer(x, p.Phi[s] - gamma * p.Phi[t])
                    g += x * m.r[s, a, t]
        paths = following
    return M, g


@pytest.mark.parametrize("b", [1, 2, 4])
def test_one_update_in_b_steps_is_not_b_small_ones(b: int) -> None:
    """PER-ETD's largest step size and mean weights are those of all paths through a period."""
    seen = 0
    for seed in range(40 if b < 4 else 6):
        p = random_problem(seed, states=2, actions=2, features=1 + seed % 2, interest=True)
        M, g = mean_of_a_period(p, b)
        rates, alpha = np.linalg.eigvals(M), largest_alpha(p, st.learner(f"per_etd:alpha=1,b={b}"))
        if rates.real.min() <= 0.0:
            assert alpha == 0.0
            continue
        seen += 1
        assert alpha == pytest.approx((2.0 * rates.real / np.abs(rates) ** 2).min(), rel=1e-9)
        for near, goes in ((0.99, True), (1.01, False)):
            step = np.eye(len(g)) - near * alpha * M
            assert bool(np.abs(np.linalg.eigvals(step)).max() < 1.0) is goes
        y, small = p.w0, 0.3 * alpha
        for k in range(5):
            y = y + small / (1.0 + (b * k + b - 1) / 7.0) * (g - M @ y)
        text = f"per_etd:alpha={small!r},b={b},power=1,delay=7"
        for steps in {5 * b, 6 * b - 1}:
            assert mean_weights(p, st.learner(text), steps) == pytest.approx(y, rel=1e-9)
    assert seen > 3
    one = st.Problem(name="one", P=[[[1.0]]], r=1.0, gamma=0.0, mu=[[1.0]], pi=[[1.0]], Phi=[[1.0]])
    assert Certificate(one).largest_alpha("per_etd", b=b) == pytest.approx(2.0)
    for alpha, distance in ((1.9, 0.9**10), (2.1, 1.1**10)):
        w = mean_weights(one, st.learner(f"per_etd:alpha={alpha},b={b}"), 10 * b)
        assert abs(w[0] - 1.0) == pytest.approx(distance, rel=1e-9)  # no chance: that is the run


def test_mean_dynamics_at_the_papers_size() -> None:
    p = st.problem("three_state")
    w = mean_weights(p, st.learner("perturbed_td:alpha=1e-4,eta=0.5"), 1_000_000)
    assert p.error(w) == pytest.approx(2.990, abs=5e-4)


def test_a_learner_without_expectation_is_a_clear_error() -> None:
    @st.law(writes={"w": "x"}, memory={"n": lambda n: n + 1.0})
    def mine(reward: float, alpha: float, n: float) -> float:
        return alpha * reward / n

    with pytest.raises(st.InputError, match="mine has no closed-form expectation"):
        expectation(st.problem("baird"), st.learner(mine, alpha=0.1))


def test_no_fixed_point_at_the_pole_is_a_clear_error() -> None:
    p = st.problem("three_state")
    with pytest.raises(st.InputError, match="no fixed point on three_state"):
        fixed_point(p, st.learner("perturbed_td", alpha=1, eta=29 / 70))


def brute_force_moments(p: st.Problem, learner: st.Learner, steps: int) -> tuple[float, float]:
    """E[w] and E[squared error] by walking through every path of the chain."""
    m = p.moments()
    y0 = np.concatenate([p.w0, float(learner.values.get("h0", 0.0)) * p.w0])
    paths = [(float(p.start[s]), s, y0) for s in range(3)]
    if len(learner.law.vectors) == 1:
        paths = [(q, s, y[: len(p.w0)]) for q, s, y in paths]
    for _ in range(steps):
        following = []
        for q, s, y in paths:
            for a in range(p.n_actions):
                for t in range(p.n_states):
                    chance = p.mu[s, a] * p.P[s, a, t]
                    if chance == 0.0:
                        continue
                    rho = p.pi[s, a] / p.mu[s, a]
                    (row,) = fact_table(
                        reward=m.r[s, a, t], gamma_next=m.gamma[s, a, t], rho=rho, pi=p.pi[s, a],
                        mu=p.mu[s, a], peak_min=1.0, peak_max=1.0,
                    )  # fmt: skip
                    B, c = affine_step(learner, p.Phi[s], p.Phi[t], named(row))
                    following.append((q * chance, t, B @ y + c))
        paths = following
    d = len(p.w0)
    mean = sum(q * y[:d] for q, _, y in paths)
    square = sum(q * float(p.error(y[:d])) ** 2 for q, _, y in paths)
    return float(p.error(np.asarray(mean))), float(np.sqrt(square))


def test_an_error_that_overflows_is_infinite() -> None:
    found = exact_error(st.problem("theta2theta"), st.learner("td:alpha=0.5"), 100_000)
    assert found is not None and found.of_mean == found.root_mean_square == np.inf


@pytest.mark.parametrize(
    "text",
    [
        "perturbed_td:alpha=0.3,eta=0.5",
        "tdc:alpha=0.2,ratio=2",
        "tdc_as_published:alpha=0.2,ratio=2",
        "tdc_as_published:alpha=0.2,ratio=2,h0=1,weight=pi",
    ],
)
def test_exact_error_is_the_sum_over_all_paths(text: str) -> None:
    base = st.problem("three_state")
    p = st.Problem(
        name="start", P=base.P, r=base.r, gamma=0.9, mu=base.mu, pi=base.pi, Phi=base.Phi,
        w0=[1.0, -2.0], start=[0.2, 0.5, 0.3],
    )  # fmt: skip
    learner = st.learner(text)
    found = exact_error(p, learner, 6)
    assert found is not None
    of_mean, root = brute_force_moments(p, learner, 6)
    assert found.of_mean == pytest.approx(of_mean, rel=1e-11)
    assert found.root_mean_square == pytest.approx(root, rel=1e-11)


def test_affine_step_is_the_law() -> None:
    (row,) = fact_table(
        reward=2.0, gamma_next=0.9, rho=1.5, pi=0.3, mu=0.2, peak_min=0.3, peak_max=1.0
    )
    x, x_next = np.array([1.0, 0.0]), np.array([0.5, 2.0])
    B, c = affine_step(st.learner("perturbed_td:alpha=0.1,eta=0.5"), x, x_next, named(row))
    assert c == pytest.approx(0.1 * 1.5 * 2.0 * x)
    assert pytest.approx(np.eye(2) + 0.15 * np.outer(x, 0.9 * x_next - 1.5 * x)) == B


@pytest.mark.parametrize("case", [case for case in CASES if closes(case)], ids=str)
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.7])
def test_affine_steps_are_those_of_the_interpreter(case: Learner, rho: float) -> None:
    rng = np.random.default_rng(0)
    x, x_next, *start = rng.normal(size=(2 + len(case.law.vectors), 5))
    (row,) = fact_table(
        reward=0.7, gamma_next=0.9, rho=rho, pi=0.5 * rho, mu=0.5, interest=1.3,
        peak_min=0.2, peak_max=0.8,
    )  # fmt: skip
    B, c = affine_step(case, x, x_next, named(row))
    reference = ReferenceLearner(case, np.zeros(5))
    reference.vectors = dict(zip(case.law.vectors, start, strict=True))
    scalars = rng.normal(size=len(case.law.scalars))
    reference.memory |= dict(zip(case.law.scalars, scalars, strict=True))
    reference.update(x, x_next, named(row))
    after = np.concatenate([reference.vectors[name] for name in case.law.vectors])
    after = np.append(after, [reference.memory[name] for name in case.law.scalars])
    assert B @ np.append(start, scalars) + c == pytest.approx(after, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_exact_error_holds_in_simulation() -> None:
    """Mean of 400 runs within 4 standard errors of the exact interval (1 alarm in 10,000)."""
    p = st.problem("three_state")
    for text in ("perturbed_td:alpha=0.01,eta=0.5", "tdc:alpha=0.01,ratio=2"):
        learner = st.learner(text)
        row = st.run(p, [learner], steps=3000, seeds=400, points=2).summary.row(0, named=True)
        exact = exact_error(p, learner, 3000)
        assert exact is not None
        assert row["final"] > exact.of_mean - 4 * row["final_stderr"]
        assert row["final"] < exact.root_mean_square + 4 * row["final_stderr"]
        gap = exact.root_mean_square - exact.of_mean
        assert 0 < gap < 0.2 * exact.of_mean  # the interval is narrow enough to mean something


def test_exact_error_says_when_it_does_not_apply() -> None:
    p = st.problem("three_state")
    for text in ("etd:alpha=0.1", "td:alpha=0.1,lam=0.5", "td:alpha=0.1,power=1"):
        assert exact_error(p, st.learner(text), 10) is None


def test_decay_rates_leave_out_what_the_features_cannot_tell_apart() -> None:
    p = st.problem("baird")
    assert len(decay_rates(p, st.learner("td:alpha=1"))) == 7
    assert decay_rates(p, st.learner("perturbed_td:alpha=1,eta=1")).real.min() > 0


def centred(p: st.Problem) -> tuple[Floats, Floats, Floats, Floats]:
    """On the row space: A, G, and of ctdc the covariances C and c, from the transitions."""
    m = p.moments()
    x = p.Phi @ m.row_space
    s, a, t = np.nonzero(p.P * p.mu[:, :, None])
    often = p.d_mu[s] * p.mu[s, a] * p.P[s, a, t]
    rho = p.pi[s, a] / p.mu[s, a]
    gamma = np.broadcast_to(np.asarray(p.gamma), p.P.shape)[s, a, t]
    steps, reward = rho[:, None] * (x[s] - gamma[:, None] * x[t]), rho * p.r[s, a, t]
    weighted, apart = often[:, None] * x[s], often[:, None] * (x[s] - often @ x[s])
    return weighted.T @ steps, weighted.T @ x[s], apart.T @ steps, apart.T @ reward


@pytest.mark.parametrize("name", ["theta2theta", "three_state"])
def test_ctdc_is_unstable_on_two_of_the_papers_problems(name: str) -> None:
    """As its text says: A and C have determinants of opposite signs."""
    p = st.problem(name)
    A, G, C, c = centred(p)
    assert np.linalg.det(A) < 0.0 < np.linalg.det(C)
    for ratio in (0.01, 1.0, 100.0):
        for center in (0.01, 1.0, 100.0):
            learner = st.learner("ctdc", alpha=1.0, ratio=ratio, center=center)
            assert not is_stable(p, learner)
            w = p.moments().row_space @ np.linalg.solve(C, c)
            np.testing.assert_allclose(fixed_point(p, learner), w, atol=1e-9)
    fast = st.learner("ctdc", alpha=1.0, ratio=1e5, center=1e7)
    slowest = np.linalg.eigvals(A.T @ np.linalg.solve(G, C)).real.min()
    assert decay_rates(p, fast).real.min() == pytest.approx(slowest, rel=1e-3)


def test_ctdc_leaves_a_constant_on_baird() -> None:
    p = st.problem("baird")
    _, _, C, _ = centred(p)
    assert np.linalg.svd(C)[1][-1] < 1e-12
    rates = decay_rates(p, st.learner("ctdc", alpha=1.0))
    assert (np.abs(rates) < 1e-12).sum() == 1
    assert np.sort(rates.real)[1] > 0.1
