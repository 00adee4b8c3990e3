"""Estimates and intervals from the sums, against exact values and known variances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from steadytd.evaluation.collect.plan import ETD, TD
from steadytd.evaluation.collect.statistics import BINS, KEPT_ROWS, SUMMED, Statistics, units
from steadytd.evaluation.estimate.baselines import estimate
from steadytd.evaluation.estimate.bootstrap import interval, quantile, resamples
from steadytd.evaluation.estimate.estimators import (
    DRL,
    LSTD,
    MIS,
    PDIS,
    SNPDIS,
    Estimator,
    Form,
)
from steadytd.evaluation.estimate.methods.behavior import behavior_estimate

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.stability import (
    Resampled,
    assess,
    automatic_ratio,
    pencil,
    stable,
    thresholds,
)
from steadytd.logs.log import open_log
from tests.support.evaluate_helpers import Identity, episodes_of, plan_of, sums_of
from tests.support.layers import GAMMA, STATES, every_trajectory, exact_value
from tests.support.log_helpers import fixed_lists, log_table


def value(e: Estimator, form: Form) -> float:
    return estimate(e, 0, form).value


def estimator(table: Any, blocks: int = 8, **options: Any) -> Estimator:
    log = open_log(table, discount=options.pop("discount", GAMMA))
    return Estimator(units(sums_of(log, plan_of(log, (TD, ETD), blocks))), "start")


@pytest.mark.parametrize("form", [PDIS, SNPDIS, LSTD, Form("solved", 1)], ids=str)
def test_all_trajectories_give_the_exact_value(form: Form) -> None:
    e = estimator(every_trajectory(np.eye(STATES)))
    assert value(e, form) == pytest.approx(exact_value(), abs=1e-12)


def test_importance_sampling_needs_no_features_but_lstd_does() -> None:
    blind = np.array([[1.0], [0.0], [1.0], [2.0], [0.5]])
    e = estimator(every_trajectory(blind))
    assert value(e, PDIS) == pytest.approx(exact_value())
    assert value(e, SNPDIS) == pytest.approx(exact_value())
    assert abs(value(e, LSTD) - exact_value()) > 0.3


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
    assert value(e, SNPDIS) == pytest.approx(expected)


@pytest.mark.parametrize(
    "form", [LSTD, PDIS, SNPDIS, MIS, Form("solved", 1), Form("solved", 0, 0.3, 5.0)], ids=str
)
def test_an_influence_is_what_a_unit_counted_again_changes(form: Form) -> None:
    """The derivative of the value by a unit's number of copies, at one copy, by a difference."""
    e = estimator(every_trajectory(np.random.default_rng(3).normal(size=(STATES, 2))), blocks=8)
    psi, h = estimate(e, 0, form).influence, 1e-6
    moved = np.zeros(e.n_units)
    for u in range(e.n_units):
        counts = np.ones(e.n_units)
        counts[u] += h
        scaled = {n: np.einsum("u,u...->u...", counts, getattr(e.units, n)) for n in SUMMED}
        other = estimate(replace(e, units=replace(e.units, **scaled), _held={}), 0, form)
        moved[u] = (other.value - value(e, form)) / h
    np.testing.assert_allclose(moved - moved.mean(), psi, rtol=1e-3, atol=1e-6)  # a ridge is fixed
    assert psi.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(psi).max() > 1e-4


def by_hand(rewards: Floats) -> Statistics:
    """Units of one-step episodes from one state with these rewards [units, episodes]."""
    U, n = rewards.shape
    systems = np.empty((U, 1, 1, 1, 2))
    systems[:, 0, 0, 0, 0], systems[:, 0, 0, 0, 1] = n, rewards.sum(axis=1)
    x = np.full((U, 1), float(n))
    ones, zeros = np.full((U, 1, 1), float(n)), np.zeros((U, 1, 1))
    r = rewards.sum(axis=1)
    weighted = np.repeat(np.column_stack([x, r, x])[:, None, None, :], 2, axis=1)
    return Statistics(
        block=np.arange(U), continues=np.zeros(U, dtype=bool),
        counts=np.column_stack([np.full((U, 2), n), np.zeros((U, 2))]), G=ones, x=x, x_start=x,
        systems=systems, mass=ones[:, None], behavior=systems[:, 0, 0], weighted=weighted,
        cut=np.zeros((len(systems), 1, 1, 2)),
        ratios=np.ones((U, 1, 7)),
        numerator=rewards.sum(axis=1)[:, None, None], denominator=ones, ended=zeros,
        histogram=np.zeros((1, BINS), dtype=np.int64), largest_row=np.zeros(1, dtype=np.int64),
        violations=np.zeros(1, dtype=np.int64),
        violating=np.full((1, KEPT_ROWS), -1, dtype=np.int64),
        extent=np.array([rewards.min(), rewards.max(), 0.0, 1.0]),
    )  # fmt: skip


def test_interval_has_the_width_of_the_known_error() -> None:
    """Mean of 4,000 rewards of variance 1: 2 x 1.97/sqrt(4000), +-15 % (200 units)."""
    rewards = np.random.default_rng(5).normal(size=(200, 20))
    e = Estimator(by_hand(rewards), "start")
    for form in (LSTD, PDIS, SNPDIS, MIS, DRL._replace(lam=0.0), DRL._replace(lam=1.0)):
        found = estimate(e, 0, form)
        assert found.value == pytest.approx(rewards.mean())
        assert found.interval().width == pytest.approx(2 * 1.97 / np.sqrt(4000), rel=0.15)
    assert behavior_estimate(e).value == pytest.approx(rewards.mean())


@pytest.mark.parametrize("n_units", [10, 40])
def test_interval_covers_skewed_means_nineteen_times_in_twenty(n_units: int) -> None:
    """400 logs of exponential rewards: 0.95 +- 3 sqrt(.05 .95/400) = .033, and skewness costs."""
    rng = np.random.default_rng(n_units)
    covered = 0
    for _ in range(400):
        e = Estimator(by_hand(rng.exponential(size=(n_units, 5))), "start")
        covered += estimate(e, 0, PDIS).interval().covers(1.0)
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
    for form in forms:
        assert value(e, form) == pytest.approx(value(wide, form), rel=1e-9)
    w = wide.weights(0, LSTD)
    assert w.shape == (STATES + 2,) and (w != 0.0).sum() <= STATES


def test_rounding_does_not_make_features_independent() -> None:
    """Forty combinations of five features, by a matrix without special numbers."""
    mixed = np.eye(STATES) @ np.random.default_rng(0).normal(size=(STATES, 40))
    e = estimator(every_trajectory(mixed))
    assert e.rank == STATES
    assert value(e, LSTD) == pytest.approx(exact_value(), rel=1e-6)


def test_small_features_are_not_taken_for_dependent_ones() -> None:
    scales = np.array([1.0, 1e-4, 1e3, 1e-6, 1.0])
    e = estimator(every_trajectory(np.diag(scales)))
    assert e.rank == STATES
    assert value(e, LSTD) == pytest.approx(exact_value(), rel=1e-6)


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
    found = assess(e, 0, "pi", Resampled.of(e, resamples(e.n_units, e.rank, 1)))
    certificate = st.certify(p)
    assert found.td_stable == certificate.td_stable
    assert found.eta_pd_lo <= certificate.eta_pd <= found.eta_pd_hi
    assert found.eta_pd_hi - found.eta_pd_lo < 0.2
    assert found.eta > found.eta_pd_hi
    assert automatic_ratio(pencil(e, 0), found.eta_pd_hi) >= 2.0 * found.eta_pd_hi
    eta = 2.0 * certificate.eta_pd
    exact_weights = certificate.fixed_point("perturbed_td", eta=eta)
    w = e.weights(0, Form("solved", 0, eta))
    sums = np.tensordot(resamples(e.n_units, 1, 2), u.systems[:, 0, 0], axes=1)
    penalties = eta * np.tensordot(resamples(e.n_units, 1, 2), u.G, axes=1)
    drawn = np.stack(
        [np.linalg.lstsq(s[:, :-1] + g, s[:, -1])[0] for s, g in zip(sums, penalties, strict=True)]
    )
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


def test_stability_without_eigenvalues_is_that_of_the_eigenvalues() -> None:
    """Definite matrices, stable ones that are not, unstable ones, and some on the edge."""
    rng = np.random.default_rng(1)
    M = rng.normal(size=(3000, 2, 2))
    A = M - M.swapaxes(1, 2) + rng.uniform(-1.0, 2.0, (3000, 1, 1)) * (M @ M.swapaxes(1, 2))
    A[::2] += rng.normal(size=(1500, 2, 2))
    A[:50] = np.array([[0.0, 1.0], [-1.0, 0.0]]) + rng.choice([0.0, 1e-11, 1e-9], (50, 1, 1))
    G = np.stack([m @ m.T + 0.1 * np.eye(2) for m in rng.normal(size=(3000, 2, 2))])
    found = stable(A, thresholds(A, G), np.linalg.eigvalsh(G)[:, 0])
    plain = np.linalg.eigvals(A).real.min(axis=1) > 1e-12 * np.abs(A).max(axis=(1, 2))  # rounding
    assert (found == plain).all() and 0.2 < plain.mean() < 0.9
    definite = thresholds(A, G) < 0.0
    assert 0.1 < definite.mean() < (plain & ~definite).mean() + definite.mean() < 0.9


def test_quantile_is_numpys_to_the_last_bit() -> None:
    rng = np.random.default_rng(2)
    for n in rng.integers(1, 300, 2000).tolist():
        numbers = rng.normal(size=n) * 10.0 ** rng.integers(-5, 5)
        numbers = np.round(numbers) if n % 3 == 0 else numbers
        level = float(rng.choice([0.0, 0.5, 0.999, 1.0, rng.random()]))
        assert quantile(np.sort(numbers), level) == np.quantile(numbers, level)
    assert np.isnan(quantile(np.sort([1.0, np.nan, 2.0]), 0.1))


def test_first_order_interval_of_the_threshold_agrees_with_the_resampled_one() -> None:
    from steadytd.evaluation.stability import _first_order

    p = st.problem("baird")
    log = open_log(log_table(p, episodes=400, length=60, seed=4), discount=None)
    e = Estimator(units(sums_of(log, plan_of(log, (TD,), 200))), "states")
    resampled = assess(e, 0, "pi", Resampled.of(e, resamples(e.n_units, e.rank, 1)))
    quick = _first_order(e, 0, pencil(e, 0))
    assert e.rank == 7
    assert quick.width == pytest.approx(resampled.eta_pd_hi - resampled.eta_pd_lo, rel=0.25)
    assert (quick.lo + quick.hi) / 2.0 == pytest.approx(resampled.eta_pd)


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
    assert {w.code for w in found.warnings} >= {"continuing_log", "bias_unchecked"}
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
    assert e.log.unit_rows == pytest.approx((n - 1) / e.log.units)
    row, ruled = e.values.to_dicts()
    assert row["lo"] <= 0.0 <= row["hi"] and ruled["lo"] <= 0.0 <= ruled["hi"]
    assert ruled["lo"] <= e.behavior.value <= ruled["hi"]  # the target is the behaviour here
    assert "stretches_alike" in e.recommended["pi"].warnings
