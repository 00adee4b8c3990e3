"""What a run found: curves, a summary, final weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from steadytd.base.arrays import Floats, Longs, frozen
from steadytd.base.errors import InputError, unknown
from steadytd.base.files import output_directory, write_whole
from steadytd.engine.learner import Learner
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.problem import Problem

if TYPE_CHECKING:
    import polars as pl

    from steadytd.runs.lanes import Outcome


class Subject(Protocol):
    """What learners ran on: a problem, or a stream of which no model is known."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def n_policies(self) -> int:
        """The number of target policies."""

    @property
    def n_features(self) -> int:
        """The number of features."""


@dataclass(frozen=True, eq=False)
class Result:
    """The errors and final weights of every learner and seed.

    `learners` are the learners that ran, with a number wherever `asked` (their texts as they were
    given) says "auto".

    `errors` is [learner, seed, point]: the error after `steps[point]` updates, the mean over the
    target policies where there are several, infinite from the point on at which a learner has
    diverged. `first_divergence` [learner, seed] is the number of updates after which a weight
    first left the finite range, or -1.
    """

    problem: Subject
    learners: list[Learner]
    asked: list[str]
    seeds: list[int]
    steps: Longs
    errors: Floats
    final_weights: Floats
    first_divergence: Longs

    @staticmethod
    def collect(
        problem: Subject,
        learners: list[Learner],
        asked: list[str],
        seeds: list[int],
        steps: Longs,
        outcomes: Sequence[Outcome],
    ) -> Result:
        """Put the parts of all seeds in their places, whatever order they came in."""
        K = problem.n_policies
        lanes = len(learners) * K
        errors = np.empty((len(seeds), lanes, len(steps)))
        weights = np.empty((len(seeds), lanes, problem.n_features))
        diverged = np.empty((len(seeds), lanes), dtype=np.int64)
        for part in outcomes:
            seed = seeds.index(part.seed)
            errors[seed, part.numbers] = part.errors[:, 0].T
            weights[seed, part.numbers] = part.weights
            diverged[seed, part.numbers] = part.diverged
        shape = (len(seeds), len(learners), K)
        never = np.iinfo(np.int64).max
        first = np.where(diverged < 0, never, diverged).reshape(shape).min(axis=-1)
        return Result(
            problem=problem,
            learners=learners,
            asked=asked,
            seeds=seeds,
            steps=frozen(steps, np.int64),
            errors=frozen(errors.reshape(*shape, -1).mean(axis=2).swapaxes(0, 1)),
            final_weights=frozen(weights.reshape(*shape, -1).swapaxes(0, 1)),
            first_divergence=frozen(np.where(first == never, -1, first).T, np.int64),
        )

    @property
    def task(self) -> Task:
        """The problem, where it has an exact model."""
        if isinstance(self.problem, Problem | ActionValues):
            return self.problem
        raise InputError(f"{self.problem.name} is a stream without an exact model.")

    @cached_property
    def curves(self) -> pl.DataFrame:
        """One row per learner, seed and recording point: learner, seed, step, error."""
        import polars as pl

        L, S, N = self.errors.shape
        names = pl.Series("learner", [str(x) for x in self.learners])
        return pl.DataFrame(
            {
                "learner": names[np.repeat(np.arange(L), S * N)],
                "seed": np.tile(np.repeat(np.array(self.seeds, dtype=np.int64), N), L),
                "step": np.tile(self.steps, L * S),
                "error": self.errors.reshape(-1),
            }
        )

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row per learner: its hyper-parameters, mean errors with standard errors, divergence.

        `auc` is the mean error over the recording points, `final` the error after the last step,
        both averaged over the seeds; `diverged` counts seeds, `first_divergence` is the earliest
        step at which one of them left the finite range.
        """
        import polars as pl

        return pl.DataFrame([self._row(i) for i in range(len(self.learners))])

    def _row(self, i: int) -> dict[str, Any]:
        learner, first = self.learners[i], self.first_divergence[i]
        every = dict.fromkeys(name for other in self.learners for name in other.values)
        auc, final = self.errors[i].mean(axis=1), self.errors[i, :, -1]
        gone = first[first >= 0]
        return {
            "learner": str(learner),
            "algorithm": learner.name,
            **{name: learner.values.get(name) for name in every},
            "auc": float(auc.mean()),
            "auc_stderr": standard_error(auc),
            "final": float(final.mean()),
            "final_stderr": standard_error(final),
            "diverged": len(gone),
            "first_divergence": int(gone.min()) if len(gone) else None,
        }

    def weights(self, learner: Learner | str) -> Floats:
        """The final weights of a learner: [seeds, d], or [seeds, policies, d] with several."""
        texts = [str(x) for x in self.learners]
        if str(learner) not in texts and str(learner) not in self.asked:
            raise unknown("learner of this run:", str(learner), texts)
        names = texts if str(learner) in texts else self.asked
        found: Floats = self.final_weights[names.index(str(learner))]
        return found[:, 0] if self.problem.n_policies == 1 else found

    def save(self, directory: str | Path) -> list[Path]:
        """Write `curves.parquet` and `summary.parquet` into a directory."""
        target = output_directory(directory)
        return [
            write_whole(target / "curves.parquet", self.curves.write_parquet),
            write_whole(target / "summary.parquet", self.summary.write_parquet),
        ]


def standard_error(values: Floats) -> float | None:
    """The standard error of the mean; None for one value, infinite if a value is."""
    if len(values) < 2:
        return None
    if not np.isfinite(values).all():
        return float("inf")
    scale = float(np.abs(values).max()) or 1.0
    return float(scale * np.std(values / scale, ddof=1) / np.sqrt(len(values)))
