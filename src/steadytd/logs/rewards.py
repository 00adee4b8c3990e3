"""Rewards: weighted sums of columns of numbers, each with a direction.

`{"revenue": "+", "churn": "-", "profit": {"revenue": 1.0, "cost": -0.5}}` are three rewards. One
with a minus is to be small: its reward is minus the column, so that more is better everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steadytd.base.errors import Faults, InputError

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


def read_rewards(texts: Sequence[str], faults: Faults) -> dict[str, Any]:
    """From the command line: `revenue:+`, `churn:-` or `profit:revenue=1,cost=-0.5`.

    >>> read_rewards(["churn:-", "profit:revenue=1,cost=-0.5"], Faults("a.csv"))
    {'churn': '-', 'profit': {'revenue': 1.0, 'cost': -0.5}}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, _, how = (part.strip() for part in text.rpartition(":"))
        try:
            pairs = [part.split("=") for part in how.split(",")]
            weights = how if how in SIGNS else {c.strip(): float(w) for c, w in pairs}
        except ValueError:
            name = ""
        if not name:
            form = "NAME:+, NAME:- or NAME:COLUMN=WEIGHT,COLUMN=WEIGHT"
            faults.add(f"a reward must be {form}, got '{text}'")
        elif name in found:
            faults.add(f"the reward '{name}' is given twice; leave one out")
        else:
            found[name] = weights
    return found


def reward_name(name: str, weights: Mapping[str, float]) -> str:
    """How a sentence names a reward: with its sign.

    >>> reward_name("churn", {"churn": -1.0}), reward_name("profit", {"cost": -1.0})
    ('-churn', 'profit')
    """
    return f"-{name}" if dict(weights) == {name: -1.0} else name
