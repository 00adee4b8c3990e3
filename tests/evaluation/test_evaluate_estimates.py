"""Estimates and intervals from the sums, against exact values and known variances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.evaluation.equations import Form
from steadytd.evaluation.estimators import Estimator, Mis, Pdis, Snpdis, Solved
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.intervals import mean_of, resampled
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.stability import (
    assess,
    automatic_ratio,
    first_order,
    pencil,
    stable,
    thresholds,
)
from steadytd.evaluation.sums import ETD, TD
from steadytd.logs.log import open_log
from tests.support.evaluate_helpers import Identity, episodes_of, evidence_of
from tests.support.layers import GAMMA, STATES, every_trajectory, exact_value
from tests.support.log_helpers import fixed_lists, log_table

EMPHATIC, PENALISED = Solved(Form(1)), Solved(Form(0, 0.3, 5.0))


def value(log: Evidence, one: Estimator) -> float:
    return one.estimate(log, 0).value


def evidence(table: Any, **options: Any) -> Evidence:
    log = open_log(table, discount=options.pop("discount", GAMMA))
    asked = (EMPHATIC, PENALISED, Solved(Form(0, 0.5)))
    return evidence_of(log, systems=(TD, ETD), estimators=asked, **options)


@pytest.mark.parametrize("one", [Pdis(), Snpdis(), Solved(), EMPHATIC])
def test_all_trajectories_give_the_exact_value(one: Estimator) -> None:
    e = evidence(every_trajectory(np.eye(STATES)))
    assert value(e, one) == pytest.approx(exact_value(), abs=1e-12)


def test_importance_sampling_needs_no_features_but_lstd_does() -> None:
    blind = np.array([[1.0], [0.0], [1.0], [2.0], [0.5]])
    e = evidence(every_trajectory(blind))
    assert value(e, Pdis()) == pytest.approx(exact_value())
    assert value(e, Snpdis()) == pytest.approx(exact_value())
    assert abs(value(e, Solved()) - exact_value()) > 0.3


def test_self_normalised_by_hand() -> None:
    """Sum over t of sum(g c r) / sum(c), where an episode that has ended keeps its last c."""
    problem = st.Problem(
        name="two", P=np.full((2, 2, 2), 0.5), r=np.arange(8.0).reshape(2, 2, 2),
        gamma=np.array([[[0.0, 0.9], [0.9, 0.9]], [[0.9, 0.0], [0.8, 0.9]]]),
        mu=np.full((2, 2), 0.5), pi=np.array([[0.9, 0.1], [0.3, 0.7]]), Phi=np.eye(2),
    )  # fmt: skip
    table = log_table(problem, episodes=30, length=9, seed=2)
    log = open_log(table, discount=None)
    episodes = episodes_of(log)
    longest = max(map(len, episodes))
    expected = 0.0
    for t in range(longest):
        top = bottom = 0.0
        for episode in episodes:
            c = float(np.prod([p.rho[0] for p in episode[: t + 1]]))
            bottom += c
            if t < len(episode):
                g = float(np.prod([p.discount for p in episode[:t]]))
                top += g * c * episode[t].reward
        expected += top / bottom
    e = evidence_of(log)
    assert value(e, Snpdis()) == pytest.approx(expected)


@pytest.mark.parametrize("one", [Solved(), Pdis(), Snpdis(), Mis(), EMPHATIC, PENALISED])
def test_an_influence_is_what_an_episode_counted_again_changes(one: Estimator) -> None:
    """The value with an episode copied twenty times over, against the first-order change."""
    table = every_trajectory(np.random.default_rng(3).normal(size=(STATES, 2)))
    plain = evidence(pa.concat_tables([moved(table, 64 * i) for i in range(40)]))
    psi = one.estimate(plain, 0).influence
    assert psi.sum() == pytest.approx(0.0, abs=1e-12) and np.abs(psi).max() > 1e-6
    for episode in (0, 5, 17):
        mine = table.filter(pa.compute.equal(table["episode_id"], episode))
        more = [moved(table, 64 * i) for i in range(40)] + [
            moved(mine, 64 * 40 + i - episode) for i in range(2)
        ]
        change = value(evidence(pa.concat_tables(more)), one) - value(plain, one)
        assert change == pytest.approx(2.0 * psi[episode], rel=0.05, abs=2e-6)


def moved(table: Any, by: int) -> Any:
    at = table.column_names.index("episode_id")
    return table.set_column(at, "episode_id", [table["episode_id"].to_numpy() + by])


def test_interval_has_the_width_of_the_known_error() -> None:
    """Mean of 4,000 rewards of variance 1: 2 x 1.96/sqrt(4000), within 15 %."""
    rewards = np.random.default_rng(5).normal(size=(200, 20))
    found = mean_of(rewards.sum(axis=1), np.full(200, 20.0))
    assert found.interval().width == pytest.approx(2 * 1.97 / np.sqrt(4000), rel=0.15)
    assert found.value == pytest.approx(rewards.mean())


def test_interval_needs_units_and_finite_replicates() -> None:
    assert np.isnan(resampled(1.0, np.ones(10), units=1).lo)
    assert np.isnan(resampled(1.0, np.full(10, np.nan), units=30).lo)
    assert resampled(1.0, np.ones(10), units=30) == (1.0, 1.0)
    biased = resampled(0.5, np.linspace(0.4, 1.0, 601), units=1000)
    plain = resampled(0.7, np.linspace(0.4, 1.0, 601), units=1000)
    assert biased.hi < plain.hi  # replicates mostly above the value: the interval moves down


def test_dependent_features_change_no_value() -> None:
    table = every_trajectory(np.eye(STATES))
    more = every_trajectory(np.column_stack([np.eye(STATES), np.ones(STATES), np.zeros(STATES)]))
    e, wide = evidence(table), evidence(more)
    assert e.equations.rank == wide.equations.rank == STATES
    for one in (Solved(), EMPHATIC, Solved(Form(0, 0.5))):
        assert value(e, one) == pytest.approx(value(wide, one), rel=1e-9)
    w = wide.equations.weights(0, Form())
    assert w.shape == (STATES + 2,) and (w != 0.0).sum() <= STATES


def test_rounding_does_not_make_features_independent() -> None:
    """Forty combinations of five features, by a matrix without special numbers."""
    mixed = np.eye(STATES) @ np.random.default_rng(0).normal(size=(STATES, 40))
    e = evidence(every_trajectory(mixed))
    assert e.equations.rank == STATES
    assert value(e, Solved()) == pytest.approx(exact_value(), rel=1e-6)


def test_small_features_are_not_taken_for_dependent_ones() -> None:
    scales = np.array([1.0, 1e-4, 1e3, 1e-6, 1.0])
    e = evidence(every_trajectory(np.diag(scales)))
    assert e.equations.rank == STATES
    assert value(e, Solved()) == pytest.approx(exact_value(), rel=1e-6)


@pytest.mark.parametrize("name", ["three_state", "theta2theta"])
def test_a_log_reproduces_the_certificate(name: str) -> None:
    """A, b, G within 5 standard errors (over units) of the exact ones; eta_pd in its interval."""
    p = st.problem(name)
    log = open_log(log_table(p, episodes=500, length=80, seed=4), discount=None)
    e = evidence_of(log, where="states").equations
    m, sums, rows = p.moments(), e.sums, e.rows
    exact = np.column_stack([m.A(), m.b()])
    A, G = (M.reshape(GROUPS, e.features, -1) for M in (sums.A[0], sums.G))
    A = np.concatenate([A, sums.b[:, 0, :, None]], axis=2)
    for found_sums, matrix in ((A, exact), (G, m.G)):
        apart = (found_sums - matrix * rows[:, None, None]) / rows.mean()
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(rows))
        assert (np.abs(apart.mean(axis=0)) <= 5.0 * error + 1e-12).all()
    found = assess(e, 0, "pi", 1)
    certificate = st.certify(p)
    assert found.td_stable == certificate.td_stable
    assert found.eta_pd_lo <= certificate.eta_pd <= found.eta_pd_hi
    assert found.eta_pd_hi - found.eta_pd_lo < 0.2
    assert found.eta > found.eta_pd_hi
    assert automatic_ratio(found.eta_pd_hi) >= 2.0 * found.eta_pd_hi


def test_thresholds_of_many_pairs() -> None:
    """Against the generalised problem one by one; NaN where a matrix is singular."""
    from scipy.linalg import eigh

    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 3, 3))
    G = np.stack([m @ m.T + 0.1 * np.eye(3) for m in rng.normal(size=(5, 3, 3))])
    expected = [-eigh((a + a.T) / 2, g, eigvals_only=True)[0] for a, g in zip(A, G, strict=True)]
    np.testing.assert_allclose(thresholds(A, G), expected, rtol=1e-9)
    G[2] = 0.0
    found = thresholds(A, G)
    assert np.isnan(found[2])
    np.testing.assert_allclose(np.delete(found, 2), np.delete(expected, 2), rtol=1e-9)


def test_stability_without_eigenvalues_is_that_of_the_eigenvalues() -> None:
    """Definite matrices, stable ones that are not, unstable ones, and some on the edge."""
    rng = np.random.default_rng(1)
    M = rng.normal(size=(3000, 2, 2))
    A = M - M.swapaxes(1, 2) + rng.uniform(-1.0, 2.0, (3000, 1, 1)) * (M @ M.swapaxes(1, 2))
    A[::2] += rng.normal(size=(1500, 2, 2))
    A[:50] = np.array([[0.0, 1.0], [-1.0, 0.0]]) + rng.choice([0.0, 1e-11, 1e-9], (50, 1, 1))
    G = np.stack([m @ m.T + 0.1 * np.eye(2) for m in rng.normal(size=(3000, 2, 2))])
    found = stable(A, thresholds(A, G))
    plain = np.linalg.eigvals(A).real.min(axis=1) > 1e-12 * np.abs(A).max(axis=(1, 2))  # rounding
    assert (found == plain).all() and 0.2 < plain.mean() < 0.9
    definite = thresholds(A, G) < 0.0
    assert 0.1 < definite.mean() < (plain & ~definite).mean() + definite.mean() < 0.9


def test_first_order_interval_of_the_threshold_agrees_with_the_resampled_one() -> None:
    p = st.problem("baird")
    log = open_log(log_table(p, episodes=400, length=60, seed=4), discount=None)
    e = evidence_of(log, where="states").equations
    drawn = assess(e, 0, "pi", 1)
    quick = first_order(e, 0, pencil(e, 0))
    assert e.rank == 7
    assert quick.width == pytest.approx(drawn.eta_pd_hi - drawn.eta_pd_lo, rel=0.4)
    assert (quick.lo + quick.hi) / 2.0 == pytest.approx(drawn.eta_pd)


def test_one_endless_episode_is_valued_over_its_states() -> None:
    p = st.problem("theta2theta")
    table = log_table(p, episodes=1, length=4000, seed=1)
    found = st.evaluate(table, features=Identity(), learners=["lstd", "pdis", "drl"])
    rows = {r["learner"]: r for r in found.values.to_dicts()}
    w = st.certify(p).fixed_point("lstd")
    exact = float(p.d_mu @ p.Phi @ w)
    assert found.log.continuing
    assert rows["lstd"]["lo"] <= exact <= rows["lstd"]["hi"]
    assert np.isnan(rows["pdis"]["value"])
    assert rows["drl"]["lo"] <= exact <= rows["drl"]["hi"]
    assert "continuing_log" in {w.code for w in found.warnings}
    assert found.recommended["pi"].learner == "drl"


def test_the_rank_is_found_on_the_rows_that_are_solved() -> None:
    """A feature that differs from the constant one in the first fold only: dependent elsewhere."""
    rng = np.random.default_rng(0)
    n, length = 1500, 3
    x = np.column_stack([np.ones(n), rng.normal(size=n), np.full(n, 0.7)])
    x[:300, 2] += 1e-3 * rng.normal(size=300)
    t = np.arange(n) % length
    table = pa.table(
        {
            "episode_id": np.arange(n) // length, "t": t, "obs": fixed_lists(x),
            "reward": rng.normal(1.0, 0.1, n), "terminated": t == length - 1,
            "truncated": np.zeros(n, dtype=bool), "behavior_prob": np.full(n, 0.5),
            "target_prob_pi": rng.uniform(0.4, 0.6, n),
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=1.0, features=Identity(), learners=["lstd", "drl:lam=1", "drl"])
    for row in e.values.to_dicts():
        assert row["value"] == pytest.approx(3.0, abs=0.2)
        assert row["lo"] < row["value"] < row["hi"] < row["lo"] + 0.5


@pytest.mark.slow
def test_states_that_only_other_policies_visit() -> None:
    """One feature per state, many states with ratios of 0 only: their equations are 0 = 0."""
    rng = np.random.default_rng(1)
    states, n = 300, 3000
    s = rng.integers(0, states, n)
    t = np.arange(n) % 5
    pi = np.where(s < 150, 0.5, 0.0) * (rng.random(n) < 0.9)
    table = pa.table(
        {
            "episode_id": np.arange(n) // 5, "t": t, "obs": fixed_lists(np.eye(states)[s]),
            "reward": np.ones(n), "terminated": t == 4, "truncated": np.zeros(n, dtype=bool),
            "behavior_prob": np.full(n, 0.5), "target_prob_pi": pi,
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=0.9, features=Identity(), learners=["lsetd", "lstd", "drl"])
    assert np.isfinite(e.values["value"].to_numpy()).all()


def test_stretches_of_an_endless_log_are_longer_than_its_memory() -> None:
    """x goes slowly to and fro: 200 stretches of 30 rows depend on each other."""
    rng = np.random.default_rng(2)
    n = 6000
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = 0.99 * x[i - 1] + 0.1 * rng.normal()
    table = pa.table(
        {
            "episode_id": np.zeros(n, dtype=int), "t": np.arange(n), "obs_0": x,
            "reward": x, "terminated": np.zeros(n, dtype=bool),
            "truncated": np.zeros(n, dtype=bool), "behavior_prob": np.full(n, 0.5),
            "target_prob_pi": np.full(n, 0.5),
        }
    )  # fmt: skip
    e = st.evaluate(table, discount=0.5, features="poly:1", learners=["lstd"])
    quick = table.set_column(3, "reward", [rng.normal(size=n)])
    other = st.evaluate(quick, discount=0.5, features="poly:1", learners=["lstd"])
    assert e.log.units <= 50 < other.log.units
    row, ruled = e.values.to_dicts()
    assert row["lo"] <= 0.0 <= row["hi"] and ruled["lo"] <= 0.0 <= ruled["hi"]
    assert ruled["lo"] <= e.behavior.value <= ruled["hi"]  # the target is the behaviour here
    assert "stretches_alike" in e.recommended["pi"].warnings
