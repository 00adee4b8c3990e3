"""The paper's figures and its supplement, run at full size, with a table of two verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed, whole
from steadytd.base.progress import Progress, reporting
from steadytd.learners import learner as make_learner
from steadytd.problems import problem as make_problem
from steadytd.reproduction.paper import FIGURES, RUNS, Figure
from steadytd.reproduction.spread import RUNS as MANY
from steadytd.reproduction.spread import spreads
from steadytd.reproduction.supplement import PANELS
from steadytd.reproduction.verdict import Row, Theory, judge, predict
from steadytd.runs.result import Result
from steadytd.runs.run import run

if TYPE_CHECKING:
    import polars as pl

POINTS = 1001  # recording points of a curve: every thousandth of the run


@dataclass(frozen=True)
class Reproduction:
    """The figures' runs, one per problem, what theory says of each learner, and the table."""

    figures: list[Figure]
    results: dict[str, Result]
    theories: dict[str, dict[str, Theory]]
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

    @property
    def summary(self) -> str:
        """How many rows agree with theory, and how many with the paper."""
        said = [row for row in self.rows if row.agrees_paper is not None]
        return (
            f"{sum(row.agrees_theory for row in self.rows)} of {len(self.rows)} rows agree with "
            f"theory. The paper makes a statement about {len(said)} of them, and "
            f"{sum(bool(row.agrees_paper) for row in said)} agree with it."
        )


def check_request(figures: Sequence[int], runs: int, seed: int) -> None:
    """Say what is wrong with a request before anything is run or written."""
    for number in figures:
        if number not in {f.number for f in FIGURES}:
            raise InputError(f"the paper has figures 1 to {len(FIGURES)}, got {number}.")
    whole("runs", runs, 1)
    one_seed(seed)


def choose(figures: Sequence[int], supplement: bool) -> list[Figure]:
    """The figures and panels that are asked for; everything if nothing is named."""
    everything = not (figures or supplement)
    chosen = [f for f in FIGURES if everything or f.number in figures]
    return chosen + [panel for panel in PANELS if everything or supplement]


def reproduce(
    figures: Sequence[int] = (),
    runs: int = RUNS,
    seed: int = 0,
    progress: Progress | None = None,
    supplement: bool = False,
) -> Reproduction:
    """Run the learners of the chosen figures (all, and the supplement, by default) and judge."""
    check_request(figures, runs, seed)
    seeds = range(int(seed), int(seed) + int(runs))
    return reproduce_figures(choose(figures, supplement), seeds, progress)


def reproduce_figures(
    chosen: list[Figure], seeds: range, progress: Progress | None = None, many: int = MANY
) -> Reproduction:
    """Run and judge figures, one run per problem: every learner is a lane of the same streams.

    `many` runs say what the runs of a learner with infinite variance look like.
    """
    results: dict[str, Result] = {}
    theories: dict[str, dict[str, Theory]] = {}
    with reporting(progress, "running") as report:
        counter = _Counter(report)
        for name in dict.fromkeys(figure.problem for figure in chosen):
            problem = make_problem(name)
            figures = [figure for figure in chosen if figure.problem == name]
            steps = figures[0].steps
            learners = list(
                dict.fromkeys(make_learner(c.learner) for f in figures for c in f.claims)
            )
            results[name] = run(
                problem, learners, steps=steps, seeds=seeds, points=POINTS, progress=counter.part()
            )
            spread = spreads(problem, learners, steps, len(seeds), many, counter.part())
            theories[name] = {
                str(x): predict(problem, x, steps).seen(spread.get(str(x))) for x in learners
            }
    rows = [
        judge(figure, claim, results[figure.problem], theories[figure.problem])
        for figure in chosen
        for claim in figure.claims
    ]
    return Reproduction(chosen, results, theories, rows, seeds[0])


class _Counter:
    """Reports the updates of several runs as those of one."""

    def __init__(self, report: Progress | None) -> None:
        self.report = report
        self.counts: list[tuple[int, int]] = []

    def part(self) -> Progress:
        """A progress function for the next run."""
        self.counts.append((0, 0))

        def report(now: int, total: int) -> None:
            self.counts[-1] = now, total
            if self.report is not None:
                self.report(*map(sum, zip(*self.counts, strict=True)))

        return report
