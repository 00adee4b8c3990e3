"""The numbers behind the errata in docs/paper.md; those of errors are in `tests/theory`."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.theory.assumptions import check_assumptions
from tests.support.made import follow_on_growth

PAPER = ("theta2theta", "baird", "three_state")


def state_matrix(name: str, eta: float) -> Floats:
    """M + M' with M = D ((1 + eta) I - gamma P)."""
    m = st.problem(name).moments()
    M = m.d[:, None] * ((1 + eta) * np.eye(len(m.d)) - m.P_gamma)
    return np.asarray(M + M.T)


def least(matrix: Floats) -> float:
    return float(np.linalg.eigvalsh(matrix).min())


def test_the_theorem_read_with_rows_is_false() -> None:
    m = st.problem("theta2theta").moments()
    assert (m.P_gamma @ m.d / m.d - 1).max() < 0.0
    assert least(state_matrix("theta2theta", 0.0)) < -0.08


@pytest.mark.parametrize("name", PAPER)
def test_the_theorem_read_with_columns_holds_at_equality(name: str) -> None:
    m = st.problem(name).moments()
    eta = max(0.0, float((m.d @ m.P_gamma / m.d - 1).max()))
    assert eta == pytest.approx(st.certify(st.problem(name)).bounds["paper"])
    assert least(state_matrix(name, eta)) > 0.5


@pytest.mark.parametrize("eta", [0.5, 5.93, 100.0])
def test_baird_lacks_full_column_rank(eta: float) -> None:
    m = st.problem("baird").moments()
    assert m.Phi.shape == (7, 8)
    assert np.linalg.matrix_rank(m.A() + eta * m.G) == 7


def test_lemma_1_without_the_probability_counts_every_state() -> None:
    m = st.problem("three_state").moments()
    eta, states = 0.5, len(m.d)
    right, written = np.zeros((2, 2)), np.zeros((2, 2))
    for i in range(states):
        for j in range(states):
            for a in range(2):
                flow = m.pi[i, a] * 0.9 * np.outer(m.Phi[i], m.Phi[j]) * m.d[i] * m.P[i, a, j]
                penalty = m.pi[i, a] * (1 + eta) * m.d[i] * np.outer(m.Phi[i], m.Phi[i])
                right -= flow - penalty * m.P[i, a, j]
                written -= flow - penalty
    np.testing.assert_allclose(right, m.A() + eta * m.G, atol=1e-12)
    extra = (states - 1) * (1 + eta) * m.G
    np.testing.assert_allclose(written, m.A() + eta * m.G + extra, atol=1e-12)


def test_constant_steps_violate_assumption_1() -> None:
    p = st.problem("three_state")
    constant = st.learner("perturbed_td:alpha=1e-4,eta=0.5")
    assert not check_assumptions(p, constant)[0].holds
    assert check_assumptions(p, constant.replace(power=1.0))[0].holds


def test_lemma_3() -> None:
    """The modulus gamma/(1 + eta) in the maximum norm."""
    assert st.certify(st.problem("three_state")).contraction(0.5)["maximum"] == pytest.approx(0.6)


def test_the_follow_on_trace_has_infinite_variance() -> None:
    growth = [f"{follow_on_growth(st.problem(name)):.1f}" for name in PAPER]
    assert growth == ["1.6", "6.9", "2.6"]
