"""Study files with mistakes of every kind: a study, or a sentence with the line."""

from __future__ import annotations

import pytest
from numpy.random import Generator

from steadytd.studies.spec import parse_spec
from tests.support.fuzz import EVERY_SIZE, mutated, one_of, tried

TEXT = """title = "a study"
problem = "three_state"
steps = 1000
seeds = 3
every = 10

[[learners]]
name = "td"
alpha = { log2 = [-3, 0] }
lam = [0, 0.9]

[[learners]]
name = "perturbed_td"
alpha = { linear = [0.1, 1, 3] }
eta = AXIS

[[learners.when]]
if = { alpha = 0.1 }
lam = AXIS
"""
AXES = (
    "0.5", "[0.1, 0.2]", "{ linear = [0, 1, 1e12] }", "{ log2 = [-1, 0] }", "'auto'", "nan", "inf",
    "-1", "[]", "{}", "true", "{ log2 = [0, 1, 2, 3] }", "{ linear = ['a', 1, 2] }", "1e308",
    "{ log2 = [9223372036854775807, 9223372036854775808] }", "[[1]]", "1979-05-27", "''",
    "{ linear = [-1e308, 1e308, 3] }", "{ log2 = [-5, 0, 0] }",
)  # fmt: skip


def case(rng: Generator) -> None:
    text = TEXT.replace("AXIS", one_of(rng, AXES), 1).replace("AXIS", one_of(rng, AXES))
    if rng.integers(2):
        text = mutated(rng, text, int(rng.integers(1, 3)))
    if rng.integers(4) == 0:
        key = one_of(rng, ["steps", "seeds", "every", "problem"])
        text = text.replace(f"{key} =", f"{key} = {one_of(rng, AXES)} #")
    spec = parse_spec(text, "x")
    assert 1 <= spec.runs <= 1000


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_study_files(many: bool) -> None:
    tried(case, 500, 8, many=many)
