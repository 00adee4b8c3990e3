"""The paper's four figures, run at full size, with a table "paper, theory, measured"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed, whole
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.reproduction.paper import FIGURES, RUNS, Figure
from steadytd.reproduction.verdict import Row, Theory, judge, predict
from steadytd.runs.result import Result
from steadytd.runs.run import run

if TYPE_CHECKING:
    import polars as pl

POINTS = 1001  # recording points of a curve: every thousandth of the run

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Reproduction:
    """The figures' runs, one per problem, and the table."""

    figures: list[Figure]
    results: dict[str, Result]
    rows: list[Row]
    seed: int

    @property
    def curves(self) -> pl.DataFrame:
        """All curves: problem, learner, seed, step, error."""
        import polars as pl

        return pl.concat(
            result.curves.select(pl.lit(name).alias("problem"), pl.all())
            for name, result in self.results.items()
        )


def check_request(figures: Sequence[int], runs: int, seed: int) -> None:
    """Say what is wrong with a request before anything is run or written."""
    for number in figures:
        if number not in {f.number for f in FIGURES}:
            raise InputError(f"the paper has figures 1 to {len(FIGURES)}, got {number}.")
    whole("runs", runs, 1)
    one_seed(seed)


def reproduce(
    figures: Sequence[int] = (), runs: int = RUNS, seed: int = 0, progress: Progress | None = None
) -> Reproduction:
    """Run the learners of the chosen figures (all by default) and judge what came out."""
    check_request(figures, runs, seed)
    first, last = int(seed), int(seed) + int(runs)
    chosen = [f for f in FIGURES if not figures or f.number in figures]
    results: dict[str, Result] = {}
    theories: dict[str, Future[dict[str, Theory]]] = {}
    with ThreadPoolExecutor(1) as beside:  # theory is worked out while the next problem runs
        for name in dict.fromkeys(f.problem for f in chosen):
            some = [f for f in chosen if f.problem == name]
            problem, steps = make_problem(name), some[0].steps
            results[name] = result = run(
                problem,
                list(dict.fromkeys(c.learner for f in some for c in f.claims)),
                steps=steps,
                seeds=range(first, last),
                points=POINTS,
                progress=partial(progress, name) if progress else None,
            )
            theories[name] = beside.submit(_predict_all, problem, result.learners, steps)
        known = {name: future.result() for name, future in theories.items()}
    rows = [
        judge(figure, claim, results[figure.problem], known[figure.problem])
        for figure in chosen
        for claim in figure.claims
    ]
    return Reproduction(chosen, results, rows, first)


def _predict_all(problem: Problem, learners: list[Learner], steps: int) -> dict[str, Theory]:
    return {str(learner): predict(problem, learner, steps) for learner in learners}
