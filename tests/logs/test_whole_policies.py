"""Policies known as a whole: probabilities of all actions from columns and functions, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from steadytd import InputError
from steadytd.logs.log import Log, open_log
from steadytd.logs.write import write_log
from tests.support.draws import examples
from tests.support.log_reference import Row, as_table, valid_rows

ACTIONS = 3


def policy(obs: NDArray[Any]) -> NDArray[Any]:
    """Some smooth distribution over three actions, by row."""
    total = np.asarray(obs, dtype=np.float64).sum(axis=1)
    raw = np.exp(np.stack([total, -total, 0.0 * total], axis=1))
    return np.asarray(raw / raw.sum(axis=1, keepdims=True))


def one(obs: Any) -> list[float]:
    return [float(p) for p in policy(np.array([obs], dtype=np.float32))[0]]


def with_policies(rows: list[Row], next_probs: str = "given") -> list[Row]:
    """The rows with `target_probs_x`, and with `next_target_probs_x` where next_obs is given."""
    found = []
    for row in rows:
        more: Row = {"target_probs_x": one(row["obs"])}
        if next_probs == "given" and "next_obs" in row:
            given = row["next_obs"] is not None
            more["next_target_probs_x"] = one(row["next_obs"]) if given else None
        kept = {key: value for key, value in row.items() if not key.startswith("target_prob_")}
        found.append({**kept, **more})
    return found


def table_of(rows: list[Row], layout: str = "fixed") -> Any:
    """The rows as Arrow, distributions as lists or as numbered columns."""
    wide = [key for key in rows[0] if "target_probs_" in key]
    plain = as_table([{k: v for k, v in row.items() if k not in wide} for row in rows], layout)
    for key in wide:
        values = [row[key] for row in rows]
        if layout == "columns":
            for i in range(ACTIONS):
                entries = pa.array([None if v is None else v[i] for v in values], pa.float64())
                plain = plain.append_column(f"{key}_{i}", entries)
        else:
            kind = pa.list_(pa.float64(), ACTIONS) if layout == "fixed" else pa.list_(pa.float64())
            plain = plain.append_column(key, pa.array(values, kind))
    return plain


def seen(log: Log) -> list[tuple[Any, ...]]:
    """Row, probabilities at the observation and (None: stop) at the next one, target_prob."""
    found = []
    try:
        for b in log.batches():
            assert b.probs is not None and b.action is not None
            assert len(b.probs) == len(b.obs)
            for i in range(len(b)):
                after = None if b.discount[i] == 0.0 else b.probs[b.row_next[i], 0].tolist()
                here = b.probs[i, 0].tolist()
                found.append((int(b.rows[i]), here, after, float(b.target_prob[0, i])))
    except InputError as error:
        assert "no row can be learned from" in str(error)
    return found


def expected(rows: list[Row], known: str) -> list[tuple[Any, ...]]:
    """The same in plain Python; `known` is "given" (a column), "function" or "none"."""
    found = []
    for i, row in enumerate(rows):
        discount = 0.0 if row["terminated"] else row.get("discount", 0.9)
        goes_on = i + 1 < len(rows) and rows[i + 1]["episode_id"] == row["episode_id"]
        own = row.get("next_obs")
        if discount == 0.0:
            after = None
        elif own is not None and goes_on and own == rows[i + 1]["obs"]:
            after = one(rows[i + 1]["obs"])
        elif own is not None and known != "none":
            after = one(own)
        elif goes_on:
            after = one(rows[i + 1]["obs"])
        elif own is not None:
            after = [float("nan")] * ACTIONS
        else:
            continue
        here = one(row["obs"])
        found.append((i, here, after, here[row["action"]]))
    return found


@settings(max_examples=examples(15, 40), deadline=None)
@given(
    rows=valid_rows(),
    layout=st.sampled_from(["fixed", "list", "columns"]),
    known=st.sampled_from(["given", "none", "function"]),
    batch_rows=st.integers(1, 9),
)
def test_every_observation_has_its_probabilities(
    rows: list[Row], layout: str, known: str, batch_rows: int
) -> None:
    full = with_policies(rows, known)
    if known == "function":
        table: Any = as_table(rows, layout)
        log = open_log(table, discount=0.9, targets={"x": policy}, batch_rows=batch_rows)
    else:
        log = open_log(table_of(full, layout), discount=0.9, batch_rows=batch_rows)
    assert log.whole == log.targets == ["x"]
    assert log.n_actions == ACTIONS
    found, wanted = seen(log), expected(full, known)
    assert [row[0] for row in found] == [row[0] for row in wanted]
    for (_, *got), (_, *want) in zip(found, wanted, strict=True):
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-6)  # the functions see float32


def rows_of(n: int = 6) -> list[Row]:
    """Two episodes, the second of them cut off with its next observation."""
    rows = [
        {
            "episode_id": int(i >= 3), "t": i % 3, "obs": [float(i), 1.0], "action": i % ACTIONS,
            "reward": 1.0, "terminated": i == 2, "truncated": i == n - 1, "behavior_prob": 0.5,
            "next_obs": [9.0, 9.0] if i == n - 1 else None,
        }
        for i in range(n)
    ]  # fmt: skip
    return with_policies(rows)


def spoilt(at: int, **values: Any) -> Any:
    rows = rows_of()
    rows[at].update(values)
    return table_of(rows, "list")


FAULTS = [
    (spoilt(2, target_probs_x=[0.5, 0.5, 0.1]),
     r"'target_probs_x', row 2 .*add up to 1, got \[0.5, 0.5, 0.1\], in sum 1.1; correct them"),
    (spoilt(2, target_probs_x=[-1.0, -2.0, -0.5]), r"row 2 .*they look like log-prob"),
    (spoilt(1, target_probs_x=[1.5, -0.5, 0.0]), r"row 1 .*at least 0 and add up to 1, got \[1.5"),
    (spoilt(1, target_probs_x=[0.5, 0.5]),
     r"row 1 .*probabilities must all have 3 numbers as in the first row, got 2 numbers"),
    (spoilt(4, target_probs_x=None), r"'target_probs_x', row 4 .*a value is needed, got null"),
    (spoilt(5, next_target_probs_x=[0.5, 0.2, 0.2]), r"'next_target_probs_x', row 5 .*in sum 0.9"),
    (spoilt(3, action=3), r"'action', row 3 .*one of 0, ..., 2, the entries .*, got 3"),
    (spoilt(3, action=-1), r"'action', row 3 .*one of 0, ..., 2, .*, got -1"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "words"), FAULTS)
def test_bad_distributions_are_refused(table: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        list(open_log(table, discount=0.9).batches())


def test_both_forms_must_agree() -> None:
    table = table_of(rows_of())
    entries = [row["target_probs_x"][row["action"]] for row in rows_of()]
    log = open_log(table.append_column("target_prob_x", pa.array(entries)), discount=0.9)
    np.testing.assert_allclose(next(log.batches()).target_prob[0], entries)
    entries[4] += 0.01
    log = open_log(table.append_column("target_prob_x", pa.array(entries)), discount=0.9)
    with pytest.raises(InputError, match=r"'target_prob_x', row 4 .*entry in 'target_probs_x', "):
        list(log.batches())
    list(log.batches(columns={"target_prob"}))  # the lists are not read


def test_the_behavior_policy_as_a_whole() -> None:
    """Its list gives the logged action's probability, in place of `behavior_prob`."""
    rows, whole = rows_of(), [[0.2, 0.3, 0.5]] * 6
    table = table_of(rows).append_column("behavior_probs", pa.array(whole))
    log = open_log(table.drop_columns("behavior_prob"), discount=0.9)
    assert log.has_behavior
    [batch] = log.batches()
    assert batch.behavior_prob is not None and batch.probs is not None
    assert np.isnan(batch.probs[6, 1]).all() and not np.isnan(batch.probs[6, 0]).any()
    np.testing.assert_array_equal(
        batch.behavior_prob, np.take(whole[0], [row["action"] for row in rows])
    )
    np.testing.assert_array_equal(batch.probs[:6, 1], whole)
    only = next(log.batches(columns={"behavior_prob", "target_prob"}))
    np.testing.assert_array_equal(only.target_prob, batch.target_prob)
    assert only.probs is None
    with pytest.raises(
        InputError, match=r"'behavior_prob', row 0 .*entry in 'behavior_probs', 0.2"
    ):
        list(open_log(table, discount=0.9).batches())
    short = table_of(rows).append_column("behavior_probs", pa.array([[0.5, 0.5]] * 6))
    with pytest.raises(InputError, match=r"target_probs_x has 3 actions, but behavior_probs has 2"):
        open_log(short, discount=0.9)
    logged = {"target_probs_logging": "behavior_probs"}  # the behaviour valued as a target
    log = open_log(table.drop_columns("behavior_prob"), discount=0.9, columns=logged)
    assert log.whole == ["x", "logging"]
    [batch] = log.batches()
    assert batch.behavior_prob is not None
    np.testing.assert_array_equal(batch.target_prob[1], batch.behavior_prob)


def test_functions_of_observations_and_of_actions() -> None:
    """One needed argument: all actions. Two: the logged action's. Optional ones do not count."""
    table = as_table([{k: v for k, v in r.items() if "probs" not in k} for r in rows_of()])

    def cooled(obs: Any, temperature: float = 1.0) -> Any:
        return policy(np.asarray(obs) / temperature)

    def logged(obs: Any, action: Any = None) -> Any:
        return np.full(len(obs), 0.25)

    log = open_log(table, discount=0.9, targets={"cooled": cooled, "logged": logged})
    assert (log.targets, log.whole) == (["cooled", "logged"], ["cooled"])
    [batch] = log.batches()
    assert batch.probs is not None and batch.target_prob[1].tolist() == [0.25] * 6
    np.testing.assert_allclose(batch.probs[6, 0], one([9.0, 9.0]), rtol=1e-6)
    log = open_log(table, discount=0.9, targets={"x": policy}, behavior=policy)
    [batch] = log.batches()
    np.testing.assert_array_equal(batch.behavior_prob, batch.target_prob[0])
    with pytest.raises(InputError, match=r"must return the probabilities of all actions.*\(1,\)"):
        open_log(table, discount=0.9, targets={"x": lambda obs: np.ones(len(obs))})
    odd = {"x": lambda obs: np.full((len(obs), 3 if len(obs) == 1 else 2), 0.5)}
    with pytest.raises(InputError, match=r"'x' must return .* of shape \(7, 3\), got .* \(7, 2\)"):
        list(open_log(table, discount=0.9, targets=odd).batches())
    bad = {"x": lambda obs: np.full((len(obs), 3), 0.5)}
    with pytest.raises(InputError, match=r"'target_probs_x', row 0 .*in sum 1.5"):
        list(open_log(table, discount=0.9, targets=bad).batches())
    late = {"x": lambda obs: np.where((obs == 9.0).all(axis=1)[:, None], 0.5, policy(obs))}
    with pytest.raises(InputError, match=r"'next_target_probs_x', row 5 .*in sum 1.5"):
        list(open_log(table, discount=0.9, targets=late).batches())


def test_names_with_numbers_and_maps(tmp_path: Path) -> None:
    """Lists of targets x_0 and x_1 are two targets; numbered columns of numbers are one."""
    table = table_of(rows_of()).drop_columns(["target_probs_x", "next_target_probs_x"])
    whole = pa.array([[0.2, 0.8]] * 6)
    lists = table.append_column("target_probs_x_0", whole).append_column("target_probs_x_1", whole)
    with pytest.raises(InputError, match=r"action .*one of 0, ..., 1"):
        assert open_log(lists, discount=0.9).whole == ["x_0", "x_1"]
        list(open_log(lists, discount=0.9).batches())
    flat = table_of(rows_of(), "columns")
    assert open_log(flat, discount=0.9).whole == ["x"]
    names = [f"p{i}" for i in range(3)]
    stem = "target_probs_x_"
    others = [n.replace(stem, "p") if n.startswith(stem) else n for n in flat.column_names]
    renamed = flat.rename_columns(others)
    log = open_log(renamed, discount=0.9, columns={"target_probs_y": names})
    assert (log.whole, log.n_actions) == (["y"], 3)
    path = tmp_path / "log.csv"
    pc.write_csv(flat, path)
    assert str(seen(open_log(path, discount=0.9))) == str(seen(open_log(flat, discount=0.9)))
    parquet = write_log(tmp_path / "log.parquet", table_of(rows_of()))
    assert seen(open_log(parquet, discount=0.9))[0] == seen(open_log(flat, discount=0.9))[0]
    text = table_of(rows_of()).set_column(3, "action", pa.array(["left"] * 6))
    with pytest.raises(
        InputError, match=r"probabilities of 3 actions, but only 1 of them have names"
    ):
        open_log(text, discount=0.9)
    lone = table_of(rows_of()).drop_columns("target_probs_x")
    lone = lone.append_column("target_prob_x", pa.array([0.5] * 6))
    with pytest.raises(InputError, match=r"'next_target_probs_x' but no 'target_probs_x'"):
        open_log(lone, discount=0.9)


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float64(), 1)])
def test_densities_of_continuous_actions(kind: Any) -> None:
    """Above 1 where actions are fractions or lists, refused where they are whole numbers."""
    table = as_table([{k: v for k, v in r.items() if "probs" not in k} for r in rows_of()])
    table = table.append_column("target_prob_x", pa.array([2.5, 0.0, 1.0, 1.0, 1.0, 7.0]))
    with pytest.raises(
        InputError, match=r"'target_prob_x', row 0 .*\[0, 1\], got 2.5; .*real numbers"
    ):
        list(open_log(table, discount=0.9).batches())
    actions = pa.array([0.5] * 6) if kind == pa.float64() else pa.array([[0.5]] * 6, kind)
    place = table.column_names.index("action")
    smooth = table.set_column(place, "action", actions)
    [batch] = open_log(smooth, discount=0.9).batches()
    assert batch.target_prob[0].tolist() == [2.5, 0.0, 1.0, 1.0, 1.0, 7.0]
    for value, words in [(np.inf, "infinity"), (-0.1, "density must lie in"), (np.nan, "got nan")]:
        at = smooth.column_names.index("behavior_prob")
        bad = smooth.set_column(at, "behavior_prob", pa.array([value] + [3.0] * 5))
        with pytest.raises(InputError, match=words):
            list(open_log(bad, discount=0.9).batches())
    logp = smooth.set_column(at, "action_logp", pa.array([1.5] * 6))
    [batch] = open_log(logp, discount=0.9).batches()
    np.testing.assert_allclose(np.asarray(batch.behavior_prob), np.exp(1.5))


@pytest.mark.parametrize("batch_rows", [1, 2, 9])
def test_the_last_row_of_a_batch_waits_for_the_next_probabilities(batch_rows: int) -> None:
    """Every row has its own next_obs, without probabilities there: the following row has them."""
    rows: list[Row] = [
        {
            "episode_id": 0, "t": t, "obs": [float(t)], "action": t % ACTIONS, "reward": 1.0,
            "terminated": False, "truncated": t == 5, "behavior_prob": 0.5,
            "next_obs": [float(t + 1)],
        }
        for t in range(6)
    ]  # fmt: skip
    log = open_log(table_of(with_policies(rows, "none")), discount=0.9, batch_rows=batch_rows)
    found = [after for _, _, after, _ in seen(log)]
    np.testing.assert_allclose(found[:5], [one([float(t + 1)]) for t in range(5)], rtol=1e-6)
    assert np.isnan(found[5]).all() and log.left_out == 0


# Functions and models where columns were named as the observation

SHOP: dict[str, Any] = {
    "episode_id": [0, 0, 1], "t": [0, 1, 0], "kind": ["new", "vip", None], "size": [1.0, None, 3.0],
    "kind_after": ["vip", None, "new"], "size_after": [None, None, 5.0], "reward": [1.0] * 3,
    "terminated": [False, True, False], "shown": ["b", "a", "a"], "pscore": [0.5] * 3,
}  # fmt: skip
NAMED: dict[str, Any] = {
    "obs": ["kind", "size"], "discount": 0.9,
    "columns": {"action": "shown", "next_obs": ["kind_after", "size_after"]},
}  # fmt: skip


def by_kind(rows: Any) -> NDArray[Any]:
    """Of the actions a and b; it needs the texts, and 0.25 marks a missing size."""
    a = np.where(rows["kind"] == "vip", 0.75, np.where(rows["size"].isna(), 0.25, 0.5))
    return np.stack([a, 1.0 - a], axis=1)


class ByKind:
    """The same as a fitted model."""

    classes_ = np.array(["b", "a"])

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        frame = rows if hasattr(rows, "columns") else pd.DataFrame(rows, columns=NAMED["obs"])
        return by_kind(frame)[:, ::-1]


class ByColumns(ByKind):
    """Fitted on columns that have names."""

    feature_names_in_ = np.array(["kind", "size"])


@pytest.mark.parametrize("policy", [by_kind, ByKind(), ByColumns()])
@pytest.mark.parametrize("batch_rows", [1, 9])
def test_a_policy_is_given_the_named_columns_with_their_own_values(
    policy: Any, batch_rows: int
) -> None:
    log = open_log(pa.table(SHOP), targets={"x": policy}, **NAMED, batch_rows=batch_rows)
    found = [after for *_, after, _ in seen(log)]
    assert log.schema.actions == ("a", "b") and log.whole == ["x"]
    here = [b.probs[: len(b), 0, 0] for b in log.batches() if b.probs is not None]
    assert np.concatenate(here).tolist() == [0.75 if k == "vip" else 0.5 for k in SHOP["kind"]]
    assert found == [[0.75, 0.25], None, [0.5, 0.5]]  # the next kind is vip, none, new
    taken = np.concatenate([b.target_prob[0] for b in log.batches(columns={"target_prob"})])
    assert taken.tolist() == [0.5, 0.75, 0.5]  # b, a, a


def test_functions_are_given_actions_by_their_names_and_numbers_as_an_array() -> None:
    given: list[Any] = []

    def logged(obs: Any, action: Any) -> Any:
        given.append((obs, action))
        return np.where((obs[:, 0] > 1.0) == (action == "a"), 0.5, 0.125)

    named = {**NAMED, "obs": ["size"], "columns": {"action": "shown"}}
    log = open_log(pa.table(SHOP), targets={"x": logged}, **named)
    assert log.schema.obs_names == ("size", "size is missing")
    [batch] = log.batches()
    np.testing.assert_array_equal(given[-1][0], [[1.0], [np.nan], [3.0]])
    assert given[-1][1].tolist() == ["b", "a", "a"]
    assert batch.target_prob.tolist() == [[0.5, 0.125]]  # what follows the last row is not known
    behavior = open_log(pa.table(SHOP), targets={"x": by_kind}, behavior=by_kind, **NAMED)
    for batch in behavior.batches():
        np.testing.assert_array_equal(batch.behavior_prob, batch.target_prob[0])
    thin = {"x": lambda rows: np.ones((len(rows), 1))}
    with pytest.raises(InputError, match="the log has 2 actions, but the target 'x' has 1; give"):
        open_log(pa.table(SHOP), targets=thin, **NAMED)
    other = ByColumns()
    other.feature_names_in_ = np.array(["kind", "sise"])
    with pytest.raises(InputError, match="fitted on columns that the log does not have: 'sise'"):
        open_log(pa.table(SHOP), targets={"x": other}, **NAMED)
