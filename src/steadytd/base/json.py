"""Documents as JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: Any) -> Any:
    """The value in JSON's types: Python numbers for NumPy's, and null for one that is not finite.

    >>> plain({1: (float("inf"), 2.0)})
    {'1': [None, 2.0]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def json_text(document: object) -> str:
    """The document as indented text with a line end.

    The standard library writes it: orjson spells some numbers and letters in another way, and
    files that users compare byte by byte would change.

    >>> print(json_text({"a": [1.5, None], "b": {}}), end="")
    {
      "a": [
        1.5,
        null
      ],
      "b": {}
    }
    """
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"
