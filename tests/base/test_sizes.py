"""What would not fit is refused before it is built, with the number and the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.base import files, numbers
from steadytd.base.files import reading_arrays, write_arrays


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_BYTES", 1e6)
    numbers.require_room("this", 1e6, "ask for less")
    with pytest.raises(st.InputError, match=r"^this would take 2 MB, more than the 1 MB"):
        numbers.require_room("this", 2e6, "ask for less")


def test_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)
    assert numbers.most_bytes() == 500_000.0


def test_a_zip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bomb = write_arrays(tmp_path / "bomb.npz", {"P": np.zeros(2_000_000)}, compressed=True)
    assert bomb.stat().st_size < 50_000
    with reading_arrays(bomb, "problem") as file:
        assert len(file["P"]) == 2_000_000
    monkeypatch.setattr(numbers, "MOST_BYTES", 1e6)
    for load in (st.load_problem, st.load_learner):
        with pytest.raises(st.InputError, match=r"unpacked, would take 16 MB"):
            load(bomb)


def test_a_small_file_must_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Compressed arrays have a limit of their own; what is not compressed is as large as it is."""
    arrays = {"P": np.zeros(200_000)}
    bomb = write_arrays(tmp_path / "bomb.npz", arrays, compressed=True)
    monkeypatch.setattr(files, "MOST_UNPACKED", 1e6)
    words = r"would unpack to 1.6 MB; at most 1 MB are .* not look like a saved problem"
    with pytest.raises(st.InputError, match=words):
        st.load_problem(bomb)
    with reading_arrays(write_arrays(bomb, arrays, compressed=True), "problem") as file:
        assert len(file["P"]) == 200_000  # what we write, we read
    assert files.MOST_UNPACKED < 1e9


def test_curves_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_BYTES", 1e5)
    with pytest.raises(st.InputError, match=r"100 curves of 101 points would take 162 kB"):
        st.run("three_state", "td:alpha=0.1", steps=1000, seeds=100, points=101)


def test_more_points_than_steps_are_all_steps() -> None:
    found = st.run("three_state", "td:alpha=0.1", steps=7, points=10**12)
    assert found.steps.tolist() == list(range(8))


def test_too_many_seeds() -> None:
    with pytest.raises(st.InputError, match=r"seeds must be a whole number >= 1 and <= 1000000"):
        st.run("three_state", "td:alpha=0.1", steps=7, seeds=10**12)
    with pytest.raises(st.InputError, match=r"seeds must be at most 1,000,000 numbers"):
        st.run("three_state", "td:alpha=0.1", steps=7, seeds=range(10**12))
