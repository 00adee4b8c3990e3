from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steadytd import InputError
from steadytd.base.arrays import Floats
from steadytd.base.files import (
    cached_arrays,
    filling,
    output_directory,
    reading_arrays,
    write_arrays,
    write_cached,
    write_whole,
)


def names(directory: Path) -> list[str]:
    return sorted(f.name for f in directory.iterdir())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x00\xff\r\n", b"\x00\xff\r\n"),
        ("Größe ≥ 0\n", "Größe ≥ 0\n".encode()),
        (lambda path: path.write_bytes(b"written"), b"written"),
        ("", b""),
    ],
)
def test_write_whole(tmp_path: Path, content: Any, expected: bytes) -> None:
    path = tmp_path / "a.txt"
    assert write_whole(path, content) == path
    assert path.read_bytes() == expected
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [None, "old"])
def test_a_writer_that_fails_leaves_nothing_behind(
    tmp_path: Path, error: type[BaseException], old: str | None
) -> None:
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_text(old)

    def write(target: Path) -> None:
        target.write_text("half of it")
        raise error("stop")

    with pytest.raises(error, match="stop"):
        write_whole(path, write)
    assert names(tmp_path) == ([] if old is None else ["a.txt"])
    if old is not None:
        assert path.read_text() == old


def test_the_old_file_is_whole_until_the_new_one_is(tmp_path: Path) -> None:
    """Seen from the writer, half-way: the new file has another name, in the same directory."""
    path = tmp_path / "a.parquet"
    path.write_text("old")
    seen: list[tuple[Path, str]] = []

    def write(target: Path) -> None:
        target.write_text("half")
        seen.append((target, path.read_text()))
        target.write_text("whole")

    write_whole(path, write)
    assert path.read_text() == "whole"
    [(target, old)] = seen
    assert old == "old"
    assert target.parent == tmp_path
    assert target != path
    assert target.suffix == ".parquet"  # some writers go by the suffix
    assert target.name.startswith(".a-")  # hidden, and telling whose it is


def test_a_reader_keeps_the_file_it_opened(tmp_path: Path) -> None:
    """The file is replaced, not written over: who has it open reads on in the old one."""
    path = write_whole(tmp_path / "a.txt", "old")
    with path.open() as reader:
        write_whole(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_files_obey_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    """Finished files are ordinary ones; what is kept may be machine code: only its owner writes."""
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "a.txt", "x")
        with filling(tmp_path / "new") as made:
            (made / "b.txt").write_text("x")
        write_cached("c", "0" * 64, b"x")
    finally:
        os.umask(before)
    places = "a.txt", "new", "new/b.txt", "cache", "cache/c"
    modes = [stat.S_IMODE((tmp_path / place).stat().st_mode) for place in places]
    file, directory = 0o666 & ~umask, 0o777 & ~umask
    assert modes == [file, directory, file, 0o700, file & 0o644]


def test_bytes_are_on_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, renaming, directory: a loss of power leaves the old file or the new one."""
    order: list[str] = []
    synced, replaced, renamed = os.fsync, os.replace, os.rename

    def fsync(handle: int) -> None:
        order.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        synced(handle)

    def moved(move: Any) -> Any:
        def move_and_note(*where: Any) -> None:
            order.append("name")
            move(*where)

        return move_and_note

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", moved(replaced))
    monkeypatch.setattr(os, "rename", moved(renamed))
    write_whole(tmp_path / "a.txt", "x")
    assert order == ["file", "name", "directory"]
    for _ in range(2):  # a new directory, then one that is there
        order.clear()
        with filling(tmp_path / "new") as made:
            (made / "one.txt").write_text("x")
        assert order[:3] == ["file", "directory", "name"] and order[-1] == "directory"


def test_a_directory_in_the_way_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept").touch()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a", "x")
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["kept"]


# Output directories


def unusable(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        output_directory(path)
    start, end = f"cannot write to the output directory '{path}': ", "; name a directory that you"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(end + " may write to.")
    return str(caught.value)[len(start) :].removesuffix(end + " may write to.")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("kept")
    assert unusable(path) == "File exists"
    assert unusable(path / "b") == "Not a directory"
    assert path.read_text() == "kept"


def test_a_directory_that_may_not_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated, since tests may run as a user who may write anywhere."""

    def refuse(**options: object) -> None:
        assert options == {"dir": tmp_path}
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert unusable(tmp_path) == "Permission denied"


# "Did you mean"


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back(tmp_path: Path, compressed: bool) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "text": np.array("x = 1"), "none": np.empty(0)}
    path = write_arrays(tmp_path / "kept.bin", arrays, compressed=compressed)
    with reading_arrays(path, "thing") as file:
        assert sorted(file.files) == sorted(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file[name], array)
    assert names(tmp_path) == ["kept.bin"]


def test_arrays_that_fail_half_way_leave_the_old_file(tmp_path: Path) -> None:
    class Broken:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise OSError("no space left")

    path = write_arrays(tmp_path / "kept.npz", {"a": np.ones(1)})
    with pytest.raises(OSError, match="no space left"):
        write_arrays(path, {"a": np.zeros(1), "b": Broken()})
    with reading_arrays(path, "thing") as file:
        assert file["a"].tolist() == [1.0]
    assert names(tmp_path) == ["kept.npz"]


def test_what_is_no_archive_is_named(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        with reading_arrays(path, "thing") as file:
            file["a"]

    with pytest.raises(InputError, match=r"there is no file '.*gone\.npz'\."):
        read(tmp_path / "gone.npz")
    text = write_whole(tmp_path / "text.npz", "hello")
    with pytest.raises(InputError, match=r"'.*text\.npz' is not a saved thing \(.*\)\."):
        read(text)
    other = write_arrays(tmp_path / "other.npz", {"b": np.ones(1)})
    with pytest.raises(InputError, match=r"is not a saved thing .*a is not a file in the archive"):
        read(other)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"is not a saved thing .*allow_pickle=False"):
        read(pickled)


class Maker:
    """Makes arrays and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Floats]:
        self.times += 1
        return {"a": np.array([0.1, np.inf]), "b": np.zeros((0, 2))}


def test_arrays_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged, exchanged and stale files are noticed; without a directory nothing is kept."""
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path))
    make, one, two = Maker(), "1" * 64, "1" * 24 + "2" * 40  # both have the same file name
    for _ in range(2):
        found = cached_arrays("some", one, make)
        assert found["a"].tolist() == [0.1, np.inf] and found["b"].shape == (0, 2)
        assert make.times == 1
    cached_arrays("some", two, make)
    assert make.times == 2
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    bad = bytearray(content)
    bad[-3] ^= 1
    for number, damaged in enumerate((content[:-5], bytes(bad), b""), 3):
        file.write_bytes(damaged)
        cached_arrays("some", two, make)
        cached_arrays("some", two, make)
        assert make.times == number
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(file / "none"))
    assert cached_arrays("some", one, make)["a"].tolist() == [0.1, np.inf]
    assert make.times == 6
