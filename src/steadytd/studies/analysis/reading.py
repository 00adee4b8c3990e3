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
from typing import TYPE_CHECKING

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.runs.outcome import FAR
from steadytd.studies.analysis.speed import Reach, reaches
from steadytd.studies.analysis.tables import (
    SOLVED,
    Best,
    Mean,
    Paired,
    at_the_edge,
    axes_of,
    compare,
    mean_of,
    ranking,
)
from steadytd.studies.analysis.theory import Prediction, instances, predict
from steadytd.studies.blocks import updates
from steadytd.studies.results import StudyResults, outcomes
from steadytd.studies.spec import Task
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


def read_study(directory: str | Path) -> Reading:
    """Read the results of a study, finished or not."""
    import polars as pl

    place = Path(directory)
    if not place.is_dir():
        raise InputError(
            f"there is no directory '{place}'; name the one that `steadytd study` wrote."
        )
    results = StudyResults(place)
    _require_blocks(results)
    rows = results.rows("grid")
    fresh = results.rows("confirm") if results.stage == "confirm" else None
    chapters = []
    for i, task in enumerate(results.spec.tasks):
        own = rows.filter(pl.col("problem") == task.label)
        if len(own):
            again = None if fresh is None else fresh.filter(pl.col("problem") == task.label)
            learners = [learner for t, learner in results.best if t == i]
            chapters.append(_chapter(results, task, own, again, learners))
    return Reading(results, chapters)


def _require_blocks(results: StudyResults) -> None:
    """Say why there is nothing to report."""
    if results.finished:
        return
    files = list((results.directory / "grid").glob("*.parquet"))
    if files:
        raise InputError(
            f"'{results.directory}' holds {len(files)} result files, but none belongs to this "
            "study as this version of steadytd would run it: the study file, a problem, a learner "
            "or the engine has changed since. Run `steadytd study` again."
        )
    raise InputError(
        f"'{results.directory}' has no finished block yet; run `steadytd study` to its end, or at "
        "least until the first block is done."
    )


def _chapter(
    results: StudyResults,
    task: Task,
    rows: pl.DataFrame,
    fresh: pl.DataFrame | None,
    learners: Sequence[Learner],
) -> Chapter:
    import polars as pl

    confirm = results.spec.file.confirm
    column = f"{confirm.by}_{confirm.measure}"
    error = pl.when(pl.col("diverged").is_null()).then(pl.col(column)).otherwise(float("inf"))
    means = rows.group_by("run", maintain_order=True).agg(
        error.mean().alias("error"),
        (pl.col(column).std() / pl.len().sqrt()).alias("stderr"),
        pl.col("diverged").is_not_null().mean().alias("diverged_share"),
        pl.len().alias("seeds"),
    )
    settings = results.settings.filter(pl.col("problem") == task.label)
    settings = settings.select(
        name for name in settings.columns if settings[name].null_count() < len(settings)
    )
    configurations = settings.join(means, on="run", how="inner")
    points = results.points(task.label)
    first_run = str(configurations["run"][0])
    start = float(results.curves(task.label, first_run, confirm.measure)[1][:, 0].mean())
    again, seeds_again = Counter([] if fresh is None else fresh["run"]), results.spec.fresh_seeds
    whole = bool(again) and all(again[str(x)] == seeds_again for x in learners)
    stage = "confirm" if whole else "grid"  # with a part of the rerun, some learners would miss
    source = rows if stage == "grid" or fresh is None else fresh
    errors: Errors = {}
    best: list[Best] = []
    curves: dict[str, Floats] = {}
    for learner in learners:
        run = str(learner)
        own = source.filter(pl.col("run") == run).sort("seed")
        if not len(own):
            continue
        errors[learner.name] = dict(zip(own["seed"], own[column], strict=True))
        grid = settings.filter(pl.col("algorithm") == learner.name)
        best.append(
            Best(
                algorithm=learner.name,
                run=run,
                params={k: learner[k] for k in axes_of(grid) if k in learner.values},
                grid=_mean(rows.filter(pl.col("run") == run), column),
                measured=_mean(own, column),
                final=_mean(own, f"final_{confirm.measure}"),
                fresh=stage == "confirm",
                edges=at_the_edge(axes_of(grid), learner.values),
                outcomes=tuple(outcomes(results, task.label, run, stage)),
                **_counts(configurations.filter(pl.col("algorithm") == learner.name), start),
            )
        )
        curves[learner.name] = results.curves(task.label, run, confirm.measure, stage)[1]
    best.sort(key=lambda b: (b.measured.value, b.measured.diverged, b.grid.value))
    theory: dict[str, Prediction | None] = {}
    seeds = sorted({seed for own_errors in errors.values() for seed in own_errors})
    problems = instances(task, seeds)
    same = _same(problems, [x for x in learners if x.name in errors], errors)
    if confirm.measure == "value":
        theory = {x.name: predict(problems, x, task.steps) for x in learners if x.name in errors}
    names = dict.fromkeys(str(name) for name in configurations["algorithm"])
    failed = [name for name in names if name not in errors]
    far = _far(rows, f"final_{confirm.measure}", start)
    return Chapter(
        task, configurations, start, best, failed, errors, points, curves, theory, same, far
    )


def _far(rows: pl.DataFrame, final: str, start: float) -> int:
    import polars as pl

    ends = rows.group_by("run").agg(
        pl.col("diverged").is_null().all().alias("finite"), pl.col(final).max().alias("last")
    )
    return len(ends.filter(pl.col("finite") & (pl.col("last") > FAR * start)))


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
    a, b = (np.array([errors[seed] for seed in sorted(errors)]) for errors in (one, other))
    return one.keys() == other.keys() and np.allclose(a, b, rtol=1e-6, atol=0.0)


def _mean(rows: pl.DataFrame, column: str) -> Mean:
    return mean_of(np.asarray(rows[column].to_numpy(), dtype=np.float64))


def _counts(configurations: pl.DataFrame, start: float) -> dict[str, int]:
    return {
        "configurations": len(configurations),
        "never_diverged": int((configurations["diverged_share"] == 0.0).sum()),
        "useful": int((configurations["error"] < start).sum()),
    }
