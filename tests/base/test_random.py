from __future__ import annotations

import numpy as np
import pytest

from steadytd.base import random
from steadytd.base.random import Reservoir, dealt, uniforms
from steadytd.engine.step import kernels
from tests.support.splitmix import GOLDEN, WORD, mix, problem_uniform, uniform

PURPOSES = (random.PROBLEM, random.OBSERVATIONS, random.BEHAVIOR)


def test_one_mix_for_arrays_and_for_compiled_loops() -> None:
    words = [0, 1, 2**63, WORD - 1, *(mix(i) for i in range(100))]
    found = random.mix(np.array(words, dtype=np.uint64)).tolist()
    assert found == [mix(word) for word in words]
    assert found == [int(kernels.mix(np.uint64(word))) for word in words]


@pytest.mark.parametrize("seed", [0, 1, 12345678901234567, 2**63 - 1])
def test_numbers_as_specified(seed: int) -> None:
    expected = [problem_uniform(seed, n) for n in range(6)]
    assert uniforms(seed, random.PROBLEM, 6).tolist() == expected
    later = [problem_uniform(seed, 1000 + n) for n in range(3)]
    assert uniforms(seed, random.PROBLEM, 3, first=1000).tolist() == later


def test_purposes_have_keys_that_no_stream_has() -> None:
    """`mix` is one to one, and the seeds of streams are smaller than 2^63."""
    assert len(set(PURPOSES)) == len(PURPOSES)
    assert all(2**63 <= purpose < WORD for purpose in PURPOSES)
    key = mix(5 ^ random.OBSERVATIONS)
    expected = [uniform(key, n) for n in range(4)]
    assert uniforms(5, random.OBSERVATIONS, 4).tolist() == expected


@pytest.mark.parametrize(("seed", "groups"), [(0, 5), (7, 2), (2**63 - 1, 11)])
def test_units_are_dealt_by_a_hash(seed: int, groups: int) -> None:
    key = (seed * 0xD1342543DE82EF95 + GOLDEN) % WORD
    expected = [mix((unit + 1) * GOLDEN % WORD ^ key) % groups for unit in range(50)]
    assert dealt(np.arange(50), groups, seed).tolist() == expected


@pytest.mark.parametrize("batch", [1, 3, 17, 400])
@pytest.mark.parametrize("n", [1, 10, 399, 1000])
def test_reservoir_keeps_the_rows_of_the_smallest_keys(n: int, batch: int) -> None:
    rows = np.arange(400)
    found = Reservoir(n, 3, random.BEHAVIOR)
    for i in range(0, 400, batch):
        found.add(rows[i : i + batch], -rows[i : i + batch, None].astype(float))
    key = mix(3 ^ random.BEHAVIOR)
    expected = sorted(sorted(range(400), key=lambda row: uniform(key, row))[:n])
    first, second = found.rows()
    assert first.tolist() == expected
    assert second[:, 0].tolist() == [-row for row in expected]
