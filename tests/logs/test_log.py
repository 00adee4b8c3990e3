"""Valid logs: cut into files, row groups, batches and parts in any way, they read the same."""

from __future__ import annotations

import pickle
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadytd import InputError
from steadytd.logs.log import Log, open_log
from steadytd.logs.write import write_log
from tests.support.draws import examples
from tests.support.helpers import random_problem
from tests.support.log_helpers import identity_of, log_table, simulate, write_problem_log
from tests.support.log_reference import Row, as_table, reference, transitions, valid_rows

FLOATS = (pa.float32, pa.float64)


def names_of(rows: list[Row]) -> list[str]:
    return [key.removeprefix("target_prob_") for key in rows[0] if key.startswith("target_prob_")]


def read(log: Log) -> list[Any]:
    """All transitions; a log in which none is usable says so and counts as empty."""
    try:
        return transitions(log.batches())
    except InputError as error:
        assert "no row can be learned from" in str(error)
        return []


@settings(max_examples=examples(10, 60), deadline=None)
@given(
    rows=valid_rows(),
    layout=st.sampled_from(["fixed", "list", "large", "columns"]),
    batch_rows=st.integers(1, 9),
    pieces=st.integers(1, 4),
    group=st.integers(1, 7),
    parts=st.integers(1, 5),
)
def test_cut_into_files_groups_batches_and_parts(
    rows: list[Row], layout: str, batch_rows: int, pieces: int, group: int, parts: int
) -> None:
    table, names = as_table(rows, layout), names_of(rows)
    expected = reference(rows, 0.9, names)
    edges = np.linspace(0, len(rows), pieces + 1).astype(int)
    with tempfile.TemporaryDirectory() as directory:
        for i in range(pieces):
            part = table.slice(edges[i], edges[i + 1] - edges[i])
            write_log(Path(directory) / f"part{i}.parquet", part, row_group_rows=group)
        log = open_log(directory, discount=0.9, targets=names, batch_rows=batch_rows)
        assert log.rows == len(rows)
        assert log.targets == names
        assert read(log) == expected
        assert log.left_out == len(rows) - len(expected)
        assert read(log) == expected  # a second pass
        cut = log.parts(parts)
        assert 1 <= len(cut) <= parts
        again = [t for part in cut for t in read(part)]
        if len(cut) > 1:
            assert again == expected
            assert sum(part.left_out or 0 for part in cut) == log.left_out
            assert sum(part.rows or 0 for part in cut) == len(rows)
            for part in cut[1:]:
                assert part.begin == 0 or rows[part.begin]["t"] == rows[0]["t"]
                for begun in list(part.batches())[:1]:
                    assert begun.first[0]


def test_parts_are_many_and_even(tmp_path: Path) -> None:
    path = write_problem_log(
        tmp_path / "log.parquet", random_problem(3), episodes=300, length=20, row_group_rows=100
    )
    log = open_log(path, discount=None)
    parts = log.parts(4)
    sizes = [part.rows or 0 for part in parts]
    assert len(parts) == 4
    assert max(sizes) - min(sizes) <= 2 * (100 + 20)
    whole, cut = transitions(log.batches()), []
    for part in pickle.loads(pickle.dumps(parts)):  # parts travel to other processes
        cut += transitions(part.batches())
    assert cut == whole


def test_an_episode_longer_than_row_groups_is_not_cut(tmp_path: Path) -> None:
    p = random_problem(3, gamma=0.9)
    path = write_problem_log(tmp_path / "a.parquet", p, episodes=2, length=50, row_group_rows=7)
    parts = open_log(path, discount=None).parts(10)
    assert [part.rows for part in parts] == [50, 50]
    assert [next(part.batches()).episode[0] for part in parts] == [0, 1]


def test_a_problems_log_holds_its_transitions(tmp_path: Path) -> None:
    p = random_problem(5)
    path = write_problem_log(tmp_path / "log.parquet", p, episodes=40, length=15, seed=2)
    c = simulate(p, episodes=40, length=15, seed=2)
    [batch] = open_log(path, discount=None).batches()
    s, a, s_next = c["s"], c["action"], c["s_next"]
    assert len(batch) == len(s)
    np.testing.assert_array_equal(batch.obs[: len(s)], p.Phi[s])
    go = c["discount"] > 0
    np.testing.assert_array_equal(batch.obs[batch.row_next][go], p.Phi[s_next][go])
    np.testing.assert_array_equal(batch.reward, p.r[s, a, s_next])
    np.testing.assert_array_equal(batch.discount, c["discount"])
    np.testing.assert_array_equal(batch.behavior_prob, p.mu[s, a])
    np.testing.assert_array_equal(batch.target_prob[0], p.pi[s, a])
    assert batch.first.sum() == 40
    assert len(batch.obs) == len(s) + int(c["truncated"].sum())  # only these are no row's own


def test_dtypes_and_views() -> None:
    p = random_problem(1)
    for dtype in (np.float32, np.float64):
        log = open_log(log_table(p, dtype=dtype), discount=None, batch_rows=10)
        for batch in log.batches():
            assert batch.obs.dtype == dtype
            assert batch.row_next.dtype == np.int32
            assert batch.episode.dtype == np.int64
            assert batch.first.dtype == np.bool_
            assert batch.reward.dtype == batch.discount.dtype == np.float64
            for array in (batch.obs, batch.reward, batch.target_prob, batch.behavior_prob):
                assert array is not None and array.flags.writeable and array.flags.c_contiguous
    mixed = [as_table([one_row(episode_id=i)], dtype=d()) for i, d in enumerate(FLOATS)]
    with tempfile.TemporaryDirectory() as directory:
        for i, table in enumerate(mixed):
            write_log(Path(directory) / f"{i}.parquet", table)
        found = [b.obs.dtype for b in open_log(directory, discount=0.9, batch_rows=1).batches()]
    assert found == [np.float64, np.float64]
    whole = as_table([one_row(obs=[3.0])], "scalar", pa.int16())
    [batch] = open_log(whole, discount=0.5).batches()
    assert batch.obs.dtype == np.float64 and batch.obs.tolist() == [[3.0]]


def one_row(**changes: Any) -> Row:
    row: Row = {
        "episode_id": 0, "t": 0, "obs": [1.0, 2.0], "action": 0, "reward": 1.0, "terminated": True,
        "behavior_prob": 0.5, "target_prob_pi": 0.25,
    }  # fmt: skip
    return row | changes


def test_given_next_observations_share_rows_where_they_are_the_following_ones() -> None:
    rows = [
        one_row(t=t, obs=[float(t), 0.0], next_obs=[t + 1.0, 0.0], terminated=False)
        for t in range(4)
    ]
    rows[1]["next_obs"] = [9.0, 9.0]  # not what the following row says: it is kept apart
    [batch] = open_log(as_table(rows), discount=0.9).batches()
    assert batch.row_next.tolist() == [1, 4, 3, 5]
    assert batch.obs[4:].tolist() == [[9.0, 9.0], [4.0, 0.0]]


def test_termination_wins_over_truncation_and_ignores_next_obs() -> None:
    row = one_row(truncated=True, next_obs=[np.nan, np.inf])
    [batch] = open_log(as_table([row]), discount=0.9).batches()
    assert batch.discount.tolist() == [0.0]
    assert batch.row_next.tolist() == [0]


def test_truncation_bootstraps_if_it_can_and_is_left_out_if_not() -> None:
    rows = [one_row(t=t, terminated=False, truncated=t == 2) for t in range(3)]
    log = open_log(as_table(rows), discount=0.9)
    [batch] = log.batches()
    assert len(batch) == 2 and log.left_out == 1
    rows = [row | {"next_obs": [7.0, 7.0] if row["truncated"] else None} for row in rows]
    log = open_log(as_table(rows), discount=0.9)
    [batch] = log.batches()
    assert len(batch) == 3 and log.left_out == 0
    assert batch.discount.tolist() == [0.9] * 3
    assert batch.obs[batch.row_next[2]].tolist() == [7.0, 7.0]


def test_column_discount_goes_before_the_number_and_says_so() -> None:
    table = as_table([one_row(discount=0.5, terminated=False, next_obs=[0.0, 0.0])])
    log = open_log(table, discount=0.9)
    [batch] = log.batches()
    assert batch.discount.tolist() == [0.5]
    assert log.notes == ("the log's column 'discount' is used; the discount 0.9 is not.",)
    assert open_log(table, discount=None).notes == ()


ALIASES = ["behavior_prob", "pscore", "action_prob", "behavior_logp", "action_logp"]


@pytest.mark.parametrize("alias", ALIASES)
def test_behavior_aliases_and_logarithms(alias: str) -> None:
    row = one_row()
    given = row.pop("behavior_prob")
    row[alias] = float(np.log(given)) if alias.endswith("logp") else given
    [batch] = open_log(as_table([row]), discount=0.9).batches()
    assert batch.behavior_prob is not None
    np.testing.assert_allclose(batch.behavior_prob, [0.5], rtol=1e-15)


def test_rounding_above_one_is_one() -> None:
    row = one_row(behavior_prob=1.0 + 5e-7, target_prob_pi=1.0 + 5e-7)
    [batch] = open_log(as_table([row]), discount=0.9).batches()
    assert batch.behavior_prob is not None and batch.behavior_prob.tolist() == [1.0]
    assert batch.target_prob.tolist() == [[1.0]]


def test_the_column_map_goes_before_names_and_aliases() -> None:
    row = one_row(logged=0.75, r=-3.0, state=[8.0, 8.0], other=0.125)
    table = as_table([row | {"state": None}])
    table = table.set_column(table.column_names.index("state"), "state", pa.array([[8.0, 8.0]]))
    given = {"pscore": "logged", "reward": "r", "obs": "state", "target_prob_new": "other"}
    log = open_log(table, discount=0.9, columns=given)
    assert log.targets == ["pi", "new"]
    [batch] = log.batches()
    assert batch.behavior_prob is not None and batch.behavior_prob.tolist() == [0.75]
    assert batch.reward.tolist() == [-3.0]
    assert batch.obs.tolist() == [[8.0, 8.0]]
    assert batch.target_prob.tolist() == [[0.25], [0.125]]
    log = open_log(table, discount=0.9, columns={"obs": ["reward", "t"]}, targets=[])
    [batch] = log.batches()
    assert batch.obs.tolist() == [[1.0, 0.0]]


def test_no_behavior_is_none() -> None:
    row = one_row()
    del row["behavior_prob"]
    log = open_log(as_table([row]), discount=0.9)
    assert not log.has_behavior
    assert next(log.batches()).behavior_prob is None


def test_functions_as_policies() -> None:
    rows = [one_row(t=t, action=t % 2, terminated=t == 9, obs=[float(t), 0.0]) for t in range(10)]
    table = as_table(rows, dtype=pa.float64())

    def late(obs: Any, action: Any) -> Any:
        return np.where(action == 1, obs[:, 0] / 10, 0.0)

    def half(obs: Any, action: Any) -> Any:
        return np.full(len(obs), 0.5)

    log = open_log(table, discount=0.9, targets={"late": late, "half": half}, batch_rows=3)
    found = np.concatenate([batch.target_prob for batch in log.batches()], axis=1)
    assert found.tolist() == [[t % 2 * t / 10 for t in range(10)], [0.5] * 10]
    assert log.targets == ["late", "half"]
    known = open_log(table, discount=0.9, behavior=half, targets=[])
    assert known.has_behavior
    [batch] = known.batches()
    assert batch.behavior_prob is not None and batch.behavior_prob.tolist() == [0.5] * 10


def test_only_wanted_columns_are_read() -> None:
    table = log_table(random_problem(2))
    log = open_log(table, discount=None)
    fields = frozenset({"behavior_prob"})
    assert not {"action", "target_prob_pi"} & set(log.schema.names(fields))
    batch = next(log.batches(columns={"obs", "behavior_prob"}))
    assert batch.action is None and batch.target_prob.shape == (0, len(batch))
    assert batch.behavior_prob is not None
    batch = next(log.batches(columns={"action"}))
    assert batch.action is not None and batch.behavior_prob is None
    with pytest.raises(InputError, match="did you mean 'action'"):
        next(log.batches(columns={"actoin"}))


def test_actions_as_lists_and_as_text() -> None:
    table = as_table([one_row(), one_row(episode_id=1)])
    lists = table.set_column(3, "action", pa.array([[0.5, 1.0], [2.0, 3.0]]))
    batch = next(open_log(lists, discount=0.9).batches())
    assert batch.action is not None and batch.action.tolist() == [[0.5, 1.0], [2.0, 3.0]]
    log = open_log(table.set_column(3, "action", pa.array(["right", "left"])), discount=0.9)
    batch = next(log.batches())
    assert batch.action is not None and batch.action.tolist() == [1, 0]
    assert log.schema.actions == ("left", "right")


def test_sample_is_uniform_without_replacement_and_repeatable() -> None:
    rows = [one_row(t=t, terminated=t == 999, obs=[float(t), 1.0]) for t in range(1000)]
    table = as_table(rows)
    log = open_log(table, discount=0.9, batch_rows=7)
    picked = log.sample(100, seed=1)
    assert picked.shape == (100, 2)
    assert len(set(picked[:, 0].tolist())) == 100
    np.testing.assert_array_equal(picked, log.sample(100, seed=1))
    assert not np.array_equal(picked, log.sample(100, seed=2))
    assert log.sample(5000, seed=0)[:, 0].tolist() == list(range(1000))
    counts = np.zeros(1000)
    for seed in range(200):
        counts[log.sample(100, seed=seed)[:, 0].astype(int)] += 1
    # each count is binomial(200, 0.1): mean 20, standard deviation 4.2; halves: 10000 +- 67
    assert counts.max() < 20 + 6 * 4.3 and counts.min() > 0
    assert abs(counts[:500].sum() - 10_000) < 400


def test_sample_of_a_long_log_is_spread_over_row_groups(tmp_path: Path) -> None:
    n = 400_000
    table = pa.table(
        {
            "episode_id": np.arange(n), "t": np.zeros(n, dtype=int), "obs": np.arange(n) * 1.0,
            "reward": np.zeros(n), "terminated": np.ones(n, dtype=bool),
        }
    )  # fmt: skip
    log = open_log(
        write_log(tmp_path / "a.parquet", table, row_group_rows=10_000), discount=0.9, targets=[]
    )
    picked = log.sample(1000, seed=3)[:, 0]
    assert len(picked) == len(set(picked.tolist())) == 1000
    assert len(np.unique(picked // 10_000)) == 32
    assert picked.max() >= 390_000


def test_a_log_is_known_by_its_rows_and_by_what_is_read(tmp_path: Path) -> None:
    table = log_table(random_problem(2))
    one = open_log(write_log(tmp_path / "a.parquet", table), discount=None)
    shorter = write_log(tmp_path / "b.parquet", table.slice(0, 100))
    grouped = write_log(tmp_path / "c.parquet", table, row_group_rows=50)
    logs = [one, open_log(shorter, discount=None), *open_log(grouped, discount=None).parts(2)]
    logs.append(open_log(one.files[0], discount=None, targets=[]))
    assert len({identity_of(log) for log in logs}) == len(logs) == 5
    known = identity_of(one)
    moved = open_log(Path(one.files[0]).rename(tmp_path / "other.parquet"), discount=None)
    assert identity_of(moved) == known


def test_many_files_are_not_kept_open(tmp_path: Path) -> None:
    import resource

    for i in range(40):
        write_log(tmp_path / f"{i}.parquet", as_table([one_row(episode_id=i)]))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    now = len(list(Path("/dev/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (now + 20, hard))
    try:
        log = open_log(tmp_path, discount=0.9)
        assert sum(map(len, log.batches())) == 40
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert repr(log) == (
        f"<log {tmp_path / '0.parquet'} and 39 more: 40 rows, "
        "observations of 2 numbers, targets: pi>"
    )


def test_former_names_warn() -> None:
    log = open_log(as_table([one_row()]), discount=0.9)
    with pytest.warns(DeprecationWarning, match="now called Log.schema"):
        assert log.meaning is log.schema
    with pytest.warns(DeprecationWarning, match="rows.0."):
        assert next(log.batches()).row == 0


def test_where_names_file_and_row(tmp_path: Path) -> None:
    table = log_table(random_problem(2))
    a, b = table.slice(0, 100), table.slice(100)
    write_log(tmp_path / "1.parquet", a)
    write_log(tmp_path / "2.parquet", b)
    log = open_log(str(tmp_path / "*.parquet"), discount=None)
    assert log.where(99) == f"{tmp_path / '1.parquet'}, row 99"
    assert log.where(103) == f"{tmp_path / '2.parquet'}, row 3"


NUMBERS = {
    "reward": ["float16", "float32", "int8", "uint64", "bool", "decimal"],
    "behavior_prob": ["float16", "float32", "decimal"],
    "target_prob_pi": ["float16", "float32", "int64", "bool", "decimal"],
    "episode_id": ["int8", "uint64", "float64", "float16"],
    "t": ["uint8", "int16", "float64"],
    "terminated": ["int8", "float32", "float16"],
}


@pytest.mark.parametrize(
    ("column", "kind"), [(column, kind) for column, kinds in NUMBERS.items() for kind in kinds]
)
def test_numbers_of_any_type(column: str, kind: str) -> None:
    """A log whose numbers any type can hold reads as float64, whatever type a column has."""
    at = np.arange(200)
    plain: dict[str, Any] = {
        "episode_id": at // 10, "t": at % 10, "obs": at * 0.01, "reward": at % 2 == 0,
        "terminated": at % 10 == 9, "behavior_prob": np.full(200, 0.5),
        "target_prob_pi": at % 3 == 0,
    }  # fmt: skip
    floats = {name: np.asarray(values, dtype=np.float64) for name, values in plain.items()}
    values = floats[column]
    typed = pa.array(map(Decimal, values)) if kind == "decimal" else pa.array(values.astype(kind))
    found = read(open_log(pa.table({**floats, column: typed}), discount=0.9))
    assert found == read(open_log(pa.table(floats), discount=0.9))
    (batch,) = open_log(pa.table({**floats, column: typed}), discount=0.9).batches()
    assert batch.behavior_prob is not None
    for array in (batch.reward, batch.behavior_prob, batch.target_prob):
        assert array.dtype == np.float64


def test_further_columns_are_carried_in_batches_also_where_rows_are_left_out() -> None:
    frame = {
        "episode_id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "obs": [0.0, 1.0, 2.0, 3.0],
        "reward": [1.0] * 4, "terminated": [False, False, False, True],
        "target_prob_a": [0.5] * 4, "behavior_prob": [0.5] * 4,
        "churn": [0, 1, 0, 1], "segment": ["new", "old", "new", "new"],
    }  # fmt: skip
    log = open_log(
        pa.table(frame), discount=1.0, extra={"churn": "number", "segment": "level"}, batch_rows=3
    )
    batches = list(log.batches())
    assert np.concatenate([b.extra["churn"] for b in batches]).tolist() == [0.0, 0.0, 1.0]
    places = np.concatenate([b.extra["segment"] for b in batches])
    assert log.levels["segment"].take(pa.array(places)).to_pylist() == ["new", "new", "new"]
    with pytest.raises(InputError, match="column for extra chrn"):
        open_log(pa.table(frame), discount=1.0, extra={"chrn": "number"})
