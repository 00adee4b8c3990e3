"""The family of drawn unstable problems: its named facts, and how a seed becomes features."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from tests.support.splitmix import problem_uniform


def test_named_facts() -> None:
    assert st.problem("unstable_mdp").moments().d[0] == pytest.approx(1 / 8)
    for seed in range(200):
        m = st.problem("unstable_mdp", seed=seed).moments()
        assert np.linalg.eigvals(m.A()).real.min() < -0.002
        assert np.linalg.eigvals(m.A() + 4.0 * m.G).real.min() > 0.0


def test_instances_differ_in_their_features_only() -> None:
    a, b = st.problem("unstable_mdp"), st.problem("unstable_mdp", seed=5)
    assert np.array_equal(a.P, b.P) and np.array_equal(a.v_pi, b.v_pi)
    assert not np.array_equal(a.Phi, b.Phi)


def test_the_first_unstable_map_of_a_seed_is_taken() -> None:
    p = st.problem("unstable_mdp", seed=3)
    m = p.moments()
    flow = m.d[:, None] * (np.eye(6) - m.P_gamma)
    for k in range(1000):
        numbers = [2.0 * problem_uniform(3, 18 * k + n) - 1.0 for n in range(18)]
        Phi = np.array(numbers).reshape(6, 3)
        if np.linalg.eigvals(Phi.T @ flow @ Phi).real.min() < -0.002:
            break
    assert k > 0
    np.testing.assert_array_equal(p.Phi, Phi)
