from __future__ import annotations

import json
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from steadytd.base.json import json_text, plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (-np.inf, None),
        (np.float64("inf"), None),
        (np.float32(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (True, True),
        ("nan", "nan"),
        (None, None),
        ((1, (2.0, float("inf"))), [1, [2.0, None]]),
        (range(3), [0, 1, 2]),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (np.array(np.nan), None),
        (MappingProxyType({1: np.arange(2)}), {"1": [0, 1]}),
        (OrderedDict(a={"b": [float("nan")]}), {"a": {"b": [None]}}),
    ],
)
def test_plain(value: Any, expected: Any) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(json_text(value)) == expected


def test_text_is_indented_and_ends_with_a_line() -> None:
    assert json_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}\n'
