"""Statements and a law's own functions as JavaScript.

JavaScript's numbers are IEEE doubles, and every operation is rounded by itself. So the statements
of a loop and the arithmetic of a law, in the order in which Numba gets them, give the same bits.
What a browser may round in its own way (exp, log, powers but 2) is refused, with its place.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, reduce
from importlib.resources import files
from types import FunctionType
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.step.statements import Bind, For, If, Statement

SCRIPT = """(() => {{
"use strict";
{kernels}
return [
{loops}
];
}})()"""
LOOP = """(() => {{
{functions}
  return function advance(own, tables, first_step, begin, end) {{
    const {{ {arrays}, carry }} = own;
    const {{ features, event, factor, row, row_next, facts }} = tables;
    const {{ first, length, offset, feature, value }} = tables;
{body}
  }};
}})()"""
TAKEN = """abs arguments case catch const debugger default delete do enum eval export extends false
    function implements index instanceof int Infinity interface let Math max min mod NaN new null
    Number package private protected public row_dot square static super switch this throw true
    typeof undefined var void""".split()  # by JavaScript or kernels.js # noqa: SIM905
CALLED: dict[Callable[..., Any], str] = {
    abs: "abs", np.abs: "abs", math.fabs: "abs", math.sqrt: "Math.sqrt", np.sqrt: "Math.sqrt",
    int: "int", np.int64: "int", float: "Number", np.float64: "Number",
    math.isnan: "Number.isNaN", np.isnan: "Number.isNaN",
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Eq: "==", ast.NotEq: "!=",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
parsed = cache(ast.parse)  # a file has several functions
PLAIN = ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Tuple  # needs no brackets


def script(loops: Iterable[str]) -> str:
    """An expression for the list of some loops."""
    kernels = (files(__package__) / "kernels.js").read_text(encoding="utf-8")
    return SCRIPT.format(kernels=kernels, loops=",\n".join(loops))


def loop(arrays: Iterable[str], functions: Mapping[str, Any], statements: list[Statement]) -> str:
    """An expression for a function that takes steps: it changes the arrays of `own`."""
    return LOOP.format(
        functions="\n".join(_indented(translated(functions))),
        arrays=", ".join(arrays),
        body="\n".join(_indented(_lines(statements), 2)),
    )


# ---- Statements


def _lines(statements: Iterable[Statement]) -> Iterator[str]:
    for one in statements:
        match one:
            case For(i, begin, end, body):
                yield from _block(f"for (let {i} = {begin}; {i} < {end}; {i}++)", _lines(body))
            case If(condition, body, otherwise):
                yield from _choice(condition, _lines(body), _lines(otherwise))
            case Bind(names, value):
                yield f"var {_pattern(names[0] if len(names) == 1 else names)} = {value};"
            case _:
                yield f"{one};"


def _pattern(names: Any) -> str:
    return names if isinstance(names, str) else f"[{', '.join(map(_pattern, names))}]"


def _indented(lines: Iterable[str], by: int = 1) -> Iterator[str]:
    return ("  " * by + line for line in lines)


def _block(head: str, body: Iterable[str]) -> Iterator[str]:
    yield from (f"{head} {{", *_indented(body), "}")


def _choice(condition: str, body: Iterable[str], otherwise: Iterable[str]) -> Iterator[str]:
    rest = list(otherwise)
    yield from (f"if ({condition}) {{", *_indented(body))
    yield from ("} else {", *_indented(rest), "}") if rest else ("}",)


# ---- The law's functions


def translated(functions: Mapping[str, Any]) -> list[str]:
    """Functions as JavaScript under these names, after those that they call, each once."""
    found: list[str] = []
    helpers: dict[Any, str] = {}

    def helper(function: Any) -> str:
        if function not in helpers:
            name = helpers[function] = f"{function.__name__.strip('<>')}${len(helpers)}"
            found.extend(_Function(function, helper).lines(name))
        return helpers[function]

    for name, function in functions.items():
        found.extend(_Function(getattr(function, "py_func", function), helper).lines(name))
    return found


def _tree(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """A function as it stands in its file, known by its name, its arguments and its first line."""
    code = function.__code__
    try:
        text = "".join(inspect.findsource(function)[0])
    except OSError:
        text = ""
    found = [
        node for node in ast.walk(parsed(text))
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and getattr(node, "name", "<lambda>") == function.__name__
        and tuple(a.arg for a in node.args.args) == code.co_varnames[: code.co_argcount]
        and min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))
        == code.co_firstlineno
    ]  # fmt: skip
    if len(found) != 1:
        raise InputError(
            f"the text of {function.__name__} cannot be found, so it cannot be translated for the "
            "browser; put it into a file, in a line of its own."
        )
    return found[0]


class _Function:
    """Translates one function: its statements to lines, its expressions to text."""

    def __init__(self, function: FunctionType, helper: Callable[[Any], str]) -> None:
        self.name, self.code, self.helper = function.__name__, function.__code__, helper
        self.tree = _tree(function)
        seen = inspect.getclosurevars(function)
        self.outer = {**seen.builtins, **seen.globals, **seen.nonlocals}

    def lines(self, name: str) -> Iterator[str]:
        """The whole function."""
        body = self.tree.body if isinstance(self.tree.body, list) else [ast.Return(self.tree.body)]
        if not any(isinstance(n, ast.Return) and n.value for s in body for n in ast.walk(s)):
            raise InputError(f"{self.name} returns nothing; a law's functions return numbers.")
        given = map(_free, self.code.co_varnames[: self.code.co_argcount])
        return _block(f"function {name}({', '.join(given)})", self.statements(body))

    def refused(self, node: ast.AST) -> InputError:
        """What cannot be translated, and where."""
        place = ast.unparse(node).partition("\n")[0]
        return InputError(
            f"{self.name}: '{place}' cannot be translated for the browser; use arithmetic, "
            "comparisons, if, min, max, abs and sqrt of numbers."
        )

    def statements(self, nodes: Iterable[ast.stmt]) -> Iterator[str]:
        """Statements in order."""
        for node in nodes:
            match node:
                case (
                    ast.Assign(targets=[target], value=value)
                    | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    yield f"var {self.target(target)} = {self.value(value)};"
                case ast.AugAssign(target=target, op=op, value=value):
                    yield f"{self.target(target)} = {self.value(ast.BinOp(target, op, value))};"
                case ast.If(test=test, body=body, orelse=other):
                    both = self.statements(body), self.statements(other)
                    yield from _choice(self.truth(test), *both)
                case ast.While(test=test, body=body, orelse=[]):
                    yield from _block(f"while ({self.truth(test)})", self.statements(body))
                case ast.For(target=i, body=body, orelse=[]):
                    copy = f"var {self.target(i)} = i$;"
                    yield from _block(self.count(node.iter), [copy, *self.statements(body)])
                case ast.Return(value=ast.expr() as value):
                    yield f"return {self.value(value)};"
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise self.refused(node)

    def target(self, node: ast.expr) -> str:
        """What is assigned to: a name, or several."""
        match node:
            case ast.Name(id=name):
                return _free(name)
            case ast.Tuple(elts=parts):
                return f"[{', '.join(map(self.target, parts))}]"
        raise self.refused(node)

    def count(self, node: ast.expr) -> str:
        """The head of a loop over a range."""
        if not isinstance(node, ast.Call) or self.known(node.func) is not range or node.keywords:
            raise self.refused(node)
        given = list(map(self.value, node.args))
        begin, end, by = ("0", *given, "1") if len(given) == 1 else (*given, "1")[:3]
        more = "by$ > 0 ? i$ < end$ : i$ > end$"
        return f"for (let i$ = {begin}, end$ = {end}, by$ = {by}; {more}; i$ += by$)"

    def known(self, node: ast.expr) -> Any:
        """What is known beforehand: a number, a function, a module; else None."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name not in self.code.co_varnames:
                return self.outer.get(name)
            case ast.Attribute(value=owner, attr=attr):
                return getattr(self.known(owner), attr, None)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                with suppress(ValueError):  # other than written numbers
                    return ast.literal_eval(left) ** ast.literal_eval(right)
        return None

    def truth(self, node: ast.expr) -> str:
        """A condition. Python takes nan for true."""
        match node:
            case ast.BoolOp(op=op, values=values):
                joined = " && " if isinstance(op, ast.And) else " || "
                return joined.join(f"({self.truth(one)})" for one in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!({self.truth(operand)})"
            case ast.Compare():
                return self.value(node)
        return f"{self.operand(node)} != 0"

    def operand(self, node: ast.expr) -> str:
        """An expression as a part of another one."""
        text = self.value(node)
        return text if isinstance(node, PLAIN) and text[0] != "-" else f"({text})"

    def value(self, node: ast.expr) -> str:  # noqa: PLR0911
        """An expression. A square is a product, as for Numba; `and`, `or` have Python's value."""
        match node:
            case ast.Name(id=name) if name in self.code.co_varnames:
                return _free(name)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
                return f"square({self.value(left)})"
            case ast.Constant() | ast.Name() | ast.Attribute() | ast.BinOp(op=ast.Pow()):
                return self.number(node)
            case ast.Tuple(elts=parts):
                return f"[{', '.join(map(self.value, parts))}]"
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return f"mod({self.value(left)}, {self.value(right)})"
            case (
                ast.BinOp(left=left, op=op, right=right)
                | ast.Compare(left=left, ops=[op], comparators=[right])
            ) if type(op) in SIGNS:
                return f"{self.operand(left)} {SIGNS[type(op)]} {self.operand(right)}"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.operand(operand)}"
            case ast.UnaryOp(op=ast.Not()):
                return self.truth(node)
            case ast.BoolOp(op=op, values=[first, *rest]):
                other = ast.BoolOp(op, rest) if len(rest) > 1 else rest[0]
                one, other = (other, first) if isinstance(op, ast.And) else (first, other)
                return self.value(ast.IfExp(first, one, other))
            case ast.IfExp(test=test, body=one, orelse=other):
                return f"{self.truth(test)} ? {self.operand(one)} : {self.operand(other)}"
            case ast.Call(func=function, args=args, keywords=[]):
                return self.call(node, self.known(function), list(map(self.value, args)))
        raise self.refused(node)

    def number(self, node: ast.expr) -> str:
        """A number that is known."""
        number = self.known(node)
        if not isinstance(number, int | float | np.number):
            raise self.refused(node)
        return repr(float(number)).replace("inf", "Infinity").replace("nan", "NaN")

    def call(self, node: ast.Call, function: Any, given: list[str]) -> str:
        """A call: of what JavaScript has, or of another plain function."""
        function = getattr(function, "py_func", function)
        if function in (min, max) and len(given) > 1:
            return reduce(lambda a, b: f"{function.__name__}({a}, {b})", given)
        if callable(function) and function in CALLED and len(given) == 1:
            return f"{CALLED[function]}({given[0]})"
        if inspect.isfunction(function) and function.__code__.co_argcount == len(given):
            return f"{self.helper(function)}({', '.join(given)})"
        raise self.refused(node)


def _free(name: str) -> str:
    """A name as JavaScript can have it; Python's have no $."""
    return f"{name}$" if name in TAKEN else name
