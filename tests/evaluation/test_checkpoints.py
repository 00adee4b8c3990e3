"""Checkpoints of an evaluation: used where nothing has changed, and only there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steadytd as st
from steadytd.evaluation.follow import engines
from steadytd.evaluation.passes import FirstPass
from steadytd.evaluation.result import Evaluation
from steadytd.features.base import FeatureMap
from steadytd.logs.log import open_log
from steadytd.logs.write import write_log
from tests.support.evaluate_helpers import Identity, counted_parts, plan_of
from tests.support.helpers import random_problem
from tests.support.log_helpers import write_problem_log
from tests.support.other_code import changed

STALE = "came from other rows or another evaluation; they were computed again"
WEIGHT = 0.5


def by_global(obs: Any, action: Any) -> Any:
    return np.where(action == 0, WEIGHT, 1.0 - WEIGHT)


def by_closure(weight: float) -> Callable[[Any, Any], Any]:
    def policy(obs: Any, action: Any) -> Any:
        return np.where(action == 0, weight, 1.0 - weight)

    return policy


@pytest.fixture
def file(tmp_path: Path) -> Path:
    problem = random_problem(3, states=5, actions=2, features=3)
    return write_problem_log(
        tmp_path / "log.parquet", problem, episodes=60, length=10, row_group_rows=100
    )


@pytest.fixture
def parts_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return counted_parts(monkeypatch)


def evaluate(source: Any, checkpoint: Path | None, **options: Any) -> Evaluation:
    usual: dict[str, Any] = {"features": Identity(), "learners": ["lstd"], "parts": 3}
    return st.evaluate(source, engine="dask", checkpoint=checkpoint, **{**usual, **options})


def value(e: Evaluation) -> list[float]:
    return [float(x) for x in e.values["value"]]


def rewritten(file: Path, change: Callable[[Any], Any]) -> None:
    """The log with other rewards: same size, same schema, same time."""
    before, table, groups = file.stat(), pq.read_table(file), pq.ParquetFile(file).metadata
    i = table.column_names.index("reward")
    reward = change(table["reward"].to_numpy())
    pq.write_table(
        table.set_column(i, "reward", pa.array(reward)), file,
        row_group_size=groups.row_group(0).num_rows, compression="none", use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_unchanged_inputs_are_found_again(
    file: Path, tmp_path: Path, parts_read: list[Any]
) -> None:
    """Also where values are missing, whose bytes are arbitrary, and through functions."""
    table = pq.read_table(file)
    gaps = np.arange(table.num_rows) % 10 != 9
    obs = table["obs"].combine_chunks()
    lists = pa.array(obs.to_pylist(), mask=gaps, type=pa.list_(pa.float64(), 3))
    write_log(file, table.append_column("after", lists), row_group_rows=100)
    options: dict[str, Any] = {
        "columns": {"next_obs": "after"}, "targets": {"own": by_closure(0.3)},
        "learners": ["lstd", "td"],
    }  # fmt: skip
    first = evaluate(file, tmp_path / "c", **options)
    assert first.settings["parts"] == len(parts_read) == 3
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").iterdir()}
    kinds = [path.name.partition("-")[0] for path in kept]
    assert kinds.count("part") == 3 and kinds.count("online") == 1
    assert kinds.count("scores") == 6  # where episodes are cut off there are two sweeps
    options["targets"] = {"own": by_closure(0.3)}
    assert value(evaluate(file, tmp_path / "c", **options)) == value(first)
    assert len(parts_read) == 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "c").iterdir()} == kept


def test_a_resumed_evaluation_has_the_same_bits(tmp_path: Path) -> None:
    """Sums are added in the order of memory: a file must not bring another order."""
    problem = random_problem(1, states=5, actions=2, features=3)
    file = write_problem_log(
        tmp_path / "log.parquet", problem, episodes=700, length=12, row_group_rows=100
    )
    asked: dict[str, Any] = {"features": "raw", "learners": ["lstd", "drl", "snpdis", "mis"]}
    first, again = (evaluate(file, tmp_path / "c", **asked) for _ in range(2))
    assert again.to_dict() == first.to_dict()


@pytest.mark.parametrize("learner", ["lstd", "td:alpha=0.05"])
def test_other_rewards_in_the_same_file(file: Path, tmp_path: Path, learner: str) -> None:
    rewritten(file, lambda r: r)
    first = evaluate(file, tmp_path / "c", learners=[learner])
    size = file.stat().st_size
    rewritten(file, lambda r: -2.0 * r)
    assert file.stat().st_size == size
    fresh = value(evaluate(file, None, learners=[learner]))
    assert fresh != value(first)
    with pytest.warns(UserWarning, match=STALE):
        assert value(evaluate(file, tmp_path / "c", learners=[learner])) == fresh


def test_a_changed_part_is_computed_and_no_other(
    file: Path, tmp_path: Path, parts_read: list[Any]
) -> None:
    rewritten(file, lambda r: r)
    evaluate(file, tmp_path / "c")
    rewritten(file, lambda r: np.r_[r[:-1], r[-1] + 1.0])
    parts_read.clear()
    with pytest.warns(UserWarning, match="^1 of the results saved"):
        again = evaluate(file, tmp_path / "c")
    assert len(parts_read) == 1 and parts_read[0].end is None
    assert value(again) == value(evaluate(file, None))


def test_another_policy_under_the_same_name(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through its closure, and through a global."""

    def own(policy: Any, checkpoint: Path | None) -> list[float]:
        return value(evaluate(file, checkpoint, targets={"own": policy}))

    assert own(by_closure(0.3), tmp_path / "c") != own(by_closure(0.8), tmp_path / "c")
    assert own(by_closure(0.8), tmp_path / "c") == own(by_closure(0.8), None)
    before = own(by_global, tmp_path / "d")
    monkeypatch.setitem(by_global.__globals__, "WEIGHT", 0.8)
    assert own(by_global, tmp_path / "d") == own(by_global, None) != before


def test_another_behaviour_function(file: Path, tmp_path: Path) -> None:
    found = [value(evaluate(file, tmp_path / "c", behavior=by_closure(w))) for w in (0.4, 0.6)]
    assert found[0] != found[1] == value(evaluate(file, None, behavior=by_closure(0.6)))


def test_given_and_automatic_numbers_are_apart(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "c"
    fresh = [value(evaluate(file, None, learners=[name])) for name in ("td", "td:alpha=1")]
    found = [value(evaluate(file, kept, learners=[name])) for name in ("td", "td:alpha=1")]
    assert found == fresh and fresh[0] != fresh[1]


def exchange(one: Path, two: Path) -> None:
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)


def test_exchanged_files_are_noticed(file: Path, tmp_path: Path, parts_read: list[Any]) -> None:
    kept = tmp_path / "c"
    first = evaluate(file, kept)
    exchange(*sorted(kept.glob("part-*"))[:2])
    parts_read.clear()
    with pytest.warns(UserWarning, match=f"^2 of the results saved in .* {STALE}"):
        assert value(evaluate(file, kept)) == value(first)
    assert len(parts_read) == 2
    assert value(evaluate(file, kept)) == value(first)  # repaired: nothing more to say


def test_an_exchanged_file_of_online_learners(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "c"
    wanted = [value(evaluate(file, kept, learners=[f"td:alpha={a}"])) for a in (0.01, 0.02)]
    exchange(*kept.glob("online-*"))
    for alpha, expected in zip((0.01, 0.02), wanted, strict=True):
        with pytest.warns(UserWarning, match="^1 of the results saved"):
            assert value(evaluate(file, kept, learners=[f"td:alpha={alpha}"])) == expected


SLOW_MODULES = [pytest.param(x, marks=pytest.mark.slow) for x in ("overlap", "follow.online")]


@pytest.mark.parametrize("module", ["sums", *SLOW_MODULES])
def test_other_code_is_noticed(
    file: Path, tmp_path: Path, parts_read: list[Any], module: str
) -> None:
    evaluate(file, tmp_path / "c", learners=["lstd", "td"])
    parts_read.clear()
    with changed(f"steadytd.evaluation.{module}"):
        evaluate(file, tmp_path / "c", learners=["lstd", "td"])
    assert len(parts_read) == 3
    assert len(list((tmp_path / "c").glob("online-*"))) == 2
    evaluate(file, tmp_path / "c", learners=["lstd", "td"])
    assert len(parts_read) == 3


def test_other_features_plans_and_batches_are_noticed(
    file: Path, tmp_path: Path, parts_read: list[Any]
) -> None:
    evaluate(file, tmp_path / "c")
    changes: list[dict[str, Any]] = [
        {"features": "poly:2"}, {"learners": ["lsetd"]}, {"batch_rows": 37},
    ]  # fmt: skip
    for number, change in enumerate(changes, 2):
        evaluate(file, tmp_path / "c", **change)
        assert len(parts_read) == 3 * number


class Closed(Identity):
    """A map that keeps something that cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        vars(self)["lock"] = threading.Lock()

    def fit(self, obs: Any) -> Any:
        fitted: FeatureMap = Identity().fit(obs)
        mine = Closed()
        vars(mine).update({**vars(fitted), "lock": threading.Lock()})
        return mine


def test_what_cannot_be_seen_through_is_refused(file: Path, tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(obs: Any, action: Any) -> Any:
        with lock:
            return np.full(len(obs), 0.5)

    def from_file(obs: Any, action: Any) -> Any:
        with open(tmp_path / "weight.txt") as handle:  # noqa: PTH123
            return np.full(len(obs), float(handle.read()))

    for options, what in (
        ({"targets": {"own": locked}}, "the state of a lock cannot be read"),
        ({"behavior": from_file}, "from_file calls open"),
        ({"features": Closed()}, "the state of a lock cannot be read"),
    ):
        (tmp_path / "weight.txt").write_text("0.5")
        with pytest.raises(st.InputError, match=f"{what}.*or leave out checkpoint"):
            evaluate(file, tmp_path / "c", **options)
        assert np.isfinite(value(evaluate(file, None, **options))).all()


def test_a_worker_with_other_code_is_refused(file: Path) -> None:
    log = open_log(file, discount=None)
    ours, task = engines.code(), (engines.first_of_part, log, plan_of(log), None)
    assert isinstance(engines.remote(ours, *task).made, FirstPass)
    with (
        changed("steadytd.evaluation.scores"),
        pytest.raises(st.InputError, match="install the same versions everywhere"),
    ):
        engines.remote(ours, *task)
