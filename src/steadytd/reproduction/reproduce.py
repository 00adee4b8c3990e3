"""The paper's figures and its supplement, run at full size, with a table of two verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed, whole
from steadytd.base.outside.progress import Progress, shown
from steadytd.base.parallel import single_threaded
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.reproduction.paper import FIGURES, RUNS, Figure
from steadytd.reproduction.spread import RUNS as MANY
from steadytd.reproduction.spread import spreads
from steadytd.reproduction.supplement import PANELS
from steadytd.reproduction.verdict import Row, Theory, judge, predict
from steadytd.runs.ahead import compile_beside
from steadytd.runs.result import Result
from steadytd.runs.run import run

if TYPE_CHECKING:
    import polars as pl

POINTS = 1001  # recording points of a curve: every thousandth of the run

Ready = Callable[["Reproduction"], None]


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
            f"theory; {sum(bool(row.agrees_paper) for row in said)} of the {len(said)} that the "
            "paper says something about agree with the paper."
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
    ready: Ready | None = None,
) -> Reproduction:
    """Run the learners of the chosen figures (all, and the supplement, by default) and judge.

    `ready` is given what is known of each problem as soon as it is, while others still run.
    """
    check_request(figures, runs, seed)
    seeds = range(int(seed), int(seed) + int(runs))
    return reproduce_figures(choose(figures, supplement), seeds, progress, ready=ready)


def reproduce_figures(
    chosen: list[Figure],
    seeds: range,
    progress: Progress | None = None,
    many: int = MANY,
    ready: Ready | None = None,
) -> Reproduction:
    """Run and judge figures, one run per problem: every learner is a lane of the same streams.

    `many` runs say what the runs of a learner with infinite variance look like.
    """
    tasks = [
        _Task(name, make_problem(name), some, _learners(some))
        for name in dict.fromkeys(f.problem for f in chosen)
        if (some := [f for f in chosen if f.problem == name])
    ]
    cold = compile_beside([learner for task in tasks for learner in task.learners])
    with shown(progress, "running") as report, _Pools(report) as pools:
        parts = dict(_parts(tasks, seeds, many, cold, pools, ready))
    return _joined(chosen, [parts[task.name] for task in tasks])


def _parts(
    tasks: list[_Task], seeds: range, many: int, cold: bool, pools: _Pools, ready: Ready | None
) -> Iterator[tuple[str, Reproduction]]:
    """What is known of each problem, the shortest first: it loads the loops for all."""
    order = sorted(tasks, key=lambda task: task.steps)
    results = [pools.running.submit(_run, task, seeds, pools.count(task.name)) for task in order]
    if not cold:  # nothing may keep the long runs from their start; compiling takes longer
        results[0].result()
    theories = [pools.beside.submit(_predict_all, task) for task in order]
    for task, result, theory in zip(order, results, theories, strict=True):
        found = result.result()
        count = pools.count(f"many of {task.name}")
        wide = spreads(task.problem, task.learners, task.steps, len(seeds), many, count)
        known = {text: one.seen(wide.get(text)) for text, one in theory.result().items()}
        rows = [judge(f, claim, found, known) for f in task.figures for claim in f.claims]
        part = Reproduction(task.figures, {task.name: found}, {task.name: known}, rows, seeds[0])
        if ready is not None:
            ready(part)
        yield task.name, part


def _joined(chosen: list[Figure], parts: list[Reproduction]) -> Reproduction:
    """The parts as one, in the order of the figures."""
    return Reproduction(
        chosen,
        {name: result for part in parts for name, result in part.results.items()},
        {name: theory for part in parts for name, theory in part.theories.items()},
        [row for f in chosen for part in parts for row in part.rows if row.name == f.name],
        parts[0].seed,
    )


class _Pools:
    """A thread for runs and one for theory; in case of an error or interrupt both stop soon."""

    def __init__(self, report: Progress | None) -> None:
        self.report, self.lock, self.stopped = report, Lock(), False
        self.counts: dict[str, tuple[int, int]] = {}
        self.running, self.beside = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def __enter__(self) -> _Pools:
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped = error[0] is not None
        for pool in (self.running, self.beside):
            pool.shutdown(cancel_futures=True)

    def count(self, what: str) -> Progress:
        """A progress function for one run: all of them together are reported."""

        def report(now: int, total: int) -> None:
            if self.stopped:
                raise InterruptedError
            with self.lock:
                self.counts[what] = now, total
                if self.report is not None:
                    self.report(*map(sum, zip(*self.counts.values(), strict=True)))

        return report


class _Task(NamedTuple):
    """What is run on a problem."""

    name: str
    problem: Problem
    figures: list[Figure]
    learners: list[Learner]

    @property
    def steps(self) -> int:
        """Of each run."""
        return self.figures[0].steps


def _learners(figures: list[Figure]) -> list[Learner]:
    return list(dict.fromkeys(make_learner(c.learner) for f in figures for c in f.claims))


def _run(task: _Task, seeds: range, count: Progress) -> Result:
    return run(
        task.problem, task.learners, steps=task.steps, seeds=seeds, points=POINTS, progress=count
    )


@single_threaded  # the other processor is busy with loops
def _predict_all(task: _Task) -> dict[str, Theory]:
    return {str(learner): predict(task.problem, learner, task.steps) for learner in task.learners}
