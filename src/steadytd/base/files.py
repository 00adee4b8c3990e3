"""Files appear whole or not at all: written under a temporary name, then renamed.

Arrays are kept in NumPy archives without pickle: reading a file never runs code. What is kept from
one call to the next stands under `cache_directory` with its own identity (see `identity`) and a
hash of the rest: a damaged, exchanged or stale file is as good as none, and is written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError

MARK = 64  # length of a hash in hexadecimal digits


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, delete it otherwise."""
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str | Callable[[Path], object]) -> Path:
    """Write bytes, text, or whatever a function writes to the path it is given."""
    with replacing(path) as temporary:
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        elif isinstance(content, str):
            temporary.write_text(content, encoding="utf-8")
        else:
            content(temporary)
    return path


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> Path:
    """Write arrays to a NumPy archive under their names."""

    def write(where: Path) -> None:
        with where.open("wb") as file:
            (np.savez_compressed if compressed else np.savez)(file, **arrays)

    return write_whole(path, write)


@contextmanager
def reading_arrays(path: Path, what: str) -> Iterator[Any]:
    """Yield the archive at `path`, which is to be a saved `what`; one sentence if it is not.

    The same sentence is given for anything that is found wrong while the archive is open.
    """
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'.") from None
    except Exception as error:
        raise InputError(f"'{path}' is not a saved {what} ({error}).") from None


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
    """Keep something, if the directory can be written to."""
    head = (identity + hashlib.sha256(rest).hexdigest()).encode()
    with contextlib.suppress(OSError):
        cache_directory().mkdir(parents=True, exist_ok=True)
        write_whole(cache_directory() / name, head + rest)


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
