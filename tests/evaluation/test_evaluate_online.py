"""Online learners on a log: the engine's numbers, and nothing leaks from episode to episode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.evaluation.follow.online import Followed, Followers
from steadytd.evaluation.requests import requests
from steadytd.evaluation.rows import Division, tables
from steadytd.evaluation.sums import System
from steadytd.logs.log import Log, open_log
from tests.support.draws import compiled, thinned
from tests.support.evaluate_helpers import Identity, episodes_of
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table
from tests.support.slow_law import followed

LEARNERS = [
    "td:alpha=0.02", "perturbed_td:alpha=0.03,eta=0.4", "etd:alpha=0.01",
    "etd_beta:alpha=0.01,beta=0.5", "tdc:alpha=0.02,ratio=2", "td:alpha=0.02,lam=0.8",
    "etd:alpha=0.005,lam=0.5", "tdc:alpha=0.02,ratio=2,lam=0.6", "vtrace:alpha=0.02,lam=0.9",
    "htd:alpha=0.01,lam=0.5", "gem_etd:alpha=0.01",
    "perturbed_etd:alpha=0.01,eta=0.2,beta=0.5,lam=0.4", "td:alpha=0.05,power=0.5,delay=30",
    "td:alpha=0.02,average=1", "tree_backup:alpha=0.02,lam=0.9", "gtd2:alpha=0.02",
    "rotd:alpha=0.01",
]  # fmt: skip


def table() -> pa.Table:
    problem = random_problem(3, states=5, actions=3, features=5, policies=2)
    return log_table(problem, episodes=40, length=6, seed=3)


def log_of(batch_rows: int = 65_536) -> Log:
    return open_log(table(), discount=None, batch_rows=batch_rows)


def outcomes(
    log: Log, learners: list[Learner], averaging: bool = False, interrupted: bool = False
) -> list[Followed]:
    """Where the learners end for the log's two targets; `interrupted` after every batch."""

    def begun() -> Followers:
        means, peaks = [averaging] * len(learners), [(1.0, 1.0)] * 2
        return Followers([learners] * 2, means, peaks, log.n_obs, log.rows or 0)

    followers = begun()
    for table in tables(log.batches(), Division(log.rows or 0)):
        for work in followers.works(replace(table, X=np.asarray(table.obs, float)), shares=2):
            work()
        if interrupted:
            saved, followers = followers.state, begun()
            followers.restore(saved)
    return followers.outcomes()


@pytest.mark.parametrize("batch_rows", thinned([9, 65_536], 2))
@pytest.mark.parametrize("text", compiled(LEARNERS))
def test_engine_follows_the_log_without_leaks(text: str, batch_rows: int) -> None:
    """Some episodes are cut off while gamma > 0; the next one must not see their traces."""
    learner = st.learner(text)
    log = log_of(batch_rows)
    assert any(episode[-1].discount > 0.0 for episode in episodes_of(log))
    found = outcomes(log, [learner])[1].weights
    expected = followed(episodes_of(log), learner, 1)[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("text", compiled(LEARNERS))
def test_an_evaluation_and_an_online_learner_give_the_same_bits(text: str) -> None:
    """On the same rows, one by one. The learner shares its block with others of its law."""
    learner = st.learner(text)
    others = [learner.replace(alpha=float(learner.values["alpha"]) / n) for n in range(2, 6)]
    e = st.evaluate(table(), features=Identity(), learners=[learner, *others], batch_rows=50)
    for target, name in enumerate(e.targets):
        live = learner.start(5)
        for episode in episodes_of(log_of()):
            for step in episode:
                live.update(
                    step.x, step.reward, step.x_next, gamma=step.discount,
                    pi=float(step.pi[target]), mu=step.mu,
                )  # fmt: skip
            live.end_episode()
        assert np.abs(live.w).max() > 1e-3
        assert e.value_function(name, str(learner)).weights.tolist() == live.w.tolist()


def test_one_of_a_block_diverges() -> None:
    """The others go on as if it were not there, and so do the means of their snapshots."""
    log = log_of(50)
    learners = [st.learner(f"td:alpha={alpha}") for alpha in (0.02, 1e200, 0.05)]
    for averaging in (False, True):
        found = outcomes(log, learners, averaging)
        alone = [outcomes(log, [learner], averaging) for learner in learners]
        for target in range(2):
            for i, learner in enumerate(learners):
                one, other = found[3 * target + i], alone[i][target]
                assert (one.learner, one.stream) == (learner, target)
                assert (one.diverged is not None) == (i == 1) and one.diverged == other.diverged
                np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("averaging", [False, True])
def test_a_saved_state_goes_on_to_the_same_bits(averaging: bool) -> None:
    """Traces, memory, averages, snapshots and schedules are in it; a diverged lane stays so."""
    texts = ["td:alpha=0.02,lam=0.8", "td:alpha=1e200,lam=0.8", "etd:alpha=0.005,lam=0.5",
             "td:alpha=0.05,power=0.5,delay=30", "td:alpha=0.02,average=1"]  # fmt: skip
    learners = [st.learner(text) for text in texts]
    whole = outcomes(log_of(50), learners, averaging)
    again = outcomes(log_of(50), learners, averaging, interrupted=True)
    assert [one.diverged for one in again] == [one.diverged for one in whole]
    for one, other in zip(again, whole, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


def test_the_mean_of_snapshots_comes_from_the_last_half() -> None:
    """With as many snapshots as rows it is the mean of the weights after each later row."""
    learner = st.learner("td:alpha=0.02")
    seen = followed(episodes_of(log_of()), learner, 0)
    expected = np.mean(seen[len(seen) // 2 :], axis=0)
    assert len(seen) < 400  # so that the gap between snapshots is one row
    for batch_rows in (9, 65_536):
        found = outcomes(log_of(batch_rows), [learner], averaging=True)[0].weights
        np.testing.assert_allclose(found, expected, rtol=1e-9)


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
        ("tdc", "online", System(), ["ratio"]),
        ("tdc:ratio=10", "online", System(), []),
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
