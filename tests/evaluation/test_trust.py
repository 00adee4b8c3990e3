"""Never a confident wrong answer: the interval covers the truth, or a warning names the reason.

Three worlds with known values (one feature per state; one feature that says nearly nothing; a point
on a line with observations that are numbers), each for a target near the behaviour policy and for
one far from it, on five logs of 400 episodes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.statistics import units
from steadytd.evaluation.estimate.estimators import Estimator
from steadytd.evaluation.judge.recommend import recommend
from steadytd.evaluation.result import Evaluation
from steadytd.logs.log import open_log
from tests.support.evaluate_helpers import Identity, plan_of, sums_of
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import (
    DISCOUNT,
    WORLDS,
    World,
    discount_of,
    episodic,
    line,
    tabular,
)

SEEDS = range(500, 505)  # not those at which the thresholds were chosen
REASONS = {
    "low_overlap", "features_poor", "learners_disagree", "bias_unchecked", "ratios_off",
    "few_episodes",
}  # fmt: skip


@cache
def world(name: str) -> World:
    return WORLDS[name]()


@cache
def evaluated(name: str, seed: int) -> Evaluation:
    w = world(name)
    return st.evaluate(w.log(seed), discount=discount_of(name), features=w.features)


def covered(name: str, seed: int) -> bool:
    r = evaluated(name, seed).recommended["pi"]
    return r.lo <= world(name).truth <= r.hi


def test_covers_the_truth_or_names_a_reason() -> None:
    """At least 85 % of all cases; by chance alone 5 % of trusted intervals miss."""
    cases = [(name, seed) for name in WORLDS for seed in SEEDS]
    good = [
        covered(*case) or bool(set(evaluated(*case).recommended["pi"].warnings) & REASONS)
        for case in cases
    ]
    assert np.mean(good) >= 0.85, [c for c, fine in zip(cases, good, strict=True) if not fine]


@pytest.mark.parametrize("name", ["tabular near", "line near"])
def test_good_logs_are_trusted_and_right(name: str) -> None:
    """Warnings on everything would keep the promise too; most of these have to go without."""
    trusted = [evaluated(name, seed).recommended["pi"].trusted for seed in SEEDS]
    assert sum(trusted) >= 4
    assert sum(covered(name, seed) for seed in SEEDS) >= 4


def codes(e: Evaluation, level: str = "warning") -> set[str]:
    return {w.code for w in e.warnings if w.level == level}


def test_poor_features_are_found_and_lstd_is_not_recommended() -> None:
    name = "line near, poor features"
    for seed in SEEDS:
        e = evaluated(name, seed)
        lstd = e.values.filter(learner="lstd").to_dicts()[0]
        assert not lstd["lo"] <= world(name).truth <= lstd["hi"]
        assert "features_poor" in codes(e)
        assert e.recommended["pi"].learner == "drl"
    assert sum(covered(name, seed) for seed in SEEDS) >= 4


def test_a_far_target_has_low_overlap() -> None:
    for seed in SEEDS:
        e = evaluated("line far", seed)
        (found,) = [w for w in e.warnings if w.code == "low_overlap"]
        assert found.numbers["rho_max"] == e.overlap["rho_max"][0]
        assert str(e.overlap["rho_max_row"][0]) in found.text or "episodes" in found.text
        assert not e.recommended["pi"].trusted


def test_few_effective_episodes_are_low_overlap() -> None:
    """On this log the mean product looks fair, but 5 of 400 episodes make it."""
    e = evaluated("tabular far", 101)
    assert e.overlap["product_mean"][0] > 0.6
    assert e.overlap["ess_trajectory"][0] < 10.0
    assert "low_overlap" in codes(e)


def test_poor_features_make_dr_the_choice_even_where_it_is_less_sharp() -> None:
    name, seed = "aggregated far", 103
    e = evaluated(name, seed)
    rows = {v["learner"]: v for v in e.values.to_dicts()}
    sharpness = [rows[x]["hi"] - rows[x]["lo"] for x in ("drl", "lstd")]
    assert sharpness[0] > 1.5 * sharpness[1]
    assert "features_poor" in codes(e)
    assert e.recommended["pi"].learner == "drl"
    assert "poor" in e.recommended["pi"].reason


def test_a_check_that_is_too_weak_is_no_check() -> None:
    e = st.evaluate(tabular(2.5, episodes=2000).log(100), learners=["lstd"])
    (found,) = [w for w in e.warnings if w.code == "bias_unchecked"]
    assert found.level == "warning" and found.numbers["bound"] > found.numbers["width"]
    assert "low_overlap" not in codes(e)


def test_wrong_probabilities_are_noticed() -> None:
    """behavior_prob 20 % too large: the mean ratio is 1/1.2 instead of 1."""
    table = world("tabular near").log(100)
    at = table.column_names.index("behavior_prob")
    wrong = np.minimum(np.asarray(table["behavior_prob"]) * 1.2, 1.0)
    e = st.evaluate(table.set_column(at, "behavior_prob", [wrong]))
    assert "ratios_off" in codes(e)
    assert "ratios_off" not in codes(evaluated("tabular near", 100))


def sign_reversal() -> Any:
    """theta2theta with V = (1, 2): LSTD finds w = 1, every stabilising penalty reverses it."""
    p = st.problem("theta2theta")
    r = np.broadcast_to(np.array([-0.8, 0.2])[:, None, None], p.P.shape)
    q = st.Problem(name="q", P=p.P, r=r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi)
    return log_table(q, episodes=200, length=60, seed=2)


def test_penalty_that_reverses_the_sign_is_called_biased() -> None:
    e = st.evaluate(sign_reversal(), features=Identity())
    rows = {v["learner"]: v for v in e.values.to_dicts()}
    assert rows["lstd"]["value"] == pytest.approx(1.5, abs=0.05)
    assert rows["perturbed_lstd"]["eta"] > 0.08 and rows["perturbed_lstd"]["value"] < 0.0
    notes = codes(e, "note")
    assert {"bias_dominates", "td_unstable"} <= notes
    assert e.recommended["pi"].learner != "perturbed_lstd"
    stable = e.path.filter(e.path["stable"])
    assert min(stable["eta"].to_list()) > 0.0
    assert max(stable["value"].to_list()) < 0.0


def test_the_bias_of_a_penalty_is_named_from_half_an_interval_on() -> None:
    """Around the border of `bias_dominates`, the sentence is printed exactly where it is true."""
    table, seen = world("tabular near").log(0), set()
    for eta in (0.001, 0.002, 0.004, 0.008, 0.016, 0.032):
        e = st.evaluate(table, learners=["lstd", f"perturbed_lstd:eta={eta}"])
        lstd, perturbed = e.values.to_dicts()
        wide = lstd["hi"] - lstd["lo"]
        said = [w.text for w in e.warnings if w.code == "bias_dominates"]
        assert bool(said) == (abs(perturbed["value"] - lstd["value"]) > wide / 2.0)
        assert all("by more than half the width of lstd's interval" in text for text in said)
        seen.add(bool(said))
    assert seen == {True, False}


def test_few_episodes_are_not_trusted() -> None:
    e = st.evaluate(tabular(0.5, episodes=8).log(1))
    assert "few_episodes" in codes(e)
    one = st.evaluate(tabular(0.5, episodes=1).log(1), learners=["lstd"], value_at="start")
    assert "few_episodes" in codes(one)
    assert not one.recommended["pi"].trusted


def test_cut_returns_are_pointed_out() -> None:
    p = episodic(6, 0.5, np.eye(6))
    e = st.evaluate(log_table(p, episodes=200, length=3, seed=1))
    (found,) = [w for w in e.warnings if w.code == "truncated_returns"]
    assert found.numbers["truncated"] == e.log.truncated > 100
    assert 0.5 < found.numbers["discount_left"] < 1.0


def _observations(p: st.Problem) -> Floats:
    table = log_table(p, episodes=2000, length=3, seed=1)
    return np.stack(table["obs"].to_pylist())


def test_a_value_that_lies_beyond_the_cuts_is_not_trusted() -> None:
    """Of 2,000 episodes of three steps: a sharp interval around a value that is mostly guessed."""
    p = episodic(6, 0.5, np.eye(6))
    e = st.evaluate(log_table(p, episodes=2000, length=3, seed=1))
    (found,) = [w for w in e.warnings if w.code == "cut_off"]
    share = e.log.discount_left * e.log.truncated / e.log.episodes
    values = e.value_function("pi", "lstd").predict(np.eye(6))
    visits = np.bincount(np.argmax(_observations(p), axis=1), minlength=6)
    size = np.sqrt(visits @ values**2 / visits.sum())
    assert found.numbers["share"] == pytest.approx(share)
    assert found.numbers["beyond"] == pytest.approx(share * size)
    assert found.level == "warning" and not e.recommended["pi"].trusted


def test_cuts_after_which_little_is_to_come_are_no_warning() -> None:
    p = episodic(6, 0.5, np.eye(6))
    e = st.evaluate(log_table(p, episodes=200, length=60, seed=1))
    assert "cut_off" not in codes(e)


def test_an_online_learner_that_has_not_arrived_says_so() -> None:
    table = world("tabular near").log(100)
    e = st.evaluate(table, learners=["td:alpha=1e-5", "lstd"])
    (found,) = [w for w in e.warnings if w.code == "not_converged"]
    assert found.numbers["learner"] == "td:alpha=1e-5"
    assert e.recommended["pi"].learner == "lstd"
    row = e.values.filter(learner="td:alpha=1e-5").to_dicts()[0]
    lstd = e.values.filter(learner="lstd").to_dicts()[0]
    assert (row["lo"], row["fixed_point"]) == (lstd["lo"], lstd["value"])


def test_recommendation_stays_with_what_was_asked_for() -> None:
    table = world("tabular near").log(100)
    e = st.evaluate(table, learners=["etd", "pdis"])
    assert e.recommended["pi"].learner == "pdis"
    assert "not asked for" in e.recommended["pi"].reason
    assert "drl:lam=1" not in e.values["learner"].to_list()


@pytest.mark.parametrize("name", ["tabular near", "line near"])
def test_good_features_leave_little_error_on_held_out_episodes(name: str) -> None:
    """400 episodes for 3 or 6 weights: below a third of the error of no weights (0.08 to 0.16)."""
    for seed in SEEDS:
        (held,) = evaluated(name, seed).to_dict()["held_out"]
        assert 0.0 < held["share"] < 1 / 3
        assert held["share"] == pytest.approx(held["error"] / held["error_of_zero"])


def test_too_many_features_do_not_carry_over_to_held_out_episodes() -> None:
    """50 bumps on a line, 400 episodes: the value is fine, the weights of one half are not."""
    world = line(-1.0, "rbf:50")
    e = st.evaluate(
        world.log(4), discount=0.97, features=world.features, learners=["lstd", "drl:lam=1"]
    )
    (warning,) = [w for w in e.warnings if w.code == "features_poor"]
    assert "too many" in warning.text and warning.numbers["share"] > 1.0


def test_projected_bellman_error_by_hand() -> None:
    """Two halves of the blocks of 60 episodes, straight from the definition."""
    log = open_log(tabular(0.5, episodes=60).log(0), discount=None)
    u = units(sums_of(log, plan_of(log, blocks=30)))
    e = Estimator(u, "start")
    assert e.n_units > 20
    found = e.held_out(0)
    squares = []
    for half in (0, 1):
        own, other = np.arange(e.n_units) % 2 == half, np.arange(e.n_units) % 2 != half
        k = e.kept
        A = u.systems[other, 0, 0].sum(axis=0)[np.ix_(k, k)]
        w = np.linalg.solve(A, u.systems[other, 0, 0].sum(axis=0)[k, -1])
        total, n = u.systems[own, 0, 0].sum(axis=0)[k], u.counts[own, 0].sum()
        g = (total[:, -1] - total[:, k] @ w) / n
        G = u.G[own].sum(axis=0)[np.ix_(k, k)] / n
        squares.append(g @ np.linalg.pinv(G) @ g)
    assert found.error == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-6)


def test_trust_does_not_depend_on_whether_poor_features_were_noticed() -> None:
    """lstd is wrong here on nearly every log, often within what chance could explain.

    30 fresh logs. dr's intervals cover in 95 of 100 cases: 24 of 28 is what chance undercuts in
    one case of a hundred.
    """
    found = []
    for name in ("aggregated far", "line near, poor features"):
        w = world(name)
        for seed in range(600, 615):
            e = st.evaluate(
                w.log(seed), discount=discount_of(name), features=w.features,
                learners=["lstd", "drl:lam=1"],
            )  # fmt: skip
            lstd = e.values.filter(learner="lstd").to_dicts()[0]
            r = e.recommended["pi"]
            found.append((r.trusted, r.lo <= w.truth <= r.hi, lstd["lo"] <= w.truth <= lstd["hi"]))
            assert r.learner == "drl:lam=1"
    trusted = [covers for trust, covers, _ in found if trust]
    assert len(trusted) >= 26
    assert np.mean(trusted) >= 24 / 28
    assert np.mean([lstd for _, _, lstd in found]) < 0.3
    noticed = st.evaluate(
        w.log(0), discount=DISCOUNT, features=w.features, learners=["lstd"]
    ).recommended["pi"]
    assert not noticed.trusted  # dr was not asked for, lstd is all there is


@pytest.mark.parametrize(
    ("learner", "code"),
    [
        ("gtd2", "not_converged"),
        ("rotd", "no_interval"),
        ("abtd:zeta=0.5", "no_interval"),
        ("perturbed_td:eta=3", "bias_dominates"),
        ("perturbed_lstd:eta=0.01", "bias_dominates"),
        ("td:alpha=9", "diverged"),
    ],
)
def test_the_only_learner_asked_for_is_not_trusted_blindly(learner: str, code: str) -> None:
    """What is a note about one learner among others is a warning if it is all there is."""
    e = st.evaluate(world("tabular near").log(0), learners=[learner])
    r = e.recommended["pi"]
    assert not r.trusted and code in r.warnings
    assert not r.lo <= r.value <= r.hi or not r.lo <= world("tabular near").truth <= r.hi


def test_the_only_learner_asked_for_is_trusted_where_it_may_be() -> None:
    for learner in ("td", "tdrc", "td:lam=0.5", "perturbed_lstd"):
        e = st.evaluate(world("tabular near").log(0), learners=[learner])
        assert e.recommended["pi"].trusted, learner


def test_disagreement_counts_against_dr_where_the_ratios_may_be_its_reason() -> None:
    """With logged probabilities it is the features' fault; estimated ones may be wrong too."""
    e = evaluated("line near, poor features", SEEDS[0])
    assert "learners_disagree" in codes(e)
    known = recommend(e.judged[0], e.log, e.warnings)
    estimated = recommend(e.judged[0], replace(e.log, behavior_estimated=True), e.warnings)
    assert known.learner == estimated.learner == "drl"
    assert known.trusted and "learners_disagree" not in known.warnings
    assert not estimated.trusted and "learners_disagree" in estimated.warnings
