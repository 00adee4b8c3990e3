"""Bad logs: each fault is found and reported with file, column, row, rule, value and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadytd import InputError
from steadytd.logs.log import open_log
from steadytd.logs.write import write_log
from tests.support.draws import examples
from tests.support.log_helpers import fixed_lists
from tests.support.log_reference import Row, as_table

Spoil = Callable[[list[Row]], None]
AT = 7  # the row that is spoilt: t = 2 of episode 1


def good_rows() -> list[Row]:
    """Three episodes of five rows, the last of each terminated."""
    return [
        {
            "episode_id": e, "t": t, "obs": [float(e), float(t)], "action": t % 2, "reward": 1.0,
            "terminated": t == 4, "truncated": False, "behavior_prob": 0.5, "discount": 0.9,
            "next_obs": [0.0, 0.0], "target_prob_soft5": 0.25,
        }
        for e in range(3)
        for t in range(5)
    ]  # fmt: skip


def change(**values: Any) -> Spoil:
    def spoil(rows: list[Row]) -> None:
        rows[AT].update(values)

    return spoil


def swap(rows: list[Row]) -> None:
    rows[AT], rows[AT + 1] = rows[AT + 1], rows[AT]


def double(rows: list[Row]) -> None:
    rows.insert(AT, dict(rows[AT - 1]))


def drop(rows: list[Row]) -> None:
    del rows[AT]


def interleave(rows: list[Row]) -> None:
    rows[AT], rows[AT + 5] = rows[AT + 5], rows[AT]


def sort_by_t(rows: list[Row]) -> None:
    rows.sort(key=lambda row: (row["t"], row["episode_id"]))


def restart(rows: list[Row]) -> None:
    del rows[5]


def go_on(rows: list[Row]) -> None:
    rows[AT - 1]["terminated"] = True


def go_on_truncated(rows: list[Row]) -> None:
    rows[AT - 1]["truncated"] = True


FAULTS: dict[str, tuple[Spoil, str, int, str]] = {
    # name: how to spoil a log, column, row, and what the message must say
    "nan reward": (change(reward=np.nan), "reward", AT, "must be finite, got nan"),
    "infinite reward": (change(reward=-np.inf), "reward", AT, "must be finite, got -inf"),
    "null reward": (change(reward=None), "reward", AT, "a value is needed, got null"),
    "nan obs": (change(obs=[0.0, np.nan]), "obs", AT, "must be finite, got nan at position 1"),
    "infinite obs": (change(obs=[np.inf, 0.0]), "obs", AT, "must be finite, got inf at position 0"),
    "null obs": (change(obs=None), "obs", AT, "a value is needed, got null"),
    "null in obs": (change(obs=[0.0, None]), "obs", AT, "complete, got null at position 1"),
    "nan next_obs": (change(next_obs=[np.nan, 0.0]), "next_obs", AT, "must be finite, got nan"),
    "behavior 0": (
        change(behavior_prob=0.0, target_prob_soft5=0.0), "behavior_prob", AT,
        r"must lie in \(0, 1\], got 0; a probability below 1e-100",
    ),
    "behavior above 1": (change(behavior_prob=1.5), "behavior_prob", AT, r"\(0, 1\], got 1.5"),
    "behavior nan": (change(behavior_prob=np.nan), "behavior_prob", AT, r"\(0, 1\], got nan"),
    "behavior log": (
        change(behavior_prob=-0.7), "behavior_prob", AT,
        r"got -0.7; it looks like a log-probability: give it as action_logp",
    ),
    "target above 1": (
        change(target_prob_soft5=1.01), "target_prob_soft5", AT, r"must lie in \[0, 1\], got 1.01",
    ),
    "target log": (change(target_prob_soft5=-2.0), "target_prob_soft5", AT, "log-probability"),
    "target nan": (change(target_prob_soft5=np.nan), "target_prob_soft5", AT, "got nan"),
    "discount above 1": (change(discount=1.01), "discount", AT, r"lie in \[0, 1\], got 1.01"),
    "discount negative": (change(discount=-0.5), "discount", AT, r"lie in \[0, 1\], got -0.5"),
    "discount nan": (change(discount=np.nan), "discount", AT, r"lie in \[0, 1\], got nan"),
    "swapped": (swap, "t", AT, r"t must increase by one within episode 1, got 3 after 1 \(a gap\)"),
    "gone back": (change(t=0), "t", AT, "t must increase by one .* 1, got 0 after 1; sort"),
    "doubled": (double, "t", AT, r"may occur once, got \(1, 1\) again; drop the duplicate"),
    "gap": (drop, "t", AT, r"within episode 1, got 3 after 1 \(a gap\); add the missing rows"),
    "interleaved": (interleave, "t", AT, "every episode must begin with t = 0"),
    "old episode": (
        change(episode_id=0, t=5), "episode_id", AT,
        "sorted by episode_id .*after episode 1 comes, got 0; sort the log",
    ),
    "sorted by t": (sort_by_t, "episode_id", 3, "after episode 2 comes, got 0; sort the log"),
    "no beginning": (restart, "t", 5, "must begin with t = 0 .*got t = 1 in episode 1"),
    "after termination": (go_on, "t", AT, "episode 1 ended at t = 1, got t = 2"),
    "after truncation": (go_on_truncated, "t", AT, "no row may follow a terminated or truncated"),
    "flag": (change(terminated=None), "terminated", AT, "a value is needed, got null"),
}  # fmt: skip


@pytest.mark.parametrize("batch_rows", [1, 4, AT, 100])
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_reported(name: str, batch_rows: int, tmp_path: Path) -> None:
    spoil, column, row, words = FAULTS[name]
    rows = good_rows()
    spoil(rows)
    layout = "list" if name == "null in obs" else "fixed"
    path = write_log(tmp_path / "log.parquet", as_table(rows, layout), row_group_rows=6)
    with pytest.raises(InputError) as caught:
        for _ in open_log(path, discount=None, batch_rows=batch_rows).batches():
            pass
    message = str(caught.value)
    assert message.startswith(f"{path}: column '{column}', row {row} (counted from 0): ")
    assert re.search(words, message), message
    assert message.endswith(".") and "; " in message  # a remedy at the end


def test_the_good_rows_are_good() -> None:
    assert sum(map(len, open_log(as_table(good_rows()), discount=None).batches())) == 15


def test_row_is_counted_within_its_file(tmp_path: Path) -> None:
    rows = good_rows()
    change(reward=np.nan)(rows)
    table = as_table(rows)
    paths = [
        write_log(tmp_path / "a.parquet", table.slice(0, 6)),
        write_log(tmp_path / "b.parquet", table.slice(6)),
    ]
    with pytest.raises(InputError, match=r"b.parquet: column 'reward', row 1 \(counted from 0\)"):
        list(open_log(paths, discount=None, batch_rows=4).batches())


def test_files_that_repeat_episodes(tmp_path: Path) -> None:
    table = as_table(good_rows())
    paths = [write_log(tmp_path / name, table) for name in ("a.parquet", "b.parquet")]
    with pytest.raises(
        InputError, match=r"b.parquet: column 'episode_id', row 0 .*after episode 2"
    ):
        list(open_log(paths, discount=None).batches())
    with pytest.raises(InputError, match="is given twice"):
        open_log([paths[0], paths[0]], discount=None)


def test_observations_of_changing_length() -> None:
    rows = good_rows()
    rows[AT]["obs"] = [1.0, 2.0, 3.0]
    with pytest.raises(
        InputError, match=r"column 'obs', row 7 .*all have 2 numbers.*got 3 numbers"
    ):
        list(open_log(as_table(rows, "list"), discount=None).batches())
    rows = good_rows()
    rows[AT]["next_obs"] = []
    with pytest.raises(InputError, match=r"column 'next_obs', row 7 .*got 0 numbers"):
        list(open_log(as_table(rows, "list"), discount=None).batches())
    rows = good_rows()
    rows[0]["obs"] = []
    with pytest.raises(InputError, match="an observation needs at least one number"):
        open_log(as_table(rows, "list"), discount=None)


def test_lists_of_different_sizes(tmp_path: Path) -> None:
    table = as_table(good_rows())
    longer = fixed_lists(np.zeros((15, 3)))
    with pytest.raises(InputError, match=r"'next_obs' has lists of 3 numbers, but .* have 2"):
        open_log(table.set_column(table.column_names.index("next_obs"), "next_obs", longer),
                 discount=None)  # fmt: skip
    a = write_log(tmp_path / "a.parquet", table.drop_columns(["next_obs"]))
    b = table.set_column(2, "obs", longer).drop_columns(["next_obs"])
    with pytest.raises(InputError, match=r"b.parquet: column 'obs' has lists of 3 numbers"):
        open_log([a, write_log(tmp_path / "b.parquet", b)], discount=None)


def without(*names: str) -> Any:
    return as_table(good_rows()).drop_columns(list(names))


@pytest.mark.parametrize("name", ["episode_id", "obs", "reward", "terminated"])
def test_missing_column(name: str) -> None:
    with pytest.raises(InputError) as caught:
        open_log(without(name), discount=0.9)
    assert f"there is no column '{name}'" in str(caught.value)
    assert f"--map {name}=its_name" in str(caught.value)


def test_misspelt_columns() -> None:
    table = as_table(good_rows())
    renamed = table.rename_columns([{"reward": "rewrad"}.get(n, n) for n in table.column_names])
    with pytest.raises(InputError, match="did you mean 'rewrad'"):
        open_log(renamed, discount=None)
    with pytest.raises(InputError, match=r"column map says reward=rewad.*did you mean 'reward'"):
        open_log(table, discount=None, columns={"reward": "rewad"})
    with pytest.raises(InputError, match=r"name in the column map 'rewad'; did you mean 'reward'"):
        open_log(table, discount=None, columns={"rewad": "reward"})
    with pytest.raises(InputError, match=r"no column 'target_prob_sotf5'.*did you mean 'soft5'"):
        open_log(table, discount=None, targets=["sotf5"])
    with pytest.raises(InputError, match=r"write \['soft5'\]"):
        open_log(table, discount=None, targets="soft5")
    with pytest.raises(InputError, match="gives 2 columns for 'reward'"):
        open_log(table, discount=None, columns={"reward": ["reward", "t"]})


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("behavior_prob", "behaviour_prob"),
        ("truncated", "trucated"),
        ("next_obs", "nextobs"),
        ("discount", "discounts"),
        ("action", "actions"),
        ("behavior_probs", "behaviour_probs"),
        ("next_target_probs_soft5", "next_target_prob_soft5"),
    ],
)
def test_misspelt_optional_columns_are_not_passed_over(name: str, spelt: str) -> None:
    """Without them less is checked, or rows are left out, and nobody would know why."""
    table = as_table(good_rows())
    if name in table.column_names:
        table = table.rename_columns([{name: spelt}.get(n, n) for n in table.column_names])
    else:
        probs = pa.array([[0.5, 0.5]] * len(table), pa.list_(pa.float64(), 2))
        table = table.drop_columns(["target_prob_soft5"])
        table = table.append_column("target_probs_soft5", probs).append_column(spelt, probs)
    with pytest.raises(
        InputError, match=rf"column .{spelt}. looks like .{name}., which is missing"
    ):
        open_log(table, discount=0.9)
    log = open_log(table, discount=0.9, columns={name: spelt})
    assert log.schema.columns[name].parts == (spelt,)
    log = open_log(table, discount=0.9, columns={name: ""})  # meant to be something else
    assert name not in log.schema.columns


@pytest.mark.parametrize("column", ["target_prob_", "target_prob_ ", "target_probs_"])
def test_a_target_needs_a_name(column: str) -> None:
    table = as_table(good_rows())
    values = table["target_prob_soft5"].to_pylist()
    if column == "target_probs_":
        values = [[x, 1.0 - x] for x in values]
    with pytest.raises(InputError, match="a target needs a name, got a column 'target_prob_'"):
        open_log(table.append_column(column, [values]), discount=0.9)


def test_numbered_columns_with_a_gap() -> None:
    table = as_table(good_rows(), "columns").rename_columns(
        [{"obs_1": "obs_2"}.get(n, n) for n in as_table(good_rows(), "columns").column_names]
    )
    with pytest.raises(InputError, match=r"'obs_1' is missing, though there is 'obs_2'"):
        open_log(table, discount=None)


def test_no_targets_at_all() -> None:
    with pytest.raises(InputError, match="there is no target policy; add a column"):
        open_log(without("target_prob_soft5"), discount=None)
    assert open_log(without("target_prob_soft5"), discount=None, targets=[]).targets == []


@pytest.mark.parametrize(
    "name", ["reward", "t", "behavior_prob", "terminated", "target_prob_soft5"]
)
def test_text_where_numbers_belong(name: str) -> None:
    table = as_table(good_rows())
    text = pa.array(["x"] * len(table))
    table = table.set_column(table.column_names.index(name), name, text)
    with pytest.raises(
        InputError, match=rf"column '{name}' must hold numbers( or times)?, got text"
    ):
        open_log(table, discount=None)
    wide = as_table(good_rows())
    wide = wide.set_column(2, "obs", pa.array([["x", "y"]] * len(wide)))
    with pytest.raises(InputError, match=r"column 'obs' must hold numbers or lists of numbers"):
        open_log(wide, discount=None)


def test_flags_and_whole_numbers() -> None:
    for name, value, words in [
        ("terminated", 2, r"row 7 .*true or false \(or 1 or 0\), got 2"),
        ("t", 2.5, r"row 7 .*whole number below 2.63, got 2.5"),
        ("episode_id", np.nan, r"row 7 .*whole number below 2.63, got nan"),
    ]:
        rows = good_rows()
        for row in rows:
            row[name] = float(row[name])
        rows[AT][name] = value
        table = as_table([{k: v for k, v in row.items() if k != name} for row in rows])
        table = table.append_column(name, pa.array([row[name] for row in rows]))
        with pytest.raises(InputError, match=words):
            list(open_log(table, discount=None).batches())
        rows[AT][name] = float(good_rows()[AT][name])  # whole numbers stored as floats will do
        table = table.set_column(
            table.column_names.index(name), name, pa.array([row[name] for row in rows])
        )
        assert sum(map(len, open_log(table, discount=None).batches())) == 15


def test_first_t_is_neither_0_nor_1() -> None:
    rows = good_rows()[3:]
    with pytest.raises(InputError, match=r"column 't', row 0 .*must begin with t = 0.*got 3"):
        list(open_log(as_table(rows), discount=None).batches())


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.9", True])
def test_discount_argument(value: Any) -> None:
    with pytest.raises(InputError, match=r"discount must .*in \[0, 1\], got"):
        open_log(without("discount"), discount=value)


def test_no_discount() -> None:
    with pytest.raises(InputError, match=r"no discount is given.*--discount 0.99"):
        open_log(without("discount"), discount=None)


def test_log_probabilities_that_are_none() -> None:
    table = as_table(good_rows())
    for value in (0.5, np.nan, -np.inf):
        logs = pa.array([value] * len(table))
        spoilt = table.set_column(table.column_names.index("behavior_prob"), "action_logp", logs)
        with pytest.raises(InputError, match=r"'action_logp', row 0 .*finite and at most 0, got"):
            list(open_log(spoilt, discount=None).batches())


def test_non_numeric_actions_where_numbers_are_needed() -> None:
    half = {"half": lambda obs, action: np.full(len(obs), 0.5)}
    spoilt, words = without("action"), "there is no column 'action'"
    with pytest.raises(InputError, match=words):
        open_log(spoilt, discount=None, targets=half)
    with pytest.raises(InputError, match=words):
        next(open_log(spoilt, discount=None).batches(columns={"action"}))
    next(open_log(spoilt, discount=None).batches())


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            lambda obs, action: 0.5,
            r"one probability per row.*shape \(15,\), got an array of shape \(\)",
        ),
        (lambda obs, action: obs, r"got an array of shape \(15, 2\)"),
        (lambda obs, action: np.full(len(obs), 2.0), r"'target_prob_x', row 0 .*\[0, 1\], got 2"),
        (lambda obs, action: np.full(len(obs), np.nan), r"'target_prob_x', row 0 .*got nan"),
        (0.5, r"must be a function obs -> prob"),
    ],
)
def test_functions_that_return_nonsense(policy: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        list(open_log(as_table(good_rows()), discount=None, targets={"x": policy}).batches())


def test_functions_that_fail_are_named_with_their_rows() -> None:
    """The target, the rows it was given, and the cause behind the error."""

    def fails(obs: Any, action: Any) -> Any:
        raise ZeroDivisionError("no such thing")

    def ragged(obs: Any) -> Any:
        return [[0.5], [0.5, 0.5]]

    def whole_fails(obs: Any) -> Any:
        if len(obs) > 1:
            raise KeyError("late")
        return np.full((1, 2), 0.5)

    table = as_table(good_rows())
    for policy, kind, words in [
        (fails, ZeroDivisionError, r"'x', given 15 observations from row 0 on .*\(no such t"),
        (ragged, ValueError, "'x', given 1 observation from row 0 on .*ValueError"),
        (whole_fails, KeyError, r"'x', given \d+ observations from row 0 on .*KeyError"),
    ]:
        for options in ({"targets": {"x": policy}}, {"behavior": policy}):
            named = words.replace("'x'", "the target 'x'" if "targets" in options else "policy")
            with pytest.raises(InputError, match=named) as found:
                list(open_log(table, discount=None, **options).batches())
            assert isinstance(found.value.__cause__, kind)


@pytest.mark.parametrize("layout", ["fixed", "columns"])
def test_functions_cannot_change_the_log(layout: str) -> None:
    def writes(obs: Any, action: Any) -> Any:
        obs[:] = 0.0
        return np.full(len(obs), 0.5)

    table = as_table(good_rows(), layout)
    with pytest.raises(InputError, match=r"'x', given .* failed: ValueError .*read-only"):
        list(open_log(table, discount=None, targets={"x": writes}).batches())


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    empty, text, none = tmp_path / "e.parquet", tmp_path / "t.parquet", tmp_path / "n.parquet"
    empty.write_bytes(b"")
    text.write_text("episode_id,t\n0,0\n")
    write_log(none, as_table(good_rows()).slice(0, 0))
    for path, words in [
        (empty, "is an empty file"),
        (text, "is not a Parquet file .*must have a name that ends in .csv"),
        (none, "holds no rows"),
        (tmp_path / "missing.parquet", "there is no file"),
        (tmp_path / "*.txt", "no file matches"),
        ([], "at least one file"),
        (tmp_path, "cannot be read|is an empty file"),
        (3, "a log must be a path .*got builtins.int"),
        (pl.LazyFrame({"t": [1]}), r"call .collect\(\) first"),
        (pl.DataFrame(), "holds no rows"),
    ]:
        with pytest.raises(InputError, match=words):
            open_log(path, discount=0.9)
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match=r"holds no .parquet, .csv or .jsonl file"):
        open_log(tmp_path / "sub", discount=0.9)


def test_files_with_other_columns(tmp_path: Path) -> None:
    a = write_log(tmp_path / "a.parquet", as_table(good_rows()))
    b = write_log(tmp_path / "b.parquet", without("next_obs"))
    with pytest.raises(InputError, match=r"b.parquet' has other columns than .*\(next_obs\)"):
        open_log([a, b], discount=None)
    double = as_table(good_rows())
    double = double.append_column("t", double["t"])
    with pytest.raises(InputError, match="several columns are named 't'"):
        open_log(double, discount=None)


def test_a_file_cut_short_anywhere(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.parquet", as_table(good_rows()), row_group_rows=5)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"log.parquet' (is an empty|cannot be|is not a Parq)"):
            open_log(path, discount=None)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.just([]), st.just([1.0, None]),
    st.lists(st.floats(), max_size=3),
)  # fmt: skip


@settings(max_examples=examples(60, 150), deadline=None)
@given(
    row=st.integers(0, 14), name=st.sampled_from(sorted(good_rows()[0])), value=VALUES,
    batch_rows=st.integers(1, 16),
)  # fmt: skip
def test_any_value_anywhere_reads_or_is_an_input_error(
    row: int, name: str, value: Any, batch_rows: int
) -> None:
    rows = good_rows()
    rows[row][name] = value
    try:
        table = as_table(rows, "list", pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        return  # Arrow has no column for such a mixture
    try:
        log = open_log(table, discount=None, batch_rows=batch_rows)
        found = list(log.batches())
    except InputError as error:
        assert "the frame" in str(error)
        return
    for batch in found:
        for array in (batch.obs, batch.reward, batch.behavior_prob, batch.target_prob):
            assert array is not None and np.isfinite(array).all()
        assert batch.row_next.max() < len(batch.obs) and batch.row_next.min() >= 0
        assert ((batch.discount >= 0) & (batch.discount <= 1)).all()
