"""Files appear whole or not at all: written under a temporary name, then renamed.

Arrays are kept in NumPy archives without pickle: reading a file never runs code.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.numbers import SizeError, require_room


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
            require_room(f"'{path}', unpacked,", _unpacked(file), f"it is hardly a saved {what}")
            yield file
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'.") from None
    except SizeError:
        raise
    except Exception as error:
        raise InputError(f"'{path}' is not a saved {what} ({error}).") from None


def _unpacked(file: Any) -> float:
    """How many bytes an archive says that its arrays take; one array alone is what it is."""
    archive = getattr(file, "zip", None)
    return 0.0 if archive is None else float(sum(part.file_size for part in archive.infolist()))


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
