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


def test_the_text_is_that_of_the_standard_library() -> None:
    """Drawn documents of all kinds of values, nested, some of them empty."""
    rng = np.random.default_rng(4)
    words = ["", "plain", 'quote " and \\', "gr\u00f6\u00dfe \U0001f600", "line\nend\x07"]

    def drawn(depth: int) -> Any:
        kind = int(rng.integers(0, 8 if depth else 6))
        if kind >= 6:
            parts = [drawn(depth - 1) for _ in range(int(rng.integers(0, 5)))]
            return parts if kind == 6 else {f"{words[i % 5]}{i}": x for i, x in enumerate(parts)}
        number = float(rng.standard_normal() * 10.0 ** int(rng.integers(-20, 20)))
        whole = int(rng.integers(-(2**60), 2**60))
        return (None, True, False, whole, number, words[int(rng.integers(5))])[kind]

    for _ in range(300):
        document = {"a": drawn(4), "b": [drawn(3), -0.0, 1e22, 5e-324]}
        assert json_text(document) == json.dumps(document, indent=2, allow_nan=False) + "\n"
