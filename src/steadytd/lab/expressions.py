"""From expressions to WebAssembly: arithmetic, comparisons, entries of arrays, calls."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from steadytd.lab import assembler as wasm
from steadytd.lab.assembler import Routine, Type
from steadytd.lab.functions import Scope, flat, refused

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.BitXor: "^",
    ast.RShift: ">>",
}  # fmt: skip
COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
ORDER: tuple[Type, ...] = ("i32", "i64", "f64")  # of two types the later one counts


BUILTINS: dict[str, tuple[Any, ...]] = {
    "min": (min,), "max": (max,), "abs": (abs, np.abs, math.fabs), "int": (int,),
    "float": (float, np.float64), "sqrt": (math.sqrt, np.sqrt), "uintp": (np.uintp, np.int64),
    "uint64": (np.uint64,), "isnan": (math.isnan, np.isnan),
}  # fmt: skip


class Array(NamedTuple):
    """An array in memory: the type of its entries, and how many entries a row has."""

    entry: Type
    row: int = 1


Known = Mapping[str, Array | Type | int | Callable[..., Any]]


class Expressions(ABC):
    """Translates the expressions of one function.

    `known` says what the arguments are, and which names are numbers.
    """

    def __init__(self, name: str, known: Known) -> None:
        self.known = dict(known)
        given: dict[str, Type] = {
            n: "i32" if isinstance(k, Array) else k
            for n, k in known.items()
            if isinstance(k, Array | str)
        }
        self.routine = Routine(name, given)
        self.locals: dict[str, tuple[int, Type]] = {
            n: (i, t) for i, (n, t) in enumerate(given.items())
        }
        self.depth = self.calls = 0

    # instructions

    def emit(self, *code: int) -> None:
        """Write bytes."""
        self.routine.code.extend(code)

    def get(self, name: str) -> Type:
        """Put a local on the stack."""
        i, kind = self.locals[name]
        self.emit(wasm.GET, *wasm.unsigned(i))
        return kind

    def put(self, name: str, kind: Type) -> None:
        """Take the top of the stack, of type `kind`, into a local."""
        if name not in self.locals:
            number = len(self.routine.arguments) + len(self.routine.inner)
            self.locals[name] = (number, kind)
            self.routine.inner.append(kind)
        i, wanted = self.locals[name]
        self.convert(kind, wanted)
        self.emit(wasm.SET, *wasm.unsigned(i))

    def convert(self, kind: Type, wanted: Type) -> None:
        """Turn the top of the stack into another type."""
        if kind != wanted:
            self.emit(wasm.CONVERT[kind, wanted])

    def number(self, value: float, kind: Type) -> None:
        """Put a constant on the stack."""
        if kind == "f64":
            self.emit(0x44, *struct.pack("<d", float(value)))
        elif kind == "i32":
            self.emit(0x41, *wasm.signed(int(value)))
        else:
            word = int(value)
            self.emit(0x42, *wasm.signed(word - 2**64 if word >= 2**63 else word))

    def open(self, instruction: int) -> None:
        """Begin a block, a loop or an if."""
        self.emit(instruction, wasm.NOTHING)
        self.depth += 1

    def close(self) -> None:
        """End it."""
        self.emit(wasm.END)
        self.depth -= 1

    @abstractmethod
    def inline(self, call: ast.Call, scope: Scope) -> list[str]:
        """Put a function's body in place of its call; see `Compiler`."""

    def function(self, call: ast.Call, scope: Scope) -> Any:
        """The plain Python function that is called."""
        if not isinstance(call.func, ast.Name) or call.keywords:
            raise refused(call, scope)
        found = self.known.get(call.func.id) if not scope.prefix else None
        found = found or scope.outer.get(call.func.id)
        if not inspect.isfunction(getattr(found, "py_func", found)):
            raise refused(call, scope)
        return getattr(found, "py_func", found)

    # expressions

    def type(self, node: ast.expr, scope: Scope) -> Type:
        """The type of an expression."""
        several: list[ast.expr] = []
        found: Type = "f64"
        match node:
            case ast.Constant(value=float()) | ast.BinOp(op=ast.Div()):
                pass
            case ast.Constant(value=int()) | ast.Compare() | ast.BoolOp():
                found = "i32"
            case ast.UnaryOp(op=ast.Not()):
                found = "i32"
            case ast.Name() | ast.Attribute():
                found = self.named(node, scope)[1]
            case ast.Subscript(value=ast.Name(id=name)):
                array = self.known.get(name)
                found = array.entry if isinstance(array, Array) else "f64"
            case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
                several = [one, other]
            case ast.UnaryOp(operand=operand):
                several = [operand]
            case ast.Call():
                found = self.type_of_call(node, scope)
            case _:
                raise refused(node, scope)
        return (
            max((self.type(one, scope) for one in several), key=ORDER.index) if several else found
        )

    def type_of_call(self, node: ast.Call, scope: Scope) -> Type:
        """That of a call: what the function computes with is a number, unless it is one of ours."""
        match self.builtin(node, scope):
            case "int" | "uintp" | "isnan" | "isfinite":
                return "i32"
            case "uint64":
                return "i64"
            case "float" | "sqrt":
                return "f64"
            case "min" | "max" | "abs":
                return max((self.type(a, scope) for a in node.args), key=ORDER.index)
        kinds = [self.type(a, scope) for a in node.args]
        return "i64" if kinds and all(k == "i64" for k in kinds) else "f64"

    def builtin(self, node: ast.Call, scope: Scope) -> str:
        """The name of a function that has an instruction of its own; "" for others."""
        match node.func:
            case ast.Name(id=name):
                found = scope.outer.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=ast.Name(id=owner), attr=attr):
                found = getattr(scope.outer.get(owner), attr, None)
            case _:
                return ""
        return next((n for n, f in BUILTINS.items() if found in f), "")

    def named(self, node: ast.expr, scope: Scope) -> tuple[float | str, Type]:
        """What a name stands for: a local, or a number known beforehand."""
        if isinstance(node, ast.Name):
            local = scope.prefix + node.id
            if local in self.locals:
                return local, self.locals[local][1]
            value = self.known.get(node.id) if not scope.prefix else None
            value = scope.outer.get(node.id) if value is None else value
        else:
            assert isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            value = getattr(scope.outer.get(node.value.id), node.attr, None)
        number: Any = value
        if isinstance(number, np.uint64):
            return int(number), "i64"
        if isinstance(number, int):
            return number, "i32"
        if isinstance(number, float | np.floating):
            return float(number), "f64"
        raise refused(node, scope)

    def constant(self, node: ast.expr, scope: Scope) -> float | None:
        """The value of what is known beforehand, None for all else."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name) if not scope.prefix and isinstance(self.known.get(name), int):
                return self.known[name]  # type: ignore[return-value]
            case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
                one, other = self.constant(left, scope), self.constant(right, scope)
                return None if one is None or other is None else one < other
        return None

    def truth(self, node: ast.expr, scope: Scope) -> None:
        """Put 1 or 0 on the stack."""
        kind = self.type(node, scope)
        self.value(node, kind, scope)
        if kind == "f64":
            self.number(0.0, "f64")
            self.emit(wasm.OPERATIONS["!=", "f64"])

    def value(self, node: ast.expr, wanted: Type, scope: Scope) -> None:
        """Put an expression's value on the stack, as the type that is wanted."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                self.number(value, wanted)
                return
            case ast.Name() | ast.Attribute():
                what, kind = self.named(node, scope)
                if not isinstance(what, str):
                    self.number(what, wanted)
                    return
                self.get(what)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.locals:
                if isinstance(self.known.get(name), Array):
                    kind = self.address(name, node.slice, scope).entry
                    instruction, align = wasm.LOAD[kind]
                    self.emit(instruction, align, 0)
                else:  # a number of the lane
                    kind = self.get(name)
            case ast.BinOp(left=left, op=op, right=right):
                kind = self.binary(left, op, right, scope)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                self.number(-value, wanted)
                return
            case ast.UnaryOp(op=op, operand=operand):
                kind = self.unary(op, operand, node, scope)
            case ast.Compare() | ast.BoolOp() | ast.IfExp():
                kind = self.logic(node, scope)
            case ast.Call():
                kind = self.call(node, scope)
            case _:
                raise refused(node, scope)
        self.convert(kind, wanted)

    def logic(self, node: ast.expr, scope: Scope) -> Type:
        """Comparisons, and, or, and one of two values."""
        kind: Type = "i32"
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                both = self.type(ast.BinOp(left, ast.Add(), right), scope)
                self.value(left, both, scope)
                self.value(right, both, scope)
                self.emit(wasm.OPERATIONS[COMPARED[type(op)], both])
            case ast.BoolOp(op=op, values=values):
                joined = "and" if isinstance(op, ast.And) else "or"
                for i, part in enumerate(values):
                    self.truth(part, scope)
                    if i:
                        self.emit(wasm.OPERATIONS[joined, "i32"])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                kind = self.type(node, scope)
                self.truth(test, scope)
                self.emit(wasm.IF, wasm.CODE[kind])
                self.value(body, kind, scope)
                self.emit(wasm.ELSE)
                self.value(orelse, kind, scope)
                self.emit(wasm.END)
            case _:
                raise refused(node, scope)
        return kind

    def binary(self, left: ast.expr, op: ast.operator, right: ast.expr, scope: Scope) -> Type:
        """Two numbers and what to do with them; a whole power is a product, as in the engine."""
        if isinstance(op, ast.Pow) and isinstance(right, ast.Constant) and right.value == 2:
            kind = self.type(left, scope)
            self.value(left, kind, scope)
            self.value(left, kind, scope)
            self.emit(wasm.OPERATIONS["*", kind])
            return kind
        joined = ast.BinOp(left, op, right)
        if isinstance(op, ast.Pow) and {type(left), type(right)} <= {ast.Constant, ast.UnaryOp}:
            self.number(ast.literal_eval(left) ** ast.literal_eval(right), "f64")
            return "f64"
        if type(op) not in BINARY:
            raise refused(joined, scope)
        kind = self.type(joined, scope)
        if (BINARY[type(op)], kind) not in wasm.OPERATIONS:
            raise refused(joined, scope)
        self.value(left, kind, scope)
        self.value(right, kind, scope)
        self.emit(wasm.OPERATIONS[BINARY[type(op)], kind])
        return kind

    def unary(self, op: ast.unaryop, operand: ast.expr, node: ast.expr, scope: Scope) -> Type:
        """The sign, or not."""
        if isinstance(op, ast.Not):
            self.truth(operand, scope)
            self.emit(wasm.OPERATIONS["not", "i32"])
            return "i32"
        if not isinstance(op, ast.USub):
            raise refused(node, scope)
        kind = self.type(operand, scope)
        if kind == "f64":
            self.value(operand, kind, scope)
            self.emit(wasm.OPERATIONS["neg", "f64"])
        else:
            self.number(0, kind)
            self.value(operand, kind, scope)
            self.emit(wasm.OPERATIONS["-", kind])
        return kind

    def call(self, node: ast.Call, scope: Scope) -> Type:
        """A call: an instruction, or the function's body in its place."""
        name = self.builtin(node, scope)
        kind = self.type_of_call(node, scope)
        match name:
            case "":
                (result,) = self.inline(node, scope)
                return self.get(result)
            case "int" | "uintp" | "float" | "uint64":
                own = self.type(node.args[0], scope)
                self.value(node.args[0], own, scope)
                self.convert(own, kind)
            case "abs" | "sqrt":
                self.value(node.args[0], "f64", scope)
                self.emit(wasm.OPERATIONS[name, "f64"])
                return "f64"
            case "isnan":
                for _ in range(2):
                    self.value(node.args[0], "f64", scope)
                self.emit(wasm.OPERATIONS["!=", "f64"])
            case "min" | "max":
                self.extreme(node, name, kind, scope)
        return kind

    def kept(self, values: list[ast.expr], scope: Scope) -> list[str]:
        """Values in locals of their own."""
        self.calls += 1
        names = [f"{self.calls}:kept{i}" for i in range(len(values))]
        for name, value in zip(names, values, strict=True):
            kind = self.type(value, scope)
            self.value(value, kind, scope)
            self.put(name, kind)
        return names

    def extreme(self, node: ast.Call, name: str, kind: Type, scope: Scope) -> None:
        """min and max as Numba has them: the second only if it is truly smaller or larger."""
        if len(node.args) != 2:
            raise refused(node, scope)
        one, other = self.kept(list(node.args), scope)
        self.get(other)
        self.get(one)
        self.get(other)
        self.get(one)
        self.emit(wasm.OPERATIONS["<" if name == "min" else ">", kind], wasm.SELECT)

    def address(self, name: str, index: ast.expr, scope: Scope) -> Array:
        """Put the address of an entry on the stack."""
        array = self.known.get(name)
        if not isinstance(array, Array) or scope.prefix:
            raise refused(ast.Subscript(ast.Name(name), index), scope)
        parts = flat(index) if isinstance(index, ast.Tuple) else [index]
        self.get(name)
        self.value(parts[0], "i32", scope)
        if array.row != 1:
            self.number(array.row, "i32")
            self.emit(wasm.OPERATIONS["*", "i32"])
        if len(parts) > 1 and self.constant(parts[1], scope) != 0:
            self.value(parts[1], "i32", scope)
            self.emit(wasm.OPERATIONS["+", "i32"])
        self.number(wasm.SIZE[array.entry], "i32")
        self.emit(wasm.OPERATIONS["*", "i32"], wasm.OPERATIONS["+", "i32"])
        return array
