"""Estimates and intervals from the sums, against exact values and known variances."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.collect.plan import ETD, TD
from steadytd.evaluation.collect.statistics import BINS, KEPT_ROWS, Statistics, units
from steadytd.evaluation.estimate.bootstrap import interval, resamples
from steadytd.evaluation.estimate.estimators import DR, LSTD, PDIS, SNPDIS, Estimator, Form
from steadytd.evaluation.estimate.stability import assess, automatic_ratio, pencil, thresholds
from steadytd.logs.log import open_log
from tests.support.evaluate_helpers import Identity, episodes_of, plan_of, sums_of
from tests.support.helpers import random_problem
from tests.support.log_helpers import fixed_lists, log_table

# Three layers, two states each but the first; every action leads to either state with chance 1/2.
STATES = 5
PI = np.array([0.8, 0.1, 0.6, 0.3, 0.95])  # probability of action 1 under the target policy
GAMMA = 0.9


def reward(s: int, a: int, up: int) -> float:
    return 1.0 + 0.5 * s - a + 2.0 * up * (s % 2)


def state_after(layer: int, up: int) -> int:
    return 1 + 2 * layer + up


def exact_value() -> float:
    value = np.zeros(STATES + 2)
    for layer in (2, 1, 0):
        for s in [0] if layer == 0 else [2 * layer - 1, 2 * layer]:
            total = 0.0
            for a, up in product((0, 1), repeat=2):
                chance = (PI[s] if a else 1.0 - PI[s]) / 2.0
                after = value[state_after(layer, up)] if layer < 2 else 0.0
                total += chance * (reward(s, a, up) + GAMMA * after)
            value[s] = total
    return float(value[0])


def every_trajectory(features: Floats, times: int = 1) -> Any:
    """A log of all 64 equally likely trajectories: its averages are exact expectations."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("episode_id", "t", "s", "action", "reward", "terminated", "pi")
    }
    for episode, draws in enumerate(list(product((0, 1), repeat=6)) * times):
        s = 0
        for t in range(3):
            a, up = draws[2 * t], draws[2 * t + 1]
            pi = PI[s] if a else 1.0 - PI[s]
            for name, value in zip(
                columns, (episode, t, s, a, reward(s, a, up), t == 2, pi), strict=True
            ):
                columns[name].append(value)
            s = state_after(t, up)
    obs = features[np.array(columns.pop("s"))]
    return pa.table(
        {
            "obs": fixed_lists(obs),
            "target_prob_pi": columns.pop("pi"),
            "behavior_prob": np.full(len(obs), 0.5),
            "truncated": np.zeros(len(obs), dtype=bool),
            **columns,
        }
    )


def estimator(table: Any, blocks: int = 8, **options: Any) -> Estimator:
    log = open_log(table, discount=options.pop("discount", GAMMA))
    return Estimator(units(sums_of(log, plan_of(log, (TD, ETD), blocks))), "start")


@pytest.mark.parametrize("form", [PDIS, SNPDIS, DR, LSTD, Form("solved", 1)], ids=str)
def test_all_trajectories_give_the_exact_value(form: Form) -> None:
    """Four times all of them, in four units: the halves that dr takes are complete as well."""
    e = estimator(every_trajectory(np.eye(STATES), times=4), blocks=4)
    found = float(e.values(e.ones(), 0, [form])[0, 0])
    assert found == pytest.approx(exact_value(), abs=1e-12)


def test_importance_sampling_needs_no_features_but_lstd_does() -> None:
    blind = np.array([[1.0], [0.0], [1.0], [2.0], [0.5]])
    e = estimator(every_trajectory(blind, times=4), blocks=4)
    pdis, snpdis, dr, lstd = e.values(e.ones(), 0, [PDIS, SNPDIS, DR, LSTD])[0]
    assert pdis == pytest.approx(exact_value())
    assert snpdis == pytest.approx(exact_value())
    assert dr == pytest.approx(exact_value())
    assert abs(lstd - exact_value()) > 0.3


def test_doubly_robust_by_hand() -> None:
    """mean of v(s0) + sum of g c delta, with v from the other half of the units."""
    problem = random_problem(2, states=5, features=2)
    log = open_log(log_table(problem, episodes=60, length=10, seed=2), discount=None)
    e = Estimator(units(sums_of(log, plan_of(log, blocks=4))), "start")
    episodes = episodes_of(log)
    block = [ep[0].number * 4 // (log.rows or 0) for ep in episodes]
    total = 0.0
    for half in (0, 1):
        counts = np.array([[float(u % 2 != half) for u in range(4)]])
        w = e.solve(counts, 0, LSTD)[0]
        for b, episode in zip(block, episodes, strict=True):
            if b % 2 != half:
                continue
            g = c = 1.0
            total += float(episode[0].x @ w)
            for p in episode:
                c *= float(p.rho[0])
                total += g * c * (p.reward + p.discount * p.x_next @ w - p.x @ w)
                g *= p.discount
    found = float(e.values(e.ones(), 0, [DR])[0, 0])
    assert found == pytest.approx(total / 60)
    assert found != pytest.approx(float(e.values(e.ones(), 0, [LSTD])[0, 0]), rel=1e-3)


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
    e = Estimator(units(sums_of(log, plan_of(log))), "start")
    assert float(e.values(e.ones(), 0, [SNPDIS])[0, 0]) == pytest.approx(expected)


def test_resampling_a_unit_is_repeating_its_episodes() -> None:
    """Counts (2, 0, 1, ...) give what a log with those episodes would."""
    table = every_trajectory(np.eye(STATES))
    e = estimator(table, blocks=4)
    counts = np.array([[2.0, 1.0, 0.0, 1.0]])
    order = np.concatenate([np.arange(48), np.arange(48), np.arange(48, 96), np.arange(144, 192)])
    repeated = table.take(order)
    ids = np.repeat(np.arange(len(order) // 3), 3)
    at = repeated.column_names.index("episode_id")
    repeated = repeated.set_column(at, "episode_id", pa.array(ids))
    other = estimator(repeated, blocks=4)
    forms = [LSTD, PDIS, SNPDIS, Form("solved", 1), Form("solved", 0, 0.3)]
    found = e.values(counts, 0, forms)[0]
    np.testing.assert_allclose(found, other.values(other.ones(), 0, forms)[0], rtol=1e-10)


def by_hand(rewards: Floats) -> Statistics:
    """Units of one-step episodes from one state with these rewards [units, episodes]."""
    U, n = rewards.shape
    systems = np.empty((U, 1, 1, 1, 2))
    systems[:, 0, 0, 0, 0], systems[:, 0, 0, 0, 1] = n, rewards.sum(axis=1)
    x = np.full((U, 1), float(n))
    ones, zeros = np.full((U, 1, 1), float(n)), np.zeros((U, 1, 1))
    weighted = np.stack([x, rewards.sum(axis=1, keepdims=True)], axis=2)
    return Statistics(
        block=np.arange(U), continues=np.zeros(U, dtype=bool),
        counts=np.column_stack([np.full((U, 2), n), np.zeros((U, 2))]), G=ones, x=x, x_start=x,
        systems=systems, weighted=weighted, ratios=np.ones((U, 1, 7)),
        numerator=rewards.sum(axis=1)[:, None, None], denominator=ones, ended=zeros,
        histogram=np.zeros((1, BINS), dtype=np.int64), largest_row=np.zeros(1, dtype=np.int64),
        violations=np.zeros(1, dtype=np.int64),
        violating=np.full((1, KEPT_ROWS), -1, dtype=np.int64),
    )  # fmt: skip


def test_interval_has_the_width_of_the_known_error() -> None:
    """Mean of 4,000 rewards of variance 1: 2 x 1.96/sqrt(4000), +-15 % (200 units, 400 draws)."""
    rewards = np.random.default_rng(5).normal(size=(200, 20))
    e = Estimator(by_hand(rewards), "start")
    counts = resamples(200, 1, seed=0)
    for form in (LSTD, PDIS, SNPDIS):
        value = float(e.values(e.ones(), 0, [form])[0, 0])
        assert value == pytest.approx(rewards.mean())
        found = interval(value, e.values(counts, 0, [form])[:, 0], 200)
        assert found.width == pytest.approx(2 * 1.96 / np.sqrt(4000), rel=0.15)
        assert found.covers(value)


@pytest.mark.parametrize("n_units", [10, 40])
def test_interval_covers_skewed_means_nineteen_times_in_twenty(n_units: int) -> None:
    """400 logs of exponential rewards: 0.95 +- 3 sqrt(.05 .95/400) = .033, and skewness costs."""
    rng = np.random.default_rng(n_units)
    covered = 0
    for i in range(400):
        rewards = rng.exponential(size=(n_units, 5))
        e = Estimator(by_hand(rewards), "start")
        drawn = e.values(resamples(n_units, 1, seed=i), 0, [PDIS])[:, 0]
        covered += interval(float(rewards.mean()), drawn, n_units).covers(1.0)
    assert covered / 400 > 0.905


def test_interval_needs_units_and_finite_replicates() -> None:
    assert np.isnan(interval(1.0, np.ones(10), units=1).lo)
    assert np.isnan(interval(1.0, np.full(10, np.nan), units=30).lo)
    assert interval(1.0, np.ones(10), units=30) == (1.0, 1.0)
    biased = interval(0.5, np.linspace(0.4, 1.0, 601), units=1000)
    plain = interval(0.7, np.linspace(0.4, 1.0, 601), units=1000)
    assert biased.hi < plain.hi  # replicates mostly above the value: the interval moves down


def test_dependent_features_change_no_value() -> None:
    table = every_trajectory(np.eye(STATES))
    more = every_trajectory(np.column_stack([np.eye(STATES), np.ones(STATES), np.zeros(STATES)]))
    e, wide = estimator(table), estimator(more)
    assert e.rank == wide.rank == STATES
    forms = [LSTD, Form("solved", 1), Form("solved", 0, 0.5)]
    a, b = e.values(e.ones(), 0, forms), wide.values(wide.ones(), 0, forms)
    np.testing.assert_allclose(a, b, rtol=1e-9)
    w = wide.weights(0, LSTD)
    assert w.shape == (STATES + 2,) and (w != 0.0).sum() <= STATES


def test_rounding_does_not_make_features_independent() -> None:
    """Forty combinations of five features, by a matrix without special numbers."""
    mixed = np.eye(STATES) @ np.random.default_rng(0).normal(size=(STATES, 40))
    e = estimator(every_trajectory(mixed))
    assert e.rank == STATES
    assert float(e.values(e.ones(), 0, [LSTD])[0, 0]) == pytest.approx(exact_value(), rel=1e-6)


def test_small_features_are_not_taken_for_dependent_ones() -> None:
    scales = np.array([1.0, 1e-4, 1e3, 1e-6, 1.0])
    e = estimator(every_trajectory(np.diag(scales)))
    assert e.rank == STATES
    assert float(e.values(e.ones(), 0, [LSTD])[0, 0]) == pytest.approx(exact_value(), rel=1e-6)


@pytest.mark.parametrize("name", ["three_state", "theta2theta"])
def test_a_log_reproduces_the_certificate(name: str) -> None:
    """A, b, G within 5 standard errors (over units) of the exact ones; eta_pd in its interval."""
    p = st.problem(name)
    log = open_log(log_table(p, episodes=500, length=80, seed=4), discount=None)
    e = Estimator(units(sums_of(log, plan_of(log, (TD,), 200))), "states")
    m, u = p.moments(), e.units
    mean_rows = u.counts[:, 0].mean()
    exact = np.column_stack([m.A(), m.b()])
    for sums, matrix in ((u.systems[:, 0, 0], exact), (u.G, m.G)):
        rows = u.counts[:, 0][:, None, None]
        apart = (sums - matrix * rows) / mean_rows
        error = apart.std(axis=0, ddof=1) / np.sqrt(e.n_units)
        assert (np.abs(apart.mean(axis=0)) <= 5.0 * error + 1e-12).all()
    found = assess(e, 0, "pi", resamples(e.n_units, e.rank, 1))
    certificate = st.certify(p)
    assert found.td_stable == certificate.td_stable
    assert found.eta_pd_lo <= certificate.eta_pd <= found.eta_pd_hi
    assert found.eta_pd_hi - found.eta_pd_lo < 0.2
    assert found.eta > found.eta_pd_hi
    assert automatic_ratio(pencil(e, 0), found.eta_pd_hi) >= 2.0 * found.eta_pd_hi
    eta = 2.0 * certificate.eta_pd
    exact_weights = certificate.fixed_point("perturbed_td", eta=eta)
    w = e.weights(0, Form("solved", 0, eta))
    drawn = e.solve(resamples(e.n_units, 1, 2), 0, Form("solved", 0, eta))
    assert (np.abs(w - exact_weights) <= 5.0 * drawn.std(axis=0) + 1e-12).all()


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


def test_first_order_interval_of_the_threshold_agrees_with_the_resampled_one() -> None:
    from steadytd.evaluation.estimate.stability import _first_order

    p = st.problem("baird")
    log = open_log(log_table(p, episodes=400, length=60, seed=4), discount=None)
    e = Estimator(units(sums_of(log, plan_of(log, (TD,), 200))), "states")
    resampled = assess(e, 0, "pi", resamples(e.n_units, e.rank, 1))
    quick = _first_order(e, 0, pencil(e, 0))
    assert e.rank == 7
    assert quick.width == pytest.approx(resampled.eta_pd_hi - resampled.eta_pd_lo, rel=0.25)
    assert (quick.lo + quick.hi) / 2.0 == pytest.approx(resampled.eta_pd)


def test_one_endless_episode_is_valued_over_its_states() -> None:
    p = st.problem("theta2theta")
    table = log_table(p, episodes=1, length=4000, seed=1)
    found = st.evaluate(table, features=Identity(), learners=["lstd", "pdis", "dr"])
    rows = {r["learner"]: r for r in found.values.to_dicts()}
    w = st.certify(p).fixed_point("lstd")
    exact = float(p.d_mu @ p.Phi @ w)
    assert found.log.continuing
    assert rows["lstd"]["lo"] <= exact <= rows["lstd"]["hi"]
    assert np.isnan(rows["pdis"]["value"]) and np.isnan(rows["dr"]["value"])
    assert {w.code for w in found.warnings} >= {"continuing_log", "bias_unchecked"}
    assert found.recommended["pi"].learner == "lstd"
