"""Damaged Parquet files: the same data or an `InputError`, never anything else.


Our own files carry page checksums and a hash of the column names. What these cannot notice, in a
file with plain pages, is named in docs/logs.md and tested at the end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steadytd import InputError
from steadytd.logs.log import open_log
from tests.support.helpers import random_problem
from tests.support.log_helpers import write_problem_log
from tests.support.log_reference import transitions


def damaged(content: bytes, seed: int) -> bytes:
    """Cut the file, flip one to three bits, or overwrite up to 31 bytes, at random places."""
    rng = np.random.default_rng(seed)
    spoilt = bytearray(content)
    if seed % 3 == 0:
        return content[: int(rng.integers(len(content)))]
    if seed % 3 == 1:
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            spoilt[place] ^= 1 << int(rng.integers(8))
        return bytes(spoilt)
    place, length = int(rng.integers(len(content))), int(rng.integers(1, 32))
    noise = rng.bytes(len(spoilt[place : place + length]))
    spoilt[place : place + length] = noise
    return bytes(spoilt)


def outcomes(path: Path, seeds: range) -> dict[str, int]:
    good = path.read_bytes()
    expected = transitions(open_log(path, discount=None).batches())
    counts = {"same": 0, "refused": 0, "different": 0}
    spoilt = path.with_name("spoilt.parquet")
    for seed in seeds:
        spoilt.write_bytes(damaged(good, seed))
        try:
            found = transitions(open_log(spoilt, discount=None).batches())
        except InputError as error:
            assert "spoilt.parquet" in str(error), seed
            counts["refused"] += 1
        else:
            counts["same" if found == expected else "different"] += 1
    return counts


def test_random_damage_is_noticed(tmp_path: Path) -> None:
    path = write_problem_log(
        tmp_path / "log.parquet", random_problem(1), episodes=10, length=10, row_group_rows=20
    )
    counts = outcomes(path, range(600))
    assert counts["different"] == 0
    assert counts["refused"] > 400 and counts["same"] > 10  # both happen


def test_damage_inside_a_page_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    """Every 16th byte of the data, flipped: pages hold little else than values here."""
    path = write_problem_log(
        tmp_path / "log.parquet", random_problem(1), episodes=30, length=30, row_group_rows=10_000
    )
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    expected = transitions(open_log(path, discount=None).batches())
    refused, places = 0, range(4, footer, footer // 150)
    for place in places:
        spoilt = bytearray(good)
        spoilt[place] ^= 0x10
        path.write_bytes(spoilt)
        try:
            assert transitions(open_log(path, discount=None).batches()) == expected, place
        except InputError:
            refused += 1
    assert refused > 0.8 * len(places)


def test_a_column_that_damage_renamed_is_missed(tmp_path: Path) -> None:
    """`truncated` is optional: without the hash of the names it would silently not be read."""
    path = write_problem_log(tmp_path / "log.parquet", random_problem(1))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"truncated", b"truncatee"))
    with pytest.raises(InputError, match="names of its columns are not those it was written with"):
        open_log(path, discount=None)
