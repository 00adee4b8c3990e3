"""What a result depends on: the rule by which a cached or saved result may be used again.

A result is identified by a hash of everything that decides its numbers:

- *code*: `modules("steadytd.runs.lanes")` hashes the text of that module and of every module of
  ours that it imports, directly or not. The list is read from the import statements, so a module
  that is split or added is never forgotten;
- *versions*: of Python, and of the libraries in `NUMERICAL` that this code imports. They decide
  the bits (a compiler orders additions, LAPACK solves). Libraries that only carry numbers from one
  place to another (PyArrow, Polars, Pydantic) do not count: what they carry is hashed itself. The
  processor does not count either, so that a study may be resumed elsewhere: loops in strict IEEE
  arithmetic give the same bits everywhere, only BLAS may differ in the last digits. Machine code is
  another matter, see `jit`;
- *values*: `digest(...)` inspects arrays, containers, functions (code, constants, defaults,
  closure, and the globals they use), methods, classes and objects with a readable state. What a
  library defines counts by name and version. What cannot be inspected raises `UnreadableError`:
  nothing is assumed to be unchanged without having been read.

An object that knows better than its attributes what decides it has a method `__identity__`, which
returns that.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import importlib
import pickle
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from steadytd.base import source
from steadytd.base.source import PACKAGE, UnreadableError, closure, versions

CODE = (
    "co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags",
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable",
)  # fmt: skip
# The attributes that decide an object which wraps another.
WRAPPERS: dict[type, tuple[str, ...]] = {
    CodeType: CODE,
    MethodType: ("__func__", "__self__"),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    cached_property: ("func",),
    type(cache(len)): ("__wrapped__",),
    MemberDescriptorType: ("__name__", "__objclass__"),
    GetSetDescriptorType: ("__name__", "__objclass__"),
    MethodDescriptorType: ("__name__", "__objclass__"),
    WrapperDescriptorType: ("__name__", "__objclass__"),
}
PLAIN = (type(None), bool, int, float, complex, str, type(Ellipsis), type(NotImplemented))
# What a function reads through these is not known before it runs.
OPAQUE = frozenset({"eval", "exec", "compile", "open", "globals", "input", "__import__"})
# Attributes of a class that do not decide what it does, or repeat others.
IGNORED = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl",
    "__dataclass_fields__", "__firstlineno__", "__static_attributes__",
})  # fmt: skip


def modules(*names: str) -> str:
    """A hash of the code of modules of ours, of all that they import, and of the versions."""
    return _modules(names)


@cache
def _modules(names: tuple[str, ...]) -> str:
    code = {module: source.text_of(module) for name in names for module in closure(name)}
    imported = {one for module in code for one in source.imports_of(module)}
    return digest(sorted(code.items()), sorted(versions(imported).items()))


def digest(*values: object) -> str:
    """A hash of values: the same in every process, another one if anything in them changes.

    >>> digest(1.0) == digest(1.0), digest(1.0) == digest(1), digest([1, 2]) == digest([2, 1])
    (True, False, False)
    """
    return _Walk().of(values).hex()


class _Walk:
    """Visits a value and all that it holds, depth first.

    An object inside itself (a function that calls itself) is identified by how many levels above it
    was met. The hash of an object without such a reference is computed once.
    """

    def __init__(self) -> None:
        self.path: list[int] = []
        self.known: dict[int, bytes] = {}
        self.alive: list[object] = []  # so that no id is used for another object
        self.highest = 0  # the least depth that the present value refers to

    def of(self, value: Any) -> bytes:
        if type(value) in PLAIN:
            return _hash(type(value).__name__, repr(value).encode())
        if type(value) in (bytes, bytearray):
            return _hash("bytes", bytes(value))
        key = id(value)
        if key in self.known:
            return self.known[key]
        depth = len(self.path)
        if key in self.path:
            place = self.path.index(key)
            self.highest = min(self.highest, place)
            return _hash("above", str(depth - place).encode())
        around, self.highest = self.highest, depth
        self.path.append(key)
        try:
            tag, inside = _parts(value)
            found = [self.of(part) for part in inside]
        finally:
            self.path.pop()
        unordered = isinstance(value, set | frozenset)
        result = _hash(tag, *(sorted(found) if unordered else found))
        if self.highest >= depth:
            self.known[key] = result
            self.alive.append(value)
        self.highest = min(around, self.highest)
        return result


def _hash(tag: str, *parts: bytes) -> bytes:
    found = hashlib.sha256(f"{tag}:{len(parts)}:".encode())
    for part in parts:
        found.update(part)
    return found.digest()


Parts = tuple[str, list[Any]]  # the kind of a value, and what it holds


def _parts(value: Any) -> Parts:
    readers = (_declared, _data, _wrapped, _in_library, _callable, _module, _class)
    found = (read(value) for read in readers)
    return next((parts for parts in found if parts is not None), None) or _object(value)


def _declared(value: Any) -> Parts | None:
    kind = type(value)
    known = hasattr(kind, "__identity__")
    return (f"{kind.__module__}.{kind.__qualname__}", [value.__identity__()]) if known else None


def _data(value: Any) -> Parts | None:
    """Arrays and containers."""
    kind = type(value)
    if kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype.hasobject:
            return f"objects {value.shape}", list(value.flat)
        return f"{kind.__name__} {value.dtype.descr} {value.shape}", [value.tobytes()]
    if kind in (tuple, list, set, frozenset):
        return kind.__name__, list(value)
    if kind in (dict, MappingProxyType):
        return "dict", [part for pair in value.items() for part in pair]
    return None


def _wrapped(value: Any) -> Parts | None:
    names = WRAPPERS.get(type(value), ())
    return (type(value).__name__, [getattr(value, n) for n in names]) if names else None


def _callable(value: Any) -> Parts | None:
    if isinstance(getattr(value, "py_func", None), FunctionType):  # compiled by Numba
        return "compiled", [value.py_func, dict(getattr(value, "targetoptions", {}))]
    if isinstance(value, FunctionType):
        return "function", _function(value)
    if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType):
        return f"method {value.__name__}", [value.__self__]
    return None


def _function(function: FunctionType) -> list[Any]:
    """Code, defaults, attributes, closure, and all that the code may read from elsewhere."""
    codes = list(_codes(function.__code__))
    scope, used_names = function.__globals__, _globals(codes)
    if str(function.__module__).partition(".")[0] != PACKAGE:
        for name in sorted((used_names & OPAQUE) - scope.keys()):
            raise UnreadableError(
                f"the function {function.__qualname__} calls {name}, whose result is not known "
                "before it runs"
            )
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    taken = {f"closed {name}": _content(cell) for name, cell in cells}
    taken |= {name: scope[name] for name in sorted(used_names & scope.keys())}
    taken |= {f"import {module.__name__}": module for module in _late(function, codes)}
    names = {name for code in codes for name in code.co_names}
    reached = {
        f"{label}.{name}": part
        for label, module in taken.items()
        if isinstance(module, ModuleType)
        for name, part in _reached(module, names)
    }
    used = {label: v for label, v in (taken | reached).items() if not _counts_by_use(v)}
    own = function.__defaults__, function.__kwdefaults__, vars(function)
    return [function.__code__, *own, used]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name without a value yet
        return "nothing yet"


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions and comprehensions inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _globals(codes: list[CodeType]) -> set[str]:
    steps = (step for code in codes for step in dis.get_instructions(code))
    return {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _late(function: FunctionType, codes: list[CodeType]) -> Iterator[ModuleType]:
    """The modules that a function imports when it runs."""
    package = str(function.__globals__.get("__package__") or "")
    for code in codes:
        steps = list(dis.get_instructions(code))
        for i, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level = steps[i - 2].argval
                try:
                    yield importlib.import_module("." * level + step.argval, package or None)
                except ImportError as error:
                    raise UnreadableError(
                        f"the function {function.__qualname__} imports {step.argval}, which is "
                        f"missing ({error})"
                    ) from None


def _counts_by_use(value: object) -> bool:
    """A module of the user's: what the function uses of it counts, not all that it holds."""
    return (
        isinstance(value, ModuleType)
        and source.library_of(value.__name__) is None
        and not source.is_ours(value.__name__)
    )


def _reached(module: ModuleType, names: set[str], depth: int = 4) -> Iterator[tuple[str, Any]]:
    """What a function may use of a user's module, by the names in its code."""
    if not _counts_by_use(module) or not depth:
        return
    for name in sorted(names & vars(module).keys()):
        part = vars(module)[name]
        yield name, part
        if isinstance(part, ModuleType):
            for inner, found in _reached(part, names, depth - 1):
                yield f"{name}.{inner}", found


def _module(module: Any) -> Parts | None:
    """A whole module: a library's by its version, one of ours by its code."""
    if not isinstance(module, ModuleType):
        return None
    origin = source.library_of(module.__name__)
    if origin is not None:
        return f"module {module.__name__} of {origin}", []
    if source.is_ours(module.__name__):
        return f"module {module.__name__}", [modules(module.__name__)]
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        raise UnreadableError(f"the module {module.__name__} has no readable text")
    return "module", [Path(file).read_bytes()]


def _class(kind: Any) -> Parts | None:
    if not isinstance(kind, type):
        return None
    if source.is_ours(kind.__module__):
        return f"class {kind.__module__}.{kind.__qualname__}", [modules(kind.__module__)]
    own = {name: vars(kind)[name] for name in sorted(vars(kind).keys() - IGNORED)}
    return f"class {kind.__qualname__}", [kind.__bases__, own]


def _object(value: Any) -> Parts:
    """Any other object: its class, and its state as `pickle` would read it."""
    kind = type(value)
    try:
        registered = copyreg.dispatch_table.get(kind)
        reduced = registered(value) if registered else value.__reduce_ex__(4)
    except Exception as error:
        what = f"the state of a {kind.__qualname__} cannot be read ({error})"
        raise UnreadableError(what) from None
    if isinstance(reduced, str):
        origin = source.library_of(pickle.whichmodule(value, reduced))  # type: ignore[attr-defined]
        if origin is None:
            raise UnreadableError(f"'{reduced}', a {kind.__qualname__}, cannot be read")
        return f"{reduced} of {origin}", []
    make, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):  # cached properties may have been computed or not
        state = {k: v for k, v in state.items() if not _is_cached(kind, k)}
    return "object", [kind, make, args, state, list(items or ()), list(pairs or ())]


def _is_cached(kind: type, name: object) -> bool:
    return isinstance(getattr(kind, str(name), None), cached_property)


def _in_library(value: Any) -> Parts | None:
    """A function or class of Python or of an installed package: its name and the version."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str)):
        return None
    origin = source.library_of(module)
    if origin is None:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (f"{module}.{name} of {origin}", []) if found is value else None
