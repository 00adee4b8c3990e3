"""The sums of a log against plain Python, however the log is cut."""

from __future__ import annotations

from dataclasses import Field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from steadytd.evaluation.collect.accumulate import Accumulator, BlockSums, few, room_for
from steadytd.evaluation.collect.plan import (
    ETD,
    TD,
    Plan,
    System,
    Where,
    blocks_for,
    numbers_per_block,
)
from steadytd.evaluation.collect.products import shares
from steadytd.evaluation.collect.room import Padded, Room, memory_of
from steadytd.evaluation.collect.scan import Weighted
from steadytd.evaluation.collect.statistics import Statistics, merged, units

from steadytd import InputError
from steadytd.base.arrays import Floats
from steadytd.logs.log import Log, open_log
from tests.support.evaluate_helpers import (
    episodes_of,
    plan_of,
    slow_products,
    slow_system,
    sums_of,
)
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table, write_problem_log

SYSTEMS = (
    TD, ETD, System(0.7), System(0.4, True), System(0.0, True, 0.5), System(1.0),
)  # fmt: skip


TRACED = ("systems", "mass", "behavior", "weighted", "G", "x")


def in_shares(plan: Plan, number: int, rows: Weighted, ends: tuple[int, ...]) -> BlockSums:
    """The sums over features, in so many shares, of rows between the ends, one call after another.

    Each share goes over all rows before the next one does.
    """
    made = BlockSums(room_for(plan), 0, 0, False)
    for share in shares(plan, number):
        for lo, hi in pairwise(ends):
            share.add(lo, hi, rows, plan, made)
    return made


def sums_in(s: Statistics) -> list[Field[Any]]:
    """The fields but the table of rows, which is empty here."""
    assert not len(s.table.first)
    return [f for f in fields(s) if f.name != "table"]


def log_of(seed: int = 3, batch_rows: int = 65_536, **kwargs: Any) -> Log:
    """Episodes of up to 12 steps, some terminated, some cut off, for two targets."""
    problem = random_problem(seed, states=5, actions=3, features=3, policies=2)
    table = log_table(problem, episodes=40, length=12, seed=seed, **kwargs)
    return open_log(table, discount=None, batch_rows=batch_rows)


@pytest.fixture(scope="module")
def log() -> Log:
    return log_of()


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
@pytest.mark.parametrize("target", [0, 1])
def test_systems_are_the_plain_sums(log: Log, system: System, target: int) -> None:
    plan = plan_of(log, (TD, system) if system != TD else (TD,))
    s, expected = sums_of(log, plan), slow_system(episodes_of(log), target, system)
    np.testing.assert_allclose(s.systems.sum(axis=0)[target, -1], expected[:, :-1], rtol=1e-11)
    np.testing.assert_allclose(s.mass.sum(axis=0)[target, -1], expected[:, -1], rtol=1e-11)


@pytest.mark.parametrize("where", ["start", "states"])
@pytest.mark.parametrize("lams", [(1.0,), (0.8, 0.95, 1.0), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)])
def test_products_of_ratios_with_decay(log: Log, where: Where, lams: tuple[float, ...]) -> None:
    """c = rho (gamma lam c + 1 at a start), with two targets and the behaviour's ratio 1."""
    plan = replace(plan_of(log, (TD, System(0.8))), lams=lams, where=where)
    for found in (sums_of(log, plan), sums_of(replace(log, batch_rows=7), plan)):
        for t in range(3):
            for m, lam in enumerate(lams):
                expected = slow_products(episodes_of(log), t, lam, where == "states")
                total = found.weighted.sum(axis=0)[t, m]
                np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-11)


def test_the_behaviour_has_ratios_of_one(log: Log) -> None:
    s, steps = sums_of(log, plan_of(log)), [p for e in episodes_of(log) for p in e]
    v = [np.append(p.x - p.discount * p.x_next, p.reward) for p in steps]
    expected = sum(np.outer(p.x, one) for p, one in zip(steps, v, strict=True))
    np.testing.assert_allclose(s.behavior.sum(axis=0), expected, rtol=1e-11)
    rewards = [p.reward for p in steps]
    longest = max(len(e) for e in episodes_of(log))
    discount = max(p.discount for p in steps)
    assert s.extent.tolist() == [min(rewards), max(rewards), discount, longest]


def test_more_targets_than_a_vector_holds() -> None:
    """Eleven targets and two systems: 22 columns of weights in three eights, targets in two."""
    problem = random_problem(5, states=5, actions=3, features=3, policies=11)
    table = log_table(problem, episodes=40, length=12, seed=5)
    log = open_log(table, discount=None, batch_rows=50)
    assert len(log.targets) == 11
    plan = plan_of(log, (TD, ETD))
    assert few(plan)
    s, episodes = sums_of(log, plan), episodes_of(log)
    steps = [step for episode in episodes for step in episode]
    for t in range(11):
        for k, system in enumerate(plan.systems):
            expected = slow_system(episodes, t, system)
            np.testing.assert_allclose(s.systems.sum(axis=0)[t, k], expected[:, :-1], rtol=1e-11)
        along = slow_products(episodes, t, 1.0)
        np.testing.assert_allclose(s.weighted.sum(axis=0)[t, 0], along, rtol=1e-10)
        rho = np.array([p.rho[t] for p in steps])
        np.testing.assert_allclose(s.ratios.sum(axis=0)[t, :2], (rho.sum(), (rho**2).sum()))
        assert s.ratios[:, t, 2].sum() == (rho == 0.0).sum()
        assert s.largest_row[t] == steps[int(rho.argmax())].number
        assert s.histogram[t].sum() == len(steps)
        products = [np.cumprod([p.rho[t] for p in e]) for e in episodes]
        ended = np.bincount([len(c) for c in products], weights=[c[-1] for c in products])
        np.testing.assert_allclose(s.ended.sum(axis=0)[t, : len(ended)], ended)
        second = sum(float(c[1]) for c in products if len(c) > 1)
        np.testing.assert_allclose(s.denominator.sum(axis=0)[t, 1], second)


@pytest.mark.parametrize("features", [1, 2, 3, 5, 6, 7, 8, 17])
@pytest.mark.parametrize("targets", [1, 3, 4, 9])
@pytest.mark.parametrize("system", [TD, ETD], ids=["ratios in weights", "ratios apart"])
@pytest.mark.parametrize("constant", [None, 0])
def test_products_of_any_size(
    features: int, targets: int, system: System, constant: int | None
) -> None:
    """Rows 5..225 of 240 in two calls: sizes that fill the tiles of the sums and that do not."""
    rng = np.random.default_rng(features)
    lams, traced = (0.3, 1.0), System(0.4)
    plan = Plan(("",) * targets, features, 240, (system, traced), lams=lams, constant=constant)
    X = rng.standard_normal((241, features))
    if constant is not None:
        X[:, constant] = 1.0
    row_next = rng.integers(0, 241, 240).astype(np.int32)
    discount, reward = rng.random(240), rng.standard_normal(240)
    gamma, first = rng.random(240), rng.random(240) < 0.1
    weight, rho = Padded((240, plan.columns)), Padded((240, plan.ratios))
    rho.array[:] = rng.random(rho.array.shape)
    weight.array[:, :-1] = np.tile(rho.array[:, :-1], 2)
    if system.emphatic:
        weight.array[:, :targets] = rng.random((240, targets))
    weight.array[:, -1] = rho.array[:, -1] = 1.0  # the behaviour's
    along_rows = (memory_of(weight), plan.columns, memory_of(rho), plan.ratios, False)
    rows = Weighted(X, row_next, discount, reward, gamma, first, *along_rows)
    made, *others = (in_shares(plan, n, rows, (5, 117, 225)) for n in (1, 2, 3))
    for other in others:  # any number of shares makes the same bits
        for name in TRACED:
            np.testing.assert_array_equal(getattr(made, name), getattr(other, name))
    systems = np.zeros((plan.columns, features, features + 2))
    weighted = np.zeros((plan.ratios, len(lams), features + 2))
    z, c = np.zeros((plan.columns, features)), np.zeros((plan.ratios, len(lams)))
    lam = np.append(np.repeat([0.0, traced.lam], targets), 0.0)
    for i in range(5, 225):
        moved = X[i] - discount[i] * X[row_next[i]]
        v = np.concatenate([moved, [reward[i], 1.0 - discount[i]]])
        z = weight.array[i][:, None] * (X[i] + gamma[i] * lam[:, None] * z)
        c = rho.array[i][:, None] * (gamma[i] * np.array(lams) * c + first[i])
        systems += z[:, :, None] * v
        weighted += c[:, :, None] * v
    x, n = X[5:225], features + 1
    by_target = systems[:-1].reshape(2, targets, features, n + 1).swapaxes(0, 1)
    expected = {
        "systems": by_target[..., :n], "mass": by_target[..., n], "behavior": systems[-1, :, :n],
        "weighted": weighted, "G": x.T @ x, "x": x.sum(axis=0),
    }  # fmt: skip
    for name in TRACED:
        found = getattr(made, name)
        np.testing.assert_allclose(found, expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_traces_stop_at_the_largest_number() -> None:
    """Traces that would pass 1e100 stop there, and begin anew after a ratio of 0."""
    rng, n = np.random.default_rng(3), 200
    plan = Plan(("",) * 4, 3, n, (TD, System(1.0)), lams=(1.0,))
    X, weight, rho = rng.standard_normal((n + 1, 3)), Padded((n, 9)), Padded((n, 5))
    rho.array[:] = 10.0 ** rng.uniform(2.0, 6.0, (n, 5))
    rho.array[150] = 0.0
    rho.array[151:] = 0.5
    weight.array[:, :-1] = np.tile(rho.array[:, :-1], 2)
    gamma, first = np.full(n, 0.9), np.arange(n) == 0
    ones = np.ones(n), np.zeros(n)
    next_row = np.arange(1, n + 1, dtype=np.int32)
    rows = Weighted(X, next_row, ones[1], ones[0], gamma, first, memory_of(weight), 9,
                    memory_of(rho), 5, False)  # fmt: skip
    [share], z, largest = shares(plan, 1), np.zeros((9, 3)), 0.0
    for lo, hi in ((0, 100), (100, 150), (150, n)):
        found, expected = BlockSums(room_for(plan), 0, 0, False), np.zeros((9, 3))
        share.add(lo, hi, rows, plan, found)
        for i in range(lo, hi):
            lam = np.append(np.repeat([0.0, 1.0], 4), 0.0)[:, None]
            z = np.clip(weight.array[i][:, None] * (X[i] + gamma[i] * lam * z), -1e100, 1e100)
            expected += z  # the reward is 1
            largest = max(largest, float(np.abs(z).max()))
        by_weight = found.systems.swapaxes(0, 1).reshape(8, 3, 4)
        np.testing.assert_allclose(by_weight[:, :, 3], expected[:-1], rtol=1e-11)
    assert largest == 1e100 and np.abs(z).max() < 10.0


def test_room_behind_the_last_number() -> None:
    """What a loop of eight may touch behind the last row belongs to the array's own memory."""
    numbers = Padded((3, 2))
    memory = memory_of(numbers)
    assert memory.shape == (3 * 2 + 8,)
    memory[:] = np.arange(14.0)
    assert numbers.array.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    again = Room()
    for rows in (5, 40, 7):  # also where memory is used again
        made = again.padded("w", (rows, 3))
        assert made.array.shape == (rows, 3) and len(memory_of(made)) == 3 * rows + 8


@pytest.mark.parametrize(
    "memory", [np.zeros(13), np.zeros((2, 7)), np.zeros(14, dtype=np.float32), np.zeros(28)[::2]]
)
def test_memory_without_room_is_refused(memory: Floats) -> None:
    with pytest.raises(ValueError, match=r"of shape \(3, 2\) need .* at least 14 numbers"):
        Padded((3, 2), memory)


def test_an_array_without_room_cannot_be_passed_to_the_loops() -> None:
    log = log_of(batch_rows=37)
    sums, batch = Accumulator(plan_of(log)), next(log.batches())
    prepared = sums.prepare(batch, Room())
    bare: Any = prepared.weight.array
    prepared.weight = bare
    with pytest.raises(TypeError, match="give it Padded numbers, not ndarray"):
        sums.add_rows(prepared, np.asarray(batch.obs, dtype=np.float64))


def test_both_ways_to_add_up_are_the_same() -> None:
    """Few features go through `products`; BLAS, which takes the others, finds the same sums."""
    log = log_of(batch_rows=37)
    systems = (TD, ETD, System(0.0, True, 0.5), System(0.8), System(1.0))
    plan = replace(plan_of(log, systems), lams=(0.8, 1.0))
    own, blas = Accumulator(plan), Accumulator(plan)
    assert own.shares
    blas.shares = []
    for batch in log.batches():
        X = np.asarray(batch.obs, dtype=np.float64)
        own.add(batch, X)
        blas.add(batch, X)
    one, other = own.statistics(), blas.statistics()
    for name in ("systems", "mass", "behavior", "weighted", "G", "x"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=name)


def test_the_log_has_both_kinds_of_ends(log: Log) -> None:
    ends = [episode[-1].discount for episode in episodes_of(log)]
    assert 0 < sum(end == 0.0 for end in ends) < len(ends)


def test_the_other_sums(log: Log) -> None:
    episodes = episodes_of(log)
    steps = [step for episode in episodes for step in episode]
    s = sums_of(log, plan_of(log))
    np.testing.assert_allclose(s.G.sum(axis=0), sum(np.outer(p.x, p.x) for p in steps))
    np.testing.assert_allclose(s.x.sum(axis=0), sum(p.x for p in steps))
    np.testing.assert_allclose(s.x_start.sum(axis=0), sum(e[0].x for e in episodes))
    cut = [float(np.prod([p.discount for p in e])) for e in episodes if e[-1].discount > 0.0]
    expected = (len(steps), len(episodes), len(cut), sum(cut))
    np.testing.assert_allclose(s.counts.sum(axis=0), expected)
    for t in range(2):
        rho = np.array([p.rho[t] for p in steps])
        product = np.array([np.prod([p.rho[t] for p in e]) for e in episodes])
        total = s.ratios.sum(axis=0)[t]
        np.testing.assert_allclose(total[:2], (rho.sum(), (rho**2).sum()))
        assert total[2] == (rho == 0.0).sum()
        assert s.ratios[:, t, 3].max() == rho.max()
        np.testing.assert_allclose(total[4:6], (product.sum(), (product**2).sum()))
        assert s.ratios[:, t, 6].max() == pytest.approx(product.max())
        assert s.largest_row[t] == steps[int(rho.argmax())].number
        assert s.histogram[t].sum() == len(steps)


def test_importance_sampling_sums(log: Log) -> None:
    """Numerator and denominators step by step."""
    horizon = 8  # shorter than the episodes: later steps fall into the last place
    s = sums_of(log, plan_of(log, horizon=horizon))
    for t in range(2):
        numerator, denominator, ended = np.zeros(horizon), np.zeros(horizon), np.zeros(horizon)
        for episode in episodes_of(log):
            g = c = 1.0
            for step, p in enumerate(episode):
                c *= float(p.rho[t])
                numerator[min(step, horizon - 1)] += g * c * p.reward
                if step < horizon:
                    denominator[step] += c
                g *= p.discount
            if len(episode) < horizon:
                ended[len(episode)] += c
        np.testing.assert_allclose(s.numerator.sum(axis=0)[t], numerator, rtol=1e-11)
        np.testing.assert_allclose(s.denominator.sum(axis=0)[t], denominator, rtol=1e-11)
        np.testing.assert_allclose(s.ended.sum(axis=0)[t], ended, rtol=1e-11)


def test_histogram_bins_hold_the_right_ratios(log: Log) -> None:
    from steadytd.evaluation.overlap import histogram

    rho = np.array([p.rho[1] for e in episodes_of(log) for p in e])
    s = sums_of(log, plan_of(log))
    rows = [row for row in histogram(s, tuple(log.targets)) if row["target"] == log.targets[1]]
    assert len(rows) > 3
    for row in rows:
        inside = (rho >= row["lo"]) & (rho < row["hi"]) if row["hi"] else rho == 0.0
        assert row["rows"] == inside.sum()


@pytest.mark.parametrize("batch_rows", [1, 7, 50])
def test_batches_do_not_matter(log: Log, batch_rows: int) -> None:
    """Up to the order of additions: relative 1e-11 of each array's size."""
    whole, cut = log_of(), log_of(batch_rows=batch_rows)
    plan = plan_of(whole, SYSTEMS)
    one, other = sums_of(whole, plan), sums_of(cut, plan)
    for f in sums_in(one):
        a, b = getattr(one, f.name), getattr(other, f.name)
        scale = max(float(np.abs(np.asarray(a, dtype=float)).max(initial=0.0)), 1.0)
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11 * scale, err_msg=f.name)


def test_episodes_stay_in_one_block(log: Log) -> None:
    """Each block is the episodes that begin in its share of the rows, and nothing else."""
    plan = plan_of(log, blocks=7)
    s = sums_of(log, plan)
    rows: dict[int, int] = {}
    for episode in episodes_of(log):
        block = episode[0].number * 7 // plan.rows
        rows[block] = rows.get(block, 0) + len(episode)
    assert s.block.tolist() == sorted(rows)
    assert s.counts[:, 0].tolist() == [rows[b] for b in sorted(rows)]
    assert not s.continues.any()


def test_a_long_episode_is_cut_and_put_together_again() -> None:
    problem = random_problem(1, states=4, features=2, gamma=0.9)
    many = open_log(log_table(problem, episodes=30, length=50, seed=1), discount=None)
    s = sums_of(many, plan_of(many, blocks=150))  # 10 rows a block: every episode is cut
    assert s.continues.any()
    whole = units(s)
    assert len(whole.block) == 30
    assert whole.counts[:, 0].tolist() == [50.0] * 30
    np.testing.assert_allclose(whole.G.sum(axis=0), s.G.sum(axis=0))
    few = open_log(log_table(problem, episodes=1, length=500, seed=1), discount=None)
    s = sums_of(few, plan_of(few, blocks=50))
    stretches = units(s)
    assert len(stretches.block) > 40
    assert stretches.rows == 500


def test_units_keep_the_largest_ratio(log: Log) -> None:
    s = sums_of(log, plan_of(log, blocks=200))
    doubled = merged([s, s])
    assert units(doubled).ratios[:, :, 3].max() == s.ratios[:, :, 3].max()


def test_merging_is_exact_and_associative(tmp_path: Path) -> None:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    path = write_problem_log(tmp_path / "log.parquet", problem, episodes=60, row_group_rows=50)
    log = open_log(path, discount=None)
    plan = plan_of(log, (TD, ETD), blocks=5)
    parts = [sums_of(part, plan) for part in log.parts(6)]
    assert len(parts) > 3
    left = merged([merged(parts[:2]), *parts[2:]])
    right = merged([parts[0], merged(parts[1:])])
    for f in sums_in(left):
        assert np.array_equal(getattr(left, f.name), getattr(right, f.name)), f.name
    whole = sums_of(log, plan)
    assert units(left).block.tolist() == whole.block.tolist()
    for name in ("systems", "G", "weighted", "numerator", "ended", "counts"):
        a, b = getattr(units(left), name), getattr(whole, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=name)
    assert left.largest_row.tolist() == whole.largest_row.tolist()
    assert left.histogram.tolist() == whole.histogram.tolist()


def test_an_episode_counts_in_its_own_block(log: Log) -> None:
    """Products of whole episodes, block by block: also of the last episode before a new block."""
    s = sums_of(log, plan_of(log, blocks=7))
    expected = np.zeros((7, 2))
    for episode in episodes_of(log):
        product = np.prod([p.rho for p in episode], axis=0)
        expected[episode[0].number * 7 // (log.rows or 0)] += product
    np.testing.assert_allclose(s.ratios[:, :, 4], expected[s.block], rtol=1e-11)


def test_products_of_ratios_stay_finite() -> None:
    """2,000 steps of ratio 2: the product would overflow, and its square long before."""
    n = 2000
    table = pa.table(
        {
            "episode_id": np.zeros(n, dtype=int), "t": np.arange(n), "obs_0": np.ones(n),
            "action": np.zeros(n, dtype=int), "reward": np.ones(n),
            "terminated": np.arange(n) == n - 1, "truncated": np.zeros(n, dtype=bool),
            "behavior_prob": np.full(n, 0.5), "target_prob_pi": np.ones(n),
        }
    )  # fmt: skip
    log = open_log(table, discount=1.0)
    s = sums_of(log, replace(plan_of(log, (TD, ETD, System(0.95))), lams=(0.95, 1.0)))
    for name in ("systems", "mass", "weighted", "ratios", "numerator", "denominator", "ended"):
        assert np.isfinite(getattr(s, name)).all(), name
    assert s.ratios[:, 0, 6].max() == 1e100


def test_missing_support_is_counted_with_its_rows() -> None:
    """Such rows come from an estimated or user-given behaviour only; the reader refuses them."""
    log = log_of()
    plan = plan_of(log)
    sums = Accumulator(plan)
    for batch in log.batches():
        assert batch.behavior_prob is not None
        batch.behavior_prob[[4, 9]] = 0.0
        sums.add(batch, np.asarray(batch.obs, dtype=np.float64))
    s = sums.statistics()
    assert s.violations.tolist() == [2, 2]
    assert s.violating[0, :3].tolist() == [4, 9, -1]
    assert np.isfinite(s.systems).all()


def test_saved_sums_are_the_same_sums(log: Log, tmp_path: Path) -> None:
    s = sums_of(log, plan_of(log))
    s.save(tmp_path / "s.npz", left_out=np.array(3))
    found, extra = Statistics.load(tmp_path / "s.npz")
    assert int(extra["left_out"]) == 3
    for f in sums_in(s):
        assert np.array_equal(getattr(s, f.name), getattr(found, f.name)), f.name


def test_blocks_follow_the_memory_rule() -> None:
    assert blocks_for(targets=1, systems=2, features=4) == 200
    middle = blocks_for(targets=2, systems=2, features=300)
    assert 16 < middle < 200
    assert middle * 8 * numbers_per_block(2, 2, 300) <= 300e6
    assert blocks_for(targets=1, systems=1, features=2000) == 16
    with pytest.raises(InputError, match="fewer features"):
        blocks_for(targets=10, systems=2, features=5000)
