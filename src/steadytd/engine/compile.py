"""Compiles the loop of a law, and keeps it on disk so that the next process starts at once.

A kernel lives in a directory named by a hash of *everything* it is made from: its source, the
functions of the law and the constants they use, the engine's helpers, and the versions of Python
and Numba (Numba itself adds the processor). A change of any of these gives another directory, so a
stale kernel cannot be found, whatever the time stamps say.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from steadytd.base.files import write_whole
from steadytd.engine.law import Function, Law
from steadytd.engine.loop import loop_source


def cache_directory() -> Path:
    """Where kernels are kept: `STEADYTD_CACHE_DIR`, or the user's cache directory."""
    import platformdirs

    named = os.environ.get("STEADYTD_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("steadytd")) / "kernels"


@cache
def kernel(
    law: Law,
    traced: bool,
    averaged: bool = False,
    write: Callable[[Law, bool, bool], str] = loop_source,
) -> Function:
    """The compiled loop of a law (compiled when first called); see `loop_source` for the flags."""
    from numba import njit

    from steadytd.base import jit
    from steadytd.engine import kernels

    functions = law_functions(law)
    source = write(law, traced, averaged)
    if any(inspect.getmodule(function) is None for function in functions.values()):
        source = source.replace("@njit(cache=True, ", "@njit(")  # Numba could not find it again
    module = _module(law.name, source, _fingerprint(source, functions))
    names = ("copy", "leaves_finite_range", "mark_diverged", "measure_all")
    vars(module).update({"Disjoint": jit.Disjoint, **{n: getattr(kernels, n) for n in names}})
    compiled = {n: njit(nogil=True, error_model="numpy")(f) for n, f in functions.items()}
    vars(module).update(compiled)
    assert module.__spec__ is not None and module.__spec__.loader is not None
    module.__spec__.loader.exec_module(module)
    run: Function = module.run
    return run


def law_functions(law: Law) -> dict[str, Function]:
    """The plain Python functions of a law under the names that its loop calls them by."""
    return {
        "update": law.update,
        **{f"trace_{name}": function for name, function in law.traces.items()},
        **{f"memory_{name}": f for name, f in law.memory.items() if f is not None},
        **{f"map_{name}": function for name, function in law.maps.items()},
    }


def _module(name: str, source: str, fingerprint: str) -> ModuleType:
    """A module for the source, in its own directory below the cache (or a temporary one)."""
    try:
        directory = cache_directory() / fingerprint
        path = directory / f"{name}.py"
        if not (path.exists() and path.read_text(encoding="utf-8") == source):
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, source)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="steadytd-")) / f"{name}.py"
        path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"steadytd_kernel_{name}_{fingerprint}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Numba's cache looks the module up by its name
    return module


def _fingerprint(source: str, functions: dict[str, Function]) -> str:
    import llvmlite
    import numba

    from steadytd.engine import kernels

    digest = hashlib.sha256()
    helpers = Path(str(kernels.__file__)).read_text(encoding="utf-8")
    for text in (source, helpers, sys.version, numba.__version__, llvmlite.__version__):
        digest.update(text.encode())
    for name, function in functions.items():
        digest.update(f"{name}:{meaning(function)}".encode())
    return digest.hexdigest()[:24]


def meaning(value: Any, inside: tuple[FunctionType, ...] = ()) -> str:
    """All that decides what a law's function computes: code, constants, globals, closure."""
    if isinstance(value, np.ndarray):  # whose repr is rounded and shortened
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, tuple):
        return repr([meaning(part, inside) for part in value])
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return repr(value)
    if function in inside:
        return f"{function.__qualname__} itself"
    codes = _codes(function.__code__)
    own = [
        (code.co_code.hex(), code.co_names, code.co_varnames, _constants(code)) for code in codes
    ]
    given = (function.__defaults__, function.__kwdefaults__, getattr(value, "targetoptions", None))
    used = _used(function, {name for code in codes for name in code.co_names})
    values = [(name, meaning(used[name], (*inside, function))) for name in sorted(used)]
    return repr((function.__module__, own, given, values))


def _codes(code: CodeType) -> list[CodeType]:
    """A function's code and that of the functions and comprehensions inside it."""
    inner = [_codes(const) for const in code.co_consts if isinstance(const, CodeType)]
    return [code, *(part for parts in inner for part in parts)]


def _constants(code: CodeType) -> list[object]:
    return [const for const in code.co_consts if not isinstance(const, CodeType)]


def _used(function: FunctionType, names: set[str]) -> dict[str, Any]:
    """What a function takes from its closure, from its globals and from modules among them."""
    cells = function.__closure__ or ()
    free = zip(function.__code__.co_freevars, cells, strict=True)
    used: dict[str, Any] = {name: cell.cell_contents for name, cell in free}
    used |= {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    for module in [value for value in used.values() if isinstance(value, ModuleType)]:
        for name in names & vars(module).keys():
            part = vars(module)[name]
            if hasattr(part, "py_func") or isinstance(
                part, FunctionType | int | float | np.ndarray
            ):
                used[f"{module.__name__}.{name}"] = part
    return used
