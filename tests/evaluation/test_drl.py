"""DRL(lam) and marginal ratios: row by row, and against closed forms of a tabular world."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.equations import Equations
from steadytd.evaluation.estimators import GRID, Drl, Mis, Solved, grid, on_curve
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.rows import FOLDS
from steadytd.evaluation.sums import Pair
from steadytd.logs.log import Log, open_log
from tests.support.drl_reference import slow_drl
from tests.support.evaluate_helpers import episodes_of, evidence_of
from tests.support.helpers import random_problem
from tests.support.layers import GAMMA, STATES, every_trajectory, exact_value
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import episodic

LAMS = grid([0.9])


def evidence(log: Log, **options: Any) -> Evidence:
    asked = tuple(Drl(lam) for lam in LAMS)
    return evidence_of(log, lams=LAMS, estimators=asked, **options)


@pytest.mark.parametrize("batch_rows", [7, 65_536])
def test_scores_are_those_of_the_equations(batch_rows: int) -> None:
    """Episodes of which some are cut off, two targets; every fifth episode is a fold."""
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    table = log_table(problem, episodes=60, length=12, seed=4)
    log = open_log(table, discount=None, batch_rows=batch_rows)
    found, units = evidence(log), [[episode] for episode in episodes_of(log)]
    for lam in LAMS:
        for target in (0, 1):
            curve, m = found.curves[target], LAMS.index(lam)
            scores, masses, at_cuts = slow_drl(units, target, lam)
            np.testing.assert_allclose(curve.scores[m], scores, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(curve.weights[m], masses, rtol=1e-10, atol=1e-10)
            assert curve.values[m] == pytest.approx(scores.sum() / 60, rel=1e-10)
            assert curve.cut[m] >= abs(at_cuts) / 60 * (1.0 - 1e-9) > 0.0


def test_every_row_of_an_endless_log_is_a_start() -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2, gamma=0.9)
    log = open_log(log_table(problem, episodes=1, length=601, seed=4), discount=None, batch_rows=50)
    found = evidence(log, where="states")
    (episode,) = episodes_of(log)
    ends = np.append(0, np.cumsum(found.rows)).astype(int)
    stretches = [[episode[a:b]] for a, b in pairwise(ends.tolist())]
    for m, lam in enumerate(LAMS):
        scores, _, _ = slow_drl(stretches, 1, lam, every=True)
        inside = np.arange(200) % 40 >= (0 if lam == 0.0 else 15)  # U comes from the fold before
        own = found.curves[1].scores[m]
        np.testing.assert_allclose(own[inside], scores[inside], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(own.sum(), scores.sum(), rtol=0.01)


@pytest.mark.parametrize("lam", LAMS)
def test_tabular_features_give_the_exact_value(lam: float) -> None:
    """Every fold is a whole set of trajectories."""
    evidence = whole_folds(np.eye(STATES))
    curve = evidence.curves[0]
    assert on_curve(evidence, 0, lam).value == pytest.approx(exact_value(), abs=1e-10)
    assert curve.weights[LAMS.index(lam)].sum() == pytest.approx(curve.starts.sum())


def whole_folds(features: Floats) -> Evidence:
    return evidence(open_log(five_times(features), discount=GAMMA))


def five_times(features: Floats) -> Any:
    """All trajectories five times, dealt so that every fold has each of them once."""
    table = every_trajectory(features)
    episodes = np.unique(table["episode_id"].to_numpy())
    rows = table.to_pylist()
    by_episode = {e: [row for row in rows if row["episode_id"] == e] for e in episodes.tolist()}
    new = [
        {**row, "episode_id": 5 * i + f}
        for i, e in enumerate(episodes.tolist())
        for f in range(5)
        for row in by_episode[e]
    ]
    return pa.Table.from_pylist(new, schema=table.schema)


def with_pair(monkeypatch: pytest.MonkeyPatch, w: Floats, beta: Floats) -> Evidence:
    """The evidence with weights that somebody else has found."""
    pairs: list[Pair | None] = [Pair(w, beta)] * FOLDS
    monkeypatch.setattr(Equations, "cross_fitted", lambda self, target: pairs)
    return whole_folds(np.eye(STATES))


@pytest.mark.parametrize("lam", LAMS)
def test_either_the_values_or_the_ratios_have_to_be_right(
    lam: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is all trajectories, equally likely: its mean is the expectation."""
    rng = np.random.default_rng(1)
    pair = whole_folds(np.eye(STATES)).equations.solution(0)
    assert pair is not None
    layers = GAMMA ** np.array([0, 1, 1, 2, 2])  # here pi visits each state as often as mu
    np.testing.assert_allclose(pair.beta, layers, atol=1e-12)
    wrong = rng.normal(size=(2, STATES))
    right_values = with_pair(monkeypatch, pair.w, wrong[0])
    assert on_curve(right_values, 0, lam).value == pytest.approx(exact_value(), abs=1e-10)
    right_ratios = with_pair(monkeypatch, wrong[1], pair.beta)
    assert on_curve(right_ratios, 0, lam).value == pytest.approx(exact_value(), abs=1e-10)
    neither = on_curve(with_pair(monkeypatch, wrong[1], wrong[0]), 0, lam).value
    assert (abs(neither - exact_value()) > 0.05) == (lam < 1.0)


def test_poor_features_bias_all_but_lam_one() -> None:
    found = whole_folds(np.array([[1.0], [0.0], [1.0], [2.0], [0.5]]))
    off = np.abs(found.curves[0].values - exact_value()).tolist()
    assert off[-1] < 1e-10 and off[0] > 0.3
    assert all(b < a for a, b in pairwise(off))


def test_marginal_ratios_give_the_value_of_lstd() -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    log = open_log(log_table(problem, episodes=60, length=12, seed=4), discount=None)
    found = evidence(log)
    for target in (0, 1):
        mis, lstd = Mis().estimate(found, target), Solved().estimate(found, target)
        assert mis.value == pytest.approx(lstd.value, rel=1e-10)
        assert mis.interval().width == pytest.approx(lstd.interval().width)


def test_the_behaviours_own_value_is_the_mean_return() -> None:
    log = open_log(every_trajectory(np.eye(STATES), times=5), discount=GAMMA)
    returns = [sum(GAMMA**t * p.reward for t, p in enumerate(ep)) for ep in episodes_of(log)]
    found = evidence(log).behavior()
    assert found.value == pytest.approx(np.mean(returns), rel=1e-12)
    expected = (np.array(returns) - np.mean(returns)) / len(returns)
    np.testing.assert_allclose(found.influence, expected, atol=1e-13)


def test_what_a_cut_takes_from_the_behaviour_is_valued_by_its_features() -> None:
    """Ratios of 1, V(s) exact: the mean of cut returns plus what lstd says of the rest."""
    problem = random_problem(7, states=4, features=4, gamma=0.9)
    truth = float(problem.start @ on_policy_value(problem))
    table = log_table(problem, episodes=2000, length=3, seed=1)
    found = evidence(open_log(table, discount=None)).behavior()
    limits = found.interval(0.999)
    assert limits.lo <= truth <= limits.hi
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
    assert lams[0] == 0.9 and lams[1] in GRID and lams[2:] == [1.0, None]
    assert set(e.results[0].curve.lams) == {*GRID, 0.9}


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
        log_evidence = evidence(log)
        found = [Drl(lam).estimate(log_evidence, 0) for lam in (0.5, 0.9, 1.0)]
        values.append([one.value for one in found])
        errors.append([one.stderr for one in found])
    fit = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0)
    assert ((fit > 0.75) & (fit < 1.25)).all(), fit
