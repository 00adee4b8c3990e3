"""Reading a study's results: settings, errors, curves, and the best configuration of a learner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, visible
from steadytd.base.numbers import count
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.runs.outcome import Forecast, ended, forecast, outcome, worst, zero_error
from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, confirm_blocks, grid_blocks
from steadytd.studies.own import PLACE, Own
from steadytd.studies.spec import Spec, Task, parse_spec

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class StudyResults(Displayable):
    """What is in a result directory, finished or not. Reads the blocks of its own study only."""

    directory: Path
    laws: Sequence[Law] = ()  # of the user's own: results hold no code

    def __repr__(self) -> str:
        done = f"{len(self.finished)} of {count(len(self.blocks), 'block')}"
        return visible(f"<results of the study {self.spec.name} in '{self.directory}': {done}>")

    @classmethod
    def of(cls, directory: Path, spec: Spec, blocks: list[StudyBlock]) -> StudyResults:
        """Those of a study that is known already: a large grid takes its time to be read again."""
        found = cls(directory)
        vars(found).update(spec=replace(spec, name=directory.name), blocks=blocks)
        return found

    def again(self) -> StudyResults:
        """The same study, its directory not yet looked at."""
        found = StudyResults(self.directory, self.laws)
        vars(found).update({k: x for k, x in vars(self).items() if k in ("spec", "blocks")})
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
        own = Own(saved=self.directory / PLACE, laws=self.laws)
        return parse_spec(text, self.directory.name, str(source), own)

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
        import polars as pl
        import pyarrow as pa

        names = list(columns or ("problem", "run", "seed", "diverged", *self._errors))
        parts = [self._load(block).select(names) for block in self._blocks_of(stage)]
        if not parts:
            raise InputError(
                f"'{self.directory}' has no finished block of the {stage} yet; run the study."
            )
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(parts).replace_schema_metadata(None)))

    def _blocks_of(self, stage: str) -> list[StudyBlock]:
        return self.finished if stage == "grid" else self._confirmed

    @property
    def _errors(self) -> list[str]:
        """The columns of errors, without the curves."""
        return [f"{what}_{m}" for m in self.spec.measures for what in ("auc", "final")]

    def curves(
        self, problem: str, run: str, measure: str = "value", stage: str = "grid"
    ) -> tuple[list[int], Floats]:
        """The seeds of a run and its errors [seeds, points]."""
        import pyarrow.compute as pc

        seeds: list[int] = []
        found: list[Floats] = []
        for block in self._blocks_of(stage):
            if block.label == problem and run in map(str, block.learners):
                rows = self._load(block)
                rows = rows.filter(pc.equal(rows["run"], run))
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
        return self._summarised("grid")

    def _summarised(self, stage: str) -> pl.DataFrame:
        import polars as pl

        means = (
            self.rows(stage)
            .group_by("problem", "run")
            .agg(
                pl.len().alias("seeds"),
                pl.col("diverged").is_not_null().mean().alias("diverged_share"),
                pl.col(self._errors).mean(),
                (pl.col(self._errors).std() / pl.len().sqrt()).name.suffix("_stderr"),
            )
        )
        return self.settings.join(means, on=["problem", "run"], how="inner", maintain_order="left")

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
        return self._summarised("confirm") if self._confirmed else None

    def _path(self, block: StudyBlock) -> Path:
        return self.directory / block.stage / block.file

    def _load(self, block: StudyBlock) -> Any:
        try:
            return dataset.load(self._path(block), block)
        except InputError as error:
            raise InputError(
                f"{error}; run `steadytd study` again, it computes what is damaged."
            ) from None


def choose_best(results: StudyResults) -> list[tuple[int, Learner]]:
    """Per problem and algorithm, the configuration with the least mean error in the grid.

    The error is the study's `confirm.by` and `confirm.measure`. Of equals the first is taken; an
    algorithm of which every configuration diverged has none.
    """
    import polars as pl

    error = pl.col(results.spec.file.confirm.column)
    best = results.summary.filter(error.is_finite()).group_by("problem", "algorithm")
    runs = set(best.agg(pl.col("run").get(error.arg_min())).select("problem", "run").iter_rows())
    return [
        (i, learner)
        for i, task in enumerate(results.spec.tasks)
        for learner in task.learners
        if (task.label, str(learner)) in runs
    ]


def best_rows(results: StudyResults) -> list[dict[str, Any]]:
    """The best configurations, best first, with their errors on fresh seeds (or in the grid)."""
    import polars as pl

    confirm, tasks = results.spec.file.confirm, results.spec.tasks
    compared = results.summary if results.confirmation is None else results.confirmation
    tried = Counter((i, learner.name) for i, task in enumerate(tasks) for learner in task.learners)
    rows = []
    for i, learner in results.best:
        label, run = tasks[i].label, str(learner)
        # none if the rerun on fresh seeds has begun, and has not come to it
        found = compared.filter((pl.col("problem") == label) & (pl.col("run") == run))
        for row in found.iter_rows(named=True):
            ends = outcomes(results, tasks[i], learner, results.stage)
            rows.append({
                "problem": label,
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
    order = [task.label for task in tasks]
    return sorted(rows, key=lambda row: (order.index(row["problem"]), row[confirm.by]))


def outcomes(results: StudyResults, task: Task, learner: Learner, stage: str) -> list[str]:
    """The outcome of every seed of a configuration; see `runs.outcome`."""
    measure = results.spec.file.confirm.measure
    seeds, curves = results.curves(task.label, str(learner), measure, stage)
    by_value = measure == "value"  # of another error only that at the start is known

    def theory(seed: int) -> Forecast:
        found = forecast(task.instance(seed), learner, task.steps)
        return found if by_value else found._replace(error=0.0)

    zero = zero_error(task.problem) if by_value else 0.0
    return [outcome(e, False, zero, partial(theory, seed))
            for seed, e in zip(seeds, curves, strict=True)]  # fmt: skip


def load_study(directory: str | Path, laws: Iterable[Law] = ()) -> StudyResults:
    """The results of a study, finished or not, from the directory that it was run into.

    Name your own laws in `laws`: results hold no code.
    """
    found = StudyResults(Path(directory), tuple(laws))
    found.spec  # noqa: B018 (says so now if there is no study)
    return found
