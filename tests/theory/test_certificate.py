"""The certificate: every number of the theory to its printed digits, and hard problems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import steadytd as st
from steadytd.theory.certificate import Certificate
from tests.support.helpers import random_problem
from tests.support.made import absorbing

PAPER = ("theta2theta", "baird", "three_state")

# The table of thresholds as printed: PD, Hurwitz, and the bounds from tight to loose
THRESHOLDS = {
    "theta2theta": (".08", ".08", ".0864", ".273", ".35", ".8"),
    "baird": (".8046", ".122", ".8046", "1.619", "2.96", "5.93"),
    "three_state": (".41429", ".41429", ".565", "1.846", "3.95", "8.0"),
}


def as_printed(printed: str) -> object:
    """Equal to the printed digits: half a unit of the last of them."""
    return pytest.approx(float(printed), abs=0.5001 * 10 ** -len(printed.partition(".")[2]))


@pytest.mark.parametrize("name", PAPER)
def test_the_table_of_thresholds(name: str) -> None:
    c = st.certify(name)
    names = ("numerical_range", "sqrt_kappa", "gershgorin", "paper")
    found = (c.eta_pd, c.eta_hurwitz, *(c.bounds[key] for key in names))
    for value, printed in zip(found, THRESHOLDS[name], strict=True):
        assert value == as_printed(printed)
    # kappa is reached by one state, and there sqrt_kappa, the norm and the policies agree
    for key in ("operator_norm", "policies"):
        assert c.bounds[key] == pytest.approx(c.bounds["sqrt_kappa"], abs=1e-12)
    ((low, high),) = c.unstable_etas
    assert (low, high) == (0.0, c.eta_hurwitz)
    assert not c.td_stable


def test_exact_fractions() -> None:
    assert st.certify("three_state").eta_pd == pytest.approx(29 / 70, abs=1e-14)
    assert st.certify("three_state").best_eta == pytest.approx(18 / 35, abs=1e-7)
    assert st.certify("three_state").poles == [pytest.approx(29 / 70, abs=1e-14)]
    assert st.certify("baird").eta_pd == as_printed("0.80465")
    assert 0.1220 <= st.certify("baird").eta_hurwitz <= 0.1221


def test_the_slowest_mode_does_not_tell_the_threshold() -> None:
    """-min Re eig(G^-1 A_0) is -0.01 on Baird's problem, far from 0.122: G does not commute."""
    assert -st.certify("baird").pencil.eigen.values.real.min() == as_printed("-0.01")


def test_the_pole_of_three_state() -> None:
    c = st.certify("three_state")
    printed = {
        0.42: "159.6",
        0.45: "17.6",
        0.5: "3.015",
        0.6: "5.14",
        8.0: "9.88",
        18 / 35: "2.548",
    }
    for row in c.path(list(printed)).iter_rows(named=True):
        assert row["error"] == as_printed(printed[row["eta"]])
        assert row["stable"]
    assert c.best_error == as_printed("2.548")
    assert c.to_dict()["error_of_zero"] == pytest.approx(10.0)
    assert c.path([0.4])["error"][0] == as_printed("77.4")
    assert not c.path([0.4])["stable"][0]


def test_at_a_pole_there_is_no_fixed_point() -> None:
    for name, pole in (("three_state", 29 / 70), ("theta2theta", 0.08)):
        c = st.certify(name)
        row = c.path([pole]).row(0, named=True)
        assert not row["stable"]
        missing = ("error", "error_bound", "sensitivity", "value_0", "value_1")
        assert [row[key] for key in missing] == [None] * 5
        assert c.sensitivity(pole) == np.inf
        assert c.path([pole + 1e-6])["error"][0] is not None


def test_perturbed_td_beats_emphatic_td_only_in_between() -> None:
    c = st.certify("three_state")
    etd = c.error(c.fixed_point("etd"))
    assert etd == as_printed("7.49")

    def gap(eta: float) -> float:
        return c.error(c.fixed_point("perturbed_td", eta=eta)) - etd

    first, last = brentq(gap, 0.43, 0.5), brentq(gap, 0.6, 1.0)
    assert first == as_printed("0.472")
    assert last == as_printed("0.783")
    for eta in np.arange(0.415, 9.0, 0.015):
        assert (gap(eta) < 0.0) == (first < eta < last)


@pytest.mark.parametrize(("lam", "printed"), [(0.0, ".414"), (0.3, ".251"), (0.5, ".141")])
def test_thresholds_with_the_penalty_outside_the_trace(lam: float, printed: str) -> None:
    c = Certificate(st.problem("three_state"))
    for side in (-1, 1):
        eta = float(printed) + side * 0.5001e-3  # half a unit of the last printed digit
        assert c.is_stable("perturbed_td", eta=eta, lam=lam, penalty="outside") is (side > 0)


def test_to_dict_is_json_and_complete() -> None:
    import json

    c = st.certify("baird")
    read = json.loads(json.dumps(c.to_dict([0.1, 1.0])))
    assert read["eta_pd"] == c.eta_pd
    assert [row["stable"] for row in read["path"]] == [False, True]
    assert {row["learner"] for row in read["learners"]} >= {"td", "tdc", "etd", "perturbed_td"}
    assert (read["rank"], read["features"], read["exact"]) == (7, 8, True)


# Hard problems


def test_features_of_too_small_a_rank() -> None:
    p = random_problem(3, states=4, features=7, gamma=0.9)
    c = st.certify(p)
    full = st.Problem(
        name="full", P=p.P, r=p.r, gamma=0.9, mu=p.mu, pi=p.pi, Phi=np.eye(4), w0=np.zeros(4)
    )
    tabular = st.certify(full)
    assert c.pencil.rank == 4
    assert c.eta_pd == pytest.approx(tabular.eta_pd, rel=1e-9)  # it is the span that counts
    assert c.eta_hurwitz <= c.eta_pd
    assert p.Phi @ c.fixed_point("td") == pytest.approx(p.v_pi, abs=1e-9)


def test_no_rewards() -> None:
    p = random_problem(4, gamma=0.9)
    c = st.certify(st.Problem(name="0", P=p.P, r=0.0, gamma=0.9, mu=p.mu, pi=p.pi, Phi=p.Phi))
    frame = c.path([0.0, 0.5, 4.0])
    assert frame["error"].to_list() == [0.0, 0.0, 0.0]
    assert c.best_eta == max(0.0, c.bounds["sqrt_kappa"])
    assert not {"bias", "near_pole", "sign_reversal"} & {f.code for f in c.advice}


def test_gamma_one_in_an_episodic_problem() -> None:
    """A walk over 0, 1, 2 that ends left (reward 0) or right (reward 1); then it begins anew."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[2, 1, 1] = P[0, 1, 1] = P[1, 0, 0] = P[1, 1, 2] = P[2, 0, 1] = 1.0
    gamma, r = np.ones((3, 2, 3)), np.zeros((3, 2, 3))
    gamma[0, 0] = gamma[2, 1] = 0.0
    r[2, 1] = 1.0
    p = st.Problem(
        name="walk", P=P, r=r, gamma=gamma, mu=np.full((3, 2), 0.5), pi=np.tile([0.3, 0.7], (3, 1)),
        Phi=[[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]],
    )  # fmt: skip
    c = st.certify(p)
    assert p.v_pi == pytest.approx([0.49 / 0.58 * 0.7, 0.49 / 0.58, 0.7 + 0.3 * 0.49 / 0.58])
    assert c.contraction()["maximum"] == 1.0  # no contraction in the maximum norm
    assert c.td_stable == (np.linalg.eigvals(c.A()).real.min() > 0.0)
    assert all(f.numbers for f in c.advice)
    assert c.error(c.fixed_point("td")) < c.error(np.zeros(2))


def test_an_absorbing_state() -> None:
    """In the long run there is but one state, with features (1, 1)."""
    c = st.certify(absorbing([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert c.pencil.rank == 1
    assert c.td_stable
    assert c.eta_pd == pytest.approx(0.9 - 1.0)
    assert c.problem.Phi[2] @ c.fixed_point("td") == pytest.approx(10.0)
    (finding,) = [f for f in c.advice if f.code == "no_coverage"]
    assert finding.numbers == {"states": [0, 1]}


def test_an_absorbing_state_without_features_is_a_clear_error() -> None:
    with pytest.raises(st.InputError, match=r"every state that mu visits .* has the features 0"):
        st.certify(absorbing([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))


def test_transient_states_do_not_count() -> None:
    """A certificate with two more states, which mu leaves for good, is the one without them."""
    p = random_problem(8, states=4, features=2, gamma=0.9)
    P = np.zeros((6, 3, 6))
    P[:4, :, :4] = p.P
    P[4:, :, :] = 1.0 / 6.0
    uniform = np.full((2, 3), 1.0 / 3.0)
    r = np.zeros((6, 3, 6))
    r[:4, :, :4] = p.r
    bigger = st.Problem(
        name="bigger", P=P, r=r, gamma=0.9, mu=np.vstack([p.mu, uniform]),
        pi=np.vstack([p.pi, uniform]), Phi=np.vstack([p.Phi, [[5.0, -1.0], [2.0, 7.0]]]),
    )  # fmt: skip
    c, small = st.certify(bigger), st.certify(p)
    assert bigger.d_mu[4:] == pytest.approx([0.0, 0.0])
    assert c.eta_pd == pytest.approx(small.eta_pd, rel=1e-9)
    assert c.eta_hurwitz == pytest.approx(small.eta_hurwitz, rel=1e-9)
    assert c.bounds == pytest.approx(small.bounds, rel=1e-9)
    assert c.best_eta == pytest.approx(small.best_eta, abs=1e-6)
    assert c.fixed_point("tdc") == pytest.approx(small.fixed_point("tdc"), rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_on_policy_td_is_always_stable(seed: int) -> None:
    p = random_problem(seed, gamma=0.99, sparse=seed % 2 == 0)
    c = Certificate(st.Problem(name="on", P=p.P, r=p.r, gamma=0.99, mu=p.mu, pi=p.mu, Phi=p.Phi))
    assert c.td_stable
    assert c.unstable_etas == []
    assert c.eta_pd <= c.bounds["operator_norm"] <= 0.99 - 1.0 + 1e-12  # ||P_pi||_D = 1


@pytest.mark.slow
def test_500_states_and_200_features() -> None:
    p = random_problem(1, states=500, features=200, gamma=0.95, sparse=True)
    c = st.certify(p)
    assert not c.to_dict()["exact"]
    assert c.pencil.rank == 200
    assert np.linalg.eigvals(c.A(max(0.0, c.eta_hurwitz) + 1e-6)).real.min() > 0.0
    assert c.eta_hurwitz <= c.eta_pd <= c.bounds["numerical_range"] <= c.bounds["paper"]


def test_several_target_policies() -> None:
    p = random_problem(5, policies=3, gamma=0.9)
    for k in range(3):
        alone = st.Problem(
            name="one", P=p.P, r=p.r[k], gamma=0.9, mu=p.mu, pi=p.pi[k], Phi=p.Phi, w0=p.w0
        )
        of_three, single = st.certify(p, policy=k).to_dict([0.5]), st.certify(alone).to_dict([0.5])
        for key in ("eta_pd", "bounds", "best_eta", "best_error", "unstable_etas", "path"):
            assert of_three[key] == single[key], key
        assert of_three["policy"] == k
    assert st.certify(p, policy=0).eta_pd != st.certify(p, policy=1).eta_pd
    with pytest.raises(st.InputError, match="policy must be from 0 to 2, got 3"):
        st.certify(p, policy=3)
