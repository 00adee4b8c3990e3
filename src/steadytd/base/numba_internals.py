"""All that we use of Numba beyond its public interface. No other module does: a test.

==========  ======================================  ==============================================
part        what it is used for                     without it
==========  ======================================  ==============================================
`noalias`   arrays given to a function are          loops test for overlap: 1.2 to 1.7 times the
            disjoint, as `restrict` says in C       time, and 1.4 to 1.8 times to compile
`cache`     machine code on disk (`base.jit`)       everything is compiled in every process
`address`   one driver calls the loops of all       the driver is compiled with every law: 1.8
            laws                                    times the processor time of a first run
==========  ======================================  ==============================================

Any version of Numba may change what is used here. So `pyproject.toml` allows the versions that were
tested and no newer one, and tests fail where a part is missing or has lost its effect.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types
from numba.extending import intrinsic

HASHING = b"_numba_hashsecret"  # in the names that machine code refers to


# ---- noalias


@cache
def _compiler() -> type:
    """Numba's compiler, told that no two arrays overlap."""
    from numba.core.compiler import Compiler

    class Disjoint(Compiler):
        def define_pipelines(self) -> Any:
            self.state.flags.noalias = True
            return super().define_pipelines()

    return Disjoint


def disjoint() -> dict[str, Any]:
    """The options of `njit` for a function whose arrays never overlap."""
    return {"pipeline_class": _compiler()}


# ---- cache


def set_cache(dispatcher: Any, found: Any) -> None:
    """Let a compiled function ask `found` for its machine code."""
    vars(dispatcher)["_cache"] = found


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
    return sorted(dispatcher.targetoptions.items())


# ---- address


def address(dispatcher: Any, kinds: tuple[Any, ...]) -> int:
    """Where the machine code for these types is in memory, compiled or taken from disk."""
    dispatcher.compile(kinds)
    (found,) = dispatcher.overloads.values()
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


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
