"""Sparse features: the same numbers as dense ones, and never made dense in a run."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import steadytd as st
from steadytd.base.errors import InputError
from steadytd.base.files import write_arrays
from steadytd.base.identity import digest
from steadytd.mdp.action_values import ActionValues
from steadytd.mdp.sparse import dense, used_features
from steadytd.runs import lanes
from tests.support.cases import assert_same_bits
from tests.support.scope import everything

LEARNERS = (
    "td:alpha=0.05,lam=0.8", "tdc:alpha=0.02,ratio=2", "ridge_td:alpha=0.05,ridge=0.1",
    "td:alpha=0.05,average=1",
    "td:alpha=1e9", "td:alpha=1e9,lam=0.9",
)  # fmt: skip
# With many features these have loops of their own, whose code is tested with other laws.
MORE = ("tdc:alpha=0.02,ratio=2,lam=0.5", "etd:alpha=0.01,lam=0.3") * everything()


def sparse_problem(states: int, features: int, active: int = 3, **more: Any) -> st.Problem:
    """A drawn chain with two actions; `active` features of every state are not 0."""
    rng = np.random.default_rng(states + features)
    P = rng.dirichlet(np.full(states, 0.2), size=(states, 2))
    values = rng.normal(size=states * active)
    columns = np.concatenate([rng.choice(features, active, replace=False) for _ in range(states)])
    start = np.arange(states + 1) * active
    given: dict[str, Any] = {
        "Phi": sp.csr_array((values, columns, start), shape=(states, features)),
        "pi": np.tile([0.7, 0.3], (states, 1)),
    }
    return st.Problem(
        name="drawn", P=P, r=rng.normal(size=(states, 2)), gamma=0.9,
        mu=np.full((states, 2), 0.5), **(given | more),
    )  # fmt: skip


def as_dense(p: st.Problem) -> st.Problem:
    return st.Problem(
        name=p.name, P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi.toarray(), w0=p.w0
    )


def results(p: st.Problem, *learners: str) -> st.Result:
    return st.run(p, learners or (*MORE, *LEARNERS), steps=400, seeds=2, points=5, threads=1)


def assert_same_results(one: st.Result, other: st.Result) -> None:
    assert_same_bits(one.errors, other.errors)
    for i in range(len(one.learners)):
        assert_same_bits(one.final_weights[i], other.final_weights[i])
    assert_same_bits(one.first_divergence, other.first_divergence)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix])
def test_every_form_is_kept_as_rows_of_sorted_columns(form: Any) -> None:
    Phi = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, -3.0]])
    P = np.full((2, 1, 2), 0.5)
    given = form(Phi)
    p = st.Problem(
        name="two", P=P, r=0.0, gamma=0.5, mu=np.ones((2, 1)), pi=np.ones((2, 1)), Phi=given
    )
    assert type(p.Phi) is sp.csr_array and np.array_equal(p.Phi.toarray(), Phi)
    assert p.Phi.indices.tolist() == [1, 3, 3] and used_features(p.Phi).tolist() == [1, 3]
    with pytest.raises(ValueError, match="read-only"):
        p.Phi.data[0] = 9.0


def test_doubles_are_added_and_zeros_left_out() -> None:
    entries = np.array([1.0, 2.0, 5.0, -5.0, 0.0, 7.0])
    places = np.array([0, 0, 0, 0, 1, 1]), np.array([3, 3, 1, 1, 2, 0])
    P = np.full((2, 1, 2), 0.5)
    p = st.Problem(
        name="two", P=P, r=0.0, gamma=0.5, mu=np.ones((2, 1)), pi=np.ones((2, 1)),
        Phi=sp.coo_array((entries, places), shape=(2, 4)),
    )  # fmt: skip
    assert p.Phi.nnz == 2 and p.Phi.toarray().tolist() == [[0, 0, 0, 3], [7, 0, 0, 0]]


@pytest.mark.parametrize(
    ("Phi", "message"),
    [
        (sp.csr_array((3, 5)), r"Phi must have shape \(2, 5\) for \[s, k\], got \(3, 5\)"),
        (sp.csr_array((2, 0)), r"Phi must not be empty"),
        (sp.csr_array([[0.0, 1.0], [np.inf, 0.0]]), r"Phi\[1, 0\] must be a finite number"),
        (sp.csr_array([[0.0, 1.0], [1e101, 0.0]]), r"Phi\[1, 0\] must be between"),
        (sp.csr_array([[0.0, 1.0], [1e-101, 0.0]]), "feature 0 of Phi must be 0 everywhere or"),
    ],
)
def test_bad_features_are_named(Phi: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        st.Problem(
            name="bad", P=np.full((2, 1, 2), 0.5), r=0.0, gamma=0.5, mu=np.ones((2, 1)),
            pi=np.ones((2, 1)), Phi=Phi,
        )  # fmt: skip


@pytest.mark.parametrize("features", [9, 150])
def test_runs_are_those_of_dense_features(features: int) -> None:
    p = sparse_problem(12, features, w0=np.linspace(-1.0, 1.0, features))
    learners = [] if features < 128 or everything() else ["td:alpha=0.05,lam=0.8"]
    assert_same_results(results(p, *learners), results(as_dense(p), *learners))


def test_features_that_never_occur_are_left_out_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    p = sparse_problem(12, 1500)
    tables = lanes.RunSetup(p, np.array([0, 1])).tables(0)
    assert tables.packed is not None and len(tables.packed.w0) == len(used_features(p.Phi)) < 40
    packed = results(p)
    assert (packed.first_divergence[-2:] > 0).all()
    monkeypatch.setattr(lanes, "MANY", 10_000)
    assert_same_results(packed, results(p))
    assert_same_results(packed, results(as_dense(p)))


def test_weights_of_features_that_never_occur_stay_where_they_start() -> None:
    w0 = np.zeros(1500)
    w0[1499] = 3.0
    p = sparse_problem(12, 1499)
    wider = sp.csr_array((p.Phi.data, p.Phi.indices, p.Phi.indptr), shape=(12, 1500))
    q = st.Problem(name="wider", P=p.P, r=p.r, gamma=0.9, mu=p.mu, pi=p.pi, Phi=wider, w0=w0)
    found = results(q, "td:alpha=0.05,lam=0.8", "ridge_td:alpha=0.05,ridge=0.1")
    assert (found.final_weights[0, ..., 1499] == 3.0).all()
    assert (found.final_weights[1, ..., 1499] < 3.0).all()


def test_errors_and_the_certificate_are_those_of_dense_features() -> None:
    p = sparse_problem(6, 5)
    q = as_dense(p)
    w = np.random.default_rng(0).normal(size=(2, 3, 5))
    np.testing.assert_allclose(p.error(w), q.error(w), rtol=1e-13)
    assert p.error(w).shape == (2, 3)  # type: ignore[union-attr]
    assert p.error(w[0, 0]) == pytest.approx(q.error(w[0, 0]), rel=1e-13)
    assert st.certify(p).to_dict() == st.certify(q).to_dict()
    several = sparse_problem(6, 5, pi=np.stack([p.pi, p.mu]))
    other = as_dense(several)
    np.testing.assert_allclose(several.error(w[:, :2]), other.error(w[:, :2]), rtol=1e-13)


def test_a_file_and_an_identity_hold_the_features(tmp_path: Path) -> None:
    p = sparse_problem(5, 50_000)
    again = st.load_problem(p.save(tmp_path / "p.npz"))
    assert (tmp_path / "p.npz").stat().st_size < 20_000
    assert sp.issparse(again.Phi) and (again.Phi != p.Phi).nnz == 0
    assert digest(again) == digest(p)
    other = p.Phi.copy()
    other.data = other.data.copy()
    other.data[3] += 1e-9
    changed = sparse_problem(5, 50_000, Phi=other)
    assert digest(changed) != digest(p)
    wider = sp.csr_array((p.Phi.data, p.Phi.indices, p.Phi.indptr), shape=(5, 50_001))
    assert digest(sparse_problem(5, 50_000, Phi=wider)) != digest(p)


def test_a_file_with_parts_that_do_not_fit_is_refused(tmp_path: Path) -> None:
    content = sparse_problem(5, 40).content()
    content["Phi_indices"] = content["Phi_indices"] + 100
    write_arrays(tmp_path / "bad.npz", content, compressed=True)
    with pytest.raises(InputError, match="holds no sparse Phi whose parts fit together"):
        st.load_problem(tmp_path / "bad.npz")


def test_what_needs_dense_matrices_is_refused_with_their_size() -> None:
    p = sparse_problem(5, 1_000_000)
    used = len(used_features(p.Phi))
    needs = rf"exact matrices of 5 states with 1,000,000 features would take 32,000 GB.*{used} fea"
    with pytest.raises(InputError, match=needs):
        st.certify(p)
    with pytest.raises(InputError, match=needs):
        st.run(p, "perturbed_td:alpha=0.01,eta=auto", steps=10)
    with pytest.raises(InputError, match=needs):
        ActionValues.per_action(p)
    with pytest.raises(InputError, match="the sums of lstd for 1,000,000 features would take"):
        st.run(p, "lstd", steps=10)
    smaller = sparse_problem(5, 1_000_000, Phi=p.Phi[:, used_features(p.Phi)])
    assert st.certify(smaller).td_stable in (True, False)  # what the sentence says to do


def test_a_million_features_take_the_memory_of_the_active_ones() -> None:
    """Dense, the features alone would take 0.8 GB."""
    tracemalloc.start()
    p = sparse_problem(100, 1_000_000, active=20)
    learners = "td:alpha=0.05,lam=0.8", "tdc:alpha=0.02,ratio=2", "etd:alpha=0.01"
    found = results(p, *learners)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(found.errors).all() and found.final_weights.shape == (3, 2, 1, 1_000_000)
    assert peak < 250e6, peak  # the weights of three learners and two seeds, three times
    assert dense(np.eye(2)).tolist() == np.eye(2).tolist()
