"""The loop of a law as a WebAssembly module, from the text that the engine compiles."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.random import GOLDEN, S11, mix
from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.law import Law
from steadytd.engine.step.old import Loop
from steadytd.engine.step.program import lane_params, law_functions
from steadytd.lab.assembler import Routine, Type, module
from steadytd.lab.compiler import Compiler
from steadytd.lab.expressions import Array, Known
from steadytd.lab.functions import Scope, definition

BUCKETS = 64  # of [0, 1): where the search for a transition begins
INTS, FLOATS = Array("i32"), Array("f64")
TABLES: dict[str, Array | Type] = {
    "carry": FLOATS, "event": INTS, "factor": FLOATS, "row": INTS, "row_next": INTS,
    "facts": Array("f64", len(STEP_FACTS)), "first": INTS, "length": INTS, "offset": INTS,
    "feature": INTS, "value": FLOATS, "first_step": "i32", "begin": "i32", "end": "i32",
}  # fmt: skip


class LawModule(NamedTuple):
    """The binary, and the arguments of `advance` in order: arrays by address, lane numbers."""

    binary: bytes
    arguments: tuple[str, ...]


def law_module(law: Law, traced: bool, averaged: bool = False) -> LawModule:
    """One lane of the law's loop: `advance` as the engine has it, with `lanes` = 1."""
    loop = Loop(law, traced, averaged)
    source = loop.module("in the browser", shown=0)
    tree = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef))
    numbers = {f"_{p}" for p in lane_params(law)}
    memory = {f"_{m}" for m in law.memory}
    known: dict[str, Any] = {"features": "i32", "lanes": 1}
    scratch = set(loop.scratch())
    for name in loop.arrays():
        if name in numbers:
            known[name] = "f64"
        elif name not in scratch or name in memory:
            known[name] = FLOATS
    known |= TABLES
    compiled = _compiled("advance", tree.body, known, {"np": np, **law_functions(law)})
    return LawModule(module([compiled]), tuple(compiled.arguments))


def walk(
    key: np.uint64, step: int, state: int, guide: Any, cumulative: Any, row_next: Any, events: Any,
    count: int,
) -> int:  # fmt: skip
    """Transitions of `count` steps from `step` on, as docs/streams.md says; the last state."""
    for i in range(count):
        u = float(mix(key + (np.uint64(step + i + 1) + np.uint64(1)) * GOLDEN) >> S11) * 2.0**-53
        e = guide[state * BUCKETS + int(u * BUCKETS)]
        while u >= cumulative[e]:
            e += 1
        events[i] = e
        state = row_next[e]
    return state


def stream_module() -> bytes:
    """`walk`: the random stream of a finite problem."""
    known: dict[str, Any] = {
        "key": "i64", "step": "i32", "state": "i32", "guide": INTS,
        "cumulative": FLOATS, "row_next": INTS, "events": INTS, "count": "i32",
    }  # fmt: skip
    names = {"np": np, "mix": mix, "GOLDEN": GOLDEN, "S11": S11, "BUCKETS": BUCKETS}
    return module([_compiled("walk", definition(walk).statements, known, names)])


def _compiled(
    name: str, statements: list[ast.stmt], known: Known, names: dict[str, Any]
) -> Routine:
    compiler = Compiler(name, known)
    compiler.body(statements, Scope(name, names))
    return compiler.routine
