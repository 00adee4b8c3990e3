"""What an evaluation finds out about a law, against the exact theory on drawn problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.law import LAM
from steadytd.engine.learner import Learner
from steadytd.evaluation.closed_form import (
    Decays,
    fixed_point,
    mean_matrix,
    with_trial_numbers,
)
from steadytd.evaluation.sums import ETD, TD, System
from steadytd.learners import algorithm
from steadytd.mdp.moments import Expectation, Moments
from steadytd.theory.dynamics import expectation
from steadytd.theory.dynamics import fixed_point as exact_fixed_point
from tests.support.draws import thinned
from tests.support.helpers import random_problem
from tests.support.own_laws import OWN

# (system, the parameter that is eta) of learners whose fixed point follows from sums of a log
KNOWN = {
    "td": (TD, ""), "td:lam=0.5": (System(0.5), ""), "td:lam=1": (System(1.0), ""),
    "td:lam=1e-10": (System(1e-10), ""), "vtrace": (TD, ""), "tree_backup": (TD, ""),
    "abtd": (TD, ""), "tdc": (TD, ""), "tdc:lam=0.5,ratio=300": (System(0.5), ""),
    "tdrc:reg=0.2": (TD, ""), "tdrc:lam=1": (System(1.0), ""), "gtd": (TD, ""), "gtd2": (TD, ""),
    "gtd2:lam=0.4": (System(0.4), ""), "gtd2:lam=1": (System(1.0), ""), "pgtd2": (TD, ""),
    "htd:lam=0.3": (System(0.3), ""), "etd": (ETD, ""), "etd:lam=0.5": (System(0.5, True), ""),
    "etd:lam=1": (System(1.0, True), ""), "etd_beta:beta=0.5": (System(0.0, True, 0.5), ""),
    "etd_beta:beta=0.5,lam=0.5": (System(0.5, True, 0.5), ""), "etd_beta:beta=0": (TD, ""),
    "perturbed_td:eta=0.4": (TD, "eta"), "perturbed_td:eta=1e-10": (TD, "eta"),
    "perturbed_td:eta=500": (TD, "eta"), "perturbed_td:eta=0": (TD, ""),
    "perturbed_td:eta=0.4,lam=0.4,penalty=outside": (System(0.4), "eta"),
    "perturbed_etd:beta=0.5,eta=0": (System(0.0, True, 0.5), ""), "lstd:lam=0.5": (System(0.5), ""),
    "perturbed_lstd:eta=0.3,lam=0.2": (System(0.2), "eta"), "lsetd": (ETD, ""),
    "lsetd:beta=0.3,lam=0.6": (System(0.6, True, 0.3), ""),
    "target_td": (TD, ""), "nstep_td:n=1": (TD, ""), "implicit_td:lam=0.6": (System(0.6), ""),
    "implicit_tdc": (TD, ""), "true_online_td:lam=0.6": (System(0.6), ""),
    "true_online_gtd:lam=0.6": (System(0.6), ""), "true_online_etd": (ETD, ""),
}  # fmt: skip
UNKNOWN = ["vtrace:lam=0.5", "tree_backup:lam=0.5", "abtd:zeta=0.4", "perturbed_td:eta=0.4,lam=0.4",
           "perturbed_etd:beta=0.5,eta=0.3", "cop_td", "discounted_cop_td", "gem_etd", "rotd",
           "tdc_as_published", "ridge_td:ridge=0.3", "nstep_td:n=3", "target_td:ridge=0.2",
           "target_td:copy=hard", "truncated_etd:n=2", "per_etd:b=3", "swift_td",
           "tidbd", "autostep", "wis_td:eta=0.1", "ctdc"]  # fmt: skip


def made(text: str) -> Learner:
    """The learner, with a step size if it has one."""
    steps = "alpha" in algorithm(text.partition(":")[0]).all_params
    return st.learner(text, **{"alpha": 0.1} if steps else {})


def sums(problem: st.Problem, system: System) -> tuple[Floats, Floats]:
    """A and b of a system as states, not features, see it: sum over k of (lam P_gamma)^k."""
    m, n = problem.moments(0), problem.n_states
    going_on = np.einsum("sa,sat,sat->st", m.pi, m.P, m.gamma > 0.0)
    flow = m.P_gamma if system.beta is None else system.beta * going_on
    weight, term = np.zeros(n), m.d
    for _ in range(4000):
        weight, term = weight + term, term @ flow
    emphasis = system.lam * m.d + (1.0 - system.lam) * weight if system.emphatic else m.d
    collected, power = np.zeros((n, n)), np.eye(n)
    for _ in range(4000):
        collected, power = collected + power, system.lam * power @ m.P_gamma
    left = (m.Phi * emphasis[:, None]).T @ collected
    return left @ (m.Phi - m.P_gamma @ m.Phi), left @ m.r_pi


@pytest.mark.parametrize("text", thinned(KNOWN, 2))
def test_the_fixed_point_is_what_the_theory_says(text: str) -> None:
    learner = made(text)
    found = fixed_point(learner)
    assert found is not None
    system, penalty = KNOWN[text]
    assert (found.system, found.penalty) == (system, penalty)
    for seed in (101, 102):
        problem = random_problem(seed, states=8, actions=3, features=4)
        A, b = sums(problem, system)
        eta = float(learner.values[penalty]) if penalty else 0.0
        w = np.linalg.solve(A + eta * problem.moments(0).G, b)
        np.testing.assert_allclose(exact_fixed_point(problem, learner), w, rtol=1e-6)


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_the_sums_do_not_hold_is_not_claimed(text: str) -> None:
    assert fixed_point(made(text)) is None


def test_every_registered_law_is_in_one_of_the_lists() -> None:
    listed = {text.partition(":")[0] for text in [*KNOWN, *UNKNOWN]}
    refused = {name for name in st.learners() if not algorithm(name).of_discounted_states}
    assert listed == set(st.learners()) - refused


@pytest.mark.parametrize(
    "text", thinned([t for t in KNOWN if "lst" not in t and "lsetd" not in t], 2)
)
def test_the_mean_matrix_is_that_of_the_theory(text: str) -> None:
    """On problems that the trials have not seen; only htd has more in it than a log's sums."""
    learner = made(text)
    found = fixed_point(learner)
    assert found is not None
    matrix = mean_matrix(learner, found.decays)
    if learner.name == "htd":
        assert matrix is None
        return
    assert matrix is not None
    for seed in (103, 104):
        problem = random_problem(seed, states=8, actions=3, features=4)
        A, _ = sums(problem, found.system)
        M, G = expectation(problem, learner).M, problem.moments(0).G
        np.testing.assert_allclose(matrix.at(A, G), M, rtol=1e-7, atol=1e-8 * np.abs(M).max())
        stable = bool((np.linalg.eigvals(M).real > 0.0).all())
        assert matrix.stable(A, G) == stable
    assert matrix.saddle == (learner.name in ("gtd", "gtd2", "pgtd2"))


def test_a_saddle_is_stable_whatever_the_problem() -> None:
    """Where TD is not: that is why it need not be looked at."""
    learner = st.learner("gtd2:alpha=0.1,ratio=0.5")
    matrix = mean_matrix(learner, Decays())
    assert matrix is not None and matrix.saddle
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, X = rng.normal(size=(4, 4)), rng.normal(size=(9, 4))
        assert (np.linalg.eigvals(matrix.at(A, X.T @ X)).real > 0.0).all()
    td = mean_matrix(st.learner("td:alpha=0.1"), Decays())
    assert td is not None
    assert not td.stable(-np.eye(4), np.eye(4))


def clipped_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD's with the weight mu min(rho, c) in place of pi."""
    weight = np.minimum(m.pi, values["c"] * m.mu)
    left = m.Phi.T * m.d
    kept = weight.sum(axis=1)[:, None] * m.Phi
    reward = np.einsum("sa,sat,sat->s", weight, m.P, m.r)
    return Expectation(M=left @ (kept - m.flow(weight) @ m.Phi), g=left @ reward)


@st.law(writes={"w": "x"}, params={"c": st.Param("largest ratio")}, expectation=clipped_mean)
def clipped(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float,
    c: float,
) -> float:  # fmt: skip
    """TD with ratios up to c."""
    return alpha * min(rho, c) * (reward + gamma_next * w_x_next - w_x)


def test_a_law_that_is_td_only_for_small_ratios_is_not_td() -> None:
    learner = Learner(clipped, {"alpha": 0.1, "c": 100.0})
    assert fixed_point(learner) is None


def only_here(m: Moments, values: Mapping[str, float]) -> Expectation:
    """For a problem with two features."""
    return Expectation(M=m.G @ np.eye(2), g=np.ones(2))


def test_an_expectation_for_one_problem_only_is_no_closed_form() -> None:
    @st.law(writes={"w": "x"}, expectation=only_here)
    def narrow(alpha: float, reward: float) -> float:
        return alpha * reward

    assert fixed_point(Learner(narrow, {"alpha": 0.1})) is None


@pytest.mark.parametrize(
    "param,value",
    [
        (st.Param("", low=1.0, whole=True), 500.0),
        (st.Param("", low=0.5, high=0.6, auto=True), "auto"),
        (st.Param("", high=-2.0), -1e6),
        (st.Param("", low=-1.0, above=True, whole=True, auto=True), "auto"),
        (st.Param("", low=1e6, above=True), 2e6),
    ],
)
def test_numbers_of_a_trial_are_in_the_range_of_the_parameter(
    param: st.Param, value: float | str
) -> None:
    """Whatever a user's parameter may be, and however it is set, it plays no part in this TD."""
    law = replace(OWN["td"], name="ranged", params={"length": LAM, "other": param})
    learner = Learner(law, {"alpha": 0.1, "other": value})
    tried = with_trial_numbers(learner)["other"]
    assert isinstance(tried, float) and tried != value
    found = fixed_point(learner)
    assert found is not None and (found.system, found.penalty) == (TD, "")
