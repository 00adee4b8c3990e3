"""Values of actions: sums and scores against plain Python, and against exact Bellman equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd import InputError
from steadytd.base.arrays import Floats
from steadytd.evaluation.estimators import DrlQ, Fqe, Lstdq
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.passes import ActionPlan
from steadytd.evaluation.rows import GROUPS, Where
from steadytd.evaluation.scores import ActionValue, CurveSums, add_rows
from steadytd.evaluation.sums import Pair
from steadytd.logs.log import Log, open_log
from tests.support.action_reference import (
    action_episodes,
    slow_action_system,
    slow_score,
    whole_table,
)
from tests.support.evaluate_helpers import Identity, evidence_of
from tests.support.helpers import random_problem
from tests.support.log_helpers import fixed_lists
from tests.support.logged_worlds import episodic

LAMS = (0.0, 0.5, 0.9, 1.0)


ONES = np.ones(GROUPS)
ESTIMATORS = (Lstdq(), Fqe(), *(DrlQ(lam) for lam in LAMS))


def evidence(log: Log, where: Where = "start") -> Evidence:
    by_action = ActionPlan(tuple(range(len(log.targets))), log.n_actions)
    return evidence_of(log, estimators=ESTIMATORS, by_action=by_action, where=where)


def some_log(batch_rows: int = 65_536, next_probs: bool = True, episodes: int = 40) -> Log:
    """Episodes of up to 12 steps, some terminated, some cut off."""
    problem = random_problem(3, states=5, actions=3, features=3)
    how: dict[str, Any] = {"episodes": episodes, "length": 12, "seed": 3}
    table = whole_table(problem, next_probs=next_probs, **how)
    return open_log(table, discount=None, batch_rows=batch_rows)


# The sums


@pytest.mark.parametrize("batch_rows", [5, 65_536])
@pytest.mark.parametrize("next_probs", [True, False])
def test_sums_are_the_plain_ones(next_probs: bool, batch_rows: int) -> None:
    log = some_log(batch_rows, next_probs)
    u, episodes = evidence(log).first.by_action, action_episodes(log)
    assert u is not None
    steps = [step for episode in episodes for step in episode]
    used = [step for step in steps if step.v is not None]
    assert (len(used) < len(steps)) == (not next_probs)
    expected = slow_action_system(episodes)
    A, b = u.system(0, np.ones(GROUPS), np.arange(9))
    np.testing.assert_allclose(np.column_stack([A, b]), expected, rtol=1e-11, atol=1e-12)
    G = sum(np.outer(step.x_taken, step.x_taken) for step in used)
    for a in range(3):
        here = slice(3 * a, 3 * a + 3)
        np.testing.assert_allclose(u.G[:, 0, a].sum(axis=0), np.asarray(G)[here, here])
    first = sum(step.start for step in steps if step.first)
    np.testing.assert_allclose(u.start[:, 0].sum(axis=0), first)
    found = u.support(0)
    assert (found.rows, found.left_out) == (len(used), len(steps) - len(used))
    assert (found.unseen, found.share) == ((), 0.0)


@pytest.mark.parametrize("where", ["start", "states"])
@pytest.mark.parametrize("lam", LAMS)
def test_scores_are_the_plain_ones(lam: float, where: Where) -> None:
    """For any q and omega, episode by episode."""
    log, rng = some_log(batch_rows=9, next_probs=False), np.random.default_rng(1)
    e = evidence(log, where)
    theta, beta = rng.normal(size=9), rng.normal(size=3)
    value = ActionValue(0, np.tile(theta.reshape(1, 3, 3), (5, 1, 1)))
    program = CurveSums(0, [Pair(beta, beta)] * 5, (lam,), e.units, value)
    for table in e.first.tables:
        add_rows(table, [program], e.units)
    expected = [
        slow_score(episode, theta, beta, lam, every=where == "states")
        for episode in action_episodes(log)
    ]
    np.testing.assert_allclose(program.sum_scores[0], expected, rtol=1e-10)


def test_drl_q_is_cross_fitted() -> None:
    """The score of each fold, every fifth episode, by q and omega of the other four."""
    log = some_log()
    episodes, after = action_episodes(log), next_features(log)
    total = 0.0
    for fold in range(5):
        others = [e for i, e in enumerate(episodes) if i % 5 != fold]
        system = slow_action_system(others)
        theta: Floats = np.linalg.solve(system[:, :-1], system[:, -1]).astype(np.float64)
        A = sum(
            step.rho * np.outer(step.x, step.x - step.discount * after[step.row])
            for e in others
            for step in e
        )
        beta: Floats = np.linalg.solve(np.asarray(A).T, np.sum([e[0].x for e in others], axis=0))
        total += float(np.sum([slow_score(e, theta, beta, 0.9) for e in episodes[fold::5]]))
    found = DrlQ(0.9).estimate(evidence(log), 0)
    np.testing.assert_allclose(found.value, total / len(episodes), rtol=1e-9)
    assert found.interval().lo < found.value < found.interval().hi


def next_features(log: Log) -> dict[int, Floats]:
    """x' of each row, by its number in the log."""
    [batch] = log.batches()
    return {int(row): batch.obs[batch.row_next[i]] for i, row in enumerate(batch.rows)}


# Exact expectations


def enumerated(r: Floats, repeats: int = 20, logged: Floats | None = None) -> tuple[Any, Floats]:
    """Every (s, a, s') as often as its probability says, each a cut-off episode of one step.

    Three states and two actions, behaviour mu; the sums of such a log are exact expectations. The
    exact q of the target comes with it. `logged` are the behaviour probabilities that the log says.
    """
    P = np.array([[[1, 2, 1], [0, 0, 4]], [[2, 1, 1], [3, 1, 0]], [[1, 1, 2], [0, 4, 0]]]) / 4.0
    mu = np.array([[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]])
    pi = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    rows = [
        (s, a, n) for s in range(3) for a in range(2) for n in range(3)
        for _ in range(round(16 * mu[s, a] * P[s, a, n]))
    ]  # fmt: skip
    s, a, n = np.array(rows * repeats).T
    N = len(s)
    says = mu if logged is None else logged
    table = pa.table(
        {
            "episode_id": np.arange(N), "t": np.zeros(N, np.int64),
            "obs": fixed_lists(np.eye(3)[s]), "action": a, "reward": r[s, a, n],
            "terminated": np.zeros(N, bool),
            "truncated": np.ones(N, bool), "next_obs": fixed_lists(np.eye(3)[n]),
            "behavior_prob": says[s, a], "target_probs_pi": fixed_lists(pi[s]),
            "next_target_probs_pi": fixed_lists(pi[n]),
        }
    )  # fmt: skip
    bellman = np.eye(6) - 0.8 * np.einsum("san,nb->sanb", P, pi).transpose(0, 1, 2, 3).reshape(6, 6)
    q = np.linalg.solve(bellman, (P * r).sum(axis=2).reshape(6)).reshape(3, 2)
    return table, np.append(q.T.reshape(-1), (pi * q).sum(axis=1).mean())


REWARDS = np.random.default_rng(4).normal(size=(3, 2, 3))


def test_exact_expectations_give_exact_values() -> None:
    """lstdq and fqe solve the Bellman equations of q."""
    table, known = enumerated(REWARDS)
    log = evidence(open_log(table, discount=0.8))
    assert log.first.by_action is not None
    theta = log.first.by_action.solve(0, ONES).theta.ravel()
    np.testing.assert_allclose(theta, known[:-1], rtol=1e-10)
    assert Lstdq().estimate(log, 0).value == pytest.approx(known[-1], rel=1e-10)
    fitted = Fqe().fitted(log, 0)
    assert fitted.settled and fitted.stable
    assert fitted.radius == pytest.approx(0.8)  # gamma: every state and action has its feature
    np.testing.assert_allclose(fitted.value, known[-1], rtol=1e-9)


def test_right_values_and_wrong_ratios() -> None:
    """A log that says wrong behaviour probabilities: values of actions do not use them, and the
    correction by wrong ratios has mean 0."""
    wrong = np.array([[0.8, 0.2], [0.5, 0.5], [0.6, 0.4]])
    table, known = enumerated(REWARDS, logged=wrong)
    e = st.evaluate(
        table, discount=0.8, features=Identity(),
        learners=["lstd", "lstdq", "drl_q:lam=0", "drl_q:lam=1", "drl:lam=1"],
    )  # fmt: skip
    values = dict(zip(e.values["learner"], e.values["value"], strict=True))
    for name in ("lstdq", "drl_q:lam=0", "drl_q:lam=1"):
        assert values[name] == pytest.approx(known[-1], rel=1e-9)
    assert abs(values["drl:lam=1"] - known[-1]) > 0.1 and abs(values["lstd"] - known[-1]) > 0.1


@pytest.mark.slow
def test_the_interval_covers() -> None:
    """95 % intervals of lstdq and drl_q on 30 drawn logs of a world with a feature per state."""
    problem = episodic(6, 0.5, np.eye(6))
    truth, held = float(problem.start @ problem.v_pi), np.zeros(2)
    for seed in range(30):
        log = evidence(open_log(whole_table(problem, episodes=150, length=200, seed=seed)))
        both = Lstdq().estimate(log, 0), DrlQ(0.9).estimate(log, 0)
        held += [abs(found.value - truth) <= found.interval().width / 2.0 for found in both]
    assert (held >= 25).all(), held  # 28.5 expected; chance of fewer than 25 below 2 %


def test_errors_are_those_of_the_values_at_cuts_too() -> None:
    """Episodes of two steps: q at the cuts is most of the value. Over 60 logs the standard
    errors fit the spread of the values. (A spread of 60 values is known to 9 %.)"""
    problem = episodic(4, 0.3, np.eye(4))
    values, errors = [], []
    for seed in range(60):
        log = evidence(open_log(whole_table(problem, episodes=80, length=2, seed=seed)))
        found = [DrlQ(lam).estimate(log, 0) for lam in (0.5, 0.9, 1.0)]
        values.append([one.value for one in found])
        errors.append([one.stderr for one in found])
    fit = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0)
    assert ((fit > 0.75) & (fit < 1.25)).all(), fit


@pytest.mark.parametrize("rewards", [REWARDS[:, :, :1] + np.zeros(3), np.ones((3, 2, 3))])
def test_no_interval_excludes_its_own_value(rewards: Floats) -> None:
    """Rewards without chance: intervals have no width, and fqe stops before the last digit."""
    table, _ = enumerated(rewards)
    e = st.evaluate(
        table.slice(0, 40), discount=0.8, features=Identity(), learners=["lstdq", "fqe", "drl_q"]
    )
    for row in e.values.filter(kind="action").to_dicts():
        assert row["lo"] <= row["value"] <= row["hi"], row


# Iterations


def growing(n: int = 100) -> Any:
    """Rows from x = 1 to x = 2 with reward 1: a regression on its own values doubles them."""
    return pa.table(
        {
            "episode_id": np.arange(n), "t": np.zeros(n, np.int64), "obs": np.ones(n),
            "action": np.arange(n) % 2, "reward": np.ones(n), "terminated": np.zeros(n, bool),
            "next_obs": np.full(n, 2.0), "behavior_prob": np.full(n, 0.5),
            "target_probs_pi": fixed_lists(np.full((n, 2), 0.5)),
            "next_target_probs_pi": fixed_lists(np.full((n, 2), 0.5)),
        }
    )  # fmt: skip


def test_fqe_diverges_where_the_radius_says_so() -> None:
    e = st.evaluate(growing(), discount=0.9, features=Identity(), learners=["lstd", "fqe", "lstdq"])
    rows = {row["learner"]: row for row in e.values.to_dicts()}
    fitted, solved = rows["fqe"], rows["lstdq"]
    assert np.isnan([fitted["value"], fitted["lo"], fitted["hi"]]).all()
    assert fitted["stable"] is False and fitted["diverged"] is not None
    assert solved["value"] == pytest.approx(1.0 / (1.0 - 1.8))
    (found,) = [f for f in e.warnings if f.code == "not_settled"]
    assert "each iteration multiplies its error by 1.8" in found.text
    slow = st.evaluate(growing(), discount=0.4999, features=Identity(), learners=["fqe"])
    (found,) = [f for f in slow.warnings if f.code == "not_settled"]
    assert "fqe has not converged: each iteration multiplies its error by" in found.text
    (row,) = slow.values.filter(learner="fqe").to_dicts()
    assert np.isnan(row["lo"]) and np.isfinite(row["value"])


# Asked for, and by default


def test_what_is_asked_for_by_default() -> None:
    """lstdq and drl_q where all probabilities are known and there are not too many features."""
    problem = random_problem(3, states=5, actions=3, features=3)
    table = whole_table(problem, episodes=60, length=12, seed=3)
    e = st.evaluate(table, features=Identity())
    listed = e.values["learner"].to_list()
    assert listed[-2:] == ["lstdq", "drl_q"] and e.settings["learners"][-2:] == ["lstdq", "drl_q"]
    assert e.values.filter(kind="action")["value"].is_finite().all()
    assert e.recommended["pi"].learner not in ("lstdq", "drl_q")
    for other in (table.drop_columns(["target_probs_pi", "next_target_probs_pi"]), table):
        kept = other if "target_probs_pi" not in other.column_names else wide(other)
        found = st.evaluate(kept, features=Identity())
        names = found.values["learner"].to_list()
        assert "lstdq" not in names and "lstd" in names


def wide(table: Any) -> Any:
    """The same with 67 features: times three actions too many."""
    x = np.random.default_rng(0).normal(size=(len(table), 67))
    table = table.drop_columns(["obs", "next_obs"]).append_column("obs", fixed_lists(x))
    return table.append_column(
        "next_obs", fixed_lists(x[::-1], np.asarray(~np.asarray(table["truncated"])))
    )


def test_they_are_a_second_opinion_also_where_nothing_else_was_asked_for() -> None:
    problem = episodic(6, 0.5, np.eye(6))
    table = whole_table(problem, episodes=200, length=200, seed=1)
    e = st.evaluate(table, features=Identity(), learners=["lstdq", "drl_q:lam=0.5"])
    r = e.recommended["pi"]
    assert r.learner == "drl" and e.values["learner"].to_list()[-1] == "drl"
    assert e.to_dict()["values"][1]["learner"] == "drl_q:lam=0.5"
    with pytest.raises(InputError, match="lstdq gives a value, not a value function"):
        e.value_function("pi", "lstdq")


def test_without_the_distribution_it_is_said() -> None:
    problem = random_problem(3, states=5, actions=3, features=3)
    table = whole_table(problem, episodes=40, length=12, seed=3)
    table = table.drop_columns(["target_probs_pi", "next_target_probs_pi"])
    for name in ("lstdq", "fqe", "drl_q:lam=0.5"):
        with pytest.raises(
            InputError, match=rf"{name} needs .* all actions.* 'pi' are not known; "
        ):
            st.evaluate(table, learners=["lstd", name])
    smooth = table.set_column(
        table.column_names.index("action"), "action", pa.array([0.5] * len(table))
    )
    with pytest.raises(InputError, match="lstdq needs the target's probabilities of all actions"):
        st.evaluate(smooth, learners=["lstdq"])
    assert st.evaluate(smooth, learners=["lstd"]).values["value"].is_finite().all()
    for name in ("abtd", "tree_backup:alpha=0.01"):
        with pytest.raises(InputError, match=rf"{name} needs probabilities of actions, not only"):
            st.evaluate(smooth, learners=["lstd", name])
    for text, words in [
        ("drl_q:lam=2", r"lam must be a number from 0 to 1, got 2"),
        ("drl_q:lam=x", r"lam must be a number from 0 to 1, got x"),
        ("lstdq:lam=0.5", "lstdq has no parameter 'lam'; only drl and drl_q have one"),
        ("lstdk", "lstdq"),
    ]:
        with pytest.raises(InputError, match=words):
            st.evaluate(table, learners=[text])
    with pytest.raises(InputError, match="given twice"):
        st.evaluate(table, learners=["lstdq", "lstdq"])


@pytest.mark.slow
def test_one_machine_and_dask_give_the_same_bits(tmp_path: Path) -> None:
    problem = random_problem(3, states=5, actions=3, features=3)
    table = whole_table(problem, episodes=300, length=12, seed=3)
    path = st.write_log(tmp_path / "log.parquet", table, row_group_rows=500)
    names = ["lstd", "lstdq", "fqe", "drl_q"]
    options: dict[str, Any] = {"features": Identity(), "learners": names, "parts": 3}
    local = st.evaluate(path, **options, threads=1).values
    assert local.equals(st.evaluate(path, **options, threads=2).values)
    kept: dict[str, Any] = {"engine": "dask", "checkpoint": tmp_path / "kept"}
    assert local.equals(st.evaluate(path, **options, **kept).values)
    assert local.equals(st.evaluate(path, **options, **kept).values)  # from the checkpoints


def test_functions_and_columns_give_the_same_values() -> None:
    """A policy as a function of observations, evaluated also where an episode is cut off."""
    problem = random_problem(3, states=5, actions=3, features=3)
    pi = problem.pi

    def policy(obs: Any) -> Any:
        return pi[np.argmax(obs, axis=1)]

    table = whole_table(problem, episodes=60, length=6, seed=3, obs="onehot")
    bare = table.drop_columns(["target_probs_pi", "next_target_probs_pi", "target_prob_pi"])
    names = ["lstdq", "drl_q"]
    one = st.evaluate(table, features=Identity(), learners=names)
    other = st.evaluate(bare, features=Identity(), learners=names, targets={"pi": policy})
    assert one.values.equals(other.values)
    assert not any(f.code == "next_probs_missing" for f in one.warnings)
    short = table.drop_columns("next_target_probs_pi")
    (found,) = [
        f for f in st.evaluate(short, features=Identity(), learners=names).warnings
        if f.code == "next_probs_missing"
    ]  # fmt: skip
    assert found.numbers["next_probs_missing"] == sum(table["truncated"].to_pylist())


def test_an_estimated_behavior_changes_no_value_of_lstdq() -> None:
    """It needs none; drl_q takes the estimated ratios."""
    problem = episodic(6, 0.5, np.eye(6))
    table = whole_table(problem, episodes=150, length=200, seed=1)
    names = ["lstd", "lstdq", "drl_q"]
    known, estimated = (
        st.evaluate(source, features=Identity(), learners=names, behavior=behavior).values["value"]
        for source, behavior in ((table, None), (table.drop_columns("behavior_prob"), "estimate"))
    )
    assert known[1] == estimated[1] and known[2] != estimated[2]
    assert known[2] == pytest.approx(estimated[2], rel=0.1)
