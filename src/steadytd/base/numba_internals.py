"""All that we use of Numba beyond its public interface, and how to do without it.

Four parts, each of which a new version of Numba may change without notice:

==========  ============================================  =====================================
part        what it is used for                           without it
==========  ============================================  =====================================
`noalias`   arrays given to a function never overlap      loops test for overlap: slower
`cache`     machine code is kept on disk (`base.jit`)     compiled anew in every process
`address`   one driver calls the loops of all laws        the driver is compiled with every law
`vectors`   eight numbers are one value in a register     small arrays: slower, and not fused
==========  ============================================  =====================================

A part that this version of Numba lacks is not used, which is said once. Nor is one that is named
in the environment: `STEADYTD_WITHOUT=noalias,vectors`, or `all`. No other module touches what is
private to Numba: a test. Other tests fail where a part is missing or has lost its effect.
"""

from __future__ import annotations

import importlib
import os
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

from steadytd.base.errors import unknown

WITHOUT = "STEADYTD_WITHOUT"
HASHING = b"_numba_hashsecret"  # in the names that machine code refers to
NEEDED = {  # module of numba.core, class or nothing, names
    "noalias": [("compiler", "Compiler", "define_pipelines"), ("compiler", "Flags", "noalias")],
    "cache": [
        ("compiler", "CompileResult", "_reduce _rebuild"),
        ("serialize", "", "dumps"),
        ("base", "BaseContext", "refresh"),
        ("runtime.nrt", "", "rtsys"),
        ("codegen", "CPUCodegen", "magic_tuple"),
        ("codegen", "CodeLibrary", "has_dynamic_globals"),
    ],
    "address": [
        ("codegen", "JITCodeLibrary", "get_pointer_to_function"),
        ("callconv", "CPUCallConv", "call_function get_function_type"),
        ("base", "BaseContext", "get_dummy_value"),
    ],
    "vectors": [("base", "BaseContext", "make_array get_dummy_value")],
}


def there(part: str) -> bool:
    """Whether this version of Numba has what a part needs."""
    for module, owner, names in NEEDED[part]:
        try:
            found = importlib.import_module(f"numba.core.{module}")
        except ImportError:
            return False
        holder = getattr(found, owner, None) if owner else found
        if not all(hasattr(holder, name) for name in names.split()):
            return False
    return True


@cache
def unwanted(named: str) -> frozenset[str]:
    """The parts that the environment says not to use."""
    names = {name.strip() for name in named.split(",")} - {""}
    for name in sorted(names - {"all", *NEEDED}):
        raise unknown(f"part of Numba in {WITHOUT}:", name, ["all", *NEEDED])
    return frozenset(NEEDED if "all" in names else names)


def used(part: str) -> bool:
    """Whether a part is to be used: wanted, and there."""
    if part in unwanted(os.environ.get(WITHOUT, "")):
        return False
    if not there(part):
        _say_missing(part)
        return False
    return True


@cache
def _say_missing(part: str) -> None:
    warnings.warn(
        f"Numba {numba.__version__} has changed in what steadytd takes from its inside ({part}): "
        "results stay right, but some work takes longer; a version of Numba that steadytd was "
        "tested with is faster.",
        stacklevel=3,
    )


# ---- noalias


@cache
def compiler() -> type:
    """Numba's compiler, told that no two arrays overlap (`restrict` in C)."""
    from numba.core.compiler import Compiler

    class Disjoint(Compiler):
        def define_pipelines(self) -> Any:
            self.state.flags.noalias = True
            return super().define_pipelines()

    return Disjoint


def disjoint() -> dict[str, Any]:
    """The options of `njit` for a function whose arrays never overlap."""
    return {"pipeline_class": compiler()} if used("noalias") else {}


# ---- cache


def set_cache(dispatcher: Any, found: Any) -> None:
    """Let a compiled function ask `found` for its machine code."""
    vars(dispatcher)["_cache"] = found


def can_keep(dispatcher: Any) -> bool:
    """Whether the machine code of a compiled function can be kept."""
    return used("cache") and hasattr(dispatcher, "_cache")


def pack(kinds: Any, result: Any) -> bytes | None:
    """Compiled code for these types of arguments as bytes, or None if it holds for now only."""
    now_only = any(isinstance(kind, types.Dispatcher) for kind in kinds)  # named by its place
    if now_only or result.library.has_dynamic_globals:
        return None
    if not all(one.can_cache for one in result.lifted):
        return None
    from numba.core.serialize import dumps

    return dumps(result._reduce())


def unpack(context: Any, packed: bytes) -> Any:
    """What was packed, as compiled code.

    Numba would first load all that it can compile, which takes a third of a second. Machine code
    needs no more of that than the names of C functions; those for hashing come with the rest.
    """
    from numba.core.compiler import CompileResult
    from numba.core.runtime.nrt import rtsys

    rtsys.initialize(context)
    if HASHING in packed:
        context.refresh()
    return CompileResult._rebuild(context, *pickle.loads(packed))


def made_for(context: Any, result: Any = None) -> Any:
    """The processor that machine code is, or would be, made for."""
    return (context.codegen() if result is None else result.codegen).magic_tuple()


def options(dispatcher: Any) -> list[Any]:
    """All that decides how a function is compiled, besides its code and types."""
    return [sorted(dispatcher.targetoptions.items()), [part for part in NEEDED if used(part)]]


# ---- address


def address(dispatcher: Any, kinds: tuple[Any, ...]) -> int | None:
    """Where the machine code for these types lies, compiled or taken from disk; None if unknown."""
    dispatcher.compile(kinds)
    if not used("address"):
        return None
    try:
        (found,) = dispatcher.overloads.values()
        return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name)) or None
    except AttributeError:
        return None


def caller(entry: tuple[Any, ...]) -> Callable[..., Any]:
    """A function `call(address, given)` that jumps to machine code compiled for types `entry`."""

    @intrinsic
    def call_address(_: Any, loop: Any, given: Any) -> Any:
        assert tuple(given.types) == entry, given

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            kinds = list(given.types)
            parts = [builder.extract_value(values[1], i) for i in range(len(kinds))]
            shape = context.call_conv.get_function_type(types.none, kinds)
            pointer = builder.inttoptr(values[0], shape.as_pointer())
            context.call_conv.call_function(builder, pointer, types.none, kinds, parts)
            return context.get_dummy_value()

        return types.none(loop, given), generate

    return call_address
