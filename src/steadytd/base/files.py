"""Files appear whole or not at all: written under a temporary name, then renamed.

So do the files of one command: made in a hidden directory beside their place, then moved. Nothing
else in the library makes the name of a file from a name that others chose (`file_name`). Whatever
the disk refuses is a `DiskError`: one sentence with the place, the reason and the remedy.

Arrays are kept in NumPy archives without pickle: reading a file never runs code. What is kept from
one call to the next stands under `cache_directory` with its own identity (see `identity`) and a
hash of the rest: a damaged, exchanged or stale file is as good as none, and is written again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.base.numbers import SizeError, require_room

MARK = 64  # length of a hash in hexadecimal digits
PLAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ ,.=+()-]{0,78}[A-Za-z0-9_=+()-])?")
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])( *\..*)?", re.IGNORECASE)  # Windows
KEPT = 40  # characters of a name that is not plain
PARTIAL = ".partial"  # ends the name of a directory whose files are not all there yet
MOST_UNPACKED = 5e8  # bytes of a compressed archive: a small file must not fill the memory
LEFT_BEHIND = 86_400.0  # seconds after which such a directory is a killed command's


def file_name(name: str, among: Iterable[str] = ()) -> str:
    """A part of a file's name for `name`, never a path, for every file system.

    A plain name is its own file name: letters, digits and common signs, not hidden, not reserved.
    Of any other the plain characters are kept, with a hash of the whole behind a ~, which no plain
    name has: different names have different files. So do the names of `among` that differ in
    capital letters only, which some file systems do not tell apart.

    >>> file_name("collision"), file_name("random walk, 5 states"), file_name("../../escape")
    ('collision', 'random walk, 5 states', 'escape~efbf103bcec5')
    >>> file_name("Soft", ["Soft", "soft"]), file_name("nul"), file_name("größe")
    ('Soft~5964d4672956', 'nul~99e624275901', 'gr_e~d353a2671b67')
    """
    alike = any(other != name and other.lower() == name.lower() for other in among)
    if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name) and not alike:
        return name
    start = re.sub("[^A-Za-z0-9_-]+", "_", name).strip("_-")[:KEPT] or "name"
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{start}~{mark}"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """The file names of many names, each among all of them.

    >>> file_names(["Soft", "soft", "b"])
    {'Soft': 'Soft~5964d4672956', 'soft': 'soft~f5f445528f4a', 'b': 'b'}
    """
    alike: dict[str, list[str]] = {}
    for name in (every := list(names)):
        alike.setdefault(name.lower(), []).append(name)
    return {name: file_name(name, alike[name.lower()]) for name in every}


class DiskError(InputError, OSError):
    """What the file system refused. It has the `errno` of the cause."""


def disk_error(error: OSError, place: str | Path, remark: str = "") -> DiskError:
    """The error for `place`, said in one sentence; `remark` says what of the work is kept."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "make room there, or name another place" if full else "name another place"
    found = DiskError(f"cannot write to '{place}': {reason(error)}. {remark}To go on, {remedy}.")
    found.errno, found.strerror = error.errno, error.strerror
    return found


def reason(error: OSError) -> str:
    """Why a file cannot be written, in a few words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "the disk is full" if full else str(error.strerror or error).rstrip(".")


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, delete it otherwise.

    The file has the mode that the user's umask leaves of `mode`, as any file that is opened.
    """
    prefix = f".{path.stem[:40]}-"  # the longest name that the file system takes may be taken
    temporary = path.with_name(f"{prefix}{secrets.token_hex(4)}{path.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield temporary
        _to_disk(temporary)
        temporary.replace(path)
        _to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    """Have a file's bytes, or a directory's names, on the disk before going on.

    A machine that loses power after the renaming has otherwise an empty file of the right name.
    """
    directory = path.is_dir()
    with suppress(OSError) if directory else nullcontext():  # not every system can for a directory
        handle = os.open(path, os.O_RDONLY if directory else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(
    path: Path, content: bytes | str | Callable[[Path], object], mode: int = 0o666
) -> Path:
    """Write bytes, text, or whatever a function writes to the path it is given."""
    try:
        with replacing(path, mode) as temporary:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            elif isinstance(content, str):
                temporary.write_text(content, encoding="utf-8")
            else:
                content(temporary)
    except OSError as error:
        raise disk_error(error, path) from error
    return path


def write_frame(path: Path, frame: Any) -> Path:
    """Write a Polars frame as Parquet, by way of memory: Polars has no OSError for a full disk."""
    content = io.BytesIO()
    frame.write_parquet(content)
    return write_whole(path, content.getvalue())


@contextmanager
def filling(directory: str | Path) -> Iterator[Path]:
    """Yield an empty directory; in the end its files appear in `directory` together, or none does.

    A new directory appears by one renaming. In one that exists, files of the same names are
    replaced, pages last, and put back if one of them cannot be; all others are left alone.
    """
    target = Path(directory)
    new = _missing(target.parent)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        room = target if target.is_dir() else target.parent
        _sweep(room)
        made = room / f".{target.name[:40]}-{secrets.token_hex(8)}{PARTIAL}"
        made.mkdir()
        try:
            yield made
            for one in (*made.rglob("*"), made):
                _to_disk(one)
            if target.exists():
                _move_together(made, target)
                _to_disk(target)
            else:
                made.rename(target)
                _to_disk(target.parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except BaseException as error:
        for one in new:
            with suppress(OSError):
                one.rmdir()
        if isinstance(error, OSError):
            remark = "None of the command's files was written. "
            raise disk_error(error, target, remark) from error
        raise


def _missing(path: Path) -> list[Path]:
    """The directories that are made with `path`, deepest first."""
    return [one for one in (path, *path.parents) if not one.exists()]


def _sweep(room: Path) -> None:
    """Remove what commands that were killed left behind."""
    for old in room.glob(f".*-*{PARTIAL}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > LEFT_BEHIND:
                shutil.rmtree(old, ignore_errors=True)


def _move_together(made: Path, target: Path) -> None:
    """Move files into a directory that exists; if one cannot be moved, all is as before."""
    files = sorted(made.iterdir(), key=lambda file: (file.suffix == ".html", file.name))
    before = made / "before"
    before.mkdir()
    for file in files:
        place = target / file.name
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"'{place}' is a directory")
        if place.exists():
            _second_name(place, before / file.name)
    moved: list[Path] = []
    try:
        for file in files:
            moved.append(target / file.name)
            file.replace(moved[-1])
    except BaseException:
        for place in moved:
            old = before / place.name
            with suppress(OSError):
                if old.exists():
                    old.replace(place)
                else:
                    place.unlink(missing_ok=True)
        raise


def _second_name(file: Path, name: Path) -> None:
    """A link to the file, or a copy where the file system has no links."""
    try:
        name.hardlink_to(file)
    except OSError:
        shutil.copy2(file, name)


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> Path:
    """Write arrays to a NumPy archive under their names."""

    def write(where: Path) -> None:
        with where.open("wb") as file:
            small = sum(np.asarray(array).nbytes for array in arrays.values()) <= MOST_UNPACKED
            (np.savez_compressed if compressed and small else np.savez)(file, **arrays)

    return write_whole(path, write)


@contextmanager
def reading_arrays(path: Path, what: str) -> Iterator[Any]:
    """Yield the archive at `path`, which is to be a saved `what`; one sentence if it is not.

    The same sentence is given for anything that is found wrong while the archive is open.
    """
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            _require_size(path, what, getattr(file, "zip", None))
            yield file
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'.") from None
    except SizeError:
        raise
    except Exception as error:
        raise InputError(f"'{path}' is not a saved {what} ({error}).") from None


def require_writable(path: str | Path) -> None:
    """Notice before the work, without making anything, that results cannot be written to `path`."""
    there = Path(path)
    try:
        while not there.exists() and there != there.parent:
            there = there.parent
        fine = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    except OSError as error:
        raise disk_error(error, path) from error
    if not fine:
        raise InputError(
            f"cannot write to the output directory '{path}': '{there}' is not a directory that "
            "you may write to; name another."
        )


def _require_size(path: Path, what: str, archive: ZipFile | None) -> None:
    """Refuse an archive by what it says its arrays take; one array alone is what it is."""
    parts = [] if archive is None else archive.infolist()
    total = sum(part.file_size for part in parts)
    require_room(f"'{path}', unpacked,", total, f"it is hardly a saved {what}")
    packed = sum(part.file_size for part in parts if part.compress_type != ZIP_STORED)
    if packed > MOST_UNPACKED:
        raise SizeError(
            f"'{path}' is compressed and would unpack to {packed / 1e9:,.3g} GB, more than the "
            f"{MOST_UNPACKED / 1e9:g} GB that a compressed file may; it is hardly a saved {what}. "
            "If it is yours, write its arrays with numpy.savez, which does not compress."
        )


def output_directory(path: str | Path) -> Path:
    """Make the directory `path` (and its parents), or say in one sentence why it cannot be used."""
    directory = Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write to the output directory '{directory}': {error.strerror}; "
            "name a directory that you may write to."
        ) from error
    return directory


def cache_directory() -> Path:
    """Where machine code and results are kept: `STEADYTD_CACHE_DIR`, or the user's own."""
    import platformdirs

    named = os.environ.get("STEADYTD_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("steadytd")) / "kernels"


def made_cache_directory() -> Path:
    """The same, made for this user alone where it was not there."""
    directory = cache_directory()
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def read_kept(name: str, identity: str) -> bytes | None:
    """What is kept under this name, if it has this identity and is whole."""
    try:
        content = (cache_directory() / name).read_bytes()
    except OSError:
        return None
    own, check, rest = content[:MARK], content[MARK : 2 * MARK], content[2 * MARK :]
    whole = own == identity.encode() and check == hashlib.sha256(rest).hexdigest().encode()
    return rest if whole else None


def write_kept(name: str, identity: str, rest: bytes) -> None:
    """Keep something, if the directory can be written to; nobody else may, whatever the umask."""
    head = (identity + hashlib.sha256(rest).hexdigest()).encode()
    with contextlib.suppress(OSError):
        write_whole(made_cache_directory() / name, head + rest, 0o644)


def kept_arrays(
    name: str, identity: str, make: Callable[[], Mapping[str, Any]]
) -> dict[str, NDArray[Any]]:
    """The arrays that `make` returns, kept under a name and all that decides them."""
    file = f"{name}-{identity[:24]}.npz"
    rest = read_kept(file, identity)
    if rest is None:
        made, buffer = make(), io.BytesIO()
        np.savez(buffer, **made)
        write_kept(file, identity, buffer.getvalue())
        return dict(made)
    with np.load(io.BytesIO(rest), allow_pickle=False) as archive:
        return dict(archive)
