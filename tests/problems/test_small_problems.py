"""The small classics and the counterexamples: definitions and published facts."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import steadytd as st
from steadytd import InputError, Problem, problem
from steadytd.base.arrays import Floats
from tests.support.draws import thinned
from tests.support.splitmix import problem_uniform

# random_walk

KINDS = ("tabular", "inverted", "dependent")


def test_random_walk_by_hand() -> None:
    p = problem("random_walk")
    assert isinstance(p.gamma, np.ndarray)
    for s, a in product(range(5), range(2)):
        there = s - 1 if a == 0 else s + 1
        out = there in (-1, 5)
        after = 2 if out else there
        assert np.flatnonzero(p.P[s, a]).tolist() == [after]
        assert p.gamma[s, a, after] == (0.0 if out else 1.0)
        assert p.r[s, a, after] == (0.0 if not out else -1.0 if a == 0 else 1.0)
    assert p.mu.tolist() == [[0.5, 0.5]] * 5
    assert p.pi.tolist() == [[0.4, 0.6]] * 5
    assert p.start.tolist() == [0, 0, 1, 0, 0]
    assert not p.w0.any()


@pytest.mark.parametrize("kind", KINDS)
def test_random_walk_facts(kind: str) -> None:
    """The gambler's ruin: leaving on the right from s has probability (1 - q^(s+1))/(1 - q^6)."""
    p = problem("random_walk", features=kind)
    np.testing.assert_allclose(p.d_mu, np.array([1, 2, 3, 2, 1]) / 9, rtol=1e-14)
    q = 0.4 / 0.6
    right = (1 - q ** (np.arange(5) + 1.0)) / (1 - q**6)
    np.testing.assert_allclose(p.v_pi, right - (1 - right), rtol=1e-13)


def test_random_walk_features() -> None:
    assert problem("random_walk").Phi.tolist() == np.eye(5).tolist()
    assert problem("random_walk", features="inverted").Phi.tolist() == [
        [0.5 * (i != j) for j in range(5)] for i in range(5)
    ]
    a, b, c = 1.0, 1 / np.sqrt(2), 1 / np.sqrt(3)
    np.testing.assert_allclose(
        problem("random_walk", features="dependent").Phi,
        [[a, 0, 0], [b, b, 0], [c, c, c], [0, b, b], [0, 0, a]],
        rtol=1e-15,
    )


# boyan


def test_boyan_by_hand() -> None:
    p = problem("boyan")
    assert isinstance(p.gamma, np.ndarray)
    assert (p.n_states, p.n_actions, p.n_features) == (13, 1, 4)
    for s in range(2, 13):
        assert np.flatnonzero(p.P[s, 0]).tolist() == [s - 2, s - 1]
        assert p.P[s, 0, s - 1] == p.P[s, 0, s - 2] == 0.5
        assert p.r[s, 0, s - 1] == p.r[s, 0, s - 2] == -3.0
    assert np.flatnonzero(p.P[1, 0]).tolist() == [0]
    assert p.r[1, 0, 0] == -2.0
    assert np.flatnonzero(p.P[0, 0]).tolist() == [12]
    assert (p.r[0, 0, 12], p.gamma[0, 0, 12]) == (0.0, 0.0)
    assert (p.gamma[1:] == 1.0).all()
    assert np.flatnonzero(p.start).tolist() == [12]
    np.testing.assert_array_equal(p.pi, p.mu)


def test_boyan_value_is_linear_and_representable() -> None:
    p = problem("boyan")
    np.testing.assert_allclose(p.v_pi, -2.0 * np.arange(13), atol=1e-12)
    for state, unit in zip((12, 8, 4, 0), np.eye(4), strict=True):
        assert p.Phi[state].tolist() == unit.tolist()
    assert p.Phi[11].tolist() == [0.75, 0.25, 0.0, 0.0]
    assert p.Phi[2].tolist() == [0.0, 0.0, 0.5, 0.5]
    assert p.error([-24.0, -16.0, -8.0, 0.0]) < 1e-12
    np.testing.assert_allclose(
        st.certify(p).fixed_point("td"), [-24.0, -16.0, -8.0, 0.0], atol=1e-9
    )


def test_boyan_visits() -> None:
    """Expected visits per episode by counting down: n(s) = n(s + 1)/2 + n(s + 2)/2, n(12) = 1."""
    n = np.zeros(15)
    n[12] = 1.0
    for s in range(11, 0, -1):
        n[s] = (n[s + 1] + n[s + 2]) / 2.0
    n[0] = n[1] + n[2] / 2.0
    assert n[0] == pytest.approx(1.0)
    np.testing.assert_allclose(problem("boyan").d_mu, n[:13] / n.sum(), rtol=1e-13)


# baird8


def slowest(p: Problem, eta: float) -> float:
    """The least real part of an eigenvalue of A(eta) in value space, D ((1 + eta) I - gamma P).

    Of a square Phi D ... matrix on the row space: here rank Phi = number of states, so Phi' X Phi
    has the eigenvalues of X Phi Phi'.
    """
    assert isinstance(p.gamma, float)
    P = np.einsum("sa,sat->st", p.pi, p.P)
    X = p.d_mu[:, None] * ((1 + eta) * np.eye(len(P)) - p.gamma * P)
    return float(np.linalg.eigvals(X @ p.Phi @ p.Phi.T).real.min())


def test_baird8_is_stable_from_0176_on() -> None:
    p = problem("baird8")
    assert np.linalg.matrix_rank(p.Phi) == 8
    threshold = float(brentq(lambda eta: slowest(p, eta), 0.1, 0.3, xtol=1e-12))
    assert round(threshold, 3) == 0.176
    c = st.certify(p)
    assert not c.td_stable
    assert c.eta_hurwitz == pytest.approx(threshold, abs=1e-9)
    assert all(slowest(p, eta) < 0 for eta in np.linspace(0, threshold - 1e-6, 50))
    assert all(slowest(p, eta) > 0 for eta in np.linspace(threshold + 1e-6, 3, 50))


# The counterexamples


def plain_matrices(p: Problem) -> tuple[Floats, Floats]:
    """A_0 and G from the arrays, with loops."""
    assert isinstance(p.gamma, float)
    d = p.n_features
    A, G = np.zeros((d, d)), np.zeros((d, d))
    for s in range(p.n_states):
        G += p.d_mu[s] * np.outer(p.Phi[s], p.Phi[s])
        for a, t in product(range(p.n_actions), range(p.n_states)):
            step = p.Phi[s] - p.gamma * p.Phi[t]
            A += p.d_mu[s] * p.pi[s, a] * p.P[s, a, t] * np.outer(p.Phi[s], step)
    return A, G


def test_nonmonotone_facts() -> None:
    p = problem("nonmonotone")
    A, G = plain_matrices(p)

    def stable(eta: float) -> bool:
        return bool(np.linalg.eigvals(A + eta * G).real.min() > 0.0)

    assert all(stable(eta) for eta in np.linspace(0.0, 0.0346, 50))
    assert not any(stable(eta) for eta in np.linspace(0.0347, 0.3337, 50))
    assert all(stable(eta) for eta in np.linspace(0.3338, 10.0, 200))
    H = (A + A.T) / 2
    assert np.linalg.eigvalsh(H + 0.57555 * G)[0] < 0.0 < np.linalg.eigvalsh(H + 0.57565 * G)[0]
    c = st.certify(p)
    assert c.td_stable
    np.testing.assert_allclose(c.unstable_etas, [[0.0346, 0.3337]], atol=5e-5)
    assert c.eta_pd == pytest.approx(0.5756, abs=5e-5)


def test_naive_trace_facts() -> None:
    """A_lam + eta K by hand: the chain's resolvent is 1, gl, gl^2, ... summed along 0 -> 1 -> 1."""
    p = problem("naive_trace")
    gamma = lam = 0.9
    tail = 1 / (1 - gamma * lam)  # sum of (gamma lam)^k: the time spent in state 1
    trace_0, trace_1 = np.array([1.0, gamma * lam * tail]), np.array([0.0, tail])
    delta = np.array([1.0 + gamma, -1.0 + gamma])  # x - gamma x_next in states 0 and 1
    A = 0.9 * (trace_0 @ delta) - 0.1 * (trace_1 @ delta)
    K = 0.9 * (trace_0 @ [1.0, -1.0]) - 0.1 * (trace_1 @ [1.0, -1.0])
    assert A > 0.0 > K
    threshold = -A / K
    assert threshold == pytest.approx(0.572, abs=5e-4)
    c = st.certify(p)
    assert c.moments.A(lam)[0, 0] == pytest.approx(A, rel=1e-12)
    assert c.is_stable("td", lam=lam)
    for eta, form in product((0.1, 0.6, 1.0, 10.0), ("scaled", "outside")):
        assert c.is_stable("perturbed_td", eta=eta, lam=lam, penalty=form)


def singular_at(e: float) -> float:
    """The published closed form."""
    return (2961 + 45240 * e + 40400 * e**2) / (4141 + 84840 * e + 40400 * e**2)


@pytest.mark.parametrize("epsilon", thinned([0.0, 0.001, 0.01, 0.1], 3))
def test_kolter_is_singular_where_published(epsilon: float) -> None:
    pole = singular_at(epsilon)
    for left, stable in ((pole - 1e-4, True), (pole + 1e-4, False)):
        p = problem("kolter", left=left, epsilon=epsilon)
        assert (plain_matrices(p)[0][0, 0] > 0.0) == stable
        assert st.certify(p).td_stable == stable
    A, _ = plain_matrices(problem("kolter", left=pole, epsilon=epsilon))
    assert abs(A[0, 0]) < 1e-14


def test_kolter_error_grows_without_bound() -> None:
    assert singular_at(0.001) == pytest.approx(0.7114, abs=5e-5)
    errors = []
    for left in (0.6, 0.7, 0.71, 0.711, 0.7113):
        p = problem("kolter", left=left)
        c = st.certify(p)
        assert c.best_error < 0.001
        errors.append(c.error(c.fixed_point("td")))
    assert errors == sorted(errors)
    assert errors[2] == pytest.approx(2.717, abs=5e-4)
    assert errors[-1] > 100 * errors[1]


# random_mdp


def test_random_mdp_as_specified() -> None:
    """A small one, drawn with plain Python from the numbers of the seed, in the stated order."""
    S, A, d, seed = 3, 2, 2, 11
    numbers = iter([problem_uniform(seed, n) for n in range(100)])

    def distribution(n: int) -> list[float]:
        edges = [0.0, *sorted(next(numbers) for _ in range(n - 1)), 1.0]
        return [b - a for a, b in pairwise(edges)]

    P = [[distribution(S) for _ in range(A)] for _ in range(S)]
    r = [[2 * next(numbers) - 1 for _ in range(A)] for _ in range(S)]
    mu = [[(q + 1 / A) / 2 for q in distribution(A)] for _ in range(S)]
    pi = [distribution(A) for _ in range(S)]
    Phi = [[2 * next(numbers) - 1 for _ in range(d)] for _ in range(S)]
    p = problem("random_mdp", seed=seed, states=S, actions=A, features=d, gamma=0.5)
    assert p.P.tolist() == P
    assert p.r[:, :, 0].tolist() == r
    assert p.mu.tolist() == mu
    assert p.pi.tolist() == pi
    assert p.Phi.tolist() == Phi
    assert p.gamma == 0.5


def test_random_mdp_facts() -> None:
    p = problem("random_mdp")
    assert (p.n_states, p.n_actions, p.n_features, p.gamma) == (20, 3, 5, 0.9)
    assert st.certify(p).best_error == pytest.approx(0.5040, abs=5e-5)
    for seed in range(20):
        p = problem("random_mdp", seed=seed, actions=4)
        assert p.moments().max_ratio <= 8.0
        assert p.d_mu.min() > 0.0
        assert np.linalg.matrix_rank(p.Phi) == 5


# Options


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "random_walk",
            {"features": "tabula"},
            "unknown features 'tabula'; did you mean 'tabular'? Known: dependent, inverted, "
            "tabular.",
        ),
        (
            "random_walk",
            {"features": 3},
            "features must be one of tabular, inverted, dependent, got 3.",
        ),
        ("random_mdp", {"states": 0}, "states must be a whole number >= 1, got 0."),
        ("random_mdp", {"actions": 2.5}, "actions must be a whole number >= 1, got 2.5."),
        ("random_mdp", {"features": "many"}, "features must be a whole number >= 1, got 'many'."),
        ("random_mdp", {"seed": -3}, "seed must be a whole number >= 0 and < 2^63, got -3."),
        ("random_mdp", {"gamma": 1.0}, "gamma must lie in [0, 1), got 1."),
        ("random_mdp", {"gamma": "0.9"}, "gamma must be a number, got '0.9'."),
        ("random_mdp", {"gamma": float("nan")}, "gamma must lie in [0, 1), got nan."),
        ("kolter", {"left": 0.0}, "left must lie in (0, 1), got 0."),
        ("kolter", {"left": 1}, "left must lie in (0, 1), got 1."),
        ("kolter", {"epsilon": -0.5}, "epsilon must lie in [0, 1], got -0.5."),
        ("kolter", {"epsilon": True}, "epsilon must be a number, got True."),
        (
            "boyan",
            {"seed": 1},
            "problem boyan has no options, got seed; leave it out.",
        ),
    ],
)
def test_bad_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(name, **options)
    assert str(caught.value) == message
