"""From a study's result directory to the numbers that its report shows, problem by problem.

Only the curves of the best configurations are held in memory, so large studies can be read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.base.numbers import count
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.runs.outcome import FAR
from steadytd.studies.analysis.tables import (
    NUMBERS,
    SOLVED,
    Best,
    Paired,
    Reach,
    at_the_edge,
    axes_of,
    compare,
    mean_of,
    ranking,
    reaches,
    tally,
)
from steadytd.studies.blocks import updates
from steadytd.studies.results import StudyResults, outcomes
from steadytd.studies.spec import Task
from steadytd.theory.dynamics import fixed_point, is_stable, mean_weights
from steadytd.theory.same import same_update

if TYPE_CHECKING:
    import polars as pl

Errors = dict[str, dict[int, float]]  # by algorithm, then seed


@dataclass(frozen=True, eq=False)
class Chapter:
    """What a study found on one problem. `best` is in order, the least error first.

    `configurations` has one row per finished configuration: its settings, `error` (the study's
    criterion, infinite if a seed overflowed), `stderr`, `diverged_share` (of seeds that overflowed)
    and `seeds`. `start` is the error at w0. `failed` are the algorithms with an overflowed seed in
    every configuration. `same` are the pairs of algorithms that are the same update here, at their
    best settings. `far` counts the configurations in which no seed overflowed but some ended far
    above the error at w0.
    """

    task: Task
    configurations: pl.DataFrame
    start: float
    best: list[Best]
    failed: list[str]
    errors: Errors
    points: Longs
    curves: dict[str, Floats] = field(default_factory=dict)
    theory: dict[str, Prediction | None] = field(default_factory=dict)
    same: frozenset[frozenset[str]] = frozenset()
    far: int = 0

    @property
    def label(self) -> str:
        """The problem's name in the study."""
        return self.task.label

    @property
    def fresh(self) -> bool:
        """Whether the best configurations were rerun on fresh seeds."""
        return bool(self.best) and all(b.fresh for b in self.best)

    @cached_property
    def pairs(self) -> dict[tuple[str, str], Paired]:
        """Every learner beside every other, adjusted for the number of comparisons."""
        errors = {b.algorithm: self.errors[b.algorithm] for b in self.best}
        return compare(errors, self.same, SOLVED * self.start)

    @cached_property
    def groups(self) -> list[list[str]]:
        """The ranking with ties."""
        return ranking([b.algorithm for b in self.best], self.pairs)

    @cached_property
    def reach(self) -> dict[str, list[Reach]]:
        """How soon each learner's error is below some shares of that at w0; see `reaches`."""
        return {name: reaches(self.points, curves) for name, curves in self.curves.items()}

    def against(self, reference: str) -> list[Paired]:
        """Every other learner's difference to one."""
        others = [b.algorithm for b in self.best if b.algorithm != reference]
        return [self.pairs[name, reference] for name in others]

    def of(self, algorithm: str) -> Best | None:
        """The best configuration of an algorithm."""
        return next((b for b in self.best if b.algorithm == algorithm), None)


@dataclass(frozen=True, eq=False)
class Reading:
    """A study, read: its results and one chapter per problem that has any."""

    results: StudyResults
    chapters: list[Chapter]

    @property
    def share(self) -> float:
        """How much of the grid is there, in learner-updates."""
        return self.updates / self.results.spec.updates

    @property
    def foreign(self) -> int:
        """How many result files are not of this study, as it would be run now."""
        known = {block.file for block in self.results.blocks}
        found = (self.results.directory / "grid").glob("[!.]*.parquet")
        return sum(path.name not in known for path in found)

    @property
    def updates(self) -> int:
        """The learner-updates of the finished blocks of the grid."""
        return sum(updates(self.results.spec, block) for block in self.results.finished)


def read_study(given: str | Path | StudyResults) -> Reading:
    """Read the results of a study, finished or not."""
    import polars as pl

    results = given if isinstance(given, StudyResults) else StudyResults(Path(given))
    if not results.directory.is_dir():
        raise InputError(
            f"there is no directory '{results.directory}'; name the one that `steadytd study` "
            "wrote."
        )
    results = results.again()
    if not results.finished:
        raise _nothing_to_report(results)
    rows = results.rows("grid")
    fresh = results.rows("confirm") if results.stage == "confirm" else rows.clear()
    chapters = []
    for i, task in enumerate(results.spec.tasks):
        own, again = (x.filter(pl.col("problem") == task.label) for x in (rows, fresh))
        if len(own):
            learners = [learner for t, learner in results.best if t == i]
            chapters.append(_chapter(results, task, own, again, learners))
    return Reading(results, chapters)


def _nothing_to_report(results: StudyResults) -> InputError:
    files = list((results.directory / "grid").glob("*.parquet"))
    if files:
        return InputError(
            f"'{results.directory}' holds {count(len(files), 'result file')}, but none belongs to "
            "this study as this version of steadytd would run it: the study file, a problem, a "
            "learner or the engine has changed since. Run `steadytd study` again."
        )
    return InputError(
        f"'{results.directory}' has no finished block yet; run `steadytd study` to its end, or at "
        "least until the first block is done."
    )


def _chapter(
    results: StudyResults,
    task: Task,
    rows: pl.DataFrame,
    fresh: pl.DataFrame,
    learners: Sequence[Learner],
) -> Chapter:
    """What was found on one problem: `rows` on the grid's seeds, `fresh` on fresh ones, if any."""
    import polars as pl

    label, confirm = task.label, results.spec.file.confirm
    column, final = confirm.column, f"final_{confirm.measure}"
    here, by_algorithm = pl.col("problem") == label, pl.col("algorithm")
    settings = results.settings.filter(here)
    settings = settings.select(s for s in settings if s.null_count() < len(settings))
    numbers = {column: "error", f"{column}_stderr": "stderr"}
    table = results.summary.filter(here).rename(numbers).select(*settings.columns, *NUMBERS)
    start = float(results.curves(label, table["run"][0], confirm.measure)[1][:, 0].mean())
    last = rows.filter(pl.len().over("run") == pl.col(final).is_finite().sum().over("run"))
    far = last.filter(pl.col(final) > FAR * start)["run"].n_unique()
    again = Counter(fresh["run"])
    whole = bool(again) and all(again[str(x)] == results.spec.fresh_seeds for x in learners)
    stage = "confirm" if whole else "grid"  # with a part of the rerun, some learners would miss
    errors: Errors = {}
    curves: dict[str, Floats] = {}
    best: list[Best] = []
    for learner in learners:
        name, run = learner.name, str(learner)
        on_grid = rows.filter(pl.col("run") == run).sort("seed")
        own = fresh.filter(pl.col("run") == run).sort("seed") if whole else on_grid
        errors[name] = dict(zip(own["seed"], own[column], strict=True))
        curves[name] = results.curves(label, run, confirm.measure, stage)[1]
        tried = table.filter(by_algorithm == name)
        axes = axes_of(settings.filter(by_algorithm == name))
        best.append(
            Best(
                algorithm=name,
                run=run,
                params={key: learner[key] for key in axes if key in learner.values},
                grid=mean_of(on_grid[column].to_numpy()),
                measured=mean_of(own[column].to_numpy()),
                final=mean_of(own[final].to_numpy()),
                fresh=whole,
                **tally(tried, start),
                edges=at_the_edge(axes, learner.values),
                outcomes=tuple(outcomes(results, task, learner, stage)),
            )
        )
    best.sort(key=lambda b: (b.measured.value, b.measured.diverged, b.grid.value))
    problems = instances(task, sorted({seed for by_seed in errors.values() for seed in by_seed}))
    by_value = confirm.measure == "value"
    return Chapter(
        task=task,
        configurations=table,
        start=start,
        best=best,
        failed=[x for x in table["algorithm"].unique(maintain_order=True) if x not in errors],
        errors=errors,
        points=results.points(label),
        curves=curves,
        theory={x.name: predict(problems, x, task.steps) for x in learners} if by_value else {},
        same=_same(problems, learners, errors),
        far=far,
    )


def _same(
    problems: Sequence[Problem], learners: Sequence[Learner], errors: Errors
) -> frozenset[frozenset[str]]:
    """The pairs that are the same update on all these problems; their errors are equal, too."""
    return frozenset(
        frozenset((one.name, other.name))
        for one, other in combinations(learners, 2)
        if _equal(errors[one.name], errors[other.name])
        and all(same_update(problem, one, other) for problem in problems)
    )


def _equal(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Whether two learners' errors are equal, but for rounding, on the same seeds."""
    return one.keys() == other.keys() and np.allclose(
        [one[seed] for seed in one], [other[seed] for seed in one], rtol=1e-6, atol=0.0
    )


class Prediction(NamedTuple):
    """What theory says beforehand about one configuration: its fixed point, and the way there.

    In a family every seed has its own instance; the numbers are then means over the instances of
    the seeds. `stable` is the share of instances (and target policies) whose mean update leads to
    its fixed point, `asymptote` the error of the fixed point over those, `last` the error of the
    mean dynamics after the last step over all; None where there is no closed form.
    """

    stable: float
    asymptote: float | None
    last: float | None


def instances(task: Task, seeds: Sequence[int]) -> list[Problem]:
    """The problems that the seeds run on: one for all, or one each."""
    return [task.instance(seed) for seed in seeds] if task.family else [task.problem]


def predict(problems: Sequence[Problem], learner: Learner, steps: int = 0) -> Prediction | None:
    """Fixed point and stability, and if `steps` are given the mean dynamics.

    None if the learner has no closed form here.
    """
    stable: list[bool] = []
    fixed: list[float] = []
    last: list[float] = []
    try:
        for problem, policy in ((p, k) for p in problems for k in range(p.n_policies)):
            stable.append(is_stable(problem, learner, policy))
            if stable[-1]:
                fixed.append(_error(problem, policy, fixed_point(problem, learner, policy)))
            if steps and learner.schedule[0] == 0.0 and not learner.averaged:
                with np.errstate(over="ignore", invalid="ignore"):
                    w = mean_weights(problem, learner, steps, policy)
                    last.append(_error(problem, policy, w))
    except (InputError, np.linalg.LinAlgError):
        return None
    asymptote, end = (float(np.mean(errors)) if errors else None for errors in (fixed, last))
    return Prediction(float(np.mean(stable)), asymptote, end)


def _error(problem: Problem, policy: int, w: Floats) -> float:
    difference = problem.Phi @ w - problem.moments(policy).v_pi
    error = float(np.sqrt(problem.error_weights(policy) @ difference**2))
    return error if np.isfinite(error) else float("inf")
