"""Documents as JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

AS_THEY_ARE = (str, int, bool, type(None))
SCALARS = frozenset({*AS_THEY_ARE, float})


def plain(value: Any) -> Any:
    """The value as JSON knows it: NumPy's as Python's, and null for a number that is not finite.

    >>> plain({1: (float("inf"), 2.0)})
    {'1': [None, 2.0]}
    """
    kind = type(value)
    if kind in AS_THEY_ARE:  # nearly all of a large document: first, and without asking further
        return value
    if kind is not float and kind is not dict and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def json_text(document: object) -> str:
    """The document as indented text with an end of line.

    >>> print(json_text({"a": [1.5, None], "b": {}}), end="")
    {
      "a": [
        1.5,
        null
      ],
      "b": {}
    }
    """
    return _indented(plain(document), "\n") + "\n"


def _indented(value: Any, line: str) -> str:
    """What `json.dumps` writes with an indent of 2, which it does ten times as slowly.

    What holds scalars only is written by the encoder in C, its separators taken for the indent.
    """
    if not value or not isinstance(value, dict | list):
        return _scalar(value)
    inner = line + "  "
    items = value.values() if isinstance(value, dict) else value
    if SCALARS.issuperset(map(type, items)):
        text = _encoder(inner).encode(value)
        return text[0] + inner + text[1:-1] + line + text[-1]
    if isinstance(value, dict):
        parts = [f"{_scalar(key)}: {_indented(item, inner)}" for key, item in value.items()]
        return "{" + inner + ("," + inner).join(parts) + line + "}"
    return "[" + inner + ("," + inner).join([_indented(x, inner) for x in value]) + line + "]"


@lru_cache(maxsize=64)
def _encoder(inner: str) -> json.JSONEncoder:
    return json.JSONEncoder(allow_nan=False, separators=("," + inner, ": "))


def _scalar(value: Any) -> str:
    if type(value) is str:
        return encode_basestring_ascii(value)
    return float.__repr__(value) if type(value) is float else json.dumps(value, allow_nan=False)
