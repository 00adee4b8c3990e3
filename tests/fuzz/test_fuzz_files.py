"""Whatever happens to a file is noticed, and whatever the disk refuses is one sentence."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steadytd as st
from steadytd.base.files import PARTIAL, DiskError, filling, write_arrays, write_frame, write_whole
from steadytd.cli import console, evaluate
from steadytd.studies import dataset
from steadytd.studies.blocks import Numbers, StudyBlock, grid_blocks
from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study
from tests.support.commands import call
from tests.support.draws import thinned
from tests.support.hostile import Killed, stopping_disk
from tests.support.log_helpers import write_problem_log
from tests.support.logged_worlds import episodic

Tree = dict[str, bytes]
STUDY = """
problem = "three_state"
steps = 20
seeds = 2
[[learners]]
name = "td"
alpha = [0.1, 0.2, 0.3]
"""


def tree(directory: Path) -> Tree:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


# Blocks of studies


@pytest.fixture(scope="module")
def block() -> StudyBlock:
    return grid_blocks(parse_spec(STUDY, "small"))[0]


@pytest.fixture(scope="module")
def content(block: StudyBlock) -> bytes:
    rng = np.random.default_rng(3)
    shape = (len(block.learners), len(block.seeds))
    numbers = Numbers(rng.random((*shape, 1, 3)), rng.random((*shape, 1)), np.full(shape, -1))
    return dataset.to_bytes(dataset.table(block, numbers, ("value",)))


def flipped(content: bytes, place: int, bit: int) -> bytes:
    bad = bytearray(content)
    bad[place] ^= 1 << bit
    return bytes(bad)


def same_or_refused(path: Path, block: StudyBlock, content: bytes, expected: Any) -> bool:
    """Whether a damaged file is refused; if it is not, its rows are those that were written."""
    path.write_bytes(content)
    try:
        rows = dataset.load(path, block)
    except st.InputError as error:
        assert re.search("is damaged|is not a result of this study", str(error))
        return True
    assert rows.to_pylist() == expected
    return False


@pytest.mark.parametrize("bits", [[5], pytest.param(range(8), marks=pytest.mark.slow)])
def test_a_flipped_bit_of_a_block_changes_no_number(
    content: bytes, block: StudyBlock, tmp_path: Path, bits: list[int]
) -> None:
    """All bytes, the footer and the hash itself included."""
    path = tmp_path / block.file
    expected = pq.read_table(pa.BufferReader(content)).to_pylist()
    assert not same_or_refused(path, block, content, expected)
    refused = sum(
        same_or_refused(path, block, flipped(content, place, bit), expected)
        for place in range(len(content))
        for bit in bits
    )
    assert 0.5 < refused / (len(content) * len(bits)) < 1.0  # both happen


def test_blocks_cut_short_and_strange_ones_are_not_loaded(
    content: bytes, block: StudyBlock, tmp_path: Path
) -> None:
    draw, size = Random(14), len(content)
    bad = [content[: draw.randrange(size)] for _ in range(50)]
    bad += [b"", content + b"\0", bytes(size), content[:4] + bytes(size - 8) + content[-4:]]
    for one in bad:
        assert same_or_refused(tmp_path / block.file, block, one, None)


# Archives of arrays


def test_a_damaged_problem_is_refused_or_the_same(tmp_path: Path) -> None:
    problem = st.problem("three_state")
    path = problem.save(tmp_path / "p.npz")
    good = path.read_bytes()
    draw, refused = Random(14), 0
    for _ in range(300):
        path.write_bytes(flipped(good, draw.randrange(len(good)), draw.randrange(8)))
        try:
            found = st.load_problem(path)
        except st.InputError:
            refused += 1
            continue
        assert (
            found.P.tolist() == problem.P.tolist() and found.v_pi.tolist() == problem.v_pi.tolist()
        )
    assert refused > 200


# All files of a command, or none


def fill(target: Path) -> None:
    with filling(target) as made:
        write_whole(made / "page.html", "new page")
        write_whole(made / "a.svg", "new a")
        write_whole(made / "z.svg", "new z")


NEW: Tree = {"a.svg": b"new a", "page.html": b"new page", "z.svg": b"new z"}
OLD: Tree = {"letter.txt": b"dear", "a.svg": b"old a", "page.html": b"old page"}


def begin(tmp_path: Path, old: bool) -> Path:
    target = tmp_path / "new" / "out"
    shutil.rmtree(tmp_path / "new", ignore_errors=True)
    if old:
        target.mkdir(parents=True)
        for name, content in OLD.items():
            (target / name).write_bytes(content)
    return target


@pytest.mark.parametrize("old", [False, True])
def test_a_disk_that_is_full_at_any_moment(
    tmp_path: Path, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One change of the file system is refused, each in its turn: all as before, or all new."""
    at, refused = 0, 0
    while True:
        at += 1
        target = begin(tmp_path, old)
        before = tree(tmp_path)
        failed = None
        with stopping_disk(monkeypatch, at, dead=False) as count:
            try:
                fill(target)
            except DiskError as error:
                failed = error
            asked = count()
        if failed is None:
            left = {k: v for k, v in tree(target).items() if PARTIAL not in k}
            assert left == (OLD | NEW if old else NEW)
            if asked < at:
                break
            continue
        refused += 1
        assert failed.errno == errno.ENOSPC
        assert f"cannot write to '{target}': the disk is full. None of the" in str(failed)
        left = {k: v for k, v in tree(tmp_path).items() if PARTIAL not in k}
        assert left == before and (old or not target.exists())
    assert refused > 8


@pytest.mark.parametrize("old", [False, True])
def test_a_command_that_is_killed_at_any_moment(
    tmp_path: Path, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new directory is there with all files or not at all; in an old one every file is whole."""
    for at in range(1, 60):
        target = begin(tmp_path, old)
        with stopping_disk(monkeypatch, at, dead=True) as count:
            with suppress(Killed):
                fill(target)
            asked = count()
        found = {} if not target.exists() else tree(target)
        left = {name: text for name, text in found.items() if PARTIAL not in name}
        if old:
            assert left.items() <= (OLD.items() | NEW.items()) and OLD.keys() <= left.keys()
            assert left["page.html"] == b"old page" or left == OLD | NEW  # the page comes last
        else:
            assert left in ({}, NEW) and target.exists() == bool(left)
        fill(target)  # the same command, again
        assert {n: t for n, t in tree(target).items() if PARTIAL not in n} == (
            OLD if old else {}
        ) | NEW
        if asked < at:
            break
    else:
        raise AssertionError("there is no end")


def test_what_killed_commands_left_is_swept(tmp_path: Path) -> None:
    old, young = tmp_path / f".out-abcd1234{PARTIAL}", tmp_path / f".out-zyxw9876{PARTIAL}"
    for one in (old, young):
        one.mkdir()
        (one / "half.svg").touch()
    os.utime(old, (1e9, 1e9))
    fill(tmp_path / "out")
    assert not old.exists() and young.exists() and tree(tmp_path / "out") == NEW


# Commands


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """The operating system refuses larger files, whoever writes them; as a full disk does.

    Python would keep the first part of a module's byte code, and fail at the next import.
    """
    before, kept = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = kept


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("inputs")
    write_problem_log(place / "log.parquet", episodic(4, 0.3, np.eye(4)), episodes=40, length=30)
    (place / "s.toml").write_text(STUDY)
    Study(parse_spec(STUDY, "s")).run(out=place / "done")
    return place


COMMANDS = {
    "run": "run three_state td:alpha=0.1 --steps 500 --seeds 2 --out OUT",
    "certify": "certify three_state --out OUT",
    "evaluate": "evaluate IN/log.parquet --learner lstd --out OUT",
    "checkpoint": "evaluate IN/log.parquet --learner lstd --engine dask --checkpoint OUT",
    "report": "report OUT",
    "study": "study IN/s.toml --out OUT",
}


@pytest.mark.parametrize("name", thinned(COMMANDS, 2))
def test_a_command_whose_files_do_not_fit(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Exit code 2, one sentence with place, reason and remedy, and no half of anything."""
    out = tmp_path / "out"
    if name == "report":
        shutil.copytree(inputs / "done", out)
    before = tree(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))  # no TMPDIR is needed
    words = COMMANDS[name].replace("OUT", str(out)).replace("IN", str(inputs)).split()
    with files_up_to(600):
        assert call(monkeypatch, *words) == 2
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in said
    assert f"cannot write to '{out}" in lines[0] and "File too large" in lines[0]
    assert lines[0].endswith("To continue, name another location.")
    if name != "study":  # which keeps what is finished, and goes on from there
        assert tree(tmp_path) == before
    else:
        assert set(tree(out)) == {".lock", "study.toml", "provenance.json"}
    if name in ("run", "checkpoint", "study"):  # drawing takes long
        assert call(monkeypatch, *words) == 0


def test_a_full_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(console.out, "print", full)
    assert call(monkeypatch, *COMMANDS["run"].split()[:-2]) == 2
    assert "error: cannot write: the disk is full; make room" in capsys.readouterr().err


def test_a_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/secret")

    monkeypatch.setattr(evaluate, "opened", refuse)
    assert call(monkeypatch, "evaluate", "x.parquet") == 2
    assert "error: cannot use '/secret': Permission denied; name another" in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_every_kind_of_file_that_does_not_fit(size: int, tmp_path: Path) -> None:
    """Also those that NumPy and Polars write."""
    numbers = np.random.default_rng(0).random(1000)
    frame = st.run("three_state", ["td:alpha=0.1"], steps=500, seeds=3).curves
    writers: list[Callable[[], Path]] = [
        lambda: write_whole(tmp_path / "a", "x" * 4000),
        lambda: write_arrays(tmp_path / "b.npz", {"a": numbers}),
        lambda: write_arrays(tmp_path / "c.npz", {"a": numbers}, compressed=True),
        lambda: write_frame(tmp_path / "d.parquet", frame),
    ]
    with files_up_to(size):
        for write in writers:
            with pytest.raises(DiskError, match=r"cannot write to '.*': File too large"):
                write()
    assert tree(tmp_path) == {}
