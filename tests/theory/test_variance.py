"""The variance of traces and memory, read off the laws, against the formulas for each."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.theory.certificate import Certificate
from steadytd.theory.variance import noise, variance
from tests.support.realised import KINDS, drawn


def radius(p: st.Problem, multiple: Floats) -> float:
    """Of sum_a mu p m^2 with m[s, a, s'], on the states that mu returns to."""
    growth = np.einsum("sa,sat,sat->st", p.mu, p.P, multiple**2)
    lasting = p.d_mu > 0.0
    return float(np.abs(np.linalg.eigvals(growth[np.ix_(lasting, lasting)])).max())


@pytest.mark.parametrize("kind", KINDS)
def test_growth_is_that_of_the_formulas(kind: str) -> None:
    for seed in range(4):
        p = drawn(kind, seed)
        m = p.moments()
        rho = np.divide(p.pi, p.mu, out=np.zeros_like(p.pi), where=p.mu > 0.0)[:, :, None]
        gamma = m.gamma
        formulas = {
            "td": 0.0 * gamma,
            "tdc": 0.0 * gamma,
            "etd": gamma * rho,
            "etd_beta:beta=0.4": 0.4 * rho * (gamma > 0.0),
            "td:lam=0.7": 0.7 * gamma * rho,
            "perturbed_td:eta=0.5,lam=0.7": 0.7 / 1.5 * gamma * rho,
            "vtrace:lam=0.9": 0.9 * gamma * np.minimum(1.0, rho),
            "tree_backup:lam=0.9": 0.9 * gamma * p.pi[:, :, None],
        }
        for text, multiple in formulas.items():
            found = variance(p, st.learner(text, alpha=0.1))
            assert found.growth == pytest.approx(radius(p, multiple), abs=1e-6), text
            assert found.finite is bool(found.growth < 1.0)
        assert variance(p, st.learner("lsetd")) == variance(p, st.learner("etd:alpha=1"))


def test_states_that_mu_leaves_do_not_count() -> None:
    """State 0 repeats itself with rho = 4 for a while; mu never comes back to it."""
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = P[1, :, 1] = 1.0
    p = st.Problem(
        name="left", P=P, r=0.0, gamma=0.9, mu=[[0.25, 0.75], [0.5, 0.5]],
        pi=[[1.0, 0.0], [0.5, 0.5]], Phi=np.eye(2), start=[1.0, 0.0],
    )  # fmt: skip
    assert variance(p, st.learner("etd:alpha=1")).growth == pytest.approx(0.81)


def test_where_nothing_is_added_nothing_grows() -> None:
    """Without interest where the ratios are large, F is 0 there."""
    p = st.problem("theta2theta")
    parts = {n: getattr(p, n) for n in ("P", "r", "gamma", "mu", "pi", "Phi")}
    assert not variance(p, st.learner("etd:alpha=1")).finite
    none = st.Problem(name="none", interest=[0.0, 0.0], **parts)
    assert variance(none, st.learner("etd:alpha=1")).growth == 0.0


def test_the_certificate_has_both_verdicts() -> None:
    """Emphatic TD on Baird: a stable mean, infinite variance; so it is not recommended."""
    c = st.certify("baird")
    rows = {row["learner"]: row for row in c.to_dict()["learners"]}
    assert rows["etd"]["stable"]
    assert not rows["etd"]["finite_variance"]
    assert rows["etd"]["variance_growth"] == pytest.approx(0.99**2 * 7)
    assert rows["perturbed_td"]["finite_variance"]
    assert not rows["lsetd"]["finite_variance"]
    assert Certificate(c.problem).variance("etd_beta", beta=0.1).finite
    assert c.advice[-1].numbers["finite_variance"]
    assert c.advice[-1].numbers["learner"] != "etd"


@pytest.mark.parametrize("text", ["etd_beta:beta=0.4", "td:lam=0.5", "vtrace:lam=0.9"])
def test_iteration_finds_what_elimination_finds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Growth and noise of large problems, on one small enough for both."""
    learner = st.learner(text, alpha=0.1)
    one, other = drawn("wide", 1), drawn("wide", 1)
    growth, found = variance(one, learner).growth, noise(one, learner)
    monkeypatch.setattr("steadytd.theory.variance.LARGE", 4)
    assert variance(other, learner).growth == pytest.approx(growth, rel=1e-9)
    assert noise(other, learner) == pytest.approx(found, rel=1e-9)
