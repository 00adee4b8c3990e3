"""From plain Python functions to WebAssembly: the engine's loop, and the functions of a law.

What is translated is the text that the engine compiles, line by line and in its order; nothing is
rearranged. The subset is what those texts use: arithmetic, comparisons, `if`, `while`, loops over
`range`, entries of arrays, and calls of other plain functions, which are put in place of the call.
Whatever else a law of your own does is refused with its place.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import struct
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.errors import InputError
from steadytd.lab import assembler as wasm
from steadytd.lab.assembler import Routine, Type

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.BitXor: "^",
    ast.RShift: ">>",
}  # fmt: skip
COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
ORDER: tuple[Type, ...] = ("i32", "i64", "f64")  # of two types the later one counts


class Array(NamedTuple):
    """An array in memory: the type of its entries, and how many entries a row has."""

    entry: Type
    row: int = 1


Known = Mapping[str, Array | Type | int | Callable[..., Any]]


class Scope(NamedTuple):
    """What names mean in a function: its globals, and where its return leads to."""

    name: str
    outer: Mapping[str, Any]
    prefix: str = ""
    results: tuple[str, ...] = ()
    depth: int = 0


class Compiler:
    """Translates one function. `known` says what the arguments are, and which names are numbers."""

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

    # statements

    def body(self, statements: list[ast.stmt], scope: Scope) -> None:
        """Translate statements in order."""
        for one in statements:
            self.statement(one, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        """Translate one statement."""
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name("features"), ast.Name("lanes")])]):
                pass  # what the two are is known
            case ast.Assign(targets=[target]):
                self.assign(target, node.value, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, value, scope)
            case ast.AugAssign(target=target, op=op):
                read = ast.parse(ast.unparse(target), mode="eval").body
                self.assign(target, ast.BinOp(read, op, node.value), scope)
            case ast.If():
                self.choice(node, scope)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name("range"))):
                self.count(name, node, scope)
            case ast.While():
                self.repeat(lambda: self.truth(node.test, scope), node.body, scope)
            case ast.Return() if node.value is not None:
                self.results(node.value, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case _:
                raise refused(node, scope)

    def assign(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        """One name, one entry of an array, or several names at a time."""
        match target:
            case ast.Name(id=name):
                wanted = self.locals.get(scope.prefix + name, (0, None))[1]
                kind = wanted or self.type(value, scope)
                self.value(value, kind, scope)
                self.put(scope.prefix + name, kind)
            case ast.Subscript(value=ast.Name(id=name)):
                array = self.address(name, target.slice, scope)
                self.value(value, array.entry, scope)
                instruction, align = wasm.STORE[array.entry]
                self.emit(instruction, align, 0)
            case ast.Tuple():
                names = flat(target)
                if isinstance(value, ast.Call):
                    found = self.inline(value, scope)
                else:
                    found = self.kept(flat(value), scope)
                for name, result in zip(names, found, strict=True):
                    assert isinstance(name, ast.Name)
                    self.put(scope.prefix + name.id, self.get(result))
            case _:
                raise refused(target, scope)

    def kept(self, values: list[ast.expr], scope: Scope) -> list[str]:
        """Values in locals of their own."""
        self.calls += 1
        names = [f"{self.calls}:kept{i}" for i in range(len(values))]
        for name, value in zip(names, values, strict=True):
            kind = self.type(value, scope)
            self.value(value, kind, scope)
            self.put(name, kind)
        return names

    def choice(self, node: ast.If, scope: Scope) -> None:
        """An if; where the test is known beforehand, only the part that counts."""
        known = self.constant(node.test, scope)
        if known is not None:
            self.body(node.body if known else node.orelse, scope)
            return
        self.truth(node.test, scope)
        self.open(wasm.IF)
        self.body(node.body, scope)
        if node.orelse:
            self.emit(wasm.ELSE)
            self.body(node.orelse, scope)
        self.close()

    def count(self, name: str, node: ast.For, scope: Scope) -> None:
        """A loop over a range; over the one lane it is no loop."""
        assert isinstance(node.iter, ast.Call)
        limits = node.iter.args
        begin, end = (ast.Constant(0), limits[0]) if len(limits) == 1 else limits[:2]
        step = limits[2] if len(limits) == 3 else ast.Constant(1)
        if (self.constant(begin, scope), self.constant(end, scope)) == (0, 1):
            self.known[name] = 0
            self.body(node.body, scope)
            return
        name = scope.prefix + name
        last = f"{name}:last{self.depth}"
        self.value(end, "i32", scope)
        self.put(last, "i32")
        self.value(begin, "i32", scope)
        self.put(name, "i32")

        def more() -> None:
            self.get(name)
            self.get(last)
            self.emit(wasm.OPERATIONS["<", "i32"])

        def forward() -> None:
            self.get(name)
            self.value(step, "i32", scope)
            self.emit(wasm.OPERATIONS["+", "i32"])
            self.put(name, "i32")

        self.repeat(more, node.body, scope, forward)

    def repeat(
        self,
        test: Callable[[], None],
        statements: list[ast.stmt],
        scope: Scope,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Statements, as long as the test leaves something else than 0."""
        self.open(wasm.BLOCK)
        self.open(wasm.LOOP)
        test()
        self.emit(wasm.OPERATIONS["not", "i32"], wasm.BR_IF, 1)
        self.body(statements, scope)
        if after is not None:
            after()
        self.emit(wasm.BR, 0)
        self.close()
        self.close()

    # calls

    def inline(self, call: ast.Call, scope: Scope) -> list[str]:
        """Put a function's body in place of its call; the locals that hold what it returns."""
        function = self.function(call, scope)
        tree = definition(function)
        self.calls += 1
        prefix = f"{self.calls}:{tree.name}:"
        for argument, value in zip(tree.arguments, call.args, strict=True):
            kind = self.type(value, scope)
            self.value(value, kind, scope)
            self.put(prefix + argument, kind)
        number = len(flat(tree.returned))
        results = tuple(f"{prefix}result{i}" for i in range(number))
        self.open(wasm.BLOCK)
        outer = {**function.__globals__, **closed(function)}
        inner = Scope(tree.name, outer, prefix, results, self.depth)
        self.body(tree.statements, inner)
        self.close()
        return list(results)

    def results(self, value: ast.expr, scope: Scope) -> None:
        """A return: keep the values and leave the function's block."""
        if not scope.results:
            kind = self.type(value, scope)
            self.value(value, kind, scope)
            self.routine.returns = (kind,)
            return
        if isinstance(value, ast.Call) and len(scope.results) > 1:
            found = self.inline(value, scope)
            for name, result in zip(scope.results, found, strict=True):
                self.put(name, self.get(result))
        else:
            for name, one in zip(scope.results, flat(value), strict=True):
                kind = self.type(one, scope)
                self.value(one, kind, scope)
                self.put(name, kind)
        self.emit(wasm.BR, *wasm.unsigned(self.depth - scope.depth))

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
        match node:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp():
                return "i32"
            case ast.UnaryOp(op=ast.Not()):
                return "i32"
            case ast.Constant(value=float()):
                return "f64"
            case ast.Constant(value=int()):
                return "i32"
            case ast.Name() | ast.Attribute():
                return self.named(node, scope)[1]
            case ast.Subscript(value=ast.Name(id=name)):
                array = self.known.get(name)
                return array.entry if isinstance(array, Array) else "f64"
            case ast.BinOp(op=ast.Div()):
                return "f64"
            case ast.BinOp(left=left, right=right):
                return max(self.type(left, scope), self.type(right, scope), key=ORDER.index)
            case ast.UnaryOp(operand=operand):
                return self.type(operand, scope)
            case ast.IfExp(body=one, orelse=other):
                return max(self.type(one, scope), self.type(other, scope), key=ORDER.index)
            case ast.Call():
                return self.type_of_call(node, scope)
        raise refused(node, scope)

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
        if isinstance(value, np.uint64):
            return int(value), "i64"
        if isinstance(value, bool | int | float | np.number):
            return value, "i32" if isinstance(value, int) else "f64"  # type: ignore[return-value]
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
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                kind = self.type(ast.BinOp(left, ast.Add(), right), scope)
                self.value(left, kind, scope)
                self.value(right, kind, scope)
                self.emit(wasm.OPERATIONS[COMPARED[type(op)], kind])
                kind = "i32"
            case ast.BoolOp(op=op, values=values):
                kind = "i32"
                for i, part in enumerate(values):
                    self.truth(part, scope)
                    if i:
                        both = "and" if isinstance(op, ast.And) else "or"
                        self.emit(wasm.OPERATIONS[both, "i32"])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                kind = self.type(node, scope)
                self.truth(test, scope)
                self.emit(wasm.IF, wasm.CODE[kind])
                self.value(body, kind, scope)
                self.emit(wasm.ELSE)
                self.value(orelse, kind, scope)
                self.emit(wasm.END)
            case ast.Call():
                kind = self.call(node, scope)
            case _:
                raise refused(node, scope)
        self.convert(kind, wanted)

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


BUILTINS: dict[str, tuple[Any, ...]] = {
    "min": (min,), "max": (max,), "abs": (abs, np.abs, math.fabs), "int": (int,),
    "float": (float, np.float64), "sqrt": (math.sqrt, np.sqrt), "uintp": (np.uintp, np.int64),
    "uint64": (np.uint64,), "isnan": (math.isnan, np.isnan),
}  # fmt: skip


class Definition(NamedTuple):
    """A plain function: its name, arguments, statements, and what it returns."""

    name: str
    arguments: list[str]
    statements: list[ast.stmt]
    returned: ast.expr


def definition(function: Any) -> Definition:
    """The text of a function. Names that stand for tuples are written out where they are used."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise InputError(
            f"the text of {function.__name__} cannot be read, so it cannot be translated for the "
            "browser; put the law into a file."
        ) from error
    tree = _parsed(source, function)
    if isinstance(tree, ast.Lambda):
        statements: list[ast.stmt] = [ast.Return(tree.body)]
    else:
        statements = list(tree.body)
    arguments = [a.arg for a in tree.args.args]
    statements = _without_tuples(statements)
    found = next((n for s in statements for n in ast.walk(s) if isinstance(n, ast.Return)), None)
    if found is None or found.value is None:
        raise InputError(f"{function.__name__} returns nothing; a law's functions return numbers.")
    return Definition(function.__name__, arguments, statements, found.value)


def _parsed(source: str, function: Any) -> ast.FunctionDef | ast.Lambda:
    """The tree of a function or of the lambda with its arguments."""
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = ast.parse("(" + source.strip().rstrip(",") + ")")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef if function.__name__ != "<lambda>" else ast.Lambda):
            if tuple(a.arg for a in node.args.args) == wanted:  # type: ignore[attr-defined]
                return node  # type: ignore[return-value]
    raise InputError(f"the text of {function.__name__} cannot be found for the browser.")


class _Tuples(ast.NodeTransformer):
    """Writes tuples that have a name in place of that name."""

    def __init__(self, known: Mapping[str, ast.Tuple]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        """A name."""
        return self.known.get(node.id, node)


def _without_tuples(statements: list[ast.stmt]) -> list[ast.stmt]:
    """`w = a, b` is left out, and `return w, h` reads `return (a, b), h`.

    Only where the tuple's parts are not changed in between, as nothing is in a law.
    """
    named: dict[str, ast.Tuple] = {}
    found = []
    for one in statements:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as value):
                named[name] = value
            case ast.Return():
                found.append(_Tuples(named).visit(one))
            case _:
                found.append(one)
    return found


def closed(function: Any) -> dict[str, Any]:
    """What a function has closed over."""
    cells = function.__closure__ or ()
    return dict(zip(function.__code__.co_freevars, (c.cell_contents for c in cells), strict=True))


def flat(node: ast.expr) -> list[ast.expr]:
    """The parts of nested tuples, in order."""
    return [p for e in node.elts for p in flat(e)] if isinstance(node, ast.Tuple) else [node]


def refused(node: ast.AST, scope: Scope) -> InputError:
    """What cannot be translated, and where."""
    return InputError(
        f"{scope.name}: '{ast.unparse(node)}' cannot be translated for the browser; use "
        "arithmetic, comparisons, if, min, max, abs and sqrt of numbers."
    )
