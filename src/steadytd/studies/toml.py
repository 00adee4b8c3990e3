"""A dictionary as TOML text: what a study is made of, and how it is kept beside its results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from steadytd.base.errors import InputError


def toml(content: Mapping[str, object]) -> str:
    """The text of a TOML document with one line per key.

    >>> print(toml({"seeds": 2, "learners": [{"name": "td", "alpha": [0.1, 1e-3]}]}), end="")
    seeds = 2
    learners = [{name = "td", alpha = [0.1, 0.001]}]
    """
    return "".join(f"{_key(key)} = {_value(key, one)}\n" for key, one in content.items())


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"the keys of a study must be texts, got {key!r}.")
    return key if key.replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _value(key: str, value: object) -> str:
    """A value on one line: JSON's texts are TOML's."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(k, v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ", ".join(_value(key, one) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    raise InputError(
        f"the study: {key} must be a number, a text, a list or a dictionary, got {value!r}."
    )
