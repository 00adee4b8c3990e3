"""Active states: what is refused, what is kept, and what a learner sees of the stream."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd import InputError, Problem, load_problem
from steadytd.base.arrays import Floats
from steadytd.engine.facts import fact_table, named
from steadytd.engine.reference import ReferenceLearner
from steadytd.learners import algorithm, names
from steadytd.mdp.action_values import ActionValues
from steadytd.theory.advice import advise_on
from steadytd.theory.certificate import Certificate
from steadytd.theory.exact import exact_error
from steadytd.theory.recommend import automatic, undecided
from tests.support.made import follow_on_growth

ACROSS = ("cop_td", "discounted_cop_td", "gem_etd")  # they learn at x_next after an end, too


def parts(**changes: Any) -> dict[str, Any]:
    """Four states, of which 0, 1 and 2 are active, three actions; action 2 leaves to state 3."""
    rng = np.random.default_rng(5)
    P = np.zeros((4, 3, 4))
    P[:3, :2, :3] = rng.dirichlet(np.ones(3), size=(3, 2))
    P[:3, 2, 3] = 1.0
    P[3] = [0.2, 0.3, 0.1, 0.4]
    pi = rng.dirichlet(np.ones(3), size=4)
    mu = rng.dirichlet(np.full(3, 3.0), size=4)
    pi[3] = mu[3]
    return {
        "name": "part",
        "P": P,
        "r": rng.normal(size=(4, 3, 4)),
        "gamma": [0.9, 0.7, 0.8, 0.0],
        "mu": mu,
        "pi": pi,
        "Phi": rng.normal(size=(4, 2)),
        "interest": [1.0, 2.0, 0.5, 3.0],
        "active": [True, True, True, False],
        **changes,
    }


def partly(**changes: Any) -> Problem:
    return Problem(**parts(**changes))


# What is refused


@pytest.mark.parametrize(
    ("active", "message"),
    [
        ([1, 1, 1], "active must have shape (4,) for [s], got (3,)."),
        ([[1, 1, 1, 0]], "active must have shape (4,) for [s], got (1, 4)."),
        ([1, 0.5, 1, 0], "active[1] must be true or false, got 0.5."),
        ([0, 0, 0, 0], "active has no true entry, so nothing would be learned; give one."),
        ([1, 1, np.nan, 0], "active[2] must be a finite number, got nan."),
        ("yes", "active must be an array of numbers (could not convert string to float: 'yes')."),
    ],
)
def test_bad_arrays(active: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        partly(active=active)
    assert str(caught.value) == message


def test_bad_arrays_with_several_policies() -> None:
    pi = np.stack([parts()["pi"]] * 2)
    with pytest.raises(InputError) as caught:
        partly(pi=pi, active=np.ones((3, 4)))
    assert str(caught.value) == (
        "active must have shape (4,) for [s] or (2, 4) with a policy axis, got (3, 4)."
    )
    with pytest.raises(InputError, match=r"^active of policy 1 has no true entry"):
        partly(pi=pi, active=[[1, 1, 1, 0], [0, 0, 0, 0]])


def test_a_discount_must_not_lead_out() -> None:
    with pytest.raises(InputError) as caught:
        partly(gamma=[0.9, 0.7, 0.8, 0.25])
    assert str(caught.value) == (
        "gamma[0, 2, 3] must be 0, got 0.25: the step from state 0 (active) by action 2 to state 3 "
        "(not active) would carry values and traces through states in which nothing is learned. "
        "End the episode there with discount 0, or make state 3 active."
    )


def test_a_discount_must_not_lead_out_names_the_policy() -> None:
    gamma = np.array([[0.9, 0.7, 0.8, 0.0]] * 2)
    active = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    with pytest.raises(
        InputError, match=r"^gamma\[1, 0, 0, 2\] must be 0, .* state 0 \(active for policy 1\) by"
    ):
        partly(pi=np.stack([parts()["pi"]] * 2), gamma=gamma, active=active)


def test_a_discount_that_is_never_used_may_be_anything() -> None:
    """Where the step has probability 0, or mu never takes the action; and on the way in."""
    gamma = np.broadcast_to(np.array([0.9, 0.7, 0.8, 0.5]), (4, 3, 4)).copy()
    gamma[:3, 2, 3] = 0.0  # the only way out
    p = partly(gamma=gamma)
    np.testing.assert_allclose(p.v_pi[:3], partly().v_pi[:3], rtol=1e-13)
    mu, pi = parts()["mu"], parts()["pi"]
    mu[:3], pi[:3] = [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]
    Problem(**parts(gamma=0.9, mu=mu, pi=pi, start=[1, 0, 0, 0]))


# What is kept


def test_kept_as_frozen_booleans() -> None:
    given = np.array([1.0, 1.0, 1.0, 0.0])
    p = partly(active=given)
    given[:] = 0.0
    assert p.active.dtype == np.bool_
    assert p.active.tolist() == [True, True, True, False]
    with pytest.raises(ValueError, match="read-only"):
        p.active[0] = False


def test_policies_may_share_or_differ() -> None:
    pi = np.stack([parts()["pi"]] * 2)
    shared = partly(pi=pi)
    assert shared.active.tolist() == [[True, True, True, False]] * 2
    own = partly(pi=pi, gamma=[[0.9, 0.7, 0.8, 0.0], [0.9, 0.7, 0.8, 0.6]],
                 active=[[1, 1, 1, 0], [1, 1, 1, 1]])  # fmt: skip
    assert [own.active_in(k).sum() for k in range(2)] == [3, 4]
    np.testing.assert_array_equal(own.error_weights(0), partly().error_weights())
    everywhere = partly(gamma=[0.9, 0.7, 0.8, 0.6], active=None)
    np.testing.assert_array_equal(own.error_weights(1), everywhere.error_weights())
    np.testing.assert_array_equal(own.moments(1).A(0.5), everywhere.moments().A(0.5))


def test_save_and_load(tmp_path: Path) -> None:
    p = partly()
    loaded = load_problem(p.save(tmp_path / "p.npz"))
    assert loaded.active.dtype == np.bool_
    assert loaded.active.tolist() == p.active.tolist()


def test_older_files_have_all_states_active(tmp_path: Path) -> None:
    path = partly(active=None).save(tmp_path / "p.npz")
    with np.load(path) as file:
        content = {key: file[key] for key in file.files if key != "active"}
    np.savez(path, **content)
    assert load_problem(path).active.all()


# What counts


def test_error_counts_active_states_only() -> None:
    p = partly()
    w = np.array([0.3, -1.2])
    weights = [p.d_mu[s] * p.interest[s] for s in range(3)]
    squares = [(p.Phi[s] @ w - p.v_pi[s]) ** 2 for s in range(3)]
    expected = np.sqrt(np.dot(weights, squares) / sum(weights))
    assert p.error(w) == pytest.approx(expected, rel=1e-14)
    assert p.error_weights()[3] == 0.0


def test_nothing_depends_on_the_target_policy_where_it_is_inactive() -> None:
    """Another pi, reward and feature in state 3 change neither values, ratios nor matrices."""
    pi, r, Phi = (parts()[name].copy() for name in ("pi", "r", "Phi"))
    pi[3], r[3], Phi[3] = [0.0, 0.0, 1.0], 99.0, [7.0, -7.0]
    a, b = partly().moments(), partly(pi=pi, r=r, Phi=Phi).moments()
    np.testing.assert_allclose(b.v_pi[:3], a.v_pi[:3], rtol=1e-13)
    np.testing.assert_allclose(b.row_space @ b.row_space.T, a.row_space @ a.row_space.T, atol=1e-14)
    assert (b.max_ratio, b.peaks) == (a.max_ratio, a.peaks)
    for lam in (0.0, 0.7):
        np.testing.assert_allclose(b.A(lam), a.A(lam), rtol=1e-12)
        np.testing.assert_allclose(b.b(lam), a.b(lam), rtol=1e-12)
    np.testing.assert_allclose(b.follow_on[:3], a.follow_on[:3], rtol=1e-12)


def censored(p: Problem) -> Problem:
    """The problem watched while it is in the active states 0, 1, 2: state 3 is stepped over.

    Action 2 leads to state 3 and from there, some time later, to the state where it comes back:
    0, 1 or 2 with odds 2 : 3 : 1. That is an end of an episode, with discount 0.
    """
    assert isinstance(p.gamma, np.ndarray)
    P = p.P[:3, :, :3].copy()
    P[:, 2] = np.array([2.0, 3.0, 1.0]) / 6.0
    r = p.r[:3, :, :3].copy()
    r[:, 2] = p.r[:3, 2, 3:]
    gamma = np.broadcast_to(p.gamma[:3], (3, 3, 3)).copy()
    gamma[:, 2] = 0.0
    return Problem(
        name="watched", P=P, r=r, gamma=gamma, mu=p.mu[:3], pi=p.pi[:3], Phi=p.Phi[:3],
        interest=p.interest[:3],
    )  # fmt: skip


def test_values_and_weights_are_those_of_the_watched_chain() -> None:
    p = partly()
    w = censored(p)
    np.testing.assert_allclose(w.d_mu, p.d_mu[:3] / p.d_mu[:3].sum(), rtol=1e-13)
    np.testing.assert_allclose(w.v_pi, p.v_pi[:3], rtol=1e-13)
    np.testing.assert_allclose(w.error_weights(), p.error_weights()[:3], rtol=1e-13)


def with_closed_form() -> list[str]:
    laws = {name: algorithm(name) for name in names()}
    return [
        name
        for name, law in laws.items()
        if law.expectation is not None and law.of_discounted_states and not undecided(law)
    ]


@pytest.mark.parametrize("name", [n for n in with_closed_form() if n not in ACROSS])
@pytest.mark.parametrize("lam", [0.0, 0.6])
def test_mean_updates_are_those_of_the_watched_chain(name: str, lam: float) -> None:
    """Per step of the stream, so times the share of steps in active states."""
    law = algorithm(name)
    options: dict[str, Any] = dict.fromkeys(automatic(law), 0.5)
    if "lam" in law.params:
        options["lam"] = lam
    if "alpha" in law.all_params:
        options["alpha"] = 1.0
    learner = st.learner(name, **options)
    p = partly()
    share = p.d_mu[:3].sum() if law.block is None else 1.0  # a direct solution has no step size
    mine = Certificate(p).expectation(learner)
    theirs = Certificate(censored(p)).expectation(learner)
    np.testing.assert_allclose(mine.M, share * theirs.M, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine.g, share * theirs.g, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ACROSS)
def test_learners_that_look_past_an_end_have_no_closed_form(name: str) -> None:
    c = st.certify(partly())
    with pytest.raises(InputError, match=f"^{name} has no closed form where some states are not"):
        c.expectation(name)
    assert name not in {row["learner"] for row in c.learners}
    assert name in {row["learner"] for row in st.certify(partly(active=None)).learners}


def test_certificate_is_that_of_the_watched_chain() -> None:
    """Everything but rates per step, which are smaller by the share of active steps."""
    p = partly()
    a, b = st.certify(p), st.certify(censored(p))
    for name in ("eta_pd", "eta_hurwitz", "best_eta", "best_error", "unstable_etas"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)
    assert a.bounds == pytest.approx(b.bounds, rel=1e-9)
    for eta in (1.0, 3.0):
        assert a.error_bound(eta) == pytest.approx(b.error_bound(eta), rel=1e-9)
        assert a.contraction(eta) == pytest.approx(b.contraction(eta), rel=1e-9)
        assert a.sensitivity(eta) == pytest.approx(b.sensitivity(eta), rel=1e-9)
        assert [f.code for f in advise_on(a, eta)] == [f.code for f in advise_on(b, eta)]
    for name in ("td", "etd", "tdc:ratio=2"):
        assert a.largest_alpha(name) == pytest.approx(b.largest_alpha(name), rel=1e-9)
    codes = [f.code for f in a.advice]
    assert codes == [f.code for f in b.advice]
    assert "no_coverage" not in codes
    sizes = [next(f.numbers["size"] for f in c.advice if f.code == "bias") for c in (a, b)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)


def test_growth_of_the_follow_on_trace_is_that_of_the_watched_chain() -> None:
    """In state 3 a trace would explode: rho is 10 there, and it may stay without discount."""
    mu, pi = parts()["mu"], parts()["pi"]
    mu[3], pi[3] = [0.1, 0.45, 0.45], [1.0, 0.0, 0.0]
    gamma = np.broadcast_to(np.array([0.9, 0.7, 0.8, 0.0]), (4, 3, 4)).copy()
    gamma[3] = 1.0
    p = partly(mu=mu, pi=pi, gamma=gamma)
    assert follow_on_growth(p) == pytest.approx(follow_on_growth(censored(partly())), rel=1e-12)


def test_action_values_are_those_of_the_watched_chain() -> None:
    p = partly()
    mine, theirs = ActionValues(p), ActionValues(censored(p))
    np.testing.assert_allclose(mine.q_pi[:3], theirs.q_pi, rtol=1e-12)
    share = p.d_mu[:3].sum()
    np.testing.assert_allclose(
        mine.moments().A(0.5)[:9, :9], share * theirs.moments().A(0.5), rtol=1e-9, atol=1e-13
    )


# The exact error


def every_path(p: Problem, learner: st.Learner, steps: int) -> tuple[Floats, float]:
    """The mean weights and the root-mean-square error after all paths, each with its probability.

    The plain Python learner takes every step from an active state and skips the others.
    """
    m = p.moments()
    mean, square = np.zeros(p.n_features), 0.0

    def walk(s: int, left: int, probability: float, w: Floats) -> None:
        nonlocal mean, square
        if left == 0:
            error = p.error(w)
            assert isinstance(error, float)
            mean = mean + probability * w
            square += probability * error**2
            return
        for a, t in product(range(p.n_actions), range(p.n_states)):
            chance = p.mu[s, a] * p.P[s, a, t]
            if chance == 0.0:
                continue
            after = ReferenceLearner(learner, w)
            if p.active[s]:
                ratio = p.pi[s, a] / p.mu[s, a]
                (facts,) = fact_table(
                    reward=m.r[s, a, t], gamma_next=m.gamma[s, a, t], rho=ratio, pi=p.pi[s, a],
                    mu=p.mu[s, a], interest=p.interest[s], peak_min=m.peaks[0],
                    peak_max=m.peaks[1],
                )  # fmt: skip
                after.update(p.Phi[s], p.Phi[t], named(facts))
            walk(t, left - 1, probability * chance, after.vectors["w"])

    for s in np.flatnonzero(p.start):
        walk(int(s), steps, float(p.start[s]), p.w0)
    return mean, float(np.sqrt(square))


def test_exact_error_skips_inactive_states() -> None:
    p = partly(w0=[0.5, -0.5], start=[0.5, 0.0, 0.0, 0.5])
    learner = st.learner("td", alpha=0.3)
    found = exact_error(p, learner, 3)
    assert found is not None
    mean, root = every_path(p, learner, 3)
    np.testing.assert_allclose(found.mean_weights, mean, rtol=1e-12)
    assert found.root_mean_square == pytest.approx(root, rel=1e-12)
    assert found.of_mean == pytest.approx(p.error(mean), rel=1e-12)
