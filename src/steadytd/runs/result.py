"""The result of a run: curves, a summary, final weights; saved to disk and loaded again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from steadytd.base.arrays import Floats, Longs, frozen
from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, unknown, visible
from steadytd.base.files import filling, reading_arrays, write_arrays, write_frame
from steadytd.base.numbers import count
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.engine.settings import parse_params, plain
from steadytd.learners import saved_learner, written
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.problem import Problem, load_problem
from steadytd.problems import problem as make_problem
from steadytd.runs.outcome import (
    GROWING,
    UNSETTLED,
    WORDS,
    Forecast,
    forecast,
    outcome,
    why,
    worst,
    zero_error,
)
from steadytd.theory.learning_curve import LearningCurve, exact_curve

if TYPE_CHECKING:
    from steadytd.runs.lanes import SeedResult

SAVED = ("seeds", "steps", "errors", "final_weights", "first_divergence")


class Subject(Protocol):
    """What learners ran on: a problem, or a stream without a model."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def n_policies(self) -> int:
        """The number of target policies."""

    @property
    def n_features(self) -> int:
        """The number of features."""


class Summary(pl.DataFrame):
    """The summary of a run: a Polars frame that prints within 80 characters.

    Frames that are made from it print as usual.
    """

    result: Displayable | None = None

    @classmethod
    def of(cls, frame: pl.DataFrame, result: Displayable) -> Summary:
        """The frame, printed as the command line prints the result."""
        made = cls(frame)
        made.result = result
        return made

    def __str__(self) -> str:
        if self.result is None:  # a copy
            return super().__str__()
        return f"{self.result}\n\n{fill('columns: ' + ', '.join(self.columns), 80)}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, **options: Any) -> str:
        return super()._repr_html_(**options) if self.result is None else self.result._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class Result(Displayable):
    """The errors and final weights of every learner and seed.

    `print` it, `plot` it, `report` it as a page; `curves` and `summary` are Polars frames.

    `learners` are the learners that ran, with a number wherever `asked` (their texts as they were
    given) says "auto".

    `errors` is [learner, seed, point]: the error after `steps[point]` updates, the mean over the
    target policies where there are several, infinite from the point on at which a learner has
    diverged. `first_divergence` [learner, seed] is the number of updates after which a weight
    first left the finite range, or -1. `family` is the name of the problem where each seed drew its
    own instance; `problem` is then instance 0.
    """

    problem: Subject
    learners: list[Learner]
    asked: list[str]
    seeds: list[int]
    steps: Longs
    errors: Floats
    final_weights: Floats
    first_divergence: Longs
    family: str = ""

    @staticmethod
    def collect(
        problem: Subject,
        learners: list[Learner],
        asked: list[str],
        seeds: list[int],
        steps: Longs,
        parts: Sequence[SeedResult],
        family: str = "",
    ) -> Result:
        """Put the parts of all seeds in their places, whatever order they came in."""
        K = problem.n_policies
        lanes = len(learners) * K
        errors = np.empty((len(seeds), lanes, len(steps)))
        weights = np.empty((len(seeds), lanes, problem.n_features))
        diverged = np.empty((len(seeds), lanes), dtype=np.int64)
        place = {seed: i for i, seed in enumerate(seeds)}
        for part in parts:
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
            family=family,
        )

    def __repr__(self) -> str:
        size = f"{int(self.steps[-1]):,} steps, {count(len(self.seeds), 'seed')}"
        words = [worst(found) for found in self.outcomes]
        counts = ", ".join(f"{words.count(w)} {w}" for w in WORDS if w in words)
        many = count(len(words), "learner")
        return visible(f"<result on {self.problem.name}: {many}, {size}; {counts}>")

    @property
    def task(self) -> Task:
        """The problem, where it has an exact model."""
        if isinstance(self.problem, Problem | ActionValues):
            return self.problem
        raise InputError(f"{self.problem.name} is a stream and has no exact model.")

    @cached_property
    def curves(self) -> pl.DataFrame:
        """One row per learner, seed and recording point: learner, seed, step, error."""
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
        step at which one of them left the finite range. `outcome` is the word for the learner,
        "overflowed", "growing" or "settled" (`runs.outcome` defines them), or "not settled" where
        none of these is true, the worst of its seeds; on a stream of which no model is known,
        "flat; no model to compare with" in place of "settled". `growing` counts seeds. Printed it
        shows what matters in 80 columns; all columns are in it.
        """
        auc, final = self.errors.mean(axis=2), np.ascontiguousarray(self.errors[:, :, -1])
        gone = self.first_divergence >= 0
        first = np.where(gone, self.first_divergence, np.iinfo(np.int64).max).min(axis=1)
        frame = pl.DataFrame(
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
                "growing": [words.count(GROWING) for words in self.outcomes],
                "outcome": [worst(words) for words in self.outcomes],
            }
        )
        return Summary.of(frame, self)

    @cached_property
    def outcomes(self) -> list[list[str]]:
        """How every learner ended with every seed; `summary` has the words."""
        zero = zero_error(self.problem)
        gone = self.first_divergence >= 0
        return [
            [
                outcome(self.errors[i, j], gone[i, j], zero, partial(self._forecast, learner, seed))
                for j, seed in enumerate(self.seeds)
            ]
            for i, learner in enumerate(self.learners)
        ]

    def unsettled(self, place: int) -> str:
        """Why a learner, by its place, has not settled; "" if it has with every seed."""
        learner, words = self.learners[place], self.outcomes[place]
        found = {
            seed: why(errors, self._forecast(learner, seed))
            for seed, errors, word in zip(self.seeds, self.errors[place], words, strict=True)
            if word == UNSETTLED
        }
        first = next(iter(found), None)
        if first is None:
            return ""
        example = f"with seed {first} " if len(set(found.values())) > 1 else ""
        return example + found[first]

    @cached_property
    def expected(self) -> dict[int, LearningCurve]:
        """The learning curves of learners by place, where they are exact and known in a moment."""
        p = self.problem
        if self.family or not isinstance(p, Problem) or p.n_policies > 1:
            return {}
        steps = int(self.steps[-1])
        found = {i: exact_curve(p, x, steps, quick=True) for i, x in enumerate(self.learners)}
        return {i: curve for i, curve in found.items() if curve is not None}

    def _forecast(self, learner: Learner, seed: int) -> Forecast:
        """What theory knows of a learner on what a seed ran on."""
        steps = int(self.steps[-1])
        if self.family:
            return forecast(make_problem(self.family, seed=seed), learner, steps)
        if isinstance(self.problem, Problem | ActionValues):
            return forecast(self.problem, learner, steps)
        return Forecast(None, model=False)

    def _hyper_parameters(self) -> dict[str, pl.Series]:
        """A column per hyper-parameter: numbers, or texts where one of them is a word."""
        columns: dict[str, pl.Series] = {}
        for name in dict.fromkeys(name for learner in self.learners for name in learner.values):
            found = [learner.values.get(name) for learner in self.learners]
            words = any(isinstance(value, str) for value in found)
            values = [None if v is None else plain(v) for v in found] if words else found
            columns[name] = pl.Series(values, dtype=pl.String if words else pl.Float64)
        return columns

    def weights(self, learner: Learner | Law | str) -> Floats:
        """The final weights of a learner: [seeds, d], or [seeds, policies, d] with several.

        A text may be written in any way that means the learner, with the number that it ran with
        or with "auto" where that was asked for.
        """
        found: Floats = self.final_weights[self.place(learner)]
        return found[:, 0] if self.problem.n_policies == 1 else found

    def place(self, learner: Learner | Law | str) -> int:
        """The place of a learner among those that ran."""
        if isinstance(learner, Learner):
            texts = [str(learner)]
        else:
            parts = written(learner.name if isinstance(learner, Law) else learner)
            laws = self._laws.get(parts.law.lower(), ())
            texts = [str(Learner(law, parse_params(law.name, parts.settings))) for law in laws]
        for text in texts:
            if text in self._places:
                return self._places[text]
        ran = [str(one) for one in self.learners]
        raise unknown("learner of this run:", next(iter(texts), str(learner)), ran)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each learner by its text; where two have the same, that of the first."""
        texts = [*map(str, self.learners), *self.asked]
        places = [*range(len(self.learners)), *range(len(self.asked))]
        return dict(zip(reversed(texts), reversed(places), strict=True))

    @cached_property
    def _laws(self) -> dict[str, list[Law]]:
        """The laws that ran, by name in small letters: a user's own may have that of another."""
        found: dict[str, list[Law]] = {}
        for law in dict.fromkeys(learner.algorithm for learner in self.learners):
            found.setdefault(law.name.lower(), []).append(law)
        return found

    def save(self, directory: str | Path) -> list[Path]:
        """Write the result into a directory, all or nothing; `steadytd.load_result` reads it back.

        `curves.parquet` and `summary.parquet` are for other programs.
        """
        with filling(directory) as made:
            names = self.write(made)
        return [Path(directory) / name for name in names]

    def write(self, made: Path) -> list[str]:
        """Write the files of `save` into a directory that exists; their names."""
        write_frame(made / "curves.parquet", self.curves)
        write_frame(made / "summary.parquet", self.summary)
        about = {
            "name": self.problem.name,
            "n_policies": self.problem.n_policies,
            "n_features": self.problem.n_features,
            "family": self.family,
            "learners": [str(learner) for learner in self.learners],
            "asked": self.asked,
            "outcomes": self.outcomes,
        }
        arrays = {name: getattr(self, name) for name in SAVED}
        write_arrays(made / "result.npz", {"about": np.array(json.dumps(about)), **arrays})
        if isinstance(self.problem, Problem):
            self.problem.save(made / "problem.npz")
        return sorted(path.name for path in made.iterdir())


class SavedSubject(NamedTuple):
    """The subject of a loaded result without a saved problem: a stream, or action values."""

    name: str
    n_policies: int
    n_features: int


def load_result(directory: str | Path, laws: Iterable[Law] = ()) -> Result:
    """Read a result that `Result.save` or `steadytd run --out` wrote; name your own laws in `laws`.

    >>> import tempfile
    >>> import steadytd as st
    >>> r = st.run("three_state", "td:alpha=0.01", steps=100, points=3)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = r.save(place)
    ...     load_result(place).summary.equals(r.summary)
    True
    """
    place = Path(directory)
    with reading_arrays(place / "result.npz", "result") as file:
        about = json.loads(str(file["about"]))
        arrays = {name: frozen(file[name], file[name].dtype) for name in SAVED}
        size = (len(about["learners"]), len(arrays["seeds"]), len(arrays["steps"]))
        if arrays["errors"].shape != size:
            raise InputError(f"its errors have the shape {arrays['errors'].shape}, not {size}")
    own = list(laws)
    learners = [saved_learner(text, own) for text in about["learners"]]
    subject: Subject = SavedSubject(about["name"], about["n_policies"], about["n_features"])
    if (place / "problem.npz").exists():
        subject = load_problem(place / "problem.npz")
    seeds = [int(seed) for seed in arrays.pop("seeds")]
    found = Result(problem=subject, learners=learners, asked=about["asked"], seeds=seeds,
                   family=about["family"], **arrays)  # fmt: skip
    vars(found)["outcomes"] = about["outcomes"]  # they cannot be computed again without a model
    return found


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
