"""Documents as JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: Any) -> Any:
    """The value as JSON knows it: NumPy's as Python's, and null for a number that is not finite.

    >>> plain({1: (float("inf"), 2.0)})
    {'1': [None, 2.0]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(document: object) -> str:
    """The document as indented text with an end of line."""
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"
