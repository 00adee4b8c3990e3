"""Tables as people have them: named columns, models, order, candidate sets, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import steadytd as st
from steadytd import InputError
from steadytd.logs.log import Log, open_log
from tests.support.tables import Rule, sessions

pd: Any = pytest.importorskip("pandas")


def read(log: Log) -> Any:
    """All batches as one dictionary of arrays."""
    batches = list(log.batches())
    obs = np.concatenate([batch.obs[: len(batch)] for batch in batches])
    names = ("reward", "episode", "first", "action", "behavior_prob")
    return {"obs": obs, **{n: np.concatenate([getattr(b, n) for b in batches]) for n in names}}


ODD: dict[str, list[Any]] = {
    "segment": ["new", "old", None, "new"],
    "basket": [1.0, None, 3.0, 5.0],
    "member": [True, False, True, True],
    "reward": [0.0, 1.0, 2.0, 3.0],
    "action": ["b", "a", "b", "a"],
    "pscore": [0.5] * 4,
    "target_prob_x": [0.5] * 4,
}


def test_columns_of_any_kind_are_one_observation() -> None:
    when = pd.to_datetime(["2026-01-02", "2026-01-01", None, "2026-01-04"])
    frame = pd.DataFrame({**ODD, "when": when})
    log = open_log(frame, obs=["segment", "basket", "member", "when"], discount=1.0)
    assert log.schema.obs_names == (
        "segment=new", "segment=old", "segment is missing", "basket", "basket is missing",
        "member", "when", "when is missing",
    )  # fmt: skip
    found = read(log)
    assert found["obs"].tolist() == [
        [1, 0, 0, 1, 0, 1, 1, 0],
        [0, 1, 0, 3, 1, 0, 0, 0],  # the mean of 1, 3 and 5
        [0, 0, 1, 3, 0, 1, 4 / 3, 1],  # of 1, 0 and 3 days
        [1, 0, 0, 5, 0, 1, 3, 0],
    ]
    assert found["action"].tolist() == [1, 0, 1, 0] and log.schema.actions == ("a", "b")
    assert found["episode"].tolist() == [0, 1, 2, 3] and found["first"].all()
    assert any("every row is taken as an episode" in note.lower() for note in log.notes)
    assert any("'segment', 'basket', 'when' are replaced by the mean" in note for note in log.notes)


def test_the_next_observation_is_encoded_in_the_same_way() -> None:
    frame = pl.DataFrame(
        {
            "episode_id": [0, 0, 1], "t": [0, 1, 0], "where": ["a", "b", "a"], "x": [1.0, 2, None],
            "where_after": ["b", "c", None], "x_after": [2.0, None, None], "reward": [0.0] * 3,
            "terminated": [False] * 3, "pscore": [1.0] * 3, "target_prob_p": [1.0] * 3,
        }
    )  # fmt: skip
    after = {"next_obs": ["where_after", "x_after"]}
    log = open_log(frame, obs=["where", "x"], columns=after, discount=0.9)
    [batch] = log.batches()
    assert log.schema.obs_names == ("where=a", "where=b", "x", "x is missing")
    assert batch.obs[batch.row_next].tolist() == [[0, 1, 2, 0], [0, 0, 1.5, 1]]  # c was never seen
    assert log.left_out == 1  # nothing is known after the last row
    with pytest.raises(InputError, match="name its columns in the same order"):
        open_log(frame.rename({"x_after": "next_obs"}), obs=["where", "x"], discount=0.9)


def test_rare_levels_are_joined_and_those_never_seen_have_none() -> None:
    n = 400
    texts = np.array(["often"] * 390 + [f"rare{i}" for i in range(10)])
    frame = pl.DataFrame({"segment": texts, "x": np.arange(n)}).with_columns(
        reward=0.0, action=0, pscore=1.0, target_prob_x=1.0
    )
    log = open_log(frame, obs=["segment"], discount=1.0)
    assert log.schema.obs_names == ("segment=often", "segment: other levels")
    assert read(log)["obs"].sum(axis=0).tolist() == [390, 10]
    assert any("fewer than 1 % of the rows are joined: 'segment'" in note for note in log.notes)


def test_parts_have_one_encoding(tmp_path: Path) -> None:
    """Cut into parts, batches or files, the observations and actions are the same."""
    frame = sessions(0, 3000)
    obs = ["segment", "basket", "member", "when"]
    options: Any = {"obs": obs, "discount": 1.0, "columns": {"reward": "revenue"},
                    "targets": {"rule": "rule"}}  # fmt: skip
    path = st.write_log(tmp_path / "log.parquet", frame, row_group_rows=400)
    whole = read(open_log(frame, **options))
    parts = open_log(path, **options, batch_rows=170).parts(4)
    assert len(parts) == 4
    found = [read(pickle.loads(pickle.dumps(part))) for part in parts]
    for name, values in whole.items():
        assert np.array_equal(np.concatenate([one[name] for one in found]), values), name


def test_rows_of_a_frame_are_sorted_by_time_and_a_stream_says_where_it_is_not(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(
        {
            "session": ["b", "a", "b", "a", "b"],
            "clicked_at": pd.to_datetime([5, 2, 1, 3, 4], unit="h", origin="2026-01-01"),
            "x": [25.0, 12.0, 21.0, 13.0, 24.0],
            "reward": [5.0, 2.0, 1.0, 3.0, 4.0],
            "done": [True, False, False, True, False],
            "action": [0, 1, 0, 1, 0],
            "pscore": [0.5] * 5,
            "target_prob_x": [0.5] * 5,
        }
    )
    options: Any = {"obs": ["x"], "discount": 1.0, "columns": {"timestamp": "clicked_at"}}
    log = open_log(frame, **options)
    found = read(log)
    assert found["reward"].tolist() == [1.0, 4.0, 5.0, 2.0, 3.0]  # b begins first
    assert found["first"].tolist() == [True, False, False, True, False]
    assert "The rows of the frame were sorted by 'session' and 'clicked_at'." in log.notes
    assert "There is no column t: the rows of an episode are taken by 'clicked_at'." in log.notes
    ordered = frame.iloc[[2, 4, 0, 1, 3]]
    path = st.write_log(tmp_path / "log.parquet", ordered)
    again = read(open_log(path, **options, batch_rows=2))
    for name, values in found.items():
        assert np.array_equal(again[name], values), name
    path = st.write_log(tmp_path / "other.parquet", ordered.iloc[[1, 0, 2, 3, 4]])
    with pytest.raises(InputError, match=r"'clicked_at', row 1 .*times must not go back"):
        read(open_log(path, **options))


def test_everything_that_is_missing_is_said_at_once() -> None:
    frame = sessions(0, 50).drop(columns=["propensity_score"])
    with pytest.raises(InputError) as caught:
        st.evaluate(frame, discount=1.0, targets={"rule": "rule"})
    message = str(caught.value)
    assert "3 things are missing or wrong" in message
    for words in (
        "no column 'reward'", "no column 'obs'", "no column 'behavior_prob'",
        "--map reward=revenue", "--obs segment,basket,member,when",
    ):  # fmt: skip
        assert words in message, message
    with pytest.raises(InputError) as caught:
        open_log(frame, obs=["segmnt", "basket", "baskt", "basket"], discount=1.0)
    assert "'segmnt'; did you mean 'segment'?" in str(caught.value)
    assert "'baskt'; did you mean 'basket'?" in str(caught.value)
    assert "obs names 'basket' twice" in str(caught.value)


def test_candidate_sets_restrict_models_and_check_the_others() -> None:
    frame = pd.DataFrame({**ODD, "allowed_actions": [["b", "c"], ["a", "b"], ["b"], ["a", "c"]]})
    model = Rule(["a", "b", "c"], [0.5, 0.25, 0.25])
    log = open_log(frame, obs=["basket"], discount=1.0, targets={"m": model})
    probs = np.concatenate([batch.probs for batch in log.batches() if batch.probs is not None])
    expected = np.array([[0, 3, 3], [4, 2, 0], [0, 6, 0], [4, 0, 2]]) / 6.0
    assert np.allclose(probs[:, 0], expected)
    assert any("models are restricted to 'allowed_actions'" in note.lower() for note in log.notes)
    half = {"half": lambda obs: np.tile([0.5, 0.25, 0.25], (len(obs), 1))}
    with pytest.raises(InputError, match=r"row 0 .*not allowed in the row, got 0.5 for action 0"):
        list(open_log(frame, obs=["basket"], discount=1.0, targets=half).batches())
    frame["allowed_actions"] = [["b", "c"], ["b"], ["b"], ["a", "c"]]
    with pytest.raises(InputError, match=r"row 1 .*must be among the allowed ones, got a"):
        list(open_log(frame, obs=["basket"], discount=1.0).batches())


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_policy_is_written_into_a_frame(kind: str) -> None:
    frame: Any = pd.DataFrame(ODD)
    frame = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.table(frame)}[kind]
    model = Rule(["a", "b"], [0.25, 0.75])
    found = st.with_policy(frame, "m", model, obs=["segment"])
    assert type(found) is type(frame)
    log = open_log(found, obs=["basket"], discount=1.0, targets=["m"])
    direct = open_log(frame, obs=["basket"], discount=1.0, targets={"m": model})
    [a], [b] = list(log.batches()), list(direct.batches())
    assert a.target_prob.tolist() == b.target_prob.tolist() == [[0.75, 0.25, 0.75, 0.25]]
    with pytest.raises(InputError, match="did you mean 'segment'"):
        st.with_policy(frame, "m", model, obs=["segmnt"])
    with pytest.raises(InputError, match="needs predict_proba and classes_"):
        st.with_policy(frame, "m", object())


def test_json_lines_and_batches_that_are_opened_anew(tmp_path: Path) -> None:
    frame = sessions(1, 500)
    table = pa.table(frame.astype({"segment": object}))
    options: Any = {"obs": ["segment", "basket", "member"], "discount": 1.0,
                    "columns": {"reward": "revenue"}, "targets": {"rule": "rule"}}  # fmt: skip
    whole = read(open_log(frame, **options))
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for row in table.to_pylist():
            file.write(json.dumps(row, default=str) + "\n")
    opened = 0

    def reader() -> Any:
        nonlocal opened
        opened += 1
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(60))

    import pyarrow.dataset as ds

    st.write_log(tmp_path / "log.parquet", table, row_group_rows=100)
    dataset = ds.dataset(tmp_path / "log.parquet")
    for source in (path, reader, dataset):
        found = read(open_log(source, **options, batch_rows=37))
        for name, values in whole.items():
            assert np.allclose(found[name], values), (source, name)
    assert opened > 2
    once = reader()
    with pytest.raises(InputError, match="must give all rows anew each time"):
        read(open_log(lambda: once, **options))


STRANGE: dict[str, Any] = {
    "unicode": ["für", "日本", "🙂", "für"],
    "empty": ["", "", "a", "a"],
    "bell": ["\x1b[31m", "x", "x", "x"],
    "large": [2**62, 1, 2, 3],
    "decimal": pd.array([1, 2, None, 4], dtype="Int64"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_columns_are_read(name: str) -> None:
    strange = f"{name}, = \x07 ümlaut"
    frame = pd.DataFrame({**ODD, strange: STRANGE[name]})
    log = open_log(frame, obs=[strange, "basket"], discount=1.0)
    found = read(log)["obs"]
    assert np.isfinite(found).all() and found.shape == (4, len(log.schema.obs_names))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([None] * 4, "numbers, times, strings or levels, got the type null"),
        ([np.nan] * 4, "without a value in any row: odd"),
        ([1.0, np.inf, 2.0, 3.0], r"column 'odd', row 1 .*must be finite .*got inf"),
        ([1, "a", 2.0, None], "cannot be turned into Arrow.*odd"),
        ([[1.0], [2.0], [3.0], [4.0]], "'odd' must hold numbers, times, strings or"),
        ([{"a": 1}] * 4, "'odd' must hold numbers, times, strings or"),
    ],
)
def test_columns_that_cannot_be_observed(values: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(open_log(pd.DataFrame({**ODD, "odd": values}), obs=["odd"], discount=1.0))


def test_tables_that_mislead_say_so(tmp_path: Path) -> None:
    frame = pd.DataFrame(ODD)
    with pytest.raises(InputError, match="several columns are named 'basket' and 'member'; rename"):
        open_log(pd.concat([frame, frame[["basket", "member"]]], axis=1), discount=1.0)
    many = pd.concat([frame] * 100, ignore_index=True)
    many["when"] = pd.date_range("2026-01-01", periods=400).astype(str)
    log = open_log(many, obs=["when", "segment"], discount=1.0)
    assert [note for note in log.notes if "says little" in note] == [
        "'when' says little: 100 % of its values are joined (dates in texts should be made times, "
        "and names of rows left out)."
    ]
    percent = frame.assign(pscore=[50.0] * 4, discount=[20, 0, 5, 10])
    with pytest.raises(InputError) as caught:
        open_log(percent, obs=["basket"])
    assert "got 50; correct it (per cent: divide by 100" in str(caught.value)
    assert "in [0, 1], got 20; correct it, or map 'discount' to ''" in str(caught.value)
    gaps = frame.assign(reward=[0.0, None, None, 1.0])
    with pytest.raises(InputError, match=r"^the frame: column 'reward', row 1 .*null; fill it in"):
        open_log(gaps, obs=["basket"], discount=1.0, rewards={"reward": "+"})
    frame.assign(reward=[True, False, True, True]).to_csv(tmp_path / "log.csv", index=False)
    for rewards in (None, {"reward": "+"}, {"basket_": "+", "reward": "+"}):
        frame.assign(reward=[True, False, True, True], basket_=1).to_csv(tmp_path / "log.csv")
        log = open_log(
            tmp_path / "log.csv", obs=["basket", "member"], discount=1.0, rewards=rewards
        )
        [batch] = log.with_rewards([{"reward": 1.0}]).batches()
        assert batch.extra["reward"].tolist() == [1.0, 0.0, 1.0, 1.0]
