"""The exponent of a learner's random product: closed forms in one dimension, and many runs."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Bools, Floats
from steadytd.theory.almost_sure import Product, almost_sure
from steadytd.theory.certificate import Certificate
from tests.support.helpers import random_problem


def one_feature(seed: int) -> st.Problem:
    """Two states, two actions, one feature: every step multiplies w by a number."""
    rng = np.random.default_rng(seed)
    return st.Problem(
        name="one", P=rng.dirichlet([1.0, 1.0], size=(2, 2)), r=rng.normal(size=(2, 2)), gamma=0.9,
        mu=rng.dirichlet([3.0, 3.0], size=2), pi=rng.dirichlet([1.0, 1.0], size=2),
        Phi=rng.uniform(0.5, 2.0, size=(2, 1)),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_in_one_dimension_it_is_the_mean_logarithm(seed: int) -> None:
    """E log |1 - alpha rho x (x - gamma x')|, summed by hand; the followed product agrees.

    Its 99 % interval may miss the truth once in a hundred; twice its width is allowed.
    """
    p, alpha = one_feature(seed), 0.3
    expected = 0.0
    for s, a, t in np.ndindex(2, 2, 2):
        rho, x, x_next = p.pi[s, a] / p.mu[s, a], p.Phi[s, 0], p.Phi[t, 0]
        often = p.d_mu[s] * p.mu[s, a] * p.P[s, a, t]
        expected += often * np.log(abs(1.0 - alpha * rho * x * (x - 0.9 * x_next)))
    learner = st.learner("td", alpha=alpha)
    found = almost_sure(p, learner)
    assert found is not None and found.steps == 0
    assert found.low == found.high == found.exponent == pytest.approx(expected, rel=1e-12)
    followed = Product(p, learner, 0).exponent(alpha)
    assert followed is not None and followed.low < followed.exponent < followed.high
    assert abs(followed.exponent - expected) < followed.high - followed.low


def test_emphatic_td_on_theta2theta_by_its_own_ratios() -> None:
    """One weight: 1 - alpha F rho x (x - gamma x'), F by its definition, over 300,000 steps.

    Both are means over one long run; they may differ by the two intervals together.
    """
    p, alpha = st.problem("theta2theta"), 0.01
    rng = np.random.default_rng(3)
    steps, s, F, before, logs = 300_000, 0, 0.0, 0.0, []
    draws = rng.random(steps)
    (gamma,) = np.unique(p.gamma)
    for u in draws:
        a = int(u > p.mu[s, 0])
        t = int(p.P[s, a].argmax())
        assert p.P[s, a, t] == 1.0
        rho = p.pi[s, a] / p.mu[s, a]
        F = gamma * before * F + 1.0
        logs.append(
            np.log(abs(1.0 - alpha * F * rho * p.Phi[s, 0] * (p.Phi[s, 0] - gamma * p.Phi[t, 0])))
        )
        s, before = t, rho
    own = np.array(logs).reshape(30, -1).mean(axis=1)
    found = almost_sure(p, st.learner("etd", alpha=alpha))
    assert found is not None and found.stable is True
    width = 3.0 * float(own.std(ddof=1)) / np.sqrt(30.0) + found.high - found.exponent
    assert found.exponent == pytest.approx(own.mean(), abs=width)
    assert not Certificate(p).variance("etd").finite


def last_errors(p: st.Problem, text: str, steps: int) -> Floats:
    """The errors of 20 runs after so many steps; infinite for those that overflowed."""
    weights = st.run(p, [text], steps=steps, seeds=20, points=2).weights(text)
    finite: Bools = np.asarray(np.isfinite(weights).all(axis=1))
    found = np.asarray(p.error(np.where(finite[:, None], weights, 0.0)))
    return np.asarray(np.where(finite, found, np.inf))


@pytest.mark.parametrize(("name", "text", "settles"), [
    ("theta2theta", "etd:alpha=0.01", True),
    ("baird", "etd:alpha=0.01", False),
    ("baird", "perturbed_td:alpha=0.01,eta=1.6", True),
    ("theta2theta", "td:alpha=0.01", False),
    ("theta2theta", "td:alpha=0.05,lam=0.9", True),
])  # fmt: skip
def test_single_runs_do_what_it_says(name: str, text: str, settles: bool) -> None:
    """Without rewards runs go to 0, or away from it: at least 19 of 20 runs as the sign says."""
    p = st.problem(name)
    learner = st.learner(text)
    found = Certificate(p).almost_sure(learner, alpha=float(learner["alpha"]))
    assert found is not None and found.stable is settles
    steps = int(np.ceil(40.0 / abs(found.exponent)))
    errors = last_errors(p, text, steps)
    start = float(p.error(p.w0))
    assert ((errors < 1e-3 * start) if settles else (errors > start)).sum() >= 19


@pytest.mark.parametrize("seed", range(3))
def test_drawn_problems_have_the_sign_of_many_runs(seed: int) -> None:
    """Two features, no rewards, a large step size, TD with traces: 20 runs against the sign."""
    drawn = random_problem(seed, states=3, actions=2, features=2, gamma=0.9)
    p = st.Problem(name="drawn", P=drawn.P, r=np.zeros((3, 2)), gamma=0.9, mu=drawn.mu,
                   pi=drawn.pi, Phi=drawn.Phi, w0=[1.0, -1.0])  # fmt: skip
    text = "td:alpha=0.4,lam=0.4"
    found = almost_sure(p, st.learner(text))
    assert found is not None and found.stable is not None
    steps = int(np.ceil(60.0 / abs(found.exponent)))
    small = last_errors(p, text, steps) < float(p.error(p.w0))
    assert small.sum() >= 19 if found.stable else small.sum() <= 1


def test_bounded_mean_squares_suffice() -> None:
    """Jensen: the exponent is at most half the logarithm of the factor of the mean squares."""
    p = st.problem("three_state")
    c = Certificate(p)
    moments = c.mean_square("perturbed_td", eta=0.6)
    assert moments is not None
    alpha = 0.5 * moments.largest_alpha
    zeroth, first, second = moments._powers[:3]
    K = zeroth + alpha * first + alpha**2 * second
    radius = float(np.abs(np.linalg.eigvals(K)).max())
    found = c.almost_sure("perturbed_td", eta=0.6, alpha=alpha)
    assert found is not None and found.low <= 0.5 * np.log(radius) < 0.0


def test_where_there_is_no_product() -> None:
    p = st.problem("theta2theta")
    for text in ("lstd", "td:alpha=0.1,average=1", "td:alpha=0.1,power=0.6"):
        assert almost_sure(p, st.learner(text)) is None


def test_the_certificate_has_three_verdicts() -> None:
    """In its rows, in its table by step size, and in the sentence on the others."""
    rows = {name: {r["learner"]: r for r in st.certify(name).to_dict()["learners"]}
            for name in ("theta2theta", "baird")}  # fmt: skip
    assert rows["theta2theta"]["etd"]["almost_sure"] is True
    assert rows["theta2theta"]["etd"]["exponent"][2] < 0.0
    assert rows["baird"]["etd"]["almost_sure"] is False
    assert rows["baird"]["td"]["almost_sure"] is None
    c = st.certify("theta2theta")
    table = {r["learner"]: r["almost_sure"] for r in c.at_alpha(0.01).to_dicts()}
    assert table["etd"] is True and table["td"] is False and table["perturbed_td"] is True
    use = c.recommended()
    assert use is not None
    assert "etd 0, infinite variance, but single runs settle at alpha = 0.01" in use.text
    other = st.certify("baird").recommended()
    assert other is not None and "infinite variance, and single runs grow at alpha" in other.text
