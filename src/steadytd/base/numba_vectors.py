"""Eight numbers as one value in a register; `evaluation.collect.vectors` says what they can do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from steadytd.base.arrays import LANES

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


IN_REGISTERS = Operations(
    _eight, _put, _spread, _same, _least, _most, _equal, _product, _add_product
)
