"""Files appear whole or not at all: written under a temporary name, then renamed.

The files of one command likewise: written to a hidden directory beside the target, then moved. Only
`file_name` makes a file's name from a name that a user chose. Whatever the disk refuses becomes a
`DiskError`: one sentence with the place, the reason and the remedy.

Arrays are saved in NumPy archives without pickle: reading a file never runs code. A cached file, in
`cache_directory`, begins with its identity (see `identity`) and a hash of its content: a damaged,
exchanged or stale file counts as missing, and is written again.
"""

from __future__ import annotations

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
from steadytd.base.numbers import SizeError, memory, require_room

HASH = 64  # length of a hash in hexadecimal digits
PLAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ ,.=+()-]{0,78}[A-Za-z0-9_=+()-])?")
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])( *\..*)?", re.IGNORECASE)  # Windows
PREFIX = 40  # characters of a longer name that begin another
PARTIAL = ".partial"  # ends the name of a directory that is not complete yet
ABANDONED = 86_400.0  # seconds after which such a directory is a killed command's
MOST_UNPACKED = 5e8  # bytes of a compressed archive: a small file must not fill the memory


def file_name(name: str, among: Iterable[str] = ()) -> str:
    """A file name for `name`, never a path, that every file system accepts.

    A plain name is its own file name: letters, digits and common signs, not hidden, not reserved.
    Any other becomes its plain characters, a ~ and a hash of the whole. No plain name has a ~, so
    different names have different files. Names of `among` that differ only in capital letters get
    a hash too, because some file systems do not distinguish them.

    >>> file_name("collision"), file_name("random walk, 5 states"), file_name("../../escape")
    ('collision', 'random walk, 5 states', 'escape~efbf103bcec5')
    >>> file_name("Soft", ["Soft", "soft"]), file_name("nul"), file_name("größe")
    ('Soft~5964d4672956', 'nul~99e624275901', 'gr_e~d353a2671b67')
    """
    alike = any(other != name and other.lower() == name.lower() for other in among)
    if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name) and not alike:
        return name
    start = re.sub("[^A-Za-z0-9_-]+", "_", name).strip("_-")[:PREFIX] or "name"
    suffix = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{start}~{suffix}"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """The file names of many names, each among all of them.

    >>> file_names(["Soft", "soft", "b"])
    {'Soft': 'Soft~5964d4672956', 'soft': 'soft~f5f445528f4a', 'b': 'b'}
    """
    among = list(names)
    return {name: file_name(name, among) for name in among}


class DiskError(InputError, OSError):
    """What the file system refused. It has the `errno` of the cause."""


def disk_error(error: OSError, place: str | Path, remark: str = "") -> DiskError:
    """The error as one sentence about `place`; `remark` says how much of the work is saved."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free some space, or name another location" if full else "name another location"
    found = DiskError(f"cannot write to '{place}': {reason(error)}. {remark}To continue, {remedy}.")
    found.errno, found.strerror = error.errno, error.strerror
    return found


def reason(error: OSError) -> str:
    """Why a file cannot be written, in a few words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "the disk is full" if full else str(error.strerror or error).rstrip(".")


def _to_disk(path: Path) -> None:
    """Have a file's bytes, or a directory's names, on the disk before going on.

    Otherwise a loss of power after the renaming could leave an empty file of the right name.
    """
    directory = path.is_dir()
    with suppress(OSError) if directory else nullcontext():  # some systems cannot do directories
        handle = os.open(path, os.O_RDONLY if directory else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(
    path: Path, content: bytes | str | Callable[[Path], object], mode: int = 0o666
) -> Path:
    """Write bytes, text, or whatever a function writes to the path that it is called with.

    The content is written to a temporary file beside `path`, which then replaces `path`. As any
    file that is opened, it has the mode that the user's umask leaves of `mode`.
    """
    prefix = f".{path.stem[:PREFIX]}-"  # short: `path` may have the longest name that is allowed
    temporary = path.with_name(f"{prefix}{secrets.token_hex(4)}{path.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            if callable(content):
                content(temporary)
            else:
                temporary.write_bytes(content.encode() if isinstance(content, str) else content)
            _to_disk(temporary)
            temporary.replace(path)
            _to_disk(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
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
    replaced, pages last, and restored if one of them cannot be; all others stay as they are.
    """
    target = Path(directory)
    new_parents = [one for one in (target.parent, *target.parent.parents) if not one.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        parent = target if target.is_dir() else target.parent
        _remove_abandoned(parent)
        made = parent / f".{target.name[:PREFIX]}-{secrets.token_hex(8)}{PARTIAL}"
        made.mkdir()
        try:
            yield made
            for path in (*made.rglob("*"), made):
                _to_disk(path)
            if target.exists():
                _move_together(made, target)
                _to_disk(target)
            else:
                made.rename(target)
                _to_disk(target.parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except BaseException as error:
        for path in new_parents:
            with suppress(OSError):
                path.rmdir()
        if isinstance(error, OSError):
            remark = "None of the command's files was written. "
            raise disk_error(error, target, remark) from error
        raise


def _remove_abandoned(directory: Path) -> None:
    """Remove what killed commands left behind."""
    for old in directory.glob(f".*-*{PARTIAL}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > ABANDONED:
                shutil.rmtree(old, ignore_errors=True)


def _move_together(made: Path, target: Path) -> None:
    """Move files into a directory that exists; if one cannot be moved, undo the others."""
    files = sorted(made.iterdir(), key=lambda file: (file.suffix == ".html", file.name))
    before = made / "before"
    before.mkdir()
    for file in files:
        place = target / file.name
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"'{place}' is a directory")
        if place.exists():
            try:
                (before / file.name).hardlink_to(place)
            except OSError:  # a file system without links
                shutil.copy2(place, before / file.name)
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


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> Path:
    """Write arrays to a NumPy archive under their names."""

    def write(where: Path) -> None:
        with where.open("wb") as file:
            small = sum(np.asarray(array).nbytes for array in arrays.values()) <= MOST_UNPACKED
            (np.savez_compressed if compressed and small else np.savez)(file, **arrays)

    return write_whole(path, write)


@contextmanager
def reading_arrays(path: Path, what: str) -> Iterator[Any]:
    """Yield the archive at `path`, a saved `what`.

    Whatever is found wrong while the archive is open becomes one `InputError`.
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
    """Fail before the work, without making anything, if results cannot be written to `path`."""
    nearest = Path(path)
    try:
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    except OSError as error:
        raise disk_error(error, path) from error
    if not writable:
        raise InputError(
            f"cannot write to the output directory '{path}': '{nearest}' is not a directory that "
            "you may write to; name another."
        )


def _require_size(path: Path, what: str, archive: ZipFile | None) -> None:
    """Refuse an archive by the sizes that it states; a file of one array states none."""
    parts = [] if archive is None else archive.infolist()
    total = sum(part.file_size for part in parts)
    require_room(f"'{path}', unpacked,", total, f"it does not look like a saved {what}")
    packed = sum(part.file_size for part in parts if part.compress_type != ZIP_STORED)
    if packed > MOST_UNPACKED:
        raise SizeError(
            f"'{path}' is compressed and would unpack to {memory(packed)}; at most "
            f"{memory(MOST_UNPACKED)} are allowed. It does not look like a saved {what}. "
            "If it is yours, write its arrays with numpy.savez, which does not compress."
        )


def output_directory(path: str | Path) -> Path:
    """Make the directory `path` and its parents; an `InputError` says why it cannot be used."""
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
    """Where machine code and results are cached: `STEADYTD_CACHE_DIR`, or the user's own."""
    import platformdirs

    named = os.environ.get("STEADYTD_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("steadytd")) / "kernels"


def made_cache_directory() -> Path:
    """The same, created for this user alone where it is missing."""
    directory = cache_directory()
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def read_cached(name: str, identity: str) -> bytes | None:
    """The content of a cached file, if it has this identity and is whole."""
    try:
        file = (cache_directory() / name).read_bytes()
    except OSError:
        return None
    own, check, content = file[:HASH], file[HASH : 2 * HASH], file[2 * HASH :]
    whole = own == identity.encode() and check == hashlib.sha256(content).hexdigest().encode()
    return content if whole else None


def write_cached(name: str, identity: str, content: bytes) -> None:
    """Cache something, if the directory can be written to; only its owner may change the file."""
    head = (identity + hashlib.sha256(content).hexdigest()).encode()
    with suppress(OSError):
        write_whole(made_cache_directory() / name, head + content, 0o644)


def cached_arrays(
    name: str, identity: str, make: Callable[[], Mapping[str, Any]]
) -> dict[str, NDArray[Any]]:
    """The arrays that `make` returns, cached under a name and the identity of all inputs."""
    file = f"{name}-{identity[:24]}.npz"
    content = read_cached(file, identity)
    if content is None:
        made, buffer = make(), io.BytesIO()
        np.savez(buffer, **made)
        write_cached(file, identity, buffer.getvalue())
        return dict(made)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)
