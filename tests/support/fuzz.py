"""Many drawn cases: each has a valid result or an `InputError` with a sentence, nothing else."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from steadytd import InputError

TIMES = 20  # as many cases in `make test-all` as a test asks for, half of them in `make test`
MOST_WARNINGS = 3  # of one case: more is a storm
MOST_CHARACTERS = 3000  # of a message
EVERY_SIZE = [False, pytest.param(True, marks=pytest.mark.slow)]
HOSTILE: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, -1.0, 0.0, 1e308, -1e308, 1e-320, 1e16, 2**63, 2**200, True,
    None, "", "x", "1e400", "\x00", "\ud800", "größe", b"x", [], [[]], {}, (), 1j, object(),
)  # fmt: skip

Case = Callable[[Generator], object]


def tried(case: Case, cases: int, key: int, *, many: bool) -> tuple[int, int]:
    """How many cases were valid, how many refused; anything else fails, with the case's seed.

    `make test-all` draws other seeds than `make test`.
    """
    valid = refused = 0
    for seed in range(cases, cases * (1 + TIMES)) if many else range(cases // 2):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                case(np.random.default_rng([seed, key]))
                valid += 1
            except InputError as error:
                refused += 1
                assert _sentence(str(error)), (seed, str(error))
            except Exception as error:
                raise AssertionError(f"seed [{seed}, {key}]: {type(error).__name__}") from error
        assert len(said) <= MOST_WARNINGS, (seed, [str(w.message) for w in said[:5]])
    assert valid and refused, (valid, refused)
    return valid, refused


def _sentence(text: str) -> bool:
    return 10 < len(text) < MOST_CHARACTERS and text.rstrip()[-1] in ".)" and " " in text


def one_of(rng: Generator, values: Sequence[Any]) -> Any:
    """One of some values, whatever their types."""
    return values[int(rng.integers(len(values)))]


def no_nan(value: object, where: str = "") -> None:
    """Nothing in a document is NaN."""
    if isinstance(value, dict):
        for key, part in value.items():
            no_nan(part, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            no_nan(part, f"{where}[{i}]")
    elif isinstance(value, float):
        assert not math.isnan(value), where


def mutated(rng: Generator, text: str, times: int) -> str:
    """A text with some pieces cut out, doubled, exchanged, or hostile characters put in."""
    odd = ("\x00", "\x1b[31m", "￾", "ß", "''", '"', "[", "]", "{", "=", "\n", "1e999", "-", "nan")
    for _ in range(times):
        i, j = sorted(int(k) for k in rng.integers(0, len(text) + 1, size=2))
        j = min(j, i + 12)
        piece = one_of(rng, ["", text[i:j] * 2, text[i:j][::-1], one_of(rng, odd)])
        text = text[:i] + piece + text[j:]
    return text
