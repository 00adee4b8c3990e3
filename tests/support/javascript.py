"""The lab's engine in V8 (mini-racer), for tests."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from py_mini_racer import MiniRacer

from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.engine.step.targets import javascript
from steadytd.lab.page import WORKER, asset, form_of
from steadytd.mdp.problem import Problem
from steadytd.runs.measures import goal
from steadytd.streams.finite import FiniteStream

BUCKETS = 64  # of [0, 1): where the page's search for a transition begins
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SHOWN = "const shown = (x) => Number.isFinite(x) ? x : String(x);"
RUN = """(() => {
  const bench = new Bench(tables);
  const ones = learners.map((one) => bench.add(one));
  bench.begin(seed);
  const errors = [];
  bench.run(points[points.length - 1], points,
            () => errors.push(ones.map((one) => shown(bench.error(one)))));
  return { errors, weights: ones.map((one) => bench.weights(one).map(shown)) };
})()"""


def problem_tables(problem: Problem) -> dict[str, Any]:
    """What `tablesOf` of the page makes of a problem, from the engine's own stream."""
    stream = FiniteStream(problem)
    row, row_next, facts = stream.transitions[0]
    lows = np.arange(BUCKETS) / BUCKETS
    pairs = zip(stream.first[:-1], stream.first[1:], strict=True)
    guide = [a + np.searchsorted(stream.cumulative[a:b], lows, side="right") for a, b in pairs]
    aim = goal(problem, 0)
    arrays = {
        "guide": np.concatenate(guide), "cumulative": stream.cumulative,
        "next_state": stream.row_next, "row": row, "row_next": row_next, "facts": facts.ravel(),
        "start": stream.start, **sparse_rows(problem.table)._asdict(), "w0": problem.w0,
        "weight": aim.weight, "target": aim.target,
    }  # fmt: skip
    numbers = {name: array.tolist() for name, array in arrays.items()}
    return {"n_states": problem.n_states, "n_features": problem.n_features, **numbers}


def spec(learner: Learner) -> str:
    """A learner as an expression that `Bench.add` takes."""
    form, loop = form_of(learner.law, learner.traced, learner.averaged)
    params = {n: float(v) for n, v in learner.values.items() if not isinstance(v, str)}
    known = json.dumps({**form, "params": params})
    return f"{{ ...{known}, advance: {javascript.script([loop])}[0] }}"


class Browser:
    """One V8, used for many runs."""

    def __init__(self) -> None:
        self.v8 = MiniRacer()
        self.v8.eval("\n".join([*map(asset, WORKER), SHOWN]))

    def expected(
        self, problem: Problem, learner: Learner, points: list[int]
    ) -> dict[str, list[float]] | None:
        """The page's exact error of the mean weights, and its root mean square error."""
        code = f"expectation(tables, {spec(learner)}, points)"
        tables = problem_tables(problem)
        found: dict[str, list[float]] | None = self.value(code, tables=tables, points=points)
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
        listed = ",".join(map(spec, learners))
        code = f"(() => {{ const learners = [{listed}]; return {RUN}; }})()"
        found = self.value(code, tables=problem_tables(problem), seed=seed, points=points)
        return tuple(  # type: ignore[return-value]
            [[NUMBERS[x] if isinstance(x, str) else float(x) for x in row] for row in found[name]]
            for name in ("weights", "errors")
        )
