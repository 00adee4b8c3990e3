"""The decorators for compiled functions, and where their machine code is cached.

Machine code is cached in files named by a hash of all it is made from: the
text of the function's module and of every module of ours that it imports (`identity.modules`),
the types of the arguments, the options, the versions of Python, Numba and LLVM, the processor, and
Numba's settings in the environment. So a change in `engine/step/kernels.py` is noticed by all that
use it, and by nothing else; stale code cannot be found, whatever the time stamps say.

Machine code from a file is run, so the directory is private: one that others may write to is not
used, and what is damaged is thrown away and compiled again. Both are said once. Files that nobody
has used for long are removed, and the oldest where there are too many.

Numba's own cache looks at one file only. This one takes its place through an attribute that is not
part of Numba's public interface (`numba_internals`).
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba import njit

from steadytd.base import numba_internals
from steadytd.base.files import cache_directory, read_cached, write_cached
from steadytd.base.identity import digest, modules
from steadytd.base.progress import watched
from steadytd.base.source import PACKAGE

F = TypeVar("F", bound=Callable[..., object])
DAY = 86_400.0  # seconds
OLDEST = 90 * DAY  # files that were not used for so long are removed
MOST = 1 << 30  # bytes of all files; beyond that the oldest are removed


def compiled(function: F) -> F:
    """Compile when first called, cache on disk, release the interpreter's lock.

    Strict IEEE arithmetic; a division by zero gives inf or NaN, as in NumPy.
    """
    plain = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
    return _cached_by_module(plain(function))


def compiled_disjoint(function: F) -> F:
    """As `compiled`, for a function whose arrays never overlap."""
    disjoint = njit(
        nogil=True, error_model="numpy", no_cfunc_wrapper=True, **numba_internals.disjoint()
    )  # fmt: skip
    return _cached_by_module(disjoint(function))


def uncached(function: F) -> F:
    """As `compiled`, but anew in every process: for functions of the user's."""
    return njit(nogil=True, error_model="numpy")(function)


def inner(function: F) -> F:
    """For a function that only compiled ones call, and that becomes part of them.

    Python has no way in, so Numba leaves out what turns Python's objects into numbers. It is
    cached with those.
    """
    plain = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return plain(function)


def cached(dispatcher: F, stamp: Callable[[], str]) -> F:
    """Cache the machine code of a compiled function on disk; `stamp` hashes what it is made from.

    The stamp is asked for when the function is first compiled, not when it is defined.
    """
    numba_internals.set_cache(dispatcher, _OnDisk(dispatcher, stamp))
    return dispatcher


@cache
def say_compiling(saved: bool = True) -> None:
    """Tell who waits at a terminal or in a notebook, once, what the first seconds are spent on."""
    if watched():
        more = "; the machine code is cached" if saved else ""
        print(f"steadytd: compiling ...{more}", file=sys.stderr)


@cache
def _say_once(remark: str) -> None:
    warnings.warn(remark, stacklevel=2)


def _private(path: Path) -> bool:
    """Whether nobody but this user (and root) may write to the file or directory."""
    if os.name != "posix":
        return True  # a user's cache directory is private on Windows
    found = path.stat()
    return found.st_uid in (0, os.getuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _usable(directory: Path) -> bool:
    """Whether machine code from this directory may be run."""
    if _private(directory):
        return True
    _say_once(
        f"'{directory}' can be written by other users, so cached machine code from it is not used. "
        "Make it private (chmod 700), or name another directory in STEADYTD_CACHE_DIR."
    )
    return False


def tidy(directory: Path) -> None:
    """Remove files that were not used for long, the oldest of too many, and half-written ones."""
    now, total = time.time(), 0
    found = []
    for path in directory.glob("*.n[bp][cz]"):  # a star finds hidden files too
        with contextlib.suppress(OSError):
            about = path.stat()
            found.append((about.st_mtime, about.st_size, path))
    for used, size, path in sorted(found, reverse=True):
        total += size
        age = now - used
        if total > MOST or age > (DAY if path.name.startswith(".") else OLDEST):
            with contextlib.suppress(OSError):
                path.unlink()


@cache
def _tidy_once(directory: Path) -> None:
    tidy(directory)


def _cached_by_module(dispatcher: F) -> F:
    """Cached by the code of the module that holds the function, if that is one of ours."""
    module = dispatcher.__module__
    ours = module.partition(".")[0] == PACKAGE
    return cached(dispatcher, lambda: modules(module)) if ours else dispatcher


class _OnDisk:
    """What a Numba function asks for cached machine code.

    A damaged or exchanged file is removed, and written again.
    """

    def __init__(self, dispatcher: Any, stamp: Callable[[], str]) -> None:
        self.dispatcher, self.stamp = dispatcher, stamp

    @property
    def cache_path(self) -> str:
        """For Numba's statistics."""
        return str(cache_directory())

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled function for these types of arguments, or None."""
        mark = self._mark(signature, numba_internals.made_for(context))
        file = cache_directory() / self._file(mark)
        try:
            there = _usable(file.parent) and _private(file)
        except OSError:
            there = False
        rest = read_cached(file.name, mark) if there else None
        if rest is not None:
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime > DAY:
                    os.utime(file)  # it was used: `tidy` goes by that
            with contextlib.suppress(Exception):  # whatever it is, compiling anew mends it
                return numba_internals.unpack(context, rest)
        if there:
            with contextlib.suppress(OSError):
                file.unlink()
            said = f"a file of machine code in '{file.parent}' was damaged; it is recompiled."
            _say_once(said)
        say_compiling()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Cache a compiled function, if that is possible and the directory can be written to."""
        packed = numba_internals.pack(signature, result)
        if packed is None:
            return
        mark = self._mark(signature, numba_internals.made_for(None, result))
        directory = cache_directory()
        with contextlib.suppress(OSError):
            if not directory.exists() or _usable(directory):
                write_cached(self._file(mark), mark, packed)
                _tidy_once(directory)

    def _file(self, mark: str) -> str:
        function = self.dispatcher.py_func
        module = function.__module__.rpartition(".")[2]
        return f"{module}.{function.__name__}-{mark[:24]}.nbc"

    def _mark(self, signature: Any, processor: Any) -> str:
        function = self.dispatcher.py_func
        names = [getattr(kind, "fields", ()) for kind in signature]  # of a named tuple
        settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_")}
        return digest(
            self.stamp(), function.__module__, function.__qualname__, str(signature), names,
            numba_internals.options(self.dispatcher), processor, sys.version,
            numba.__version__, llvmlite.__version__, sorted(settings.items()),
        )  # fmt: skip

    def enable(self) -> None:
        """Always on."""

    def disable(self) -> None:
        """Always on."""

    def flush(self) -> None:
        """Nothing stale is ever found, so nothing has to be removed."""
