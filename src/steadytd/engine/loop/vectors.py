"""Eight numbers as one, for compiled loops: what the processor does in one or two instructions.

Numba turns a loop over eight lanes into checks and jumps that take longer than the arithmetic.
Inside a compiled function, `eight(a, i)` is a[i], ..., a[i + 7] of a flat array, `same(a, i)` eight
times a[i], `spread(x)` eight times x; `+`, `-`, `*`, `/`, `least`, `most` and `equal` (1 or 0) work
number by number, and `put(a, i, v)` writes them back. A product may be fused with the sum that
takes it. The arrays must be contiguous and nothing checks their bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


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
    return builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())


@intrinsic
def eight(_: Any, array: Any, at: Any) -> Any:
    """Eight consecutive numbers of a flat array, from place `at` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1])
        return builder.load(place, align=8)

    return EIGHT(array, types.intp), generate


@intrinsic
def put(_: Any, array: Any, at: Any, value: Any) -> Any:
    """Write eight numbers into a flat array, from place `at` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, EIGHT), generate


def _spread(builder: Any, number: Any) -> Any:
    unknown = ir.Constant(VECTOR, ir.Undefined)
    one = builder.insert_element(unknown, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, unknown, FIRST)


@intrinsic
def spread(_: Any, x: Any) -> Any:
    """Eight times the same number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return EIGHT(types.float64), generate


@intrinsic
def same(_: Any, array: Any, at: Any) -> Any:
    """Eight times the number at place `at` of a flat array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _spread(builder, builder.load(builder.gep(data, [args[1]])))

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


def _choice(comparison: str) -> Callable[[Any, Any], Any]:
    """A function that takes, number by number, a where the comparison holds, else b."""

    @intrinsic
    def choose(_: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(comparison, *args), *args)

        return EIGHT(EIGHT, EIGHT), generate

    found: Callable[[Any, Any], Any] = choose
    return found


least, most = _choice("<"), _choice(">")


@intrinsic
def equal(_: Any, a: Any, b: Any) -> Any:
    """1 where two vectors are equal, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.uitofp(builder.fcmp_ordered("==", *args), VECTOR)

    return EIGHT(EIGHT, EIGHT), generate
