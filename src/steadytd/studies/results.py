"""Reading a study's results: settings, errors, curves, and the best configuration of a learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, visible
from steadytd.base.numbers import count
from steadytd.engine.learner import Learner
from steadytd.runs.outcome import Forecast, ended, forecast, outcome, worst, zero_error
from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, confirm_blocks, grid_blocks
from steadytd.studies.spec import Spec, parse_spec

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class StudyResults(Displayable):
    """What is in a result directory, finished or not. Reads the blocks of its own study only."""

    directory: Path

    def __repr__(self) -> str:
        done = f"{len(self.finished)} of {count(len(self.blocks), 'block')}"
        return visible(f"<results of the study {self.spec.name} in '{self.directory}': {done}>")

    @classmethod
    def of(cls, directory: Path, spec: Spec, blocks: list[StudyBlock]) -> StudyResults:
        """Those of a study that is known already: a large grid takes its time to be read again."""
        found = cls(directory)
        vars(found).update(spec=replace(spec, name=directory.name), blocks=blocks)
        return found

    @cached_property
    def spec(self) -> Spec:
        """The study that the directory belongs to."""
        source = self.directory / "study.toml"
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"'{self.directory}' holds no study: there is no readable study.toml; name the "
                "directory that `steadytd study` wrote."
            ) from None
        return parse_spec(text, self.directory.name, str(source))

    @cached_property
    def blocks(self) -> list[StudyBlock]:
        """The blocks of the grid, finished or not."""
        return grid_blocks(self.spec)

    @cached_property
    def finished(self) -> list[StudyBlock]:
        """The blocks of the grid whose files are there."""
        return [block for block in self.blocks if self._path(block).exists()]

    @property
    def complete(self) -> bool:
        """Whether the whole grid is there."""
        return len(self.finished) == len(self.blocks)

    @cached_property
    def settings(self) -> pl.DataFrame:
        """One row per configuration: problem, run, algorithm and every hyper-parameter."""
        import polars as pl

        every = [(task, x) for task in self.spec.tasks for x in task.learners]
        names = dict.fromkeys(name for _, x in every for name in x.values)
        columns: dict[str, list[Any]] = {
            "problem": [task.label for task, _ in every],
            "run": [str(x) for _, x in every],
            "algorithm": [x.name for _, x in every],
            **{name: [x.values.get(name) for _, x in every] for name in names},
        }
        return pl.DataFrame(columns, strict=False)

    def points(self, problem: str) -> Longs:
        """The recording points of a problem, by its label."""
        return next(t for t in self.spec.tasks if t.label == problem).points

    def rows(self, stage: str = "grid", columns: Sequence[str] | None = None) -> pl.DataFrame:
        """One row per run and seed: problem, run, seed, diverged, auc_*, final_* (and curve_*).

        Without `columns` everything but the curves. A damaged file is named and not used.
        """
        names = list(columns) if columns else self._columns
        parts = [self._load(block).select(names) for block in self._blocks_of(stage)]
        if not parts:
            raise InputError(
                f"'{self.directory}' has no finished block of the {stage} yet; run the study."
            )
        return _frame(parts)

    def _blocks_of(self, stage: str) -> list[StudyBlock]:
        return self.finished if stage == "grid" else self._confirmed

    @property
    def _columns(self) -> list[str]:
        """Of a run and seed, all but the curves."""
        kinds = [f"{what}_{m}" for m in self.spec.measures for what in ("auc", "final")]
        return ["problem", "run", "seed", "diverged", *kinds]

    def _of_run(self, problem: str, run: str, stage: str) -> Iterator[Any]:
        """The rows of one run, a table for each block that has some."""
        import pyarrow.compute as pc

        for block in self._blocks_of(stage):
            if block.label == problem and run in map(str, block.learners):
                rows = self._load(block)
                yield rows.filter(pc.equal(rows["run"], run))

    def curves(
        self, problem: str, run: str, measure: str = "value", stage: str = "grid"
    ) -> tuple[list[int], Floats]:
        """The seeds of a run and its errors [seeds, points]."""
        seeds: list[int] = []
        found: list[Floats] = []
        for rows in self._of_run(problem, run, stage):
            seeds += rows["seed"].to_pylist()
            values = rows[f"curve_{measure}"].combine_chunks().flatten().to_numpy()
            found.append(values.reshape(rows.num_rows, -1).astype(np.float64))
        if not found:
            raise InputError(f"there is no finished run '{run}' on {problem} in the {stage}.")
        return seeds, np.concatenate(found)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row per configuration: settings, mean errors with standard errors, diverged share.

        A configuration of which a seed diverged has infinite mean errors.
        """
        return self._summarised(self.rows())

    def _summarised(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.settings.join(
            self._means(rows), on=["problem", "run"], how="inner", maintain_order="left"
        )

    def _means(self, rows: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        kinds = self._columns[4:]
        return rows.group_by(["problem", "run"], maintain_order=True).agg(
            pl.len().alias("seeds"),
            pl.col("diverged").is_not_null().mean().alias("diverged_share"),
            *(pl.col(kind).mean() for kind in kinds),
            *((pl.col(k).std() / pl.len().sqrt()).alias(f"{k}_stderr") for k in kinds),
        )

    def means_of(self, problem: str, run: str) -> dict[str, Any] | None:
        """The row of one configuration, of its `stage`; no other is read. None: it has not run."""
        parts = [rows.select(self._columns) for rows in self._of_run(problem, run, self.stage)]
        return self._means(_frame(parts)).row(0, named=True) if parts else None

    @property
    def stage(self) -> str:
        """Where the best configurations are compared: on fresh seeds, if they have run on some."""
        return "confirm" if self._confirmed else "grid"

    @cached_property
    def best(self) -> list[tuple[int, Learner]]:
        """The best configuration of every algorithm on every problem; see `choose_best`."""
        return choose_best(self)

    @cached_property
    def _confirmed(self) -> list[StudyBlock]:
        if not self.complete:
            return []
        blocks = confirm_blocks(self.spec, self.best)
        return [block for block in blocks if self._path(block).exists()]

    @cached_property
    def confirmation(self) -> pl.DataFrame | None:
        """The best configurations on fresh seeds, as `summary`; None while there are none."""
        return self._summarised(self.rows("confirm")) if self._confirmed else None

    def _path(self, block: StudyBlock) -> Path:
        return self.directory / block.stage / block.file

    def _load(self, block: StudyBlock) -> Any:
        try:
            return dataset.load(self._path(block), block)
        except InputError as error:
            raise InputError(
                f"{error}; run `steadytd study` again, it computes what is damaged."
            ) from None


def _frame(parts: Sequence[pa.Table]) -> pl.DataFrame:
    import polars as pl
    import pyarrow as pa

    return pl.DataFrame(pl.from_arrow(pa.concat_tables(parts).replace_schema_metadata(None)))


def choose_best(results: StudyResults) -> list[tuple[int, Learner]]:
    """Per problem and algorithm, the configuration with the least mean error in the grid.

    The error is the study's `confirm.by` and `confirm.measure`. Of equals the first is taken; an
    algorithm of which every configuration diverged has none.
    """
    means = _mean_errors(results)
    best: dict[tuple[int, str], tuple[float, Learner | None]] = {}
    for i, task in enumerate(results.spec.tasks):
        for learner in task.learners:
            error = means.get((i, str(learner)), np.inf)
            if error < best.setdefault((i, learner.name), (np.inf, None))[0]:
                best[i, learner.name] = error, learner
    return [(i, learner) for (i, _), (_, learner) in best.items() if learner is not None]


def _mean_errors(results: StudyResults) -> dict[tuple[int, str], float]:
    """The mean error of every configuration by task, read some blocks at a time."""
    import polars as pl

    confirm = results.spec.file.confirm
    column = f"{confirm.by}_{confirm.measure}"
    if not results.finished:
        results.rows()  # says that there is nothing
    found: dict[tuple[int, str], float] = {}
    for (task, _), group in groupby(results.finished, lambda b: (b.task, id(b.learners))):
        rows = _frame([results._load(block).select(["run", column]) for block in group])
        means = rows.group_by("run", maintain_order=True).agg(pl.col(column).mean())
        found |= {(task, run): mean for run, mean in means.iter_rows()}
    return found


def best_rows(results: StudyResults) -> list[dict[str, Any]]:
    """The best configurations, best first, with their errors on fresh seeds (or in the grid)."""
    confirm = results.spec.file.confirm
    tasks = results.spec.tasks
    tried = Counter((i, learner.name) for i, task in enumerate(tasks) for learner in task.learners)
    rows = []
    for i, learner in results.best:
        problem, run = tasks[i].label, str(learner)
        row = results.means_of(problem, run)
        if row is None:  # the rerun on fresh seeds has begun, and has not come to it
            continue
        ends = outcomes(results, problem, run, results.stage)
        rows.append({
            "problem": problem,
            "run": run,
            "configurations": tried[i, learner.name],
            "stage": results.stage,
            "seeds": row["seeds"],
            "auc": row[f"auc_{confirm.measure}"],
            "auc_stderr": row[f"auc_{confirm.measure}_stderr"],
            "final": row[f"final_{confirm.measure}"],
            "final_stderr": row[f"final_{confirm.measure}_stderr"],
            "outcome": worst(ends),
            "ended": ended(ends),
        })  # fmt: skip
    order = [task.label for task in results.spec.tasks]
    return sorted(rows, key=lambda row: (order.index(row["problem"]), row[confirm.by]))


def outcomes(results: StudyResults, problem: str, run: str, stage: str) -> list[str]:
    """The word for every seed of a configuration; see `runs.outcome`."""
    measure = results.spec.file.confirm.measure
    task = next(task for task in results.spec.tasks if task.label == problem)
    learner = next(x for x in task.learners if str(x) == run)
    seeds, curves = results.curves(problem, run, measure, stage)
    by_value = measure == "value"  # of another error no yardstick is known but the start's

    def theory(seed: int) -> Forecast:
        instance = task.instance(seed) if task.family else task.problem
        found = forecast(instance, learner, task.steps)
        return found if by_value else found._replace(error=0.0)

    zero = zero_error(task.problem) if by_value else 0.0
    return [outcome(e, False, zero, partial(theory, seed))
            for seed, e in zip(seeds, curves, strict=True)]  # fmt: skip


def load_study(directory: str | Path) -> StudyResults:
    """The results of a study, finished or not, from the directory that it was run into."""
    found = StudyResults(Path(directory))
    found.spec  # noqa: B018 (says so now if there is no study)
    return found
