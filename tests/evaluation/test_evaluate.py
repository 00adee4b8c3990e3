"""`st.evaluate` as a user sees it: frames, JSON, value functions, engines, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st_

import steadytd as st
from steadytd.evaluation import rows as rows_module
from steadytd.evaluation.result import Evaluation
from tests.support.draws import examples
from tests.support.evaluate_helpers import Identity, counted_parts
from tests.support.helpers import random_problem
from tests.support.log_helpers import log_table, write_problem_log
from tests.support.logged_worlds import line, tabular

SOLVED = ["lstd", "perturbed_lstd:eta=0.3", "lsetd", "pdis", "snpdis", "drl", "drl:lam=0.9", "mis"]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    world = tabular(0.5)
    return st.evaluate(world.log(1), features="raw")


def same(one: Evaluation, other: Evaluation) -> None:
    """Bit for bit the same values, intervals and findings."""
    a, b = one.to_dict(), other.to_dict()
    for key in ("values", "overlap", "stability", "agreement", "path", "recommended"):
        assert a[key] == b[key], key


def test_frames_have_their_columns(found: Evaluation) -> None:
    assert found.values.columns[:7] == ["target", "learner", "value", "lo", "hi", "stable", "eta"]
    assert found.values["learner"].to_list() == [
        "perturbed_lstd", "lstd", "perturbed_td", "tdc", "drl", "snpdis", "pdis",
    ]  # fmt: skip
    assert found.values["recommended"].sum() == 1
    schema = found.values.schema
    assert schema["diverged"] == pl.Int64 and schema["stable"] == pl.Boolean
    assert found.overlap["target"].to_list() == found.targets == ["pi"]
    assert found.overlap["ess_trajectory"][0] < found.overlap["episodes"][0]
    assert found.histogram["rows"].sum() == found.log.rows
    assert found.path.columns == ["target", "eta", "value", "stable"]
    assert found.path["eta"].is_sorted() and found.path["eta"][0] == 0.0
    lstd = found.values.filter(learner="lstd")["value"][0]
    assert found.path["value"][0] == pytest.approx(lstd)
    assert set(found.agreement.columns) >= {"learner", "other", "difference", "agree"}
    assert found.stability["eta_pd_lo"][0] <= found.stability["eta_pd"][0]
    assert found.notes


def test_json_follows_the_interface(found: Evaluation) -> None:
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"values", "overlap", "stability", "warnings"} <= set(document)
    row = document["values"][0]
    assert {"target", "learner", "value", "lo", "hi", "stable", "eta"} <= set(row)
    assert document["recommended"][0]["learner"] == found.recommended["pi"].learner
    assert all(
        {"code", "target", "level", "text", "remedy"} <= set(w) for w in document["warnings"]
    )


def test_online_learners_come_near_their_fixed_points() -> None:
    """On 5,000 episodes of a small problem: within 4 % of the value, all with automatic alpha."""
    e = st.evaluate(tabular(0.5, episodes=5000).log(3), features="raw")
    for row in e.values.filter(kind="online").to_dicts():
        assert row["value"] == pytest.approx(row["fixed_point"], rel=0.04), row["learner"]
        assert row["stable"]


def test_value_function_predicts_and_survives_a_file(found: Evaluation, tmp_path: Path) -> None:
    v = found.value_function("pi", "lstd")
    obs = np.eye(6)
    expected = found.features(obs) @ found.results[0].weights["lstd"]
    np.testing.assert_allclose(v.predict(obs), expected)
    problem_value = tabular(0.5).truth
    assert float(v.predict(obs).mean()) == pytest.approx(problem_value, abs=2.0)
    v.save(tmp_path / "v.npz")
    again = st.load_value_function(tmp_path / "v.npz")
    assert (again.target, again.learner) == ("pi", "lstd")
    assert again.predict(obs).tolist() == v.predict(obs).tolist()
    assert again.predict(obs[0]).shape == (1,)


def test_value_function_default_is_one_that_exists(found: Evaluation) -> None:
    assert found.recommended["pi"].learner == "drl"
    assert found.value_function("pi").learner == "lstd"
    with pytest.raises(st.InputError, match="not a value function"):
        found.value_function("pi", "drl")
    with pytest.raises(st.InputError, match="did you mean 'lstd'"):
        found.value_function("pi", "lsdt")
    with pytest.raises(st.InputError, match="target"):
        found.value_function("pie")


@pytest.mark.parametrize("damage", ["missing", "empty", "weights", "text"])
def test_damaged_value_functions(found: Evaluation, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "v.npz"
    found.value_function("pi").save(path)
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("no archive")
    else:
        with np.load(path) as file:
            arrays: dict[str, Any] = {name: file[name] for name in file.files}
        arrays["array_0"] = arrays["array_0"][:-1]  # the weights
        np.savez(path, **arrays)
    with pytest.raises(st.InputError, match=r"v\.npz"):
        st.load_value_function(path)


def test_seed_decides_and_threads_do_not() -> None:
    table = line(-1.0, "poly:2", episodes=60).log(1)
    one = st.evaluate(table, discount=0.97, features="poly:2", threads=1)
    two = st.evaluate(table, discount=0.97, features="poly:2", threads=3)
    same(one, two)
    other = st.evaluate(table, discount=0.97, features="poly:2", seed=1)
    assert other.stability["eta_pd_lo"].to_list() != one.stability["eta_pd_lo"].to_list()


def test_progress_counts_rows() -> None:
    calls: list[tuple[int, int]] = []
    table = tabular(0.5, episodes=30).log(0)
    st.evaluate(table, learners=["lstd"], batch_rows=50, progress=lambda *c: calls.append(c))
    assert calls[-1] == (table.num_rows, table.num_rows)
    assert [c[0] for c in calls] == sorted(c[0] for c in calls) and len(calls) > 3


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    problem = random_problem(3, states=5, actions=3, features=3, policies=2)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    return write_problem_log(path, problem, episodes=300, length=20, row_group_rows=200)


def test_dask_gives_the_same_bits(file: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"features": Identity(), "learners": SOLVED, "parts": 5}
    local = st.evaluate(file, **options)
    spread = st.evaluate(file, engine="dask", checkpoint=tmp_path / "c", **options)
    assert local.settings["parts"] == spread.settings["parts"] > 3
    same(local, spread)
    whole = st.evaluate(file, features=Identity(), learners=SOLVED)  # other order of additions
    for name in ("value", "lo", "hi"):
        np.testing.assert_allclose(whole.values[name], local.values[name], rtol=1e-8)


@pytest.mark.slow
def test_dask_restarts_from_its_checkpoints(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {
        "features": Identity(), "learners": SOLVED, "parts": 5, "engine": "dask",
        "checkpoint": tmp_path,
    }  # fmt: skip
    first = st.evaluate(file, **options)
    kept = sorted(tmp_path.glob("part-*"))
    assert len(kept) == first.settings["parts"]
    kept[1].unlink()
    kept[2].write_bytes(kept[2].read_bytes()[: kept[2].stat().st_size // 2])  # killed while writing
    read = counted_parts(monkeypatch)
    same(first, st.evaluate(file, **options))
    assert len(read) == 2  # the parts that were missing or damaged, and no other
    st.evaluate(file, **{**options, "features": "raw"})  # other sums: no checkpoint fits
    assert len(read) == 2 + first.settings["parts"]


ONLINE = ["perturbed_td", "tdc", "etd", "td:alpha=0.01,lam=0.5", "lstd"]


@pytest.mark.slow
def test_dask_follows_online_learners(file: Path, tmp_path: Path) -> None:
    """One task goes over the whole log; its result is kept, and taken again if it is whole."""
    options: dict[str, Any] = {"features": Identity(), "learners": ONLINE, "parts": 3}
    local = st.evaluate(file, **options)
    assert {row["kind"] for row in local.values.to_dicts()} == {"online", "solved", "sampling"}
    options |= {"engine": "dask", "checkpoint": tmp_path}
    same(local, st.evaluate(file, **options))
    (kept,) = tmp_path.glob("online-*.npz")
    made = kept.stat().st_mtime_ns
    same(local, st.evaluate(file, **options))
    assert kept.stat().st_mtime_ns == made
    kept.write_bytes(kept.read_bytes()[:-30])
    same(local, st.evaluate(file, **options))
    assert kept.stat().st_mtime_ns > made
    st.evaluate(file, **options | {"learners": ["td:alpha=0.02"]})
    assert len(list(tmp_path.glob("online-*.npz"))) == 2


@pytest.mark.slow
def test_one_blas_thread_while_parts_are_added_up(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that set and restore the number each by itself would get in each other's way."""
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> set[int]:
        return {
            int(str(one["num_threads"])) for one in threadpool_info() if one["user_api"] == "blas"
        }

    seen: list[set[int]] = []
    times, plain = examples(1, 3), rows_module.features_of

    def watched(*args: Any) -> Any:
        seen.append(threads())
        return plain(*args)

    monkeypatch.setattr(rows_module, "features_of", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        for _ in range(times):
            st.evaluate(
                file, features=Identity(), learners=["td", "lstd"], engine="dask", parts=8,
                batch_rows=20,
            )  # fmt: skip
            assert threads() == {2}
    assert len(seen) > 7 * times and all(one == {1} for one in seen)


def test_a_diverged_learner_is_kept_as_diverged(file: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "features": Identity(), "learners": ["td:alpha=9", "lstd"], "parts": 3, "engine": "dask",
        "checkpoint": tmp_path,
    }  # fmt: skip
    first, again = st.evaluate(file, **options), st.evaluate(file, **options)
    for e in (first, again):
        assert all(step is not None for step in e.values.filter(learner="td:alpha=9")["diverged"])
    same(first, again)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(file: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    options: dict[str, Any] = {"features": "raw", "learners": [*SOLVED, *ONLINE[:4]], "parts": 5}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    try:
        calls: list[tuple[int, int]] = []
        found = st.evaluate(
            file, engine="dask", address=cluster.scheduler_address, checkpoint=tmp_path,
            progress=lambda *c: calls.append(c), **options,
        )  # fmt: skip
    finally:
        cluster.close()
    same(st.evaluate(file, **options), found)
    assert calls[-1][0] == calls[-1][1]
    assert len(list(tmp_path.glob("part-*"))) == found.settings["parts"]


def test_csv_of_unknown_length(file: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(file)
    wide = frame.with_columns(
        pl.col("obs").arr.get(i).alias(f"obs_{i}") for i in range(3)
    ).drop("obs", "next_obs")  # fmt: skip
    wide.write_csv(tmp_path / "log.csv")
    e = st.evaluate(tmp_path / "log.csv", features=Identity(), learners=["lstd"])
    own = st.evaluate(frame.drop("next_obs"), features=Identity(), learners=["lstd"])
    np.testing.assert_allclose(e.values["value"], own.values["value"], rtol=1e-9)
    assert {w.code for w in e.warnings} >= {"rows_left_out"}


def test_estimated_behaviour_is_marked() -> None:
    table = line(-1.0).log(2)
    e = st.evaluate(table, discount=0.97, features="poly:2", behavior="estimate")
    (warning,) = [w for w in e.warnings if w.code == "behavior_estimated"]
    assert warning.level == "warning" and warning.numbers
    assert not e.recommended["pi"].trusted


def test_a_log_without_behaviour_probabilities_is_an_error() -> None:
    """Nothing is estimated unasked; the message names both remedies, and the likely column."""
    blind = line(-1.0).log(2).rename_columns({"behavior_prob": "prob_behavior"})
    asked: dict[str, Any] = {"discount": 0.97, "features": "poly:2", "learners": ["lstd", "drl"]}
    for source in (blind, st.open_log(blind, discount=0.97)):
        with pytest.raises(st.InputError, match="no column 'behavior_prob'") as caught:
            st.evaluate(source, **asked)
        assert 'behavior="estimate" (--estimate-behavior)' in str(caught.value)
        assert "columns={'behavior_prob': 'prob_behavior'}" in str(caught.value)
    with pytest.raises(st.InputError, match="columns of an open log cannot be changed; give it to"):
        st.evaluate(source, columns={"behavior_prob": "prob_behavior"}, **asked)
    estimated = st.evaluate(blind, behavior="estimate", **asked)
    assert estimated.log.behavior_estimated
    named = st.evaluate(blind, columns={"behavior_prob": "prob_behavior"}, **asked)
    assert not named.log.behavior_estimated


@pytest.mark.parametrize(("second", "where"), [(100, "start"), (5000, "start"), (None, "states")])
def test_values_are_at_starts_once_a_second_episode_begins(second: int | None, where: str) -> None:
    """Whether it begins among the first rows, which are looked at first, or long after them."""
    rng, rows = np.random.default_rng(0), 6000
    at, begin = np.arange(rows), rows if second is None else second
    frame = pl.DataFrame(
        {
            "episode_id": (at >= begin).astype(int),
            "t": np.where(at < begin, at, at - begin),
            "obs_0": rng.normal(size=rows),
            "reward": rng.normal(size=rows),
            "terminated": at == begin - 1,
            "behavior_prob": np.full(rows, 0.5),
            "target_prob_new": rng.choice([0.4, 0.6], rows),
        }
    )
    e = st.evaluate(frame, discount=0.9, learners=["lstd"], batch_rows=1000)
    assert e.log.continuing == (where == "states")


def test_value_at_states_of_an_episodic_log(found: Evaluation) -> None:
    table = tabular(0.5).log(1)
    e = st.evaluate(table, learners=["lstd"], value_at="states", features="raw")
    v = found.value_function("pi", "lstd")
    obs = np.array(table["obs"].combine_chunks().flatten()).reshape(-1, 6)
    assert e.values["value"][0] == pytest.approx(float(v.predict(obs).mean()))
    assert e.recommended["pi"].learner == "drl" and e.log.continuing


@pytest.mark.parametrize(
    "options,match",
    [
        ({"engine": "spark"}, "engine"),
        ({"value_at": "begin"}, "value_at"),
        ({"threads": 0}, "threads"),
        ({"parts": 0}, "parts"),
        ({"learners": ["pdsi"]}, "did you mean 'pdis'"),
        ({"features": "rbv:3"}, "did you mean 'rbf'"),
        ({"targets": ["pj"]}, "pj"),
    ],
)
def test_bad_options(options: dict[str, Any], match: str) -> None:
    table = tabular(0.5, episodes=5).log(0)
    with pytest.raises(st.InputError, match=match):
        st.evaluate(table, **options)


def test_a_log_without_targets() -> None:
    table = log_table(random_problem(1, gamma=0.9), episodes=3).drop_columns(["target_prob_pi"])
    with pytest.raises(st.InputError, match="target"):
        st.evaluate(table)


@settings(max_examples=examples(10, 25), deadline=None, derandomize=True)
@given(
    lengths=st_.lists(st_.tuples(st_.integers(1, 8), st_.booleans()), min_size=1, max_size=10),
    discount=st_.sampled_from([0.0, 0.5, 1.0]),
    ratio=st_.sampled_from(["zero", "one", "sparse"]),
    value_at=st_.sampled_from(["auto", "start", "states"]),
    seed=st_.integers(0, 100),
)
def test_tiny_logs_give_findings_not_exceptions(
    lengths: list[tuple[int, bool]], discount: float, ratio: str, value_at: Any, seed: int
) -> None:
    """Few rows, singular systems, no rewards, targets that the log never follows."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(lengths)), [n for n, _ in lengths])
    t = np.concatenate([np.arange(n) for n, _ in lengths])
    last = np.concatenate([np.arange(n) == n - 1 for n, _ in lengths])
    ends = np.repeat([end for _, end in lengths], [n for n, _ in lengths])
    mu = rng.uniform(0.1, 1.0, len(t))
    pi = {"zero": 0.0 * mu, "one": mu, "sparse": mu * (rng.random(len(t)) < 0.3)}[ratio]
    frame = pl.DataFrame(
        {
            "episode_id": ids, "t": t, "obs_0": rng.normal(size=len(t)), "action": 0,
            "reward": rng.normal(size=len(t)) * (seed % 3), "terminated": last & ends,
            "truncated": last & ~ends, "behavior_prob": mu, "target_prob_pi": pi,
        }
    )  # fmt: skip
    try:
        e = st.evaluate(frame, discount=discount, value_at=value_at)
    except st.InputError as error:
        assert "no row can be learned from" in str(error)
        return
    assert "few_episodes" in {w.code for w in e.warnings}
    assert json.dumps(e.to_dict(), allow_nan=False)
    assert len(e.values) == 7
