"""Where visits lie: shares against the exact discounted visits of known problems."""

from __future__ import annotations

import numpy as np
import pytest
from steadytd.evaluation.collect.outcomes import DISCOUNT, Sampled

import steadytd as st
from steadytd import Problem
from steadytd.base.arrays import Floats
from steadytd.evaluation.visits import CELLS, discounts, visits
from steadytd.features import feature_map
from steadytd.features.raw import Raw
from tests.support.log_helpers import log_table
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


def sample(discount: list[float], episode: list[int], X: Floats) -> Sampled:
    """Rows of whole episodes: reward, discount, one ratio, x and x'."""
    n = len(discount)
    rows = np.concatenate([np.zeros((n, 3)), X, X], axis=1).astype(np.float32)
    rows[:, DISCOUNT] = discount
    marks = np.stack([np.zeros(n), episode], axis=1)
    return Sampled(np.empty((0, 6)), marks, rows, np.inf)


def test_discounts_multiply_within_episodes() -> None:
    given = sample([0.5, 0.9, 0.0, 0.8, 0.7], [3, 3, 3, 8, 8], np.ones((5, 1)))
    assert discounts(given) == pytest.approx([1.0, 0.5, 0.45, 1.0, 0.8])


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
    nothing = sample([], [], np.empty((0, 2)))
    assert visits(nothing, omegas, features, continuing=False) is None


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
