"""The facts of the problems of average reward, with NumPy from the texts of their files."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import steadytd as st


def mean_matrix(ratio: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of differential TD on the star, per state: pi goes to state 6, mu is everywhere alike."""
    Phi = np.zeros((7, 8))
    Phi[range(6), range(6)], Phi[:6, 7], Phi[6, 6:] = 2.0, 1.0, (1.0, 2.0)
    flow = Phi - Phi[6]
    return np.block([
        [Phi.T @ flow / 7.0, Phi.mean(axis=0)[:, None]],
        [ratio * flow.mean(axis=0), np.array([ratio])],
    ])  # fmt: skip


@pytest.mark.parametrize(("ratio", "stable"), [(0.01, 0), (0.2857, 0), (0.2858, 1), (1.0, 1)])
def test_the_star_is_stable_from_two_sevenths_on(ratio: float, stable: bool) -> None:
    """But for two modes that move neither the rate nor differences of values."""
    rates = np.linalg.eigvals(mean_matrix(ratio))
    moving = rates[np.abs(rates) > 1e-9]
    assert len(moving) == 7
    assert bool((moving.real > 0.0).all()) == stable
    c = st.certify("average_baird")
    assert c.is_stable("differential_td", ratio=ratio) == stable
    assert c.problem.rate == 0.0 and not c.problem.v_pi.any()


def test_runs_on_the_star_do_what_is_said() -> None:
    learners = [f"differential_td:alpha=0.02,ratio={r}" for r in (0.1, 1)]
    r = st.run("average_baird", learners, steps=20_000, seeds=3, points=50)
    assert r.outcomes == [["growing"] * 3, ["settled"] * 3]


def test_access_control_pays_what_is_said() -> None:
    """Its chain, written a second time from the text, and the rates by repeated squaring."""
    states = [(free, pay) for free in range(11) for pay in (1, 2, 4, 8)]
    needs = {8: 1, 4: 3, 2: 6, 1: 6}
    rates = {}
    for name in ("pi", "mu"):
        P, r = np.zeros((44, 44)), np.zeros(44)
        for i, (free, pay) in enumerate(states):
            taken = 0.5 if name == "mu" else float(free >= needs[pay])
            taken = taken if free else 0.0
            r[i] = taken * pay
            for chance, left in ((taken, free - 1), (1.0 - taken, free)):
                busy = 10 - left
                for k in range(busy + 1 if chance else 0):
                    freed = comb(busy, k) * 0.06**k * 0.94 ** (busy - k)
                    P[i, 4 * (left + k) : 4 * (left + k) + 4] += chance * freed / 4.0
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
        rates[name] = (np.linalg.matrix_power(P, 2**16) @ r)[0]
    p = st.problem("access_control")
    assert p.rate == pytest.approx(rates["pi"], rel=1e-9)
    behaviour = p.d_mu @ np.einsum("sa,sat,sat->s", p.mu, p.P, p.r)
    assert behaviour == pytest.approx(rates["mu"], rel=1e-9)
    assert f"earns {rates['pi']:.3f} a step, the behaviour policy {rates['mu']:.3f}" in p.doc


def test_the_queue_is_a_chain_of_births_and_deaths() -> None:
    served = [0.25 if n < 4 else 0.5 for n in range(13)]
    weights = np.cumprod([1.0, *(0.35 / served[n] for n in range(1, 13))])
    earned = [-0.1 * n - (0.5 if n >= 4 else 0.0) for n in range(13)]
    assert st.problem("queue").rate == pytest.approx(weights @ earned / weights.sum(), rel=1e-12)
    behaviour = 0.375  # half of the time slow, half fast
    d = (0.35 / behaviour) ** np.arange(13.0)
    np.testing.assert_allclose(st.problem("queue").d_mu, d / d.sum(), rtol=1e-12)


@pytest.mark.parametrize("name", ["access_control", "queue"])
def test_the_features_do_not_span_constants(name: str) -> None:
    p = st.problem(name)
    rank = np.linalg.matrix_rank(p.Phi)
    assert np.linalg.matrix_rank(np.column_stack([p.Phi, np.ones(p.n_states)])) == rank + 1
