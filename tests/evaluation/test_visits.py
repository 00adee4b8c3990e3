"""Where visits lie: shares against the exact discounted visits of known problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd import Problem
from steadytd.base.arrays import Floats
from steadytd.evaluation.rows import Division, RowTable, tables
from steadytd.evaluation.visits import CELLS, visits
from steadytd.features import feature_map
from steadytd.features.raw import Raw
from steadytd.logs.log import open_log
from tests.support.log_helpers import fixed_lists, log_table
from tests.support.logged_worlds import episodic


def exact(problem: Problem, policy: Floats) -> Floats:
    """d = start + (gamma P)' d: discounted visits by state, as shares."""
    gamma = np.broadcast_to(problem.gamma, problem.P.shape)
    onward = np.einsum("sa,sat,sat->st", policy, problem.P, gamma)
    d = np.linalg.solve(np.eye(len(onward)) - onward.T, problem.start)
    return np.asarray(d / d.sum())


def test_shares_are_those_of_the_policies() -> None:
    problem = episodic(6, 2.0, np.eye(6))
    table = log_table(
        problem, episodes=700, length=200, targets={"pi": problem.pi, "mu": problem.mu}
    )
    e = st.evaluate(table, learners=["lstd"], features="onehot")
    shares = {}
    for row in e.visits.iter_rows(named=True):
        state = row["state"].split(", ").index("1")
        shares[row["target"], state] = (row["log"], row["visits"])
    log, pi = np.array([shares["pi", s] for s in range(6)]).T
    assert log == pytest.approx(exact(problem, problem.mu), abs=0.02)
    assert pi == pytest.approx(exact(problem, problem.pi), abs=0.02)
    assert abs(exact(problem, problem.pi) - exact(problem, problem.mu)).max() > 0.03
    said = e.to_dict()["visits"]  # the same numbers, by place
    assert said["states"] == e.visits.filter(target="pi")["state"].to_list()
    assert said["log"] == e.visits.filter(target="pi")["log"].to_list()
    assert said["targets"]["mu"] == e.visits.filter(target="mu")["visits"].to_list()
    same, mu = np.array([shares["mu", s] for s in range(6)]).T
    assert mu == pytest.approx(same, abs=0.005)  # a target that acts like the log, up to its sample


def sample(discount: list[float], episode: list[int], X: Floats) -> RowTable:
    """Rows of whole episodes with features X, the same in the next state."""
    n = len(discount)
    step = [episode[:i].count(e) for i, e in enumerate(episode)]
    table = pa.table(
        {
            "episode_id": episode, "t": step, "obs": fixed_lists(X),
            "next_obs": fixed_lists(X), "reward": np.zeros(n), "discount": discount,
            "terminated": np.array(discount) == 0.0, "truncated": np.zeros(n, bool),
            "behavior_prob": np.ones(n), "target_prob_a": np.ones(n),
        }
    )  # fmt: skip
    [rows] = tables(open_log(table).batches(), Division(n))
    return replace(rows, X=rows.obs.astype(np.float64))


def test_shares_by_hand() -> None:
    """Two states, omega 3 and -1: what is estimated below 0 is 0. Without episodes rows count."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    given = sample([0.5, 0.5, 0.5, 0.5], [0, 0, 0, 1], X)
    features = feature_map("onehot", 0).fit([[0.0], [1.0]])
    omegas = {"a": np.array([3.0, -1.0]), "unknown": np.array([np.nan, 1.0])}
    found = visits(given, omegas, features, continuing=False)
    assert found is not None
    assert dict(zip(found.names, found.log, strict=True)) == pytest.approx(
        {"0": 2.25 / 2.75, "1": 0.5 / 2.75}
    )
    assert dict(zip(found.names, found.targets["a"], strict=True)) == {"0": 1.0, "1": 0.0}
    assert list(found.targets) == ["a"]
    endless = visits(given, omegas, features, continuing=True)
    assert endless is not None
    assert sorted(endless.log) == [0.25, 0.75]
    assert visits(None, omegas, features, continuing=False) is None


def test_a_plane_holds_every_row_once() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1.0, 5.0, 0.0]  # two directions, one constant feature
    given = sample([1.0] * 500, list(range(500)), X)
    found = visits(given, {"a": np.array([0.0, 0.0, 0.0])}, Raw(n_features=3), False)
    assert found is not None and found.names == ()
    assert sum(found.explained) == pytest.approx(1.0)
    assert found.log.sum() == pytest.approx(1.0)
    assert len(found.log) <= CELLS[0] * CELLS[1]
    assert len(np.unique(found.points, axis=0)) == len(found.log)
    assert found.log * 500 == pytest.approx(np.round(found.log * 500))
