"""Action values: exact q_pi and q*, gq on the engine, greedy_gq for control."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.streams.finite import FiniteStream
from steadytd.theory.dynamics import decay_rates, fixed_point, is_stable
from tests.support.cases import assert_same_bits, off_policy_problem
from tests.support.helpers import random_problem


def random_pairs(seed: int, features: int = 3, policies: int | None = None) -> st.ActionValues:
    """Action values of a random problem, with random features and start weights."""
    problem = off_policy_problem(seed, states=4, actions=2, policies=policies)
    rng = np.random.default_rng(seed)
    return st.ActionValues(problem, rng.normal(size=(4, 2, features)), rng.normal(size=features))


def on_policy(problem: st.Problem) -> st.Problem:
    return st.Problem(
        name="on_policy", P=problem.P, r=problem.r, gamma=problem.gamma, mu=problem.mu,
        pi=problem.mu, Phi=problem.Phi, start=problem.start, interest=problem.interest,
    )  # fmt: skip


def triples(task: st.ActionValues, seed: int, steps: int) -> list[tuple[int, int, int]]:
    """The stream of a seed as (s, a, s')."""
    stream = FiniteStream(task.problem)
    events, _ = stream.take(stream.begin(seed), steps)
    parts = (part[events].tolist() for part in (stream.s, stream.a, stream.s_next))
    return list(zip(*parts, strict=True))


# The exact answers


@pytest.mark.parametrize("seed", range(5))
def test_q_pi_solves_bellmans_equation(seed: int) -> None:
    task = random_pairs(seed)
    m = task.problem.moments()
    for s, a in product(range(4), range(2)):
        right = 0.0
        for t in range(4):
            later = sum(m.pi[t, b] * task.q_pi[t, b] for b in range(2))
            right += m.P[s, a, t] * (m.r[s, a, t] + m.gamma[s, a, t] * later)
        assert task.q_pi[s, a] == pytest.approx(right, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(task.moments().v_pi, task.q_pi.reshape(-1), rtol=1e-9)
    averaged = (m.pi * task.q_pi).sum(axis=1)
    np.testing.assert_allclose(averaged, m.v_pi, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_q_star_is_that_of_the_best_of_all_policies(seed: int) -> None:
    p = random_problem(seed, states=3, actions=2)
    task = st.ActionValues(p)
    best = np.full((3, 2), -np.inf)
    for choice in product(range(2), repeat=3):
        followed = st.Problem(
            name="one", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=np.eye(2)[list(choice)], Phi=p.Phi
        )
        best = np.maximum(best, st.ActionValues(followed).q_pi)
    # Value iteration stops at a relative change of 1e-13; discounts of at most 0.95 make it 2e-12.
    np.testing.assert_allclose(task.q_star, best, rtol=1e-10)


def test_error_weighs_pairs_by_how_often_they_occur() -> None:
    task = random_pairs(0)
    w = np.array([0.3, -1.0, 2.0])
    total = weight = 0.0
    p = task.problem
    for s, a in product(range(4), range(2)):
        share = p.d_mu[s] * p.interest[s] * p.mu[s, a]
        weight += share
        total += share * (task.Psi[s, a] @ w - task.q_pi[s, a]) ** 2
    assert task.error(w) == pytest.approx(np.sqrt(total / weight))
    ran = st.run(task, "gq:alpha=0.01", steps=50, points=2)
    assert ran.errors[0, 0, 0] == pytest.approx(task.error(task.w0))
    assert ran.errors[0, 0, 1] == pytest.approx(task.error(ran.final_weights[0, 0, 0]))


# gq


@pytest.mark.parametrize("lam", [0.0, 0.6])
@pytest.mark.parametrize("policies", [None, 2])
def test_matrices_equal_the_enumeration(lam: float, policies: int | None) -> None:
    """A_lam and b_lam as sums over all paths of pairs, written out from the definition."""
    task = random_pairs(3, policies=policies)
    policy = (policies or 1) - 1
    m = task.problem.moments(policy)
    pairs = list(product(range(4), range(2)))
    bar = [sum(m.pi[t, b] * task.Psi[t, b] for b in range(2)) for t in range(4)]
    A, b, moved = np.zeros((3, 3)), np.zeros(3), np.zeros((8, 8))
    for i, (s, a) in enumerate(pairs):
        for j, (t, c) in enumerate(pairs):
            moved[i, j] = m.P[s, a, t] * m.gamma[s, a, t] * m.pi[t, c]
    z = np.array([m.d[s] * m.mu[s, a] * task.Psi[s, a] for s, a in pairs])  # d E[z | pair]
    for _ in range(2000 if lam else 0):
        z = np.array([m.d[s] * m.mu[s, a] * task.Psi[s, a] for s, a in pairs]) + lam * moved.T @ z
    for i, (s, a) in enumerate(pairs):
        for t in range(4):
            A += m.P[s, a, t] * np.outer(z[i], task.Psi[s, a] - m.gamma[s, a, t] * bar[t])
            b += m.P[s, a, t] * m.r[s, a, t] * z[i]
    np.testing.assert_allclose(task.moments(policy).A(lam), A, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(task.moments(policy).b(lam), b, rtol=1e-9, atol=1e-12)


def gq_reference(
    task: st.ActionValues, seed: int, steps: int, learner: Learner, policy: int
) -> Floats:
    m, alpha, lam = task.problem.moments(policy), float(learner["alpha"]), float(learner["lam"])
    beta = float(learner["ratio"]) * alpha
    w, h, z = np.array(task.w0), np.zeros(task.n_features), np.zeros(task.n_features)
    gamma = 0.0
    for s, a, t in triples(task, seed, steps):
        x, x_bar = task.Psi[s, a], m.pi[t] @ task.Psi[t]
        z = m.pi[s, a] / m.mu[s, a] * gamma * lam * z + x
        gamma = m.gamma[s, a, t]
        delta = m.r[s, a, t] + gamma * (w @ x_bar) - w @ x
        w, h = (
            w + alpha * (delta * z - gamma * (1 - lam) * (h @ z) * x_bar),
            h + beta * (delta * z - (h @ x) * x),
        )
    return w


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_gq_equals_the_reference(lam: float) -> None:
    task, steps, seeds = random_pairs(8, policies=2), 300, [1, 5]
    m = task.problem.moments(1)
    rich = [(m.gamma[s, a, t], m.pi[s, a]) for s, a, t in triples(task, 1, steps)]
    assert sum(gamma == 0.0 for gamma, _ in rich) > 20
    assert sum(pi == 0.0 for _, pi in rich) > 20
    learner = st.learner("gq", alpha=0.02, ratio=0.7, lam=lam)
    found = st.run(task, learner, steps=steps, seeds=seeds, points=2).weights(learner)
    for i, seed in enumerate(seeds):
        for policy in range(2):
            expected = gq_reference(task, seed, steps, learner, policy)
            np.testing.assert_allclose(found[i, policy], expected, rtol=1e-11, atol=1e-12)
            assert np.abs(expected - task.w0).max() > 0.1


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("lam", [0.0, 0.6])
def test_gq_learns_q_pi(seed: int, lam: float) -> None:
    """Tabular, 60 seeds, steps like 1/t: the mean of each weight within 4 standard errors.

    Where pi and mu differ the value of the behaviour policy lies far outside.
    """
    task = st.ActionValues(off_policy_problem(seed, states=3, actions=2))
    learner = st.learner("gq", alpha=0.5, ratio=1.0, lam=lam, power=1.0, delay=400.0)
    assert is_stable(task, learner)
    np.testing.assert_allclose(fixed_point(task, learner), task.q_pi.reshape(-1), rtol=1e-9)
    # The bias that is left decays like t^-(alpha delay times the slowest rate): negligible if > 2.
    assert 0.5 * 400.0 * decay_rates(task, learner).real.min() > 2.0
    w = st.run(task, learner, steps=40_000, seeds=60, points=2).weights(learner)
    errors = w.std(axis=0, ddof=1) / np.sqrt(len(w))
    assert (np.abs(w.mean(axis=0) - task.q_pi.reshape(-1)) < 4.0 * errors).all()
    other = st.ActionValues(on_policy(task.problem)).q_pi.reshape(-1)
    assert (np.abs(other - task.q_pi.reshape(-1)) > 20.0 * errors).any()


@pytest.mark.parametrize("lam", [0.0, 0.6])
def test_on_policy_gq_is_tdc_on_pairs(lam: float) -> None:
    task = st.ActionValues(on_policy(off_policy_problem(4)))
    both = [st.learner(name, alpha=0.05, ratio=2.0, lam=lam) for name in ("gq", "tdc")]
    found = st.run(task, both, steps=500, seeds=2, points=5)
    np.testing.assert_allclose(found.errors[0], found.errors[1], rtol=1e-12)
    assert not np.array_equal(found.final_weights[0], np.zeros_like(found.final_weights[0]))


def test_on_policy_td_learns_action_values() -> None:
    """Expected Sarsa: its closed form over pairs is q_pi, and so is what it learns."""
    task = st.ActionValues(on_policy(off_policy_problem(2, states=3, actions=2)))
    learner = st.learner("td", alpha=0.5, power=1.0, delay=400.0)
    np.testing.assert_allclose(fixed_point(task, learner), task.q_pi.reshape(-1), rtol=1e-9)
    w = st.run(task, learner, steps=40_000, seeds=60, points=2).weights(learner)
    errors = w.std(axis=0, ddof=1) / np.sqrt(len(w))
    assert (np.abs(w.mean(axis=0) - task.q_pi.reshape(-1)) < 4.0 * errors).all()


def test_alone_or_in_a_crowd() -> None:
    task = random_pairs(5)
    crowd = [st.learner("gq", alpha=1e-4 * (i + 1), lam=0.6 * (i % 2)) for i in range(300)]
    together = st.run(task, crowd, steps=9000, seeds=[3], points=4, threads=1)
    for i in (0, 1, 150, 299):
        alone = st.run(task, crowd[i], steps=9000, seeds=[3], points=4)
        assert_same_bits(alone.final_weights[0], together.final_weights[i])
        assert_same_bits(alone.errors[0], together.errors[i])


# greedy_gq


def two_rooms() -> st.ActionValues:
    """Stay or go; going costs 1, staying in state 1 pays 2, and its value is worth the cost."""
    P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.0, 1.0], [0.9, 0.1]]])
    problem = st.Problem(
        name="two_rooms", P=P, r=[[0.0, -1.0], [2.0, -1.0]], gamma=0.8,
        mu=np.full((2, 2), 0.5), pi=np.full((2, 2), 0.5), Phi=np.eye(2),
    )  # fmt: skip
    return st.ActionValues(problem)


@pytest.mark.parametrize("lam", [0.0, 0.4])
def test_greedy_gq_finds_the_best_policy(lam: float) -> None:
    """With steps like 1/t the values end within 2 % of the largest; they start 70 to 80 % away.

    (Seeds 3 to 5: at most 1.5 %.) Some value of each problem's own policy is 60 % away or more.
    """
    tasks = [two_rooms(), *(st.ActionValues(random_problem(s, 3, 2, gamma=0.8)) for s in range(2))]
    for task in tasks:
        found = st.greedy_gq(
            task, alpha=0.3, ratio=0.5, lam=lam, steps=400_000, seed=3, power=1.0, delay=2000.0
        )
        largest = np.abs(task.q_star).max()
        np.testing.assert_array_equal(found.policy, task.q_star.argmax(axis=1))
        assert np.abs(found.q - task.q_star).max() < 0.02 * largest
        assert found.error < 0.02 * largest
        assert found.errors[0] > 0.7 * largest
        assert np.abs(task.q_pi - task.q_star).max() > 0.6 * largest
        np.testing.assert_array_equal(found.policy, task.greedy(found.w))


@pytest.mark.parametrize("lam", [0.0, 0.6])
def test_greedy_gq_equals_the_reference(lam: float) -> None:
    task, alpha, ratio, steps = random_pairs(1), 0.01, 0.7, 400
    m = task.problem.moments()
    w, h, z = np.array(task.w0), np.zeros(3), np.zeros(3)
    gamma, cuts = 0.0, 0
    for s, a, t in triples(task, 2, steps):
        best = int(np.argmax(task.Psi[s] @ w))
        x, x_best = task.Psi[s, a], task.Psi[t, int(np.argmax(task.Psi[t] @ w))]
        rho = 1 / m.mu[s, a] if a == best else 0.0
        cuts += rho == 0.0
        z = rho * gamma * lam * z + x
        gamma = m.gamma[s, a, t]
        delta = m.r[s, a, t] + gamma * (w @ x_best) - w @ x
        w, h = (
            w + alpha * (delta * z - gamma * (1 - lam) * (h @ z) * x_best),
            h + ratio * alpha * (delta * z - (h @ x) * x),
        )
    assert 20 < cuts < steps - 20
    found = st.greedy_gq(task, alpha=alpha, ratio=ratio, lam=lam, steps=steps, seed=2, points=7)
    np.testing.assert_allclose(found.w, w, rtol=1e-11)
    assert np.abs(w - task.w0).max() > 0.1


def test_greedy_gq_marks_divergence() -> None:
    found = st.greedy_gq(random_pairs(2), alpha=50.0, steps=5000, points=4)
    assert np.isfinite(found.errors[0])
    assert np.isinf(found.errors[-1])


# Errors


def test_gq_wants_action_values() -> None:
    message = r"gq learns action values: wrap the problem in st.ActionValues"
    with pytest.raises(st.InputError, match=message):
        st.run("baird", "gq:alpha=0.1", steps=10)
    with pytest.raises(st.InputError, match=message):
        fixed_point(st.problem("baird"), st.learner("gq:alpha=0.1"))
    with pytest.raises(st.InputError, match=r"greedy_gq learns action values: wrap"):
        st.greedy_gq(st.problem("baird"), alpha=0.1, steps=10)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["td", "tdc", "etd"])
def test_state_values_off_policy_are_refused(name: str) -> None:
    with pytest.raises(st.InputError, match=rf"{name} learns state values: .* pi = mu .* use gq"):
        st.run(random_pairs(0), f"{name}:alpha=0.1", steps=10)


def test_laws_that_use_probabilities_are_refused() -> None:
    task = st.ActionValues(on_policy(off_policy_problem(0)))
    with pytest.raises(st.InputError, match="nothing but rho"):
        st.run(task, "tree_backup:alpha=0.1,lam=0.5", steps=10)
    with pytest.raises(st.InputError, match="auto chooses for state values only"):
        st.run(task, "tdc:alpha=0.1,ratio=auto", steps=10)


def test_certify_refuses_action_values() -> None:
    with pytest.raises(st.InputError, match="certify works with state values only"):
        st.certify(two_rooms())  # type: ignore[arg-type]


def test_bad_features_and_weights() -> None:
    p = off_policy_problem(0)
    with pytest.raises(st.InputError, match=r"Psi must have 3 dimensions, got shape \(15, 2\)"):
        st.ActionValues(p, np.ones((15, 2)))
    with pytest.raises(st.InputError, match=r"Psi must have shape \(5, 3, 2\) for \[s, a, k\]"):
        st.ActionValues(p, np.ones((3, 5, 2)))
    with pytest.raises(st.InputError, match=r"w0 must have shape \(15,\)"):
        st.ActionValues(p, w0=np.ones(3))
    with pytest.raises(st.InputError, match=r"w must have shape \(..., 15\), got \(3,\)"):
        st.ActionValues(p).error(np.ones(3))


def test_greedy_gq_refuses_what_it_cannot_do() -> None:
    task = two_rooms()
    with pytest.raises(st.InputError, match=r"greedy_gq: alpha .* must be > 0, got -1"):
        st.greedy_gq(task, alpha=-1.0, steps=10)
    with pytest.raises(st.InputError, match="steps must be a whole number >= 1, got 0"):
        st.greedy_gq(task, alpha=0.1, steps=0)
    with pytest.raises(st.InputError, match="has 2 target policies; make a problem with one"):
        st.greedy_gq(random_pairs(0, policies=2), alpha=0.1, steps=10)
    p = task.problem
    lazy = st.Problem(
        name="lazy", P=p.P, r=p.r, gamma=0.8, mu=[[0.5, 0.5], [0.0, 1.0]], pi=[[1, 0], [0, 1]],
        Phi=np.eye(2),
    )  # fmt: skip
    with pytest.raises(st.InputError, match=r"mu\[1, 0\] = 0: the value of action 0 in state 1"):
        st.greedy_gq(st.ActionValues(lazy), alpha=0.1, steps=10)


def test_best_values_must_be_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadytd.mdp.action_values.MOST_SWEEPS", 1000)
    p = two_rooms().problem
    gamma = np.ones((2, 2, 2))
    gamma[:, 1] = 0.0  # going ends an episode; staying need not
    endless = st.Problem(name="endless", P=p.P, r=p.r, gamma=gamma, mu=p.mu, pi=p.pi, Phi=np.eye(2))
    with pytest.raises(st.InputError, match="best values of endless are not finite"):
        _ = st.ActionValues(endless).q_star
