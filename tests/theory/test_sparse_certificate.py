"""The certificate of a problem with sparse P: the numbers that the one with arrays has."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import steadytd as st
from tests.support.draws import thinned
from tests.support.sparse_mdp import sparse_mdp, with_arrays

SIZES = [(60, 5, 1), pytest.param(200, 12, 2, marks=pytest.mark.slow)]


@pytest.mark.parametrize("seed", thinned(range(8), 8))
@pytest.mark.parametrize(("states", "features", "period"), SIZES)
def test_it_is_that_of_arrays(states: int, features: int, period: int, seed: int) -> None:
    p = sparse_mdp(seed, states, features, period=period, gamma=0.99)
    c, d = st.certify(p), st.certify(with_arrays(p))
    one, other = c.to_dict(), d.to_dict()
    for name in ("eta_pd", "eta_hurwitz", "best_error", "error_of_zero"):
        assert one[name] == pytest.approx(other[name], rel=1e-9, abs=1e-9)
    # where the error is least it is flat, so the penalty is known to half as many digits
    assert one["best_eta"] == pytest.approx(other["best_eta"], rel=1e-5, abs=1e-5)
    assert one["bounds"] == pytest.approx(other["bounds"], rel=1e-9)
    np.testing.assert_allclose(one["unstable_etas"], other["unstable_etas"], atol=1e-9)
    np.testing.assert_allclose(one["poles"], other["poles"], rtol=1e-8)
    rows = {row["learner"]: row for row in other["learners"]}
    assert {"td", "tdc", "perturbed_td", "etd", "gtd2", "htd", "tree_backup"} <= {
        row["learner"] for row in one["learners"]
    }
    for row in one["learners"]:
        wanted = rows[row["learner"]]
        assert row["stable"] is wanted["stable"]
        assert row["finite_variance"] is wanted["finite_variance"]
        assert row["variance_growth"] == pytest.approx(wanted["variance_growth"], rel=1e-8)
        assert row["error"] == pytest.approx(wanted["error"], rel=1e-6)
        assert row["values"] is None
    (found,) = (f for f in c.advice if f.code == "by_iteration")
    assert found.numbers == {name: one["accuracy"][name] for name in found.numbers}
    assert max(found.numbers.values()) < 1e-9
    assert "by_iteration" not in {f.code for f in d.advice} and other["accuracy"] == {}
    assert c.error_bound(5.0) == pytest.approx(d.error_bound(5.0), rel=1e-9)
    assert c.path([5.0])["error"][0] == pytest.approx(d.path([5.0])["error"][0], rel=1e-9)
    assert [a.holds for a in c.assumptions("td")] == [a.holds for a in d.assumptions("td")]


@pytest.mark.slow
def test_no_matrix_of_all_pairs_of_states_is_made() -> None:
    """100,000 states and 20 features: a matrix of all pairs would take 80 GB."""
    p = sparse_mdp(0, 100_000, 20)
    tracemalloc.start()
    c = st.certify(p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e9
    assert c.eta_pd < c.bounds["numerical_range"] < c.bounds["sqrt_kappa"]
    # by other means: TD's fixed point makes the mean TD error vanish
    w, m = c.fixed_point("td"), p.moments()
    delta = m.r_pi + m.onwards @ (m.Phi @ w) - m.Phi @ w
    assert np.abs(m.Phi.T @ (m.d * delta)).max() < 1e-12
