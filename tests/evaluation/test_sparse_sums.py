"""Rows that are kept give what the full sums give, and what is known of one-hot features holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.plan import ETD, TD, Plan, System, Where
from steadytd.evaluation.collect.rows.table import table_fits
from steadytd.evaluation.collect.statistics import Statistics, halved, merged, units
from steadytd.evaluation.estimate.baselines import estimate
from steadytd.evaluation.estimate.estimators import DRL, LSTD, MIS, PDIS, SNPDIS, Estimator, Form
from steadytd.evaluation.estimate.methods.behavior import behavior_estimate
from steadytd.evaluation.estimate.methods.drl import GRID, at, curve
from steadytd.evaluation.estimate.sparse.estimator import SparseEstimator, estimator

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.evaluation.intervals import Estimate
from steadytd.evaluation.stability import Resampled, assess, path, pencil, quick_pencil
from steadytd.features import FeatureMap, feature_map
from steadytd.logs.log import Log, open_log
from tests.support.draws import thinned

SYSTEMS = (TD, System(0.5), System(0.8), System(0.95), ETD, System(0.5, emphatic=True))
LAMS = (0.5, 0.8, 0.95, 1.0)
FORMS = {
    "lstd": LSTD, "penalty": Form("solved", eta=0.3), "ridge": Form("solved", ridge=0.1),
    "traces": Form("solved", system=1), "emphatic": Form("solved", system=4),
    "emphatic traces": Form("solved", system=5), "pdis": PDIS, "snpdis": SNPDIS, "mis": MIS,
    "drl:lam=0.5": DRL._replace(lam=0.5),
}  # fmt: skip


def walk(states: int = 12, rows: int = 600, episode: int = 15, seed: int = 0) -> pa.Table:
    """A walk on a circle with two targets; every third episode is cut off."""
    rng = np.random.default_rng(seed)
    at = np.arange(rows)
    action = (rng.random(rows) < 0.5).astype(int)
    state = np.empty(rows, dtype=int)
    ahead = 0
    for i in at:
        begins = i % episode == 0
        state[i] = rng.integers(states) if begins else ahead
        ahead = (state[i] + (1 if action[i] else -1) * rng.integers(1, 3)) % states
    last = (at % episode == episode - 1) | (at == rows - 1)
    cut = last & (at // episode % 3 == 0)
    after = np.where(last, (state + 1) % states, np.append(state[1:], 0))
    chances = {
        f"target_prob_{i}": np.where(action == 1, p, 1.0 - p) for i, p in enumerate((0.7, 0.4))
    }
    return pa.table(
        {
            "episode_id": at // episode, "t": at % episode, "obs": _lists(state),
            "next_obs": _lists(after), "action": action,
            "reward": np.cos(state) + 0.1 * rng.normal(size=rows), "terminated": last & ~cut,
            "truncated": cut, "behavior_prob": np.full(rows, 0.5), **chances,
        }
    )  # fmt: skip


def _lists(numbers: Floats) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.astype(np.float64)), 1)


def opened(table: pa.Table, spec: str = "onehot", batch: int = 100_000) -> tuple[Log, FeatureMap]:
    log = open_log(table, discount=0.9, batch_rows=batch)
    return log, feature_map(spec, 0).fit(log.sample(1000, 0))


def sums_of(log: Log, features: FeatureMap, plan: Plan) -> Statistics:
    sums = Accumulator(plan)
    for batch in log.batches():
        sums.add(batch, features(batch.obs))
    return sums.statistics()


def both(table: pa.Table, where: Where, spec: str = "onehot") -> tuple[Estimator, SparseEstimator]:
    """The estimators from full sums and from rows."""
    log, features = opened(table, spec)
    assert log.rows is not None
    d, targets = features.n_features, tuple(log.targets)
    plan = Plan(targets, d, log.rows, SYSTEMS, blocks=25, lams=LAMS, where=where)
    full = estimator(units(sums_of(log, features, plan)), where, SYSTEMS, LAMS)
    kept = units(sums_of(log, features, replace(plan, keeps_rows=True)))
    sparse = estimator(kept, where, SYSTEMS, LAMS)
    assert type(full) is Estimator and isinstance(sparse, SparseEstimator)
    return full, sparse


def same(one: Estimate, other: Estimate) -> None:
    size = 1.0 + abs(np.nan_to_num(other.value))
    assert one.value == pytest.approx(other.value, rel=1e-9, nan_ok=True)
    np.testing.assert_allclose(one.influence, other.influence, atol=1e-9 * size)
    assert one.cut == pytest.approx(other.cut, rel=1e-9, abs=1e-12)
    assert one.lam == other.lam and (one.masses is None) == (other.masses is None)
    if one.masses is not None and other.masses is not None:
        np.testing.assert_allclose(one.masses, other.masses, atol=1e-9)


@pytest.mark.parametrize("spec", ["onehot", "tiles:3x4"])
@pytest.mark.parametrize(
    "case", thinned([("start", 15), ("states", 15), ("states", 600), ("start", 90)], 2), ids=str
)
def test_rows_give_what_sums_give(case: tuple[Where, int], spec: str) -> None:
    """Every estimator of every target, with episodes within blocks and across them."""
    where, episode = case
    full, sparse = both(walk(episode=episode), where, spec)
    assert sparse.rank == full.rank
    for target in (0, 1):
        for form in FORMS.values():
            same(estimate(sparse, target, form), estimate(full, target, form))
        found, wanted = curve(sparse, target), curve(full, target)
        assert found.keys() == wanted.keys() == set(GRID)
        assert all(one.cut > 0.0 for lam, one in found.items() if lam > 0.0)
        for lam, one in found.items():
            same(one, wanted[lam])
        np.testing.assert_allclose(sparse.held_out(target), full.held_out(target), rtol=1e-7)
        w = sparse.weights(target, LSTD)
        np.testing.assert_allclose(sparse.squares(w, w).sum(), w @ full.gram() @ w, rtol=1e-9)
    same(behavior_estimate(sparse), behavior_estimate(full))


def test_joined_units_are_those_of_the_sums() -> None:
    log, features = opened(walk(episode=600))
    plan = Plan(
        tuple(log.targets), features.n_features, 600, SYSTEMS, 25, lams=LAMS, where="states"
    )
    full, kept = (
        halved(units(sums_of(log, features, replace(plan, keeps_rows=k)))) for k in (False, True)
    )
    one, other = (estimator(u, "states", SYSTEMS, LAMS) for u in (kept, full))
    same(at(one, 1, 0.8), at(other, 1, 0.8))


SOME = (LSTD, MIS, FORMS["drl:lam=0.5"], FORMS["emphatic"])


def whole(e: SparseEstimator) -> tuple[Floats, ...]:
    return tuple(estimate(e, 0, form).influence for form in SOME)


def test_batches_parts_and_files_do_not_change_a_bit(tmp_path: Path) -> None:
    table = walk(rows=900)
    found = []
    for batch, parts in ((7, 1), (900, 1), (100, 2), (31, 3)):
        log, features = opened(table, batch=batch)
        plan = Plan(tuple(log.targets), features.n_features, 900, SYSTEMS, 25, lams=LAMS)
        plan = replace(plan, keeps_rows=True)
        pieces = log.parts(parts) if parts > 1 else [log]
        made = merged([sums_of(piece, features, plan) for piece in pieces])
        made.save(tmp_path / "sums.npz")
        read, _ = Statistics.load(tmp_path / "sums.npz")
        for one in (made, read):
            e = estimator(units(one), "start", SYSTEMS, LAMS)
            assert isinstance(e, SparseEstimator)
            found.append(whole(e))
    for influences in found[1:]:
        for a, b in zip(influences, found[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_no_row_shows_has_the_value_0() -> None:
    """State 9 is only ever come to where an episode is cut, in state 5 the target never acts."""
    table = walk(states=8, rows=400)
    obs = table["obs"].combine_chunks().flatten().to_numpy().copy()
    ahead = table["next_obs"].combine_chunks().flatten().to_numpy().copy()
    ahead[table["truncated"].to_numpy()] = 9.0
    zero = np.where(obs == 5.0, 0.0, table["target_prob_0"].to_numpy())
    for name, array in (("next_obs", _lists(ahead)), ("target_prob_0", pa.array(zero))):
        table = table.set_column(table.column_names.index(name), name, array)
    log = open_log(table, discount=0.9)
    features = feature_map("onehot", 0).fit(np.arange(11.0)[:, None])
    plan = Plan(tuple(log.targets), 11, 400, SYSTEMS, 25, lams=LAMS, keeps_rows=True)
    e = estimator(units(sums_of(log, features, plan)), "start", SYSTEMS, LAMS)
    assert e.rank == 8
    pair = e.solution(0, LSTD)
    assert pair is not None
    assert pair.w[[5, 8, 9, 10]].tolist() == pair.beta[[5, 8, 9, 10]].tolist() == [0.0] * 4
    A, b = e.total(0)
    left = np.delete(b - A @ pair.w, [5, 8, 9, 10])
    np.testing.assert_allclose(left, 0.0, atol=1e-12)
    assert np.isfinite(at(e, 0, 0.5).value)


def test_one_hot_thresholds_are_those_of_full_matrices() -> None:
    full, sparse = both(walk(states=60, rows=3000), "start")
    counts = np.ones((1, full.n_units))
    for target in (0, 1):
        p, q = quick_pencil(sparse, target), pencil(full, target)
        assert p.eta_pd == pytest.approx(q.eta_pd, rel=1e-9)
        for eta in (0.0, 0.3):
            assert p.slowest(eta) == pytest.approx(q.slowest(eta), rel=1e-8)
        one, other = (
            assess(e, target, "t", Resampled.of(e, counts)).to_dict() for e in (sparse, full)
        )
        assert one.pop("td_stable_share") is other.pop("td_stable_share") is None
        assert one.pop("target") == other.pop("target")
        assert one == pytest.approx(other, rel=1e-8)
        a, b = (
            path(e, target, assess(e, target, "t", Resampled.of(e, counts))).rows()
            for e in (sparse, full)
        )
        assert [r["stable"] for r in a] == [r["stable"] for r in b]
        np.testing.assert_allclose([r["value"] for r in a], [r["value"] for r in b], rtol=1e-8)
        r = pencil(sparse, target)
        np.testing.assert_allclose(r.A0, q.A0, atol=1e-12)
        np.testing.assert_allclose(r.G, q.G, atol=1e-12)


@pytest.mark.parametrize("episode", thinned([15, 3000], 2))
def test_many_states_evaluate_as_full_sums_do(
    episode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole evaluation, online learners, rule and decisions included, from rows and sums."""
    table = walk(states=70, rows=3000, episode=episode)
    found = st.evaluate(table, discount=0.9, features="onehot")
    monkeypatch.setattr("steadytd.evaluation.evaluate.table_fits", lambda *_: False)
    wanted = st.evaluate(table, discount=0.9, features="onehot")
    assert found.settings == wanted.settings
    alike(found.to_dict(), wanted.to_dict())


def alike(one: Any, other: Any, where: str = "") -> None:
    """The same but for rounding, numbers in sentences (three digits) included."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            alike(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            alike(a, b, f"{where}[{i}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True), where
    else:
        assert one == other, where


def test_rows_are_kept_where_few_features_are_active_and_rows_fit() -> None:
    plan = Plan(("a", "b"), 713, 28_700, SYSTEMS)
    assert table_fits(plan, 1) and table_fits(plan, 8)
    assert not table_fits(plan, 713)
    assert not table_fits(replace(plan, features=20), 1)
    assert not table_fits(replace(plan, rows=10**8), 1)
    many = replace(plan, features=10_000)
    assert table_fits(many, 1) and not table_fits(many, 8)
    assert not table_fits(replace(plan, features=10_001), 1)
    assert feature_map("tiles:8x4").fit([[0.0], [1.0]]).most_active == 8
    assert feature_map("raw").fit([[0.0, 1.0], [1.0, 0.0]]).most_active == 3
