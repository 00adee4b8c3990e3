"""One sparse matrix per action: the answers of arrays, each as exact as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import steadytd as st
from steadytd.base.errors import InputError
from steadytd.base.identity import digest
from steadytd.lab.page import model_of
from steadytd.mdp import chains
from steadytd.mdp.action_values import ActionValues
from steadytd.mdp.scales import tall_triangle
from steadytd.mdp.stationary import chain_period
from steadytd.report.certificate.figures import dial_stops
from steadytd.theory.certificate import Certificate
from tests.support.cases import assert_same_bits
from tests.support.draws import thinned
from tests.support.sparse_mdp import sparse_mdp, with_arrays

ROUNDING = 1e-12  # of the answers of arrays, next to their largest entry


@st.law(writes={"w": "x"})
def without_expectation(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
) -> float:
    """Off-policy TD, whose mean update is read off the law."""
    return alpha * rho * (reward + gamma_next * w_x_next - w_x)


def relative(found: Any, wanted: Any) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


CASES = [(50, 1), (120, 3), (300, 1), (300, 2)]


@pytest.mark.parametrize("seed", thinned(range(20), 7))
@pytest.mark.parametrize(("states", "period"), CASES)
def test_every_answer_is_that_of_arrays(states: int, period: int, seed: int) -> None:
    gamma = np.random.default_rng(seed).uniform(0.5, 1.0, states)
    gamma[0] = 0.0
    p = sparse_mdp(seed, states, 6, period=period, gamma=gamma)
    q = with_arrays(p)
    m, n = p.moments(), q.moments()
    # a residual of d is no bound of its error; the chains here mix at least as fast as 0.95^t
    assert np.abs(p.d_mu - q.d_mu).sum() <= 20.0 * m.accuracy["d_mu"] + ROUNDING
    for name in ("v_pi", "follow_on"):
        found, wanted = getattr(m, name), getattr(n, name)
        assert relative(found, wanted) <= m.accuracy[name] + ROUNDING
        assert m.accuracy[name] < 1e-10
    for name in ("operator_norm", "numerical_range", "gamma_max", "max_ratio", "G", "radius"):
        assert relative(getattr(m, name), getattr(n, name)) < 1e-9
    for lam in (0.0, 0.6):
        assert relative(m.A(lam), n.A(lam)) < 1e-10
        assert relative(m.b(lam), n.b(lam)) < 1e-10
    assert relative(m.follow_on_at(0.4), n.follow_on_at(0.4)) < 1e-10
    assert relative(m.cut(0.3 * m.mu).M, n.cut(0.3 * n.mu).M) < 1e-10
    assert chain_period(p.chain, int(p.d_mu.argmax())) == period


@pytest.mark.parametrize("seed", thinned(range(50), 10))
def test_the_stated_error_bounds_the_true_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With iterations that stop early, so that the error is far above rounding."""
    monkeypatch.setattr(chains, "SOLVED", 1e-4)
    p = sparse_mdp(seed, 100, 3, gamma=0.95)
    Q, x = p.moments().onwards, p.moments().r_pi
    for matrix in (Q, Q.T):
        found = chains.settled(matrix, x)
        wanted = np.linalg.solve(np.eye(100) - matrix.toarray(), x)
        off = float(np.abs(found.value - wanted).max() / np.abs(found.value).max())
        assert 1e-9 < off <= found.error < 1e-1


def test_a_cycle_and_states_that_are_left() -> None:
    cycle = sp.csr_array(np.eye(6)[[1, 2, 0, 0, 3, 3]])  # 3, 4 and 5 lead into 0 -> 1 -> 2 -> 0
    found = chains.stationary(cycle)
    np.testing.assert_allclose(found.value, [1 / 3, 1 / 3, 1 / 3, 0, 0, 0], atol=1e-15)
    with pytest.raises(InputError, match="2 closed classes"):
        chains.stationary(sp.csr_array(np.eye(2)))


def test_a_chain_that_mixes_too_slowly_is_refused() -> None:
    n = 400
    place = np.arange(n)
    down, up = np.eye(n)[np.maximum(place - 1, 0)], np.eye(n)[np.minimum(place + 1, n - 1)]
    drift = sp.csr_array(0.51 * down + 0.49 * up)
    with pytest.raises(InputError, match="mixes too slowly"):
        chains.stationary(drift)


def test_values_that_are_not_finite_are_refused() -> None:
    endless: dict[str, Any] = {"gamma": 1.0}
    with pytest.raises(InputError, match="values are not finite"):
        _ = sparse_mdp(0, 50, 3, **endless).v_pi
    ends = np.ones(50)
    ends[7] = 0.0
    p = sparse_mdp(0, 50, 3, gamma=ends)
    assert relative(p.v_pi, with_arrays(p).v_pi) <= p.moments().accuracy["v_pi"] + ROUNDING


def test_runs_are_those_of_arrays() -> None:
    p = sparse_mdp(1, 60, 5, start=np.eye(60)[3])
    learners = ("td:alpha=0.05,lam=0.8", "tdc:alpha=0.02,ratio=2", "etd:alpha=0.01,lam=0.3")
    one, other = (st.run(x, learners, steps=400, seeds=2, points=5) for x in (p, with_arrays(p)))
    for i in range(len(learners)):
        assert_same_bits(one.final_weights[i], other.final_weights[i])


def test_saved_and_read_again(tmp_path: Path) -> None:
    p = sparse_mdp(2, 40, 4, interest=np.linspace(0.5, 2.0, 40))
    again = st.load_problem(p.save(tmp_path / "p.npz"))
    assert digest(again) == digest(p)
    assert digest(again) != digest(sparse_mdp(3, 40, 4))
    assert_same_bits(again.v_pi, p.v_pi)


def test_several_policies() -> None:
    pi = np.random.default_rng(0).dirichlet(np.ones(3), (2, 50))
    p = sparse_mdp(2, 50, 4, pi=pi)
    assert relative(p.v_pi, with_arrays(p).v_pi) < 1e-11


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"r": np.zeros((50, 3, 50))}, r"r must be a number or have shape \(50, 3\)"),
        ({"gamma": np.zeros((50, 3, 50))}, r"gamma must be a number or have shape \(50,\)"),
        ({"active": np.arange(50) > 0}, r"active\[0\] must be true, since P is sparse"),
        ({"P": [sp.csr_array((50, 50))]}, r"row P\[0\]\[0\] must sum to 1, its sum is 0"),
        ({"P": [sp.csr_array(np.eye(50)), sp.csr_array((40, 50))]}, r"P\[1\] must have shape"),
        ({"P": [sp.csr_array(np.nan * np.eye(50))]}, r"P\[0\].data\[0\] must be a finite number"),
        ({"P": [sp.csr_array(2 * np.eye(50))]}, r"P\[0\].data\[0\] must be between 0 and 1, got 2"),
    ],
)
def test_bad_input_is_named(given: dict[str, Any], message: str) -> None:
    p = sparse_mdp(0, 50, 3)
    names = ("name", "P", "r", "gamma", "mu", "pi", "Phi")
    with pytest.raises(InputError, match=message):
        st.Problem(**({name: getattr(p, name) for name in names} | given))


def test_what_needs_all_pairs_of_states_is_refused() -> None:
    p = sparse_mdp(0, 80, 3)
    c = Certificate(p)
    refused = (
        lambda: c.cures, lambda: c.proof(eta=1), lambda: c.projection, lambda: ActionValues(p),
        lambda: model_of(p), lambda: dial_stops(c, [], 1.0),
        lambda: c.fixed_point("nstep_td", n=3),
        lambda: c.expectation(st.learner(without_expectation, alpha=1.0)),
    )  # fmt: skip
    for ask in refused:
        with pytest.raises(InputError, match="a matrix of all pairs of 80 states"):
            ask()


def test_a_triangle_stands_for_a_tall_matrix() -> None:
    rng = np.random.default_rng(0)
    tall = rng.normal(size=(200, 5)) * [1e-8, 1.0, 0.0, 1e6, 3.0]
    small = tall_triangle(tall, rows=16)
    assert len(small) == 5
    for w in np.vstack([np.eye(5), rng.normal(size=(5, 5))]):
        np.testing.assert_allclose(np.linalg.norm(small @ w), np.linalg.norm(tall @ w), rtol=1e-12)
    assert tall_triangle(tall) is tall
