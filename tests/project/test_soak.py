"""The soak test tells a leak from an allocator that has taken what it needs."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.soak import Note, faults


def notes(rounds: int, leak: float, seed: int, files: float = 0.0) -> list[Note]:
    """Memory that warms up, jumps when pages are drawn, and scatters by 2 MB."""
    rng, at = np.random.default_rng(seed), np.arange(rounds)
    memory = 400.0 + 80.0 * (1.0 - np.exp(-at / 6.0)) + rng.normal(0.0, 2.0, rounds)
    memory += 3.0 * (at % 4 == 3) + leak * at
    return [Note(0.0, k, k, m, m, int(9 + files * k), 1, 0) for k, m in enumerate(memory)]


@pytest.mark.parametrize("seed", range(5))
def test_a_small_leak_is_found_and_a_plateau_is_none(seed: int) -> None:
    assert not faults(notes(90, 0.0, seed))
    assert any("memory" in fault for fault in faults(notes(90, 0.2, seed)))
    assert any("memory" in fault for fault in faults(notes(20, 0.2, seed)))


def test_open_files_count_and_too_few_rounds_tell_nothing() -> None:
    assert any("open_files" in fault for fault in faults(notes(90, 0.0, 0, files=0.1)))
    assert faults(notes(12, 0.0, 0))
