"""From plain Python functions to WebAssembly: the engine's loop, and the functions of a law.

What is translated is the text that the engine compiles, line by line and in its order; nothing is
rearranged. The subset is what those texts use: arithmetic, comparisons, `if`, `while`, loops over
`range`, entries of arrays, and calls of other plain functions, which are put in place of the call.
Whatever else a law of your own does is refused with its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from steadytd.lab import assembler as wasm
from steadytd.lab.expressions import Expressions
from steadytd.lab.functions import Scope, closed, definition, flat, refused


class Compiler(Expressions):
    """Translates the statements of one function."""

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
                for one, result in zip(names, found, strict=True):
                    assert isinstance(one, ast.Name)
                    self.put(scope.prefix + one.id, self.get(result))
            case _:
                raise refused(target, scope)

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
