"""What a run found: curves, a summary, final weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from steadytd.base.arrays import Floats, Longs, frozen
from steadytd.base.errors import InputError, unknown
from steadytd.base.files import filling, write_frame
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner, parse_params, plain
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
        place = {seed: i for i, seed in enumerate(seeds)}
        for part in outcomes:
            seed = place[part.seed]
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
        raise InputError(f"{self.problem.name} is a stream and has no exact model.")

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

        auc, final = self.errors.mean(axis=2), np.ascontiguousarray(self.errors[:, :, -1])
        gone = self.first_divergence >= 0
        first = np.where(gone, self.first_divergence, np.iinfo(np.int64).max).min(axis=1)
        return pl.DataFrame(
            {
                "learner": [str(learner) for learner in self.learners],
                "algorithm": [learner.name for learner in self.learners],
                **self._hyper_parameters(),
                "auc": auc.mean(axis=1),
                "auc_stderr": pl.Series(standard_errors(auc), dtype=pl.Float64),
                "final": final.mean(axis=1),
                "final_stderr": pl.Series(standard_errors(final), dtype=pl.Float64),
                "diverged": gone.sum(axis=1),
                "first_divergence": pl.select(
                    pl.when(pl.Series(gone.any(axis=1))).then(pl.Series(first))
                ).to_series(),
            }
        )

    def _hyper_parameters(self) -> dict[str, pl.Series]:
        """A column per hyper-parameter: numbers, or texts where one of them is a word."""
        import polars as pl

        columns: dict[str, pl.Series] = {}
        for name in dict.fromkeys(name for learner in self.learners for name in learner.values):
            found = [learner.values.get(name) for learner in self.learners]
            words = any(isinstance(value, str) for value in found)
            shown = [None if v is None else plain(v) for v in found] if words else found
            columns[name] = pl.Series(shown, dtype=pl.String if words else pl.Float64)
        return columns

    def weights(self, learner: Learner | Law | str) -> Floats:
        """The final weights of a learner: [seeds, d], or [seeds, policies, d] with several.

        A text may be written in any way that means the learner, with the number that it ran with
        or with "auto" where that was asked for.
        """
        found: Floats = self.final_weights[self._place(learner)]
        return found[:, 0] if self.problem.n_policies == 1 else found

    def _place(self, learner: Learner | Law | str) -> int:
        if isinstance(learner, Learner):
            written = [str(learner)]
        else:
            name, _, rest = (learner.name if isinstance(learner, Law) else learner).partition(":")
            laws = self._laws.get(name.strip(), ())
            written = [str(Learner(law, parse_params(law.name, rest))) for law in laws]
        for text in written:
            if text in self._places:
                return self._places[text]
        ran = [str(one) for one in self.learners]
        raise unknown("learner of this run:", next(iter(written), str(learner)), ran)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each learner by its text; where two have the same, that of the first."""
        texts = [*map(str, self.learners), *self.asked]
        places = [*range(len(self.learners)), *range(len(self.asked))]
        return dict(zip(reversed(texts), reversed(places), strict=True))

    @cached_property
    def _laws(self) -> dict[str, list[Law]]:
        """The laws that ran, by name: a user's own may have the name of another."""
        found: dict[str, list[Law]] = {}
        for law in dict.fromkeys(learner.algorithm for learner in self.learners):
            found.setdefault(law.name, []).append(law)
        return found

    def save(self, directory: str | Path) -> list[Path]:
        """Write `curves.parquet` and `summary.parquet` into a directory, both or none."""
        frames = {"curves.parquet": self.curves, "summary.parquet": self.summary}
        with filling(directory) as made:
            for name, frame in frames.items():
                write_frame(made / name, frame)
        return [Path(directory) / name for name in frames]


def standard_error(values: Floats) -> float | None:
    """The standard error of the mean; None for one value, infinite if a value is."""
    return standard_errors(values[None])[0]


def standard_errors(values: Floats) -> list[float | None]:
    """The standard error of the mean of each row."""
    rows, n = values.shape
    if n < 2:
        return [None] * rows
    finite = np.isfinite(values).all(axis=1)
    some = values[finite]
    scale = np.abs(some).max(axis=1, keepdims=True)
    scale[scale == 0.0] = 1.0
    found = np.full(rows, np.inf)
    found[finite] = scale[:, 0] * np.std(some / scale, axis=1, ddof=1) / np.sqrt(n)
    return [float(x) for x in found]
