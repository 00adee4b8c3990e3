"""Compiled functions on disk: found again, never stale, and not needed."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import stat
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steadytd.base import files, jit
from steadytd.engine.step import kernels
from steadytd.engine.step.compile import kernel
from steadytd.learners import algorithm
from tests.support.other_code import changed

STREAM = np.uint64(7), 3


def splitmix(key: int, n: int) -> float:
    """SplitMix64 with Python's whole numbers."""
    z = (key + (n + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return float((z ^ (z >> 31)) >> 11) * 2.0**-53


QUOTES = '"""; raise SystemExit """'
RIGHT = splitmix(7, 3)


def fresh(function: Any = kernels.uniform) -> Any:
    """A compiled function of the library, as a new process has it."""
    return jit.compiled(function.py_func)


def cached(function: Any) -> tuple[int, int]:
    """How often machine code was found, and how often it had to be made."""
    stats = function.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path / "kernels"))
    jit._say_once.cache_clear()
    jit._tidy_once.cache_clear()
    return tmp_path / "kernels"


@pytest.fixture
def kept(own_cache: Path) -> Path:
    """The machine code of `uniform`, compiled before."""
    function = fresh()
    assert function(*STREAM) == RIGHT and cached(function) == (0, 1)
    (file,) = own_cache.glob("kernels.uniform-*.nbc")
    return file


def test_kept_code_is_found_again(own_cache: Path, kept: Path) -> None:
    again = fresh()
    assert again(*STREAM) == RIGHT and cached(again) == (1, 0)
    assert again(np.uint64(7), np.int32(3)) == RIGHT and cached(again) == (1, 1)
    assert len(list(own_cache.glob("kernels.uniform-*.nbc"))) == 2 and kept.exists()


LOADING = """
import sys
from numba import njit
from steadytd.base.jit import cached

RIGHT = hash("text")

def plain(x):
    return 2.0 * x

def hashed(x):  # refers to names that Numba gives out with the functions that it can compile
    return hash(x) == RIGHT

for function, given in ((plain, 1.5), (hashed, "text")):
    function = cached(njit(function), lambda: "code")
    right = function(given)
    hits = sum(function.stats.cache_hits.values())
    print(right, hits, "numba.np.linalg" in sys.modules)
"""


def test_kept_code_is_found_without_loading_all_of_numba() -> None:
    """In another process; machine code that hashes ends the process if Numba is not all there."""
    seeded = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", LOADING]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=seeded).stdout
        for _ in range(2)
    ]
    assert [one.split("\n") for one in said] == [
        ["3.0 0 True", "True 0 True", ""],
        ["3.0 1 False", "True 1 True", ""],
    ]


def test_a_changed_module_is_noticed_by_those_that_use_it(kept: Path) -> None:
    for module, wanted in (
        ("steadytd.engine.step.kernels", (0, 1)),
        ("steadytd.base.arrays", (0, 1)),  # which kernels imports
        ("steadytd.evaluation.evaluate", (1, 0)),  # which kernels does not
    ):
        with changed(module):
            again = fresh()
            assert again(*STREAM) == RIGHT and cached(again) == wanted, module


def damages(content: bytes, other: bytes) -> dict[str, bytes]:
    """What can become of a file: cut, emptied, exchanged, overwritten, one bit flipped anywhere."""
    draw = random.Random(14)
    places = [0, 1, 63, 64, 127, 128, 129, len(content) - 1]
    places += [draw.randrange(len(content)) for _ in range(12)]
    found = {"empty": b"", "exchanged": other, "zeros": bytes(len(content)), "more": content + b"x"}
    for end in (1, 64, 128, 129, len(content) // 2, len(content) - 1):
        found[f"cut at {end}"] = content[:end]
    for place in places:
        bad = bytearray(content)
        bad[place] ^= 1 << draw.randrange(8)
        found[f"bit at {place}"] = bytes(bad)
    return found


def test_damaged_and_exchanged_files_are_made_again(own_cache: Path, kept: Path) -> None:
    """Thrown away as soon as seen, compiled again, found by the next process; said once."""
    fresh(kernels.mix)(np.uint64(1))
    (other,) = own_cache.glob("random.mix-*.nbc")
    content = kept.read_bytes()
    found = fresh()
    assert found(*STREAM) == RIGHT
    signature = found.nopython_signatures[0].args
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for what, damaged in damages(content, other.read_bytes()).items():
            kept.write_bytes(damaged)
            dispatcher = fresh()
            found = vars(dispatcher)["_cache"].load_overload(signature, dispatcher.targetctx)
            assert found is None and not kept.exists(), what
    again = fresh()
    assert again(*STREAM) == RIGHT and cached(again) == (0, 1)
    repaired = fresh()
    assert repaired(*STREAM) == RIGHT and cached(repaired) == (1, 0)
    remark = f"a file of machine code in '{own_cache}' was damaged; it is recompiled."
    assert [str(one.message) for one in said] == [remark]


def test_what_cannot_be_rebuilt_is_compiled(kept: Path) -> None:
    """The file is whole, but it names what is not there: as after another version of a library."""
    rest = pickle.dumps("no machine code")
    mark = kept.read_bytes()[: files.HASH]
    kept.write_bytes(mark + hashlib.sha256(rest).hexdigest().encode() + rest)
    with pytest.warns(UserWarning, match="was damaged; it is recompiled"):
        assert fresh()(*STREAM) == RIGHT


def test_the_directory_is_private(own_cache: Path, kept: Path) -> None:
    """Machine code from a file is run: what others may have written is not even read."""
    assert stat.S_IMODE(own_cache.stat().st_mode) == 0o700
    for place, open_to in ((own_cache, 0o770), (own_cache, 0o707), (kept, 0o646)):
        mode = stat.S_IMODE(place.stat().st_mode)
        place.chmod(open_to)
        before = kept.read_bytes()
        jit._say_once.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            again = fresh()
            assert again(*STREAM) == RIGHT and cached(again) == (0, 1)
            fresh()(*STREAM)
        if place == own_cache:
            [remark] = said
            assert "can be written by other users" in str(remark.message)
            assert "chmod 700" in str(remark.message) and kept.read_bytes() == before
        else:
            assert not said and not stat.S_IMODE(kept.stat().st_mode) & 0o022  # written anew
        place.chmod(mode)
    last = fresh()
    assert last(*STREAM) == RIGHT and cached(last) == (1, 0)


def test_files_of_another_user_are_not_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = kept.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    if mine:  # root may own what everybody uses
        with pytest.warns(UserWarning, match="can be written by other users"):
            again = fresh()
            assert again(*STREAM) == RIGHT and cached(again) == (0, 1)
    else:
        os.chown(kept, 12345, -1)
        again = fresh()
        assert again(*STREAM) == RIGHT and cached(again) == (0, 1)


def test_old_files_go(own_cache: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()

    def put(name: str, days: float, size: int = 10) -> Path:
        path = own_cache / name
        path.write_bytes(bytes(size))
        os.utime(path, (now - days * jit.DAY,) * 2)
        return path

    stays = [put("a.nbc", 80.0), put(".b-x.nbc", 0.5), put("letter.txt", 999.0), kept]
    goes = [put("old.nbc", 91.0), put(".half-x.nbc", 1.5)]
    jit.tidy(own_cache)
    assert [path.exists() for path in (*stays, *goes)] == [True] * 4 + [False] * 2
    compiled = [one.stat().st_size for one in own_cache.glob("*-*.nbc") if one not in stays[:2]]
    monkeypatch.setattr(jit, "MOST", sum(compiled) + 25)
    new = put("new.nbc", 0.1)
    jit.tidy(own_cache)
    assert [path.exists() for path in (kept, new, *stays)] == [True, True, False, True, True, True]
    os.utime(kept, (now - 50 * jit.DAY,) * 2)
    assert fresh()(*STREAM) == RIGHT  # using it makes it young
    assert time.time() - kept.stat().st_mtime < jit.DAY


@pytest.mark.parametrize("name", ["a/b", "../../x", "x./tmp/escaped", "x" * 300, QUOTES, "td"])
def test_the_name_of_a_law_is_no_path(own_cache: Path, name: str) -> None:
    run: Any = kernel(replace(algorithm("td"), name=name), False)
    file = vars(run.enter)["_cache"]._file("0" * files.HASH)
    assert (own_cache / file).parent == own_cache and len(file) < 144
    file.encode("ascii")
    if name == "td":
        assert file.startswith("steadytd_kernel_td_") and "~" not in file


def test_settings_of_numba_count(monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    again = fresh()
    assert again(*STREAM) == RIGHT and cached(again) == (0, 1)


def test_a_directory_that_may_only_be_read(
    own_cache: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is used, the rest is compiled. Root may write anywhere, so writing fails."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(files, "write_whole", refuse)
    again = fresh()
    assert again(*STREAM) == RIGHT and cached(again) == (1, 0)
    other = fresh(kernels.mix)
    assert other(np.uint64(0)) == 0 and cached(other) == (0, 1)
    assert not list(own_cache.glob("random.mix-*.nbc"))


def test_functions_of_others_are_not_kept(own_cache: Path) -> None:
    """Their modules are not in our list, so a change would not be seen."""

    @jit.compiled
    def twice(x: float) -> float:
        return 2.0 * x

    assert twice(2.0) == 4.0 and not own_cache.exists()


def test_compiling_is_said_once_at_a_terminal(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jit.say_compiling.cache_clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert fresh()(*STREAM) == fresh(kernels.mix)(np.uint64(0)) * 0 + RIGHT
    assert capsys.readouterr().err.count("compiling") == 1
    jit.say_compiling.cache_clear()
    assert fresh()(*STREAM) == RIGHT  # found again: nothing is said
    assert capsys.readouterr().err == ""
