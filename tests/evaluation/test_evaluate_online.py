"""Online learners on a log: the engine's numbers, and nothing leaks from episode to episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.plan import ETD, TD, System
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.estimate.closed_form import fixed_point
from steadytd.evaluation.estimate.requests import requests
from steadytd.evaluation.follow.lanes import lane_shape
from steadytd.evaluation.follow.local import features_of
from steadytd.evaluation.follow.online import Follower, Member, SideBySide, Table, side_by_side
from steadytd.logs.log import Log, open_log
from tests.support.draws import compiled, thinned
from tests.support.evaluate_helpers import Identity, episodes_of, plan_of
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table
from tests.support.slow_law import followed

FAST = ["td:alpha=0.02", "perturbed_td:alpha=0.03,eta=0.4", "etd:alpha=0.01",
        "etd_beta:alpha=0.01,beta=0.5", "tdc:alpha=0.02,ratio=2"]  # fmt: skip
GENERAL = ["td:alpha=0.02,lam=0.8", "etd:alpha=0.005,lam=0.5", "tdc:alpha=0.02,ratio=2,lam=0.6",
           "vtrace:alpha=0.02,lam=0.9", "htd:alpha=0.01,lam=0.5", "gem_etd:alpha=0.01",
           "perturbed_etd:alpha=0.01,eta=0.2,beta=0.5,lam=0.4", "td:alpha=0.05,power=0.5,delay=30",
           "td:alpha=0.02,average=1", "tree_backup:alpha=0.02,lam=0.9", "gtd2:alpha=0.02",
           "rotd:alpha=0.01"]  # fmt: skip


def log_of(batch_rows: int = 65_536) -> Log:
    problem = random_problem(3, states=5, actions=3, features=5, policies=2)
    table = log_table(problem, episodes=40, length=6, seed=3)
    return open_log(table, discount=None, batch_rows=batch_rows)


def engine(log: Log, learner: Learner, target: int) -> Follower:
    lane = Follower(learner, target, log.n_obs, averaging=False)
    features = Identity().fit(np.zeros((1, log.n_obs)))
    for batch in log.batches():
        table = Table.of(batch, features_of(batch, features, Room()))
        lane.advance(table, table.facts(batch, target, (1.0, 1.0)), log.rows or 0)
    return lane


@pytest.mark.parametrize("batch_rows", thinned([9, 65_536], 2))
@pytest.mark.parametrize("text", compiled([*FAST, *GENERAL]))
def test_engine_follows_the_log_without_leaks(text: str, batch_rows: int) -> None:
    """Some episodes are cut off while gamma > 0; the next one must not see their traces."""
    learner = st.learner(text)
    log = log_of(batch_rows)
    assert any(episode[-1].discount > 0.0 for episode in episodes_of(log))
    found = engine(log, learner, 1).weights
    expected = followed(episodes_of(log), learner, 1).shown
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("batch_rows", [9, 65_536])
def test_lanes_side_by_side_are_the_engine(batch_rows: int) -> None:
    """For both targets, every learner twice, with two step sizes: more than one group's lanes."""
    systems = (TD, ETD, System(0.0, True, 0.5))
    log = log_of(batch_rows)
    plan = plan_of(log, systems)
    kind = {"td": 0, "perturbed_td": 0, "etd": 1, "etd_beta": 2, "tdc": 0}
    learners = [st.learner(text) for text in FAST]
    learners += [x.replace(alpha=float(x.values["alpha"]) / 2) for x in learners]
    members = []
    for x in learners:
        shape = lane_shape(x, systems[kind[x.name]])
        assert shape is not None
        members += [Member(x, t, kind[x.name] * 2 + t, False, shape) for t in range(2)]
    groups = side_by_side(members, log.n_obs)
    assert sorted(len(group.members) for group in groups) == [4, 8, 8]
    sums = Accumulator(plan)
    features = Identity().fit(np.zeros((1, log.n_obs)))
    room = Room()  # the same memory again for every batch
    for batch in log.batches():
        X, prepared = features_of(batch, features, room), sums.prepare(batch, room)
        for group in groups:
            group.advance(prepared, X, plan.rows)
    outcomes = [outcome for group in groups for outcome in group.outcomes()]
    assert len(outcomes) == len(members)
    for outcome in outcomes:
        expected = engine(log_of(), outcome.learner, outcome.target).weights
        np.testing.assert_allclose(outcome.weights, expected, rtol=1e-10, atol=1e-14)
        assert np.abs(expected).max() > 1e-3


def test_who_may_stand_side_by_side() -> None:
    for text in GENERAL:
        learner = st.learner(text)
        fixed = fixed_point(learner)
        assert lane_shape(learner, fixed.system if fixed else None) is None


def test_the_mean_of_snapshots_comes_from_the_last_half() -> None:
    """With as many snapshots as rows it is the mean of the weights after each later row."""
    log = log_of()
    rows = log.rows or 0
    learner = st.learner("td:alpha=0.02")
    lane = Follower(learner, 0, log.n_obs, averaging=True)
    group = SideBySide([Member(learner, 0, 0, True, lane_shape(learner, TD))], log.n_obs)
    features = Identity().fit(np.zeros((1, log.n_obs)))
    sums = Accumulator(plan_of(log))
    for batch in log.batches():
        X = features_of(batch, features, Room())
        table = Table.of(batch, X)
        lane.advance(table, table.facts(batch, 0, (1.0, 1.0)), rows)
        group.advance(sums.prepare(batch, Room()), X, rows)
    seen = followed(episodes_of(log), learner, 0).history
    expected = np.mean(seen[len(seen) // 2 :], axis=0)
    assert rows < 400  # so that the gap between snapshots is one row
    np.testing.assert_allclose(lane.weights, expected, rtol=1e-9)
    np.testing.assert_allclose(group.outcomes()[0].weights, expected, rtol=1e-9)


def test_divergence_is_reported_not_hidden() -> None:
    p = st.problem("baird")
    paid = st.Problem(name="paid", P=p.P, r=1.0, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi)
    table = log_table(paid, episodes=30, length=100, seed=0)
    e = st.evaluate(table, features=Identity(), learners=["td:alpha=5", "td:alpha=5,lam=0.3"])
    rows = e.values.to_dicts()
    for row in rows[:2]:
        assert row["diverged"] > 0
        assert np.isnan(row["value"])
    found = [w for w in e.warnings if w.code == "diverged"]
    assert [w.numbers["learner"] for w in found] == ["td:alpha=5", "td:alpha=5,lam=0.3"]
    with pytest.raises(st.InputError, match="overflowed"):
        e.value_function("pi", "td:alpha=5")


@pytest.mark.parametrize(
    "asked,kind,system,automatic",
    [
        ("lstd", "solved", System(), []),
        ("lstd:lam=0.5", "solved", System(0.5), []),
        ("perturbed_td", "online", System(), ["eta"]),
        ("perturbed_td:lam=0.5", "online", None, ["eta"]),
        ("perturbed_td:lam=0.5,penalty=outside", "online", System(0.5), ["eta"]),
        ("tdc", "online", System(), ["ratio"]),
        ("tdc:ratio=10", "online", System(), []),
        ("etd_beta:beta=0.5", "online", System(0.0, True, 0.5), []),
        ("lsetd", "solved", System(0.0, True), []),
        ("vtrace:lam=0.5", "online", None, []),
        ("drl", "sampling", None, []),
    ],
)
def test_requests(asked: str, kind: str, system: System | None, automatic: list[str]) -> None:
    (one,) = requests(asked)
    assert (one.label, one.kind, one.system, one.automatic) == (asked, kind, system, automatic)
    assert one.auto_alpha == (kind == "online")


@pytest.mark.parametrize(
    "asked,match",
    [
        (["lsdt"], "did you mean 'lstd'"),
        (["lstd", "lstd"], "given twice"),
        ([], "at least one learner"),
        (["gq"], "gq learns action values step by step"),
        (["perturbed_td:eta=-1"], "eta"),
    ],
)
def test_bad_requests(asked: list[str], match: str) -> None:
    with pytest.raises(st.InputError, match=match):
        requests(asked)


def test_automatic_numbers_stabilise_what_plain_td_cannot() -> None:
    """Baird's log: td diverges, perturbed_td and tdc with numbers from the data do not."""
    table = log_table(st.problem("baird"), episodes=200, length=100, seed=0)
    e = st.evaluate(table, features=Identity(), learners=["perturbed_td", "tdc", "td"])
    rows: dict[str, Any] = {row["learner"]: row for row in e.values.to_dicts()}
    threshold = st.certify("baird").eta_pd
    assert rows["perturbed_td"]["eta"] > threshold
    assert rows["perturbed_td"]["stable"] and rows["tdc"]["stable"]
    assert rows["tdc"]["ratio"] > threshold
    assert not rows["td"]["stable"]
    assert rows["perturbed_td"]["alpha"] > 0.0
    assert "td_unstable" in {w.code for w in e.warnings}


@pytest.mark.parametrize("length", [2, 6])
def test_a_log_whose_last_rows_are_left_out(length: int) -> None:
    """Episodes are cut off and no next observation is given: the row numbers have gaps."""
    at, rng = np.arange(60 * length), np.random.default_rng(0)
    last = at % length == length - 1
    table = pa.table(
        {
            "episode_id": at // length, "t": at % length, "obs": rng.standard_normal(len(at)),
            "reward": rng.standard_normal(len(at)), "terminated": np.zeros(len(at), dtype=bool),
            "truncated": last, "behavior_prob": np.full(len(at), 0.5),
            "target_prob_pi": rng.uniform(0.4, 0.6, len(at)),
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=0.9)
    assert (e.log.left_out, e.log.rows) == (60, len(at) - 60)
    assert np.isfinite(e.values["value"].to_numpy()).all()
    assert "rows_left_out" in {w.code for w in e.warnings}
