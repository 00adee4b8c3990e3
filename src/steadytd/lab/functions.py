"""The text of plain Python functions, as trees that `compiler` translates."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from steadytd.base.errors import InputError


class Scope(NamedTuple):
    """What names mean in a function: its globals, and where its return leads to."""

    name: str
    outer: Mapping[str, Any]
    prefix: str = ""
    results: tuple[str, ...] = ()
    depth: int = 0


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
        if (
            isinstance(node, ast.FunctionDef | ast.Lambda)
            and isinstance(node, ast.Lambda) == (function.__name__ == "<lambda>")
            and tuple(a.arg for a in node.args.args) == wanted
        ):
            return node
    raise InputError(f"the text of {function.__name__} cannot be found for the browser.")


class _Tuples(ast.NodeTransformer):
    """Writes tuples that have a name in place of that name."""

    def __init__(self, known: Mapping[str, ast.Tuple]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
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
