"""The blocks of a study: the unit of work, of parallelism and of the files on disk.

A block is some configurations of one law on one problem with some of the seeds. How a study falls
into blocks depends on the study alone, not on the machine or the number of threads, so a run may be
stopped here and resumed there. A block is known by its *fingerprint*: a hash of everything that
decides its numbers (`base.identity`), from the problem's arrays to the law and all code.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.files import file_name
from steadytd.base.identity import digest, modules
from steadytd.engine.block import group_key, lanes_per_block
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.problems import module
from steadytd.runs.lanes import RunSetup, grouped, lanes_of, run_seed
from steadytd.studies.spec import Spec, Task

WORK = 1e10  # features x learner-updates of a block, at most: seconds, not minutes
KEPT = 1e7  # numbers of the curves of a file, about
FILES = 64  # of one law on one problem, about, where the limit of work allows
FRESH = 1_000_000  # the first seed of the second stage, far from those of the grid


@dataclass(frozen=True)
class StudyBlock:
    """Some configurations of one law on one problem, with some seeds."""

    stage: str
    task: int
    number: int
    learners: tuple[Learner, ...]
    seeds: tuple[int, ...]
    fingerprint: str
    label: str
    title: str  # label and law, as the name of its file begins

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.title}-{self.number:04d}-{self.fingerprint[:12]}.parquet"


@dataclass
class Numbers:
    """What a block found: errors [runs, seeds, measures, points], their means, the divergence."""

    errors: Floats
    means: Floats
    diverged: Longs


def updates(spec: Spec, block: StudyBlock) -> int:
    """The learner-updates of a block."""
    task = spec.tasks[block.task]
    return len(block.learners) * len(block.seeds) * task.problem.n_policies * task.steps


def grid_blocks(spec: Spec) -> list[StudyBlock]:
    """All blocks of the study's grid."""
    seeds = range(spec.file.seeds)
    return [
        block
        for i, task in enumerate(spec.tasks)
        for block in _blocks(spec, "grid", i, task.learners, seeds)
    ]


def confirm_blocks(spec: Spec, best: Sequence[tuple[int, Learner]]) -> list[StudyBlock]:
    """The blocks of the second stage: the best configurations, by task, on fresh seeds."""
    seeds = range(FRESH, FRESH + spec.fresh_seeds)
    return [
        block
        for i in range(len(spec.tasks) if seeds else 0)
        for block in _blocks(spec, "confirm", i, [x for t, x in best if t == i], seeds)
    ]


def _blocks(
    spec: Spec, stage: str, index: int, learners: Sequence[Learner], seeds: Sequence[int]
) -> Iterator[StudyBlock]:
    task = spec.tasks[index]
    groups: dict[object, list[Learner]] = {}
    for learner in learners:
        groups.setdefault((learner.name, group_key(learner)), []).append(learner)
    number = 0
    label = file_name(task.label, [other.label for other in spec.tasks])
    laws = {learner.name for learner in learners}
    for group in groups.values():
        title = f"{label}-{file_name(group[0].name, laws)}"
        size = _lanes(task, group)
        for begin in range(0, len(group), size):
            chosen = tuple(group[begin : begin + size])
            for part in _parts(task, len(chosen), seeds):
                fingerprint = _fingerprint(spec, task, chosen, part)
                yield StudyBlock(stage, index, number, chosen, part, fingerprint, task.label, title)
                number += 1


def _lanes(task: Task, group: Sequence[Learner]) -> int:
    """How many learners share a file: as many as advance together, or several times as many.

    A very large grid of short runs would otherwise have thousands of files.
    """
    size = lanes_per_block(group[0], task.problem.n_features)
    each = float(task.steps) * task.problem.n_features * task.problem.n_policies * size
    kept = float(size) * (task.steps // task.every + 1)  # numbers of its curves, for one seed
    times = min(-(-len(group) // (size * FILES)), int(WORK // each), int(KEPT // kept))
    return size * max(1, times)


def _parts(task: Task, lanes: int, seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """The seeds in equal parts, each within the limit of work."""
    each = float(task.steps) * task.problem.n_features * task.problem.n_policies * lanes
    parts = int(min(len(seeds), -(-each * len(seeds) // WORK)))
    return [tuple(int(s) for s in chosen) for chosen in np.array_split(np.array(seeds), parts)]


def _fingerprint(spec: Spec, task: Task, learners: Sequence[Learner], seeds: Sequence[int]) -> str:
    """All that decides a block's file: also the code that draws the instances of a family."""
    family = None
    if task.family:
        family = task.name, dict(task.options), modules(module(task.name).__name__)
    return digest(
        code(), task.problem, family, task.steps, task.recording,
        spec.measures, *_identities(learners), seeds,
    )  # fmt: skip


def _identities(learners: Sequence[Learner]) -> tuple[list[Law], list[str]]:
    """The laws of a block, and its learners' hyper-parameters: quicker than one by one."""
    laws = {id(learner.law): i for i, learner in enumerate(learners)}
    return [learners[i].law for i in laws.values()], [
        "\n".join(repr(dict(x.values)) for x in learners if id(x.law) == law) for law in laws
    ]


def code() -> str:
    """A hash of the code that makes and writes the numbers of a block."""
    return modules("steadytd.studies.dataset")


@lru_cache(maxsize=8)
def _setup(spec: Spec, index: int) -> RunSetup:
    task = spec.tasks[index]
    instance = task.instance if task.family else None
    return RunSetup(task.problem, task.points, spec.measures, instance)


def compute(spec: Spec, block: StudyBlock, stop: threading.Event | None = None) -> Numbers | None:
    """Run a block. None if `stop` was set on the way."""
    halt = stop or threading.Event()
    setup = _setup(spec, block.task)
    runs, policies = len(block.learners), setup.problem.n_policies
    groups = grouped(lanes_of(block.learners, policies), setup.problem.n_features)
    shape = (runs, len(block.seeds), len(setup.measures), len(setup.points))
    errors, diverged = np.empty(shape), np.empty(shape[:2], dtype=np.int64)
    never = np.iinfo(np.int64).max
    for i, seed in enumerate(block.seeds):
        outcome = run_seed(setup, seed, groups, halt, lambda updates: None)
        if halt.is_set():
            return None
        order = np.argsort(outcome.numbers)
        found = outcome.errors[:, :, order].reshape(*outcome.errors.shape[:2], runs, policies)
        with np.errstate(over="ignore"):  # a mean beyond the range is infinite
            errors[:, i] = found.mean(axis=3).transpose(2, 1, 0)
        divergence = outcome.diverged[order].reshape(runs, policies)
        first = np.where(divergence < 0, never, divergence).min(axis=1)
        diverged[:, i] = np.where(first == never, -1, first)
    return Numbers(errors, spec.tasks[block.task].mean(errors), diverged)
