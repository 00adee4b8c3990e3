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

import contextlib
import gc
import importlib
import operator
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from steadytd.base.arrays import LANES
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


# Where Numba looks for functions inside the function, and for arithmetic with whole arrays.
NOT_IN_LOOPS = ("InlineClosureLikes", "InlineInlinables", "InlineOverloads", "NopythonRewrites")


@cache
def disjoint_compiler(loop: bool = False) -> type:
    """Numba's compiler, told that no two arrays given to the function overlap (`restrict` in C).

    A `loop` that we have written needs less than all of its steps, and gives the same machine code.
    """
    from numba.core.compiler import Compiler

    class Disjoint(Compiler):
        def define_pipelines(self) -> Any:
            self.state.flags.noalias = True
            found: Any = super().define_pipelines()
            for one in found if loop else ():
                one.passes = [p for p in one.passes if p[0].__name__ not in NOT_IN_LOOPS]
            return found

    return Disjoint


def disjoint(loop: bool = False) -> dict[str, Any]:
    """The options of `njit` for a function whose arrays never overlap; see `disjoint_compiler`."""
    return {"pipeline_class": disjoint_compiler(loop)} if used("noalias") else {}


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


@contextlib.contextmanager
def no_garbage() -> Iterator[None]:
    """A compiler makes millions of objects: looking for garbage takes a tenth of its time."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def address(dispatcher: Any, kinds: tuple[Any, ...]) -> int | None:
    """Where the machine code for these types lies, compiled or taken from disk; None if unknown."""
    with no_garbage():
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


# ---- vectors: `engine.loop.vectors` says what they do

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


class Operations(NamedTuple):
    """What can be done with eight numbers, beside `+`, `-`, `*` and `/`."""

    eight: Callable[[Any, int], Any]
    put: Callable[[Any, int, Any], None]
    spread: Callable[[float], Any]
    same: Callable[[Any, int], Any]
    least: Callable[[Any, Any], Any]
    most: Callable[[Any, Any], Any]
    equal: Callable[[Any, Any], Any]
    product: Callable[[Any, Any], Any]
    add_product: Callable[[Any, Any, Any], Any]
    add_at: Callable[[Any, int, float], Any]
    ask: Callable[[Any, int], None]


class Eight(types.Type):
    """The type of eight numbers; it lives in registers, not in Python."""

    def __init__(self) -> None:
        super().__init__(name="Eight")


EIGHT = Eight()


@register_model(Eight)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Eight) -> None:
        super().__init__(manager, kind, VECTOR)


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [at])


@intrinsic
def _eight(_: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], *args)
        return builder.load(builder.bitcast(place, VECTOR.as_pointer()), align=8)

    return EIGHT(array, types.intp), generate


@intrinsic
def _put(_: Any, array: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(place, VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, EIGHT), generate


def _spread_out(builder: Any, number: Any, kind: Any = VECTOR) -> Any:
    unset = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(unset, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, unset, FIRST)


@intrinsic
def _spread(_: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread_out(builder, args[0])

    return EIGHT(types.float64), generate


@intrinsic
def _same(_: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread_out(builder, builder.load(_place(context, builder, array, *args)))

    return EIGHT(array, types.intp), generate


def _define(symbol: Callable[..., Any], instruction: str) -> None:
    """Let an operator work on two vectors."""

    @intrinsic
    def apply(_: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args, flags=("contract",))

        return EIGHT(EIGHT, EIGHT), generate

    @overload(symbol, strict=False)
    def choose(a: object, b: object) -> Any:
        both = isinstance(a, Eight) and isinstance(b, Eight)
        return (lambda a, b: apply(a, b)) if both else None  # noqa: PLW0108  (Numba wants code)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


def _compare(comparison: str, take: Callable[[Any, Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function of two vectors that takes something where the comparison holds."""

    @intrinsic
    def choose(_: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return take(builder, builder.fcmp_ordered(comparison, *args), *args)

        return EIGHT(EIGHT, EIGHT), generate

    return choose


_least, _most = (_compare(sign, lambda on, so, a, b: on.select(so, a, b)) for sign in ("<", ">"))
_equal = _compare("==", lambda on, so, a, b: on.uitofp(so, VECTOR))


@intrinsic
def _product(_: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return EIGHT(EIGHT, EIGHT), generate


@intrinsic
def _add_product(_: Any, total: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], builder.fmul(*args[1:]))

    return EIGHT(EIGHT, EIGHT, EIGHT), generate


@intrinsic
def _add_at(_: Any, total: Any, at: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = ir.VectorType(ir.IntType(64), LANES)
        every = _spread_out(builder, args[1], numbers)
        here = builder.icmp_signed("==", every, ir.Constant(numbers, list(range(LANES))))
        nothing = ir.Constant(VECTOR, [0.0] * LANES)
        return builder.fadd(args[0], builder.select(here, _spread_out(builder, args[2]), nothing))

    return EIGHT(EIGHT, types.intp, types.float64), generate


@intrinsic
def _ask(_: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(_place(context, builder, signature.args[0], *args), byte)
        builder.call(prefetch, [place, *(ir.Constant(number, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


IN_REGISTERS = Operations(
    _eight, _put, _spread, _same, _least, _most, _equal, _product, _add_product, _add_at, _ask
)
