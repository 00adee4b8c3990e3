"""DRL(lam) and marginal ratios: row by row, and against closed forms of a tabular world."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from steadytd.evaluation.collect.plan import System, Where
from steadytd.evaluation.collect.statistics import Statistics, halved, units
from steadytd.evaluation.estimate.baselines import estimate
from steadytd.evaluation.estimate.estimators import DRL, LSTD, MIS, Estimator, Held, Pair
from steadytd.evaluation.estimate.methods import drl
from steadytd.evaluation.estimate.methods.behavior import behavior_estimate

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.logs.log import Log, open_log
from tests.support.drl_reference import slow_drl
from tests.support.evaluate_helpers import Step, episodes_of, plan_of, sums_of
from tests.support.helpers import random_problem
from tests.support.layers import GAMMA, STATES, chain, every_trajectory, exact_value
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import episodic

LAMS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
SYSTEMS, DECAYS = drl.needed(LAMS)


def estimator(log: Log, blocks: int = 10, where: Where = "start") -> Estimator:
    plan = replace(plan_of(log, SYSTEMS, blocks), lams=DECAYS, where=where)
    return Estimator(units(sums_of(log, plan)), where, SYSTEMS, DECAYS)


def in_blocks(log: Log, blocks: int) -> list[list[list[Step]]]:
    found: list[list[list[Step]]] = [[] for _ in range(blocks)]
    for episode in episodes_of(log):
        found[episode[0].number * blocks // (log.rows or 0)].append(episode)
    return [unit for unit in found if unit]


@pytest.mark.parametrize("batch_rows", [7, 65_536])
@pytest.mark.parametrize("blocks", [3, 13])
def test_the_sums_give_the_scores_of_the_equations(blocks: int, batch_rows: int) -> None:
    """Episodes of which some are cut off, two targets; three units are three folds."""
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    table = log_table(problem, episodes=60, length=12, seed=4)
    log = open_log(table, discount=None, batch_rows=batch_rows)
    e, cut = estimator(log, blocks), in_blocks(log, blocks)
    for lam in LAMS:
        for target in (0, 1):
            found = drl.at(e, target, lam)
            scores, masses, at_cuts = slow_drl(cut, target, lam)
            assert found.masses is not None
            own = (found.influence + found.value * e.starts / 60) * 60
            np.testing.assert_allclose(own, scores, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(found.masses * 60, masses, rtol=1e-10, atol=1e-10)
            assert found.value == pytest.approx(scores.sum() / 60, rel=1e-10)
            assert lam == 0.0 or found.cut == pytest.approx(at_cuts / 60, rel=1e-10) != 0.0


def test_every_row_of_an_endless_log_is_a_start() -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2, gamma=0.9)
    log = open_log(log_table(problem, episodes=1, length=600, seed=4), discount=None, batch_rows=50)
    e = estimator(log, 12, "states")
    (episode,) = episodes_of(log)
    ends = np.append(0, np.cumsum(e.starts)).astype(int)
    cut = [[episode[a:b]] for a, b in pairwise(ends.tolist())]
    for lam in LAMS:
        scores, _, _ = slow_drl(cut, 1, lam, every=True)
        assert drl.at(e, 1, lam).value == pytest.approx(scores.sum() / 600, rel=1e-10)


@pytest.mark.parametrize("lam", LAMS)
def test_expected_sums_are_the_closed_forms(lam: float) -> None:
    """With n the visits under mu: A = n R (I - g P), b = n R r, R = (I - lam g P)^-1."""
    e = estimator(open_log(every_trajectory(np.eye(STATES)), discount=GAMMA), 1)
    P, r, visits = chain()
    resolvent = np.linalg.inv(np.eye(STATES) - lam * GAMMA * P)
    move = np.eye(STATES) - GAMMA * P
    if lam < 1.0:
        total = e.system(0, SYSTEMS.index(System(lam))).sum(axis=0) / 64
        np.testing.assert_allclose(total[:, :-1], visits[:, None] * (resolvent @ move), atol=1e-12)
        np.testing.assert_allclose(total[:, -1], visits * (resolvent @ r), atol=1e-12)
    if lam > 0.0:
        c = e.units.weighted[:, 0, DECAYS.index(lam)].sum(axis=0) / 64
        np.testing.assert_allclose(c[:STATES], (resolvent @ move)[0], atol=1e-12)
        assert c[STATES] == pytest.approx((resolvent @ r)[0])


@pytest.mark.parametrize("lam", LAMS)
def test_tabular_features_give_the_exact_value(lam: float) -> None:
    """Every fold is a whole set of trajectories."""
    e = whole_folds(np.eye(STATES))
    found = estimate(e, 0, DRL._replace(lam=lam))
    assert found.value == pytest.approx(exact_value(), abs=1e-10)
    assert found.moment == pytest.approx(1.0)


def whole_folds(features: Floats) -> Estimator:
    return estimator(open_log(every_trajectory(features, times=5), discount=GAMMA), 5)


def with_pair(e: Estimator, w: Floats, beta: Floats) -> Estimator:
    """The estimator with weights that somebody else has found."""
    return replace(e, _held={0: [Held(here, Pair(w, beta)) for here in e.folds()]})


@pytest.mark.parametrize("lam", LAMS)
def test_either_the_values_or_the_ratios_have_to_be_right(lam: float) -> None:
    """The log is all trajectories, equally likely: its mean is the expectation."""
    e, rng = whole_folds(np.eye(STATES)), np.random.default_rng(1)
    pair = e.solution(0, LSTD)
    assert pair is not None
    layers = GAMMA ** np.array([0, 1, 1, 2, 2])  # here pi visits each state as often as mu
    np.testing.assert_allclose(pair.beta, layers, atol=1e-12)
    wrong = rng.normal(size=(2, STATES))
    right_values = with_pair(e, pair.w, wrong[0])
    assert drl.at(right_values, 0, lam).value == pytest.approx(exact_value(), abs=1e-10)
    right_ratios = with_pair(e, wrong[1], pair.beta)
    assert drl.at(right_ratios, 0, lam).value == pytest.approx(exact_value(), abs=1e-10)
    neither = drl.at(with_pair(e, wrong[1], wrong[0]), 0, lam).value
    assert (abs(neither - exact_value()) > 0.05) == (lam < 1.0)


def test_poor_features_bias_all_but_lam_one() -> None:
    e = whole_folds(np.array([[1.0], [0.0], [1.0], [2.0], [0.5]]))
    off = [abs(drl.at(e, 0, lam).value - exact_value()) for lam in LAMS]
    assert off[-1] < 1e-10 and off[0] > 0.3
    assert all(b < a for a, b in pairwise(off))


def test_marginal_ratios_give_the_value_of_lstd() -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    e = estimator(open_log(log_table(problem, episodes=60, length=12, seed=4), discount=None))
    one = replace(e, units=units_together(e))
    for target in (0, 1):
        found, lstd = estimate(e, target, MIS), estimate(e, target, LSTD)
        assert found.value == pytest.approx(lstd.value, rel=1e-10)
        assert found.value == pytest.approx(drl.at(one, target, 0.0).value, rel=1e-10)
        assert found.interval().width == pytest.approx(lstd.interval().width)


def units_together(e: Estimator) -> Statistics:
    found = e.units
    while len(found.block) > 1:
        found = halved(found)
    return found


def test_the_behaviours_own_value_is_the_mean_return() -> None:
    log = open_log(every_trajectory(np.eye(STATES), times=5), discount=GAMMA)
    e = estimator(log, 20)
    returns = [sum(GAMMA**t * p.reward for t, p in enumerate(ep)) for ep in episodes_of(log)]
    found = behavior_estimate(e)
    assert found.value == pytest.approx(np.mean(returns), rel=1e-12)
    by_unit = [sum(returns[i : i + 16]) for i in range(0, 320, 16)]
    expected = (np.array(by_unit) - 16 * np.mean(returns)) / 320
    np.testing.assert_allclose(found.influence, expected, atol=1e-13)


def test_what_a_cut_takes_from_the_behaviour_is_valued_by_its_features() -> None:
    """Ratios of 1, V(s) exact: the mean of cut returns plus what lstd says of the rest."""
    problem = random_problem(7, states=4, features=4, gamma=0.9)
    truth = float(problem.start @ on_policy_value(problem))
    table = log_table(problem, episodes=2000, length=3, seed=1)
    found = behavior_estimate(estimator(open_log(table, discount=None), 200))
    assert found.interval(0.999).covers(truth)
    assert found.stderr < 0.1 * abs(truth)


def on_policy_value(problem: Any) -> Floats:
    m = problem.moments(0)
    chance = problem.mu[:, :, None] * problem.P
    r, P = (chance * m.r).sum(axis=(1, 2)), (chance * m.gamma).sum(axis=1)
    return np.linalg.solve(np.eye(len(r)) - P, r)


def test_lam_is_asked_for_in_text() -> None:
    table = every_trajectory(np.eye(STATES), times=5)
    asked = ["drl:lam=0.9", "drl", "drl:lam=1", "mis"]
    e = st.evaluate(table, discount=GAMMA, learners=asked)
    assert e.values["learner"].to_list() == asked
    lams = e.values["lam"].to_list()
    assert lams[0] == 0.9 and lams[1] in drl.GRID and lams[2:] == [1.0, None]
    assert set(e.judged[0].curve) == set(drl.GRID)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dr", "dr is now drl:lam=1"),
        ("drl:lam=1.5", r"lam must be a number from 0 to 1, got 1\.5"),
        ("drl:lam=much", "lam must be a number from 0 to 1, got much"),
        ("drl:eta=1", "drl has no parameter 'eta'"),
        ("mis:lam=1", "mis has no parameter 'lam'"),
        ("fqe:lam=1", "fqe has no parameter 'lam'; only drl and drl_q have one, lam"),
    ],
)
def test_what_cannot_be_asked_for(asked: str, said: str) -> None:
    with pytest.raises(st.InputError, match=said):
        st.evaluate(every_trajectory(np.eye(STATES)), discount=GAMMA, learners=[asked])


@pytest.mark.parametrize("seed", range(8))
def test_no_interval_excludes_its_own_value(seed: int) -> None:
    """Short, long, heavy-tailed and endless logs, with features that depend on each other."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, states=6, actions=3, features=4, policies=2)
    length = int(rng.choice([2, 10, 60]))
    table = log_table(problem, episodes=1 if seed == 7 else 40, length=length * 5, seed=seed)
    learners = ["lstd", "perturbed_lstd:eta=0.3", "lsetd", "drl", "drl:lam=1", "mis", "pdis",
                "snpdis", "lstd:ridge=3"]  # fmt: skip
    e = st.evaluate(table, features="poly:2", learners=learners)
    shown = 0
    for row in e.values.to_dicts():
        if np.isfinite([row["lo"], row["hi"]]).all():
            assert row["lo"] <= row["value"] <= row["hi"]
            shown += 1
    assert shown >= 10


def test_errors_are_those_of_the_values_at_cuts_too() -> None:
    """Episodes of two steps: V at the cuts is most of the value, and no temporal difference
    corrects it. Over 60 logs the standard errors fit the spread of the values; without the
    influence through w they are 0.5 of it. (A spread of 60 values is known to 9 %.)"""
    problem = episodic(4, 0.3, np.eye(4))
    values, errors = [], []
    for seed in range(60):
        log = open_log(log_table(problem, episodes=80, length=2, seed=seed), discount=None)
        e = estimator(log, 40)
        found = [estimate(e, 0, DRL._replace(lam=lam)) for lam in (0.5, 0.9, 1.0)]
        values.append([one.value for one in found])
        errors.append([one.stderr for one in found])
    fit = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0)
    assert ((fit > 0.75) & (fit < 1.25)).all(), fit
