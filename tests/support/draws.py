"""How many drawn problems a property is tried on: some in `make test`, all in `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from steadytd.learners import learner
from steadytd.theory.certificate import Certificate
from tests.support.cases import is_quick
from tests.support.realised import drawn
from tests.support.scope import everything


def seeds(some: int, every: int) -> pytest.MarkDecorator:
    """A parameter `seeds`: the first ones, and (slow) the rest."""
    rest = pytest.param(range(some, every), id="rest", marks=pytest.mark.slow)
    return pytest.mark.parametrize("seeds", [pytest.param(range(some), id="some"), rest])


def thinned(values: Iterable[Any], step: int) -> list[Any]:
    """Parameters of a test: every `step`-th one, and (slow) the others."""
    found = list(values)
    return [
        pytest.param(value, marks=[pytest.mark.slow] if i % step else [])
        for i, value in enumerate(found)
    ]


def compiled(texts: Iterable[str]) -> list[Any]:
    """Parameters of a test: learners whose loops are compiled anyway, and (slow) the others."""
    return [
        pytest.param(text, marks=[] if is_quick(learner(text)) else [pytest.mark.slow])
        for text in texts
    ]


def examples(some: int, every: int) -> int:
    """How many examples are drawn."""
    return every if everything() else some


@cache
def certified(kind: str, seed: int) -> Certificate:
    """The certificate of a drawn problem, computed once for all tests of a file."""
    return Certificate(drawn(kind, seed))
