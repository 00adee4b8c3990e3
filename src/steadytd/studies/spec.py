"""A study as data: which problems, learners and grids, how long, how often; from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import LARGEST, MOST_SEEDS, whole
from steadytd.engine.learner import Learner
from steadytd.engine.settings import parse_params
from steadytd.learners import saved_learner, written
from steadytd.problems import is_family, is_saved
from steadytd.problems import problem as make_problem
from steadytd.runs.measures import MEASURES
from steadytd.runs.run import numbered
from steadytd.studies.grid import Axis, Condition, ConditionError, Strict, Value, points
from steadytd.studies.own import Own

if TYPE_CHECKING:
    from steadytd.mdp.problem import Problem

MOST_POINTS = 1_000_000  # of a curve, and
MOST_RUNS = 1_000_000  # configurations of a study: beyond that it is a slip of the pen
MOST_LINES = 500  # of a text in which the line of a mistake is sought
KINDS = {  # what Pydantic calls them, in words
    "model_type": "a table of keys (a problem or learner may be a string)",
    "dict_type": "a table of keys",
    "list_type": "a list; tables stand under [[{key}]] each",
    "string_type": "a string",
    "too_short": "a list of at least one",
    "literal_error": "{expected}",
}


def _count(least: int, most: int = LARGEST) -> BeforeValidator:
    """A whole number in a range, also written 1e6."""

    def check(value: object, info: ValidationInfo) -> int:
        return whole(str(info.field_name), value, least, most)

    return BeforeValidator(check)


Count = Annotated[int, _count(1)]
PerDecade = Annotated[int, _count(0, 1000)]


class ProblemEntry(Strict):
    """One problem of a study, or its name alone; what it does not say, the study says."""

    name: str
    options: dict[str, int | float | str] = Field(default_factory=dict)
    steps: Count | None = None
    every: Count | None = None
    per_decade: PerDecade | None = None
    label: str = ""

    @model_validator(mode="before")
    @classmethod
    def _written(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


class Confirm(Strict):
    """The rerun of each learner's best configuration on fresh seeds.

    `by` says what "best" means, `seeds` how many fresh seeds (default: as many as the study has).
    """

    by: Literal["auc", "final"] = "auc"
    measure: str = "value"
    seeds: Annotated[int, _count(0)] | None = None

    @property
    def column(self) -> str:
        """The column of the results that "best" refers to."""
        return f"{self.by}_{self.measure}"


class Grid(BaseModel):
    """One algorithm with its grid: every other key is an axis (see `studies.grid`).

    A text as on the command line, `td:alpha=0.1`, is a grid of one learner.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Axis]

    name: str
    on: list[str] | None = None
    when: list[Condition] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _written(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        parts = written(value)
        name = ":".join(filter(None, (parts.file, parts.law)))
        return {"name": name, **parse_params(name, parts.settings)}

    @property
    def axes(self) -> Mapping[str, list[Value]]:
        """The axes of the grid."""
        return self.__pydantic_extra__

    def learners(self, own: Own) -> list[Learner]:
        """All learners of the grid."""
        law = own.law(self.name)  # a misspelt name comes before a misspelt axis
        return [Learner(law, point) for point in points(self.axes, self.when)]


class StudyFile(Strict):
    """The content of a study file."""

    title: str = ""
    about: str = ""
    problem: str | None = None
    problems: list[ProblemEntry] = Field(default_factory=list)
    steps: Count | None = None
    seeds: Annotated[int, _count(1, MOST_SEEDS)]
    every: Count | None = None
    per_decade: PerDecade = 0
    errors: list[str] = Field(default_factory=lambda: ["value"], min_length=1)
    confirm: Confirm = Confirm()
    learners: list[Grid] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _single(cls, content: object) -> object:
        """A single learner may stand under `learner`, as a single problem under `problem`."""
        if isinstance(content, dict) and "learner" in content and "learners" not in content:
            content = {**content}
            content["learners"] = [content.pop("learner")]
        return content

    @field_validator("errors")
    @classmethod
    def _measures(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in MEASURES:
                raise unknown("error measure", name, MEASURES)
        if len(set(names)) < len(names):
            raise InputError(f"errors names a measure twice: {', '.join(names)}.")
        return names


@dataclass(frozen=True, eq=False)
class Task:
    """One problem of a study with all its learners.

    The error is recorded at step 0, every `every`-th step and the last, and also at `per_decade`
    steps between 1 and 10, between 10 and 100, and so on, for what happens early.
    """

    label: str
    problem: Problem
    name: str
    options: Mapping[str, object]
    steps: int
    every: int
    per_decade: int
    learners: tuple[Learner, ...]

    @property
    def points(self) -> Longs:
        """The recording points."""
        even = np.append(np.arange(0, self.steps, self.every), self.steps)
        if not self.per_decade:
            return np.unique(even)
        count = int(np.ceil(self.per_decade * np.log10(self.steps)))
        early = np.rint(10.0 ** (np.arange(count) / self.per_decade)).astype(np.int64)
        return np.unique(np.append(even, early[early < self.steps]))

    @property
    def recording(self) -> object:
        """What decides the recording points besides the number of steps."""
        return [self.every, self.per_decade] if self.per_decade else self.every

    def mean(self, errors: Floats) -> Floats:
        """The mean error over the run, along the last axis, which has the recording points.

        Over even points it is their mean. With `per_decade` they are not even, and it is the mean
        over steps of the line through them (the trapezoid rule).
        """
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the range: infinite
            if not self.per_decade:
                return np.asarray(errors.mean(axis=-1))
            widths = np.diff(self.points) / (2.0 * self.steps)
            return np.asarray((errors[..., :-1] + errors[..., 1:]) @ widths)

    @property
    def family(self) -> bool:
        """Whether each seed draws its own instance."""
        return is_family(self.name) and "seed" not in self.options

    def instance(self, seed: int) -> Problem:
        """What a seed runs on: in a family, the instance that it draws."""
        return make_problem(self.name, seed=seed, **self.options) if self.family else self.problem


@dataclass(frozen=True, eq=False)
class Spec:
    """A study, checked and expanded."""

    name: str
    text: str
    file: StudyFile
    tasks: tuple[Task, ...]
    own: Own

    def learner(self, text: str) -> Learner:
        """The learner of a text in the results."""
        return saved_learner(text, self.own.laws.values())

    @property
    def measures(self) -> tuple[str, ...]:
        """The errors that are recorded."""
        return tuple(self.file.errors)

    @property
    def runs(self) -> int:
        """The number of configurations."""
        return sum(len(task.learners) for task in self.tasks)

    @property
    def updates(self) -> int:
        """The number of learner-updates of the grid, one per configuration, policy, seed, step."""
        return self.file.seeds * sum(
            len(task.learners) * task.problem.n_policies * task.steps for task in self.tasks
        )

    @property
    def fresh_seeds(self) -> int:
        """How many seeds the best configurations are run on again."""
        seeds = self.file.confirm.seeds
        return self.file.seeds if seeds is None else seeds

    @property
    def fresh_updates(self) -> int:
        """The learner-updates on fresh seeds, if every algorithm has a configuration to confirm."""
        return self.fresh_seeds * sum(
            len({learner.name for learner in task.learners}) * task.problem.n_policies * task.steps
            for task in self.tasks
        )


def load_spec(path: str | Path, own: Own | None = None) -> Spec:
    """Read and check a study file; a bare name means one that comes with the package.

    What it uses beside what is registered is sought in its folder, if `own` does not say otherwise.
    """
    source = Path(path)
    if not source.is_file() and str(path) in _shipped():
        source = _shipped()[str(path)]
    try:
        text = source.read_text(encoding="utf-8")
    except FileNotFoundError:
        if source.suffix:
            raise InputError(f"there is no study file '{source}'.") from None
        raise unknown("study", source, _shipped()) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the study file '{source}': {error}.") from None
    return parse_spec(text, source.stem, str(source), own or Own(folder=source.parent))


def studies() -> dict[str, str]:
    """Every study that comes with the package, with its title."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in _shipped().items()}
    return {name: str(tomllib.loads(text).get("title", "")) for name, text in texts.items()}


def _shipped() -> dict[str, Path]:
    """The studies that come with the package, by name; in a clone they stand beside the sources."""
    here = Path(__file__).resolve().parent
    places = (here / "files", here.parents[2] / "studies")
    found = next((place for place in places if place.is_dir()), here)
    return {path.stem: path for path in sorted(found.glob("*.toml"))}


def parse_spec(text: str, name: str, where: str = "the study", own: Own | None = None) -> Spec:
    """Check a study given as TOML text; mistakes are named with their line and key."""
    source, own = _Source(text, where), own or Own()
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}.") from None
    try:
        file = StudyFile.model_validate(content)
    except ValidationError as error:
        raise source.validation_error(error) from None
    tasks = _tasks(source, file, own)
    if file.confirm.measure not in file.errors:
        message = f"the study records {', '.join(file.errors)}, not {file.confirm.measure!r}"
        raise source.error(["confirm", "measure"], f"{message}; name one of them.")
    return Spec(name=name, text=text, file=file, tasks=tasks, own=own)


class _Source(NamedTuple):
    """The text of a study and its name, to say where a mistake is."""

    text: str
    where: str

    def error(self, path: Sequence[str | int], message: str) -> InputError:
        """The error for a key, with its line."""
        line = line_of(self.text, path)
        place = f"{self.where}, line {line}" if line else self.where
        return InputError(f"{place}, {dotted(path)}: {message}")

    def validation_error(self, error: ValidationError) -> InputError:
        """The first mistake that Pydantic found, in our words."""
        first = error.errors(include_url=False)[0]
        path = list(first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            parts: dict[object, type[Strict]] = {"problems": ProblemEntry, "confirm": Confirm}
            owner = parts.get(path[0], StudyFile) if len(path) > 1 else StudyFile
            message = str(unknown("key", str(path[-1]), owner.model_fields))
        elif first["type"] == "missing":
            message = f"{path[-1]} is missing; a study needs it."
        elif first["type"] in KINDS:
            expected = KINDS[first["type"]].format(key=path[-1], **first.get("ctx", {}))
            message = f"must be {expected}, got {first['input']!r:.60}."
        elif not message.endswith("."):
            message = f"{message}, got {first['input']!r}."
        return self.error(path, message)


def dotted(path: Sequence[str | int]) -> str:
    """A path for reading.

    >>> dotted(["learners", 0, "alpha"])
    'learners[0].alpha'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def _tasks(source: _Source, file: StudyFile, own: Own) -> tuple[Task, ...]:
    if (file.problem is None) == (not file.problems):
        raise InputError(
            f'{source.where}: name what to run on, either `problem = "NAME"` or [[problems]], not '
            "both."
        )
    entries = file.problems or [ProblemEntry(name=str(file.problem))]
    tasks: dict[str, Task] = {}
    for i, entry in enumerate(entries):
        place: list[str | int] = ["problems", i] if file.problems else ["problem"]
        task = _task(source, place, file, entry, own)
        if task.label in tasks:
            message = f"two problems are called '{task.label}'; give one a label."
            raise source.error(place, message)
        tasks[task.label] = task
        if (runs := sum(len(task.learners) for task in tasks.values())) > MOST_RUNS:
            message = f"the study has at least {runs:,} configurations, more than {MOST_RUNS:,}"
            raise source.error(["learners"], f"{message}; leave some out, or make two studies.")
    for i, grid in enumerate(file.learners):
        for name in grid.on or []:
            if name not in tasks:
                error = unknown("problem of this study:", name, tasks)
                raise source.error(["learners", i, "on"], str(error))
    return tuple(tasks.values())


def _task(
    source: _Source, place: list[str | int], file: StudyFile, entry: ProblemEntry, own: Own
) -> Task:
    steps = entry.steps or file.steps
    if steps is None:
        raise source.error(place, "steps is missing; say how many steps a run takes.")
    every = entry.every or file.every or max(1, steps // 100)
    if steps // every > MOST_POINTS:
        message = f"a curve would have {steps // every:,} points, more than {MOST_POINTS:,}"
        raise source.error(place, f"{message}; record fewer with a larger `every`.")
    try:
        problem = own.problem(entry.name, entry.options)
    except InputError as error:
        raise source.error(place, str(error)) from None
    task = Task(
        label=entry.label or _label(entry.name, problem),
        problem=problem,
        name=entry.name,
        options=entry.options,
        steps=steps,
        every=every,
        per_decade=file.per_decade if entry.per_decade is None else entry.per_decade,
        learners=(),
    )
    learners = _learners(source, file, task, own)
    if not learners:
        raise source.error(place, f"no learner is to run on '{task.label}'; see `on`.")
    return replace(task, learners=learners)


def _label(written: str, problem: Problem) -> str:
    """The name of a problem in the results: what was written, or the problem's own name."""
    same = written.lower() == problem.name.lower()  # but for capital letters
    return problem.name if same or is_saved(written) else written


def _learners(source: _Source, file: StudyFile, task: Task, own: Own) -> tuple[Learner, ...]:
    """All configurations for one problem, each once, with numbers in place of "auto"."""
    found: dict[str, Learner] = {}
    for i, grid in enumerate(file.learners):
        if grid.on is not None and task.label not in grid.on:
            continue
        try:
            for numbers in numbered(task.problem, grid.learners(own), task.family):
                found.setdefault(str(numbers), numbers)
        except ConditionError as error:
            raise source.error(["learners", i, "when"], str(error)) from None
        except InputError as error:
            key = next((k for k in grid.axes if {k, f"'{k}';"} & set(str(error).split())), "name")
            raise source.error(["learners", i, key], str(error)) from None
    return tuple(found.values())


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    r"""The number of the line, from 1, on which the deepest known part of `path` begins.

    >>> line_of("steps = 5\n[[learners]]\nname = 'td'\nalpha = 7", ["learners", 0, "alpha"])
    4
    """
    lines = text.splitlines()
    found, begin, deepest = None, 1, 0
    for end in range(1, len(lines) + 1 if len(lines) <= MOST_LINES else 0):
        try:
            content = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # inside a value of several lines
        if (depth := _depth(content, path)) > deepest:
            found, deepest = begin, depth
        begin = end + 1
    return found


def _depth(content: Any, path: Sequence[str | int]) -> int:
    """How many parts of a path there are."""
    for depth, part in enumerate(path):
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)
