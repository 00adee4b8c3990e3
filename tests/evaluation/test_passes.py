"""The two passes: sums against plain loops, dense against sparse, any batches and parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.evaluation.estimators import Mis, Pdis, Snpdis, Solved
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.overlap import histogram
from steadytd.evaluation.rows import GROUPS, Division, is_sparse
from steadytd.evaluation.second_pass import joined, second_curves
from steadytd.evaluation.stability import assess, full_pencil, pencil
from steadytd.evaluation.sums import ETD, TD, System
from steadytd.features import feature_map
from steadytd.features.base import FeatureMap
from steadytd.features.onehot import OneHot
from steadytd.logs.log import Log, open_log
from tests.support.evaluate_helpers import episodes_of, evidence_of, slow_system
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table

SYSTEMS = (TD, System(0.7), ETD, System(0.4, True), System(0.5, True, 0.3))
ONES = np.ones(GROUPS)


@pytest.fixture(scope="module")
def log() -> Log:
    """Sixty episodes of which some are cut off, two targets."""
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    return open_log(
        log_table(problem, episodes=60, length=12, seed=4), discount=None, batch_rows=50
    )


@pytest.fixture(scope="module")
def found(log: Log) -> Evidence:
    return evidence_of(log, systems=SYSTEMS)


@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_equations_are_the_plain_sums(
    log: Log, found: Evidence, system: System, target: int
) -> None:
    sums, expected = found.equations.sums, slow_system(episodes_of(log), target, system)
    column = sums.column(target, SYSTEMS.index(system))
    np.testing.assert_allclose(sums.matrix(column, ONES), expected[:, :3], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ONES @ sums.b[:, column], expected[:, 3], rtol=1e-12, atol=1e-12)


def test_groups_hold_their_own_episodes(log: Log, found: Evidence) -> None:
    """Episode e is in group e mod 20; x, starts and G are sums over its rows."""
    sums, episodes = found.equations.sums, episodes_of(log)
    for group in (0, 7, 19):
        mine = [step.x for e in range(group, 60, GROUPS) for step in episodes[e]]
        use = np.eye(GROUPS)[group]
        np.testing.assert_allclose(sums.gram(use), np.array(mine).T @ np.array(mine), rtol=1e-12)
        np.testing.assert_allclose(sums.x[group], np.sum(mine, axis=0), rtol=1e-12)
        starts = [episodes[e][0].x for e in range(group, 60, GROUPS)]
        np.testing.assert_allclose(sums.x_start[group], np.sum(starts, axis=0), rtol=1e-12)
        assert sums.counts[group].tolist() == [len(mine), len(starts)]


def estimates(log: Evidence) -> np.ndarray[Any, Any]:
    """Values and standard errors of many estimators, and the curve."""
    some = [one.estimate(log, t) for t in (0, 1) for one in (Solved(), Mis(), Pdis(), Snpdis())]
    numbers = [[one.value, one.stderr] for one in [*some, log.behavior()]]
    curve = log.curves[1]
    return np.concatenate([np.ravel(numbers), curve.values, curve.cut, curve.weights.sum(axis=1)])


@pytest.mark.parametrize("batch_rows", [1, 7, 65_536])
def test_batches_change_rounding_only(log: Log, found: Evidence, batch_rows: int) -> None:
    other = evidence_of(replace(log, batch_rows=batch_rows), systems=SYSTEMS)
    np.testing.assert_allclose(estimates(other), estimates(found), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.own, found.own, rtol=1e-12)


def test_what_does_not_fit_into_memory_is_read_again(
    log: Log, found: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadytd.evaluation.passes.KEPT_BYTES", 0.0)
    other = evidence_of(log, systems=SYSTEMS)
    assert not other.first.tables and found.first.tables
    assert (estimates(other) == estimates(found)).all()


@pytest.mark.parametrize("spec", ["onehot", "tiles:4x20"])
@pytest.mark.parametrize("endless", [False, True])
def test_sparse_rows_give_what_dense_ones_give(
    spec: str, endless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eighty states; with tiles features depend on each other."""
    rng = np.random.default_rng(0)
    n, states = 4000, 80
    length = n if endless else 20
    s = np.clip(np.cumsum(rng.integers(-3, 4, n)) % states, 0, states - 1).astype(float)
    t = np.arange(n) % length
    table = pa.table(
        {
            "episode_id": np.arange(n) // length, "t": t, "obs_0": s, "obs_1": s % 7,
            "reward": np.sin(s) + rng.normal(size=n), "truncated": np.zeros(n, bool),
            "terminated": (t == length - 1) & (not endless),
            "behavior_prob": np.full(n, 0.5), "target_prob_a": rng.uniform(0.3, 0.7, n),
            "target_prob_b": rng.choice([0.2, 0.8], n),
        }
    )  # fmt: skip
    log = open_log(table, discount=0.9, batch_rows=700)
    features = feature_map(spec).fit(log.sample(5000))
    where = "states" if endless else "start"
    options: dict[str, Any] = {"where": where, "systems": (TD, System(0.6), ETD)}
    sparse = evidence_of(log, features, **options)
    assert is_sparse(features) and sparse.equations.sums.sparse
    for module in ("rows", "passes"):
        monkeypatch.setattr(f"steadytd.evaluation.{module}.is_sparse", lambda features: False)
    dense = evidence_of(log, features, **options)
    assert not dense.equations.sums.sparse
    for c in range(sparse.equations.sums.columns):
        one, other = (e.equations.sums.matrix(c, ONES) for e in (sparse, dense))
        np.testing.assert_allclose(one.toarray(), other, rtol=1e-9, atol=1e-9)
    for target in (0, 1):
        one, other = (found.curves[target].values for found in (sparse, dense))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
        a, b = (Solved().estimate(found, target) for found in (sparse, dense))
        assert a.value == pytest.approx(b.value, rel=1e-6)
        assert a.stderr == pytest.approx(b.stderr, rel=1e-5)


def test_one_hot_thresholds_are_those_of_full_matrices() -> None:
    rng = np.random.default_rng(1)
    n = 3000
    s = rng.integers(0, 150, n)
    table = pa.table(
        {
            "episode_id": np.arange(n) // 10, "t": np.arange(n) % 10, "obs_0": s * 1.0,
            "reward": s * 0.1, "terminated": np.arange(n) % 10 == 9,
            "truncated": np.zeros(n, bool), "behavior_prob": np.full(n, 0.5),
            "target_prob_pi": rng.choice([0.1, 0.9], n),
        }
    )  # fmt: skip
    log = open_log(table, discount=0.9)
    e = evidence_of(log, OneHot().fit(log.sample(5000))).equations
    quick, full = pencil(e, 0), full_pencil(e, 0, np.ones(20))
    assert type(quick) is not type(full)
    assert quick.eta_pd == pytest.approx(full.eta_pd, rel=1e-8)
    assert quick.slowest(0.0) == pytest.approx(full.slowest(0.0), rel=1e-8)
    found = assess(e, 0, "pi", 0)
    assert found.td_stable and found.eta_pd_lo < found.eta_pd < found.eta_pd_hi


def test_ratios_are_counted_in_the_right_bins(log: Log, found: Evidence) -> None:
    steps = [step for episode in episodes_of(log) for step in episode]
    for t in (0, 1):
        rho = np.array([step.rho[t] for step in steps])
        rows = [
            row for row in histogram(found.first.ratios, ("a", "b")) if row["target"] == "ab"[t]
        ]
        for row in rows:
            inside = (rho >= row["lo"]) & (rho < row["hi"]) if row["hi"] else rho == 0.0
            assert inside.sum() == row["rows"]
        assert sum(row["rows"] for row in rows) == len(rho)
        largest, number = found.first.ratios.largest[t].tolist()
        assert largest == rho.max() and steps[int(np.argmax(rho))].number == number
        products = [np.prod([step.rho[t] for step in e]) for e in episodes_of(log)]
        assert found.first.ratios.totals[t, 2] == pytest.approx(np.sum(products))


def test_products_of_ratios_stay_finite() -> None:
    n = 3000
    table = pa.table(
        {
            "episode_id": np.arange(n) // 1500, "t": np.arange(n) % 1500, "obs_0": np.ones(n),
            "reward": np.ones(n), "terminated": np.arange(n) % 1500 == 1499,
            "truncated": np.zeros(n, bool), "behavior_prob": np.full(n, 0.1),
            "target_prob_pi": np.full(n, 0.9),
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=0.99, learners=["lstd", "pdis", "snpdis", "drl:lam=1"])
    assert np.isfinite(e.values["value"].to_numpy()).all()


def test_many_episodes_are_joined_and_change_no_value(
    log: Log, found: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadytd.evaluation.second_pass.MOST_UNITS", 15)
    monkeypatch.setattr("steadytd.evaluation.second_pass.FEWEST_UNITS", 1)
    few = evidence_of(log, systems=SYSTEMS)
    assert few.n_units == 15 and (few.starts == 4.0).all() and found.n_units == 60
    np.testing.assert_allclose(few.curves[0].values, found.curves[0].values, rtol=1e-12)
    by_four = found.curves[0].scores.reshape(5, 15, 4).sum(axis=2)
    np.testing.assert_allclose(few.curves[0].scores, by_four, rtol=1e-9, atol=1e-12)


def test_stretches_are_joined_while_neighbours_are_alike() -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2, gamma=0.9)
    log = open_log(log_table(problem, episodes=1, length=600, seed=4), discount=None)
    whole = evidence_of(log, where="states")
    assert whole.n_units == 200 and whole.stretches
    fewer = whole.with_units(np.arange(200) // 2)
    assert fewer.n_units == 100 and fewer.rows.sum() == whole.rows.sum()
    np.testing.assert_allclose(
        fewer.curves[1].scores, whole.curves[1].scores.reshape(5, 100, 2).sum(axis=2)
    )
    assert 10 <= joined(whole).n_units <= 200


def test_the_second_map_is_compared_on_the_same_rows(log: Log, found: Evidence) -> None:
    """The same map twice: no difference, also where only some episodes are looked at."""
    [same] = second_curves([found], found.first, found.plan.features)
    np.testing.assert_allclose(same[0].scores, found.curves[0].scores, rtol=1e-9, atol=1e-12)
    other: FeatureMap = feature_map("poly:2").fit(log.sample(1000))
    [second] = second_curves([found], found.first, other)
    whole = evidence_of(log, other)
    np.testing.assert_allclose(second[1].values, whole.curves[1].values, rtol=1e-6)


def test_units_groups_and_folds() -> None:
    unit = np.arange(200)
    episodes, stretches = Division(4000), Division(4000, stretches=True)
    assert (episodes.group(unit) == unit % 20).all()
    assert (episodes.fold(episodes.group(unit)) == unit % 5).all()
    assert (stretches.fold(stretches.group(unit)) == unit // 40).all()
