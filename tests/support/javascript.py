"""The lab's engine in V8 (mini-racer), for tests."""

from __future__ import annotations

import json
import math
from typing import Any

from py_mini_racer import MiniRacer

from steadytd.engine.learner import Learner
from steadytd.lab.module import stream_module
from steadytd.lab.page import WORKER, asset
from steadytd.lab.tables import learner_spec, problem_tables
from steadytd.mdp.problem import Problem

BYTES = """
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function bytes(text) {
  const found = [];
  let bits = 0, word = 0;
  for (const letter of text) {
    if (letter === "=") break;
    word = (word << 6) | LETTERS.indexOf(letter);
    bits += 6;
    if (bits >= 8) { bits -= 8; found.push((word >> bits) & 255); }
    word &= (1 << bits) - 1;
  }
  return new WebAssembly.Module(new Uint8Array(found));
}
const shown = (x) => Number.isFinite(x) ? x : String(x);
"""
RUN = """
(() => {{
  const doc = {document};
  const bench = new Bench(doc.tables, new WebAssembly.Module(new Uint8Array(doc.stream)));
  const ones = doc.learners.map((l) => bench.add({{ ...l, module: bytes(l.binary) }}));
  bench.begin(doc.seed);
  const errors = [];
  bench.run(doc.points[doc.points.length - 1], doc.points,
            () => errors.push(ones.map((one) => shown(bench.error(one)))));
  return JSON.stringify({{ errors, weights: ones.map((one) => bench.weights(one).map(shown)) }});
}})()
"""


class Browser:
    """One V8, used for many runs."""

    def __init__(self) -> None:
        self.v8 = MiniRacer()
        texts = [asset(name) for name in WORKER]
        self.v8.eval(BYTES + "\n".join(texts))

    def expected(self, problem: Problem, learner: Learner, points: list[int]) -> list[float] | None:
        """The page's exact error of the mean weights."""
        code = """expectation(tables, new WebAssembly.Module(new Uint8Array(stream)),
            { ...spec, module: bytes(spec.binary) }, points)"""
        found: list[float] | None = self.value(
            code, tables=problem_tables(problem), stream=list(stream_module()),
            spec=learner_spec(learner), points=points,
        )  # fmt: skip
        return found

    def value(self, code: str, **given: Any) -> Any:
        """What an expression is worth, with some constants given as JSON."""
        names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
        return json.loads(
            str(self.v8.eval(f"(() => {{ {names} return JSON.stringify({code}); }})()"))
        )

    def run(
        self, problem: Problem, learners: list[Learner], seed: int, points: list[int]
    ) -> tuple[list[list[float]], list[list[float]]]:
        """Weights of each learner at the end, and errors [points, learners]."""
        document = json.dumps(
            {
                "tables": problem_tables(problem),
                "stream": list(stream_module()),
                "learners": [learner_spec(one) for one in learners],
                "seed": seed,
                "points": points,
            }
        )
        found: Any = json.loads(str(self.v8.eval(RUN.format(document=document))))
        number = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        return tuple(  # type: ignore[return-value]
            [[number[x] if isinstance(x, str) else float(x) for x in row] for row in found[name]]
            for name in ("weights", "errors")
        )
