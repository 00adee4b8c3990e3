"""A slow reader of logs in plain Python, and random valid logs: what the real reader must equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from steadytd.logs.log import LogBatch

Row = dict[str, Any]


@dataclass(frozen=True)
class Transition:
    row: int
    episode: int
    first: bool
    obs: tuple[float, ...]
    next_obs: tuple[float, ...] | None  # None where the discount is 0
    reward: float
    discount: float
    behavior: float | None
    targets: tuple[float, ...]
    action: Any


def reference(rows: list[Row], gamma: float | None, targets: list[str]) -> list[Transition]:
    """One transition a row, without those whose next observation is not known."""
    found = []
    numbers: dict[int, int] = {}
    for i, row in enumerate(rows):
        first = row["episode_id"] not in numbers
        number = numbers.setdefault(row["episode_id"], len(numbers))
        discount = row.get("discount", gamma)
        following = rows[i + 1] if i + 1 < len(rows) else None
        next_obs: tuple[float, ...] | None
        if row["terminated"]:
            discount = 0.0
        if discount == 0.0:
            next_obs = None
        elif row.get("next_obs") is not None:
            next_obs = tuple(row["next_obs"])
        elif following is not None and following["episode_id"] == row["episode_id"]:
            next_obs = tuple(following["obs"])
        else:
            continue
        found.append(
            Transition(
                i, number, first, tuple(row["obs"]), next_obs, row["reward"], float(discount or 0),
                row["behavior_prob"], tuple(row["target_prob_" + name] for name in targets),
                row["action"],
            )
        )  # fmt: skip
    return found


def transitions(batches: Iterable[LogBatch]) -> list[Transition]:
    """The real reader's batches, one transition after another."""
    found = []
    for b in batches:
        assert len(b) > 0
        assert b.obs.flags.c_contiguous and b.target_prob.flags.c_contiguous
        for i in range(len(b)):
            x_next = b.obs[b.row_next[i]]
            behavior = None if b.behavior_prob is None else float(b.behavior_prob[i])
            stop = b.discount[i] == 0.0
            found.append(
                Transition(
                    int(b.rows[i]), int(b.episode[i]), bool(b.first[i]), tuple(b.obs[i].tolist()),
                    None if stop else tuple(x_next.tolist()), float(b.reward[i]),
                    float(b.discount[i]), behavior, tuple(b.target_prob[:, i].tolist()),
                    None if b.action is None else b.action[i].tolist(),
                )
            )  # fmt: skip
    return found


@st.composite
def valid_rows(draw: st.DrawFn) -> list[Row]:
    """A random log: episodes of all lengths and all kinds of ends, with or without next_obs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    ends = st.sampled_from(["terminated", "truncated", "both", "open"])
    with_next = draw(st.sampled_from(["none", "all", "some", "last"]))
    with_discount = draw(st.booleans())
    t0 = draw(st.sampled_from([0, 1]))
    names = draw(st.sampled_from([[], ["a"], ["a", "soft5"]]))
    rows: list[Row] = []
    episode_id = draw(st.integers(-3, 3))
    for length in lengths:
        end = draw(ends)
        path = rng.normal(size=(length + 1, width)).astype(np.float32).tolist()
        for t in range(length):
            last = t == length - 1
            row: Row = {
                "episode_id": episode_id,
                "t": t + t0,
                "obs": path[t],
                "action": int(rng.integers(3)),
                "reward": float(rng.normal()),
                "terminated": last and end in ("terminated", "both"),
                "truncated": last and end in ("truncated", "both"),
                "behavior_prob": float(rng.uniform(0.01, 1.0)),
            }
            given = {"none": False, "all": True, "some": rng.random() < 0.5, "last": last}
            if with_next != "none":
                row["next_obs"] = path[t + 1] if given[with_next] else None
            if with_discount:
                row["discount"] = float(rng.choice([0.0, 0.5, 0.9, 1.0]))
            for name in names:
                row["target_prob_" + name] = float(rng.uniform() * (rng.random() < 0.8))
            rows.append(row)
        episode_id += draw(st.integers(1, 3))
    return rows


def as_table(rows: list[Row], layout: str = "fixed", dtype: Any = None) -> Any:
    """Rows as an Arrow table: observations as fixed lists, lists, large lists or columns."""
    number = dtype or pa.float32()
    width = len(rows[0]["obs"])
    columns: dict[str, Any] = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        if key not in ("obs", "next_obs"):
            kind = {"episode_id": pa.int64(), "t": pa.int32()}.get(key)
            columns[key] = pa.array(values, kind)
        elif layout == "columns":
            for i in range(width):
                items = [None if value is None else value[i] for value in values]
                columns[f"{key}_{i}"] = pa.array(items, number)
        elif layout == "scalar":
            columns[key] = pa.array([None if v is None else v[0] for v in values], number)
        else:
            kinds = {
                "fixed": pa.list_(number, width),
                "list": pa.list_(number),
                "large": pa.large_list(number),
            }
            columns[key] = pa.array(values, kinds[layout])
    return pa.table(columns)
