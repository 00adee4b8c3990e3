"""The paper's four figures, run at full size, with a table "paper, theory, measured" and a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steadytd.core.errors import InputError
from steadytd.core.files import output_directory, write_whole
from steadytd.core.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.report.figures import Curve, learning_curves, save_figure
from steadytd.report.pages import page
from steadytd.report.paper import FIGURES, RUNS, Figure
from steadytd.report.verdict import (
    PAPER_TOLERANCE,
    STANDARD_ERRORS,
    ZERO,
    Row,
    Theory,
    judge,
    predict,
)
from steadytd.study.result import Result
from steadytd.study.run import run
from steadytd.theory.dynamics import best_error

if TYPE_CHECKING:
    import polars as pl

POINTS = 1001  # recording points of a curve: every thousandth of the run
LOWEST = 1e-14  # the lower end of a logarithmic axis: rounding errors of the weights lie below

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
    if runs < 1:
        raise InputError(f"runs must be a whole number >= 1, got {runs}; the paper has {RUNS}.")
    if seed < 0:
        raise InputError(f"seed must be a whole number >= 0, got {seed}.")


def reproduce(
    figures: Sequence[int] = (), runs: int = RUNS, seed: int = 0, progress: Progress | None = None
) -> Reproduction:
    """Run the learners of the chosen figures (all by default) and judge what came out."""
    check_request(figures, runs, seed)
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
                seeds=range(seed, seed + runs),
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
    return Reproduction(chosen, results, rows, seed)


def _predict_all(problem: Problem, learners: list[Learner], steps: int) -> dict[str, Theory]:
    return {str(learner): predict(problem, learner, steps) for learner in learners}


def write_reproduction(done: Reproduction, out: str | Path) -> Path:
    """Write figures (SVG, PNG, PDF), curves and table (Parquet) and `report.html`; return that."""
    import polars as pl

    directory = output_directory(out)
    write_whole(directory / "curves.parquet", done.curves.write_parquet)
    table = pl.DataFrame([row.to_dict() for row in done.rows], infer_schema_length=None)
    write_whole(directory / "table.parquet", table.write_parquet)
    shown = []
    for figure in done.figures:
        svg = save_figure(figure_chart(figure, done), directory, f"figure_{figure.number}")
        rows = [row for row in done.rows if row.figure == figure.number]
        shown.append({"number": figure.number, "title": figure.title, "svg": svg, "rows": rows})
    runs = done.rows[0].runs
    html = page(
        "reproduce.html",
        figures=shown,
        rows=done.rows,
        differing=[row for row in done.rows if not row.agrees],
        runs=runs,
        standard_errors=f"{STANDARD_ERRORS:g}",
        zero=f"{ZERO:g}",
        paper_tolerance=f"{PAPER_TOLERANCE:.0%}",
        command=f"steadytd reproduce --runs {runs} --seed {done.seed}",
    )
    return write_whole(directory / "report.html", html)


def figure_chart(figure: Figure, done: Reproduction) -> object:
    """One figure of the paper."""
    result = done.results[figure.problem]
    texts = [str(x) for x in result.learners]
    curves = [
        Curve(c.label, result.errors[texts.index(str(make_learner(c.learner)))])
        for c in figure.claims
    ]
    unstable = [row for row in done.rows if row.figure == figure.number and not row.stable]
    finite = np.concatenate([c.errors[np.isfinite(c.errors)] for c in curves])
    best = best_error(result.task)
    high = 2.0 * float(finite.max())
    low = max(LOWEST, min(float(finite.min()), best if best > ZERO else np.inf))
    low /= (high / low) ** 0.05  # room below the lowest curve
    runs = f"mean and range of {len(result.seeds)} runs"
    return learning_curves(
        f"Figure {figure.number}: {figure.title}",
        runs if best > ZERO else f"{runs}; the best possible error is 0",
        result.steps,
        curves,
        log=bool(unstable),
        best=best if best > ZERO else None,
        domain=(low, high) if unstable else None,
    )
