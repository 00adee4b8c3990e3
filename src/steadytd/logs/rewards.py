"""Rewards: weighted sums of columns of numbers, each with a direction.

`{"revenue": "+", "churn": "-", "profit": {"revenue": 1.0, "cost": -0.5}}` are three rewards. One
with a minus is to be small: its reward is minus the column, so that more is better everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.columns import SCHEMA, Column, ColumnMap
from steadytd.logs.log import Log
from steadytd.logs.schema import check_types
from steadytd.logs.units import named_column

SIGNS = {"+": 1.0, "-": -1.0}


def reward_weights(rewards: object) -> dict[str, dict[str, float]]:
    """The weights of the columns of every reward, checked.

    >>> reward_weights({"churn": "-", "profit": {"revenue": 1, "cost": -0.5}})
    {'churn': {'churn': -1.0}, 'profit': {'revenue': 1.0, 'cost': -0.5}}
    """
    if not isinstance(rewards, Mapping) or not rewards:
        raise InputError(
            "rewards must be a dictionary such as {'revenue': '+', 'churn': '-'}, got "
            f"{rewards!r}."
        )
    return {str(name): _weights(str(name), how) for name, how in rewards.items()}


def _weights(name: str, how: Any) -> dict[str, float]:
    given = {name: SIGNS[how]} if how in ("+", "-") else how
    weights = list(given.values()) if isinstance(given, Mapping) else []
    known = (isinstance(w, int | float) and math.isfinite(w) and w for w in weights)
    if not weights or not all(known):
        raise InputError(
            f"the reward '{name}' must be '+', '-', or columns with their weights such as "
            f"{{'revenue': 1.0, 'cost': -0.5}}, got {how!r}."
        )
    return {str(column): float(w) for column, w in given.items()}


def read_rewards(texts: Sequence[str]) -> dict[str, Any]:
    """From the command line: `revenue:+`, `churn:-` or `profit:revenue=1,cost=-0.5`.

    >>> read_rewards(["churn:-", "profit:revenue=1,cost=-0.5"])
    {'churn': '-', 'profit': {'revenue': 1.0, 'cost': -0.5}}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, _, how = (part.strip() for part in text.rpartition(":"))
        try:
            pairs = [part.split("=") for part in how.split(",")]
            found[name] = how if how in SIGNS else {c.strip(): float(w) for c, w in pairs}
        except ValueError:
            name = ""
        if not name:
            raise InputError(
                "a reward must be NAME:+, NAME:- or NAME:COLUMN=WEIGHT,COLUMN=WEIGHT, got "
                f"'{text}'."
            )
    if len(found) < len(texts):
        raise InputError("a reward is given twice; leave one out.")
    return found


def first_reward(columns: ColumnMap | None, rewards: object) -> ColumnMap:
    """The column map with a column of the first reward: a log has to have one to be opened."""
    weights = next(iter(reward_weights(rewards).values()))
    return {**(columns or {}), "reward": next(iter(weights))}


def with_reward(log: Log, weights: Mapping[str, float]) -> Log:
    """The log with this sum of columns as its reward."""
    meaning = SCHEMA["reward"]
    for name in weights:
        column = named_column(log.source, name, "reward", meaning)
        for file, schema in zip(log.source.files, log.source.schemas, strict=True):
            check_types(file, schema, {"reward": column})
    import pyarrow as pa

    both = Column("reward", tuple(weights), meaning)
    schema = replace(
        log.schema,
        columns={**log.schema.columns, "reward": both},
        reward_weights=tuple(weights.values()),
    )
    source = log.source.with_types(dict.fromkeys(weights, pa.float64()))
    return replace(log, source=source, schema=schema, left_out=None)


def reward_name(name: str, weights: Mapping[str, float]) -> str:
    """How a sentence names a reward: with its sign.

    >>> reward_name("churn", {"churn": -1.0}), reward_name("profit", {"cost": -1.0})
    ('-churn', 'profit')
    """
    return f"-{name}" if dict(weights) == {name: -1.0} else name
