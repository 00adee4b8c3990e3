"""`study`: run a study file, block by block, into a directory; stop and resume at any moment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, unknown
from steadytd.base.files import file_name, output_directory, write_whole
from steadytd.base.numbers import whole
from steadytd.base.wording import visible
from steadytd.engine.learner import Learner
from steadytd.studies import dataset, local
from steadytd.studies.blocks import StudyBlock, confirm_blocks, grid_blocks
from steadytd.studies.cluster import Address, cluster
from steadytd.studies.local import Submit
from steadytd.studies.results import StudyResults, choose_best, load_study
from steadytd.studies.source import load_spec
from steadytd.studies.spec import Spec, parse_spec
from steadytd.studies.toml import toml

ENGINES = ("local", "dask")
LOCK = ".lock"
Progress = Callable[[int, int], None]
Say = Callable[[str], None]


def study(source: str | Path | Mapping[str, object], name: str = "") -> Study:
    """A study from a TOML file, from one of the package's by name, or from a dictionary.

    `study("quick").run(out="results/quick")`. A dictionary has the keys of a file; `name` names
    it (default: that of the file, or "study").

    >>> s = study({"problem": "baird", "steps": 1000, "seeds": 2,
    ...            "learners": [{"name": "td", "alpha": [0.01, 0.1]}]}, name="mine")
    >>> s
    <study mine: 2 configurations on baird>
    """
    if isinstance(source, Mapping):
        return Study(parse_spec(toml(source), name or "study", "the study"))
    if not isinstance(source, str | Path):
        raise InputError(
            "a study is the path of a file, a name such as 'quick', or a dictionary, got "
            f"{source!r:.60}."
        )
    spec = load_spec(source)
    return Study(replace(spec, name=name) if name else spec)


@dataclass(frozen=True, repr=False)
class Study(Displayable):
    """A checked study: `run` it, then read its `results`."""

    spec: Spec

    @property
    def name(self) -> str:
        """The name of the study: that of its file."""
        return self.spec.name

    def __repr__(self) -> str:
        tasks = ", ".join(task.label for task in self.spec.tasks)
        return visible(f"<study {self.name}: {self.spec.runs:,} configurations on {tasks}>")

    def save(self, path: str | Path) -> Path:
        """Write the study file; `steadytd.study` reads it back."""
        return write_whole(Path(path), self.spec.text)

    def results(self, out: str | Path | None = None) -> StudyResults:
        """What is in a directory (default: results/NAME) of this study, finished or not."""
        return load_study(self._directory(out))

    def _directory(self, out: str | Path | None) -> Path:
        return Path("results") / file_name(self.name) if out is None else Path(out)

    def run(
        self,
        out: str | Path | None = None,
        engine: Literal["local", "dask"] = "local",
        address: Address = None,
        threads: int | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
        say: Say = lambda text: None,
    ) -> StudyResults:
        """Run what is not finished yet, and return the results.

        Finished blocks in `out` (default: results/NAME) are kept, unless `fresh`; `engine="dask"`
        runs the blocks on a Dask cluster at `address`, or on one of this machine's processes. The
        numbers do not depend on the engine or on `threads`. `progress(done, total)` gets
        learner-updates, `say` short remarks on what was found in the directory.
        """
        if engine not in ENGINES:
            raise unknown("engine", engine, ENGINES)
        if address is not None and engine != "dask":
            raise InputError("address is for a Dask cluster; give engine='dask' too.")
        workers = os.cpu_count() or 1 if threads is None else whole("threads", threads, 1)
        directory = self._directory(out)
        self._require_usable(directory, fresh)  # before anything is made there
        meter = _Meter(self.spec, progress)
        on = cluster(address, workers) if engine == "dask" else local.threads(workers, meter.add)
        with on as submit:  # first: without Dask, or a scheduler, the directory stays as it is
            output_directory(directory)
            with _only_run(directory):
                self._prepare(directory, fresh)
                return self._stages(directory, meter, say, submit)

    def _require_usable(self, directory: Path, fresh: bool) -> None:
        """Complain if the directory is not empty, and not this study's."""
        kept = directory / "study.toml"
        if kept.exists():
            if not fresh:
                _require_same(kept, self.spec)
        elif directory.is_dir() and not _ours(directory):
            raise InputError(
                f"'{directory}' holds other files and no study; name an empty or new directory."
            )

    def _prepare(self, directory: Path, fresh: bool) -> None:
        """Make the directory this study's."""
        self._require_usable(directory, fresh)
        for stage in dataset.STAGES:
            output_directory(directory / stage)
        with dataset.plain_disk_errors(directory):
            dataset.sweep(directory, finished=fresh)
            write_whole(directory / "study.toml", self.spec.text)
            dataset.write_provenance(directory)

    def _stages(self, directory: Path, meter: _Meter, say: Say, submit: Submit) -> StudyResults:
        """The grid, then the best configurations of each learner on fresh seeds."""
        blocks = grid_blocks(self.spec)
        self._stage(directory, blocks, meter, say, submit)
        best = choose_best(StudyResults.of(directory, self.spec, blocks))
        meter.confirming(best)
        self._stage(directory, confirm_blocks(self.spec, best), meter, say, submit)
        return StudyResults.of(directory, self.spec, blocks)

    def _stage(
        self, directory: Path, blocks: list[StudyBlock], meter: _Meter, say: Say, submit: Submit
    ) -> None:
        finished, remarks = dataset.standing(directory, blocks)
        for remark in remarks:
            say(remark)
        if finished:
            part = "grid" if blocks[0].stage == "grid" else "rerun on fresh seeds"
            say(f"{len(finished)} of {len(blocks)} blocks of the {part} are finished.")
        done = {block.fingerprint for block in finished}
        for block in finished:
            meter.skip(block)
        waiting = [block for block in blocks if block.fingerprint not in done]
        for block, content in submit(self.spec, waiting):
            dataset.save(directory, block, content)
            meter.finish(block)


@dataclass
class _Meter:
    """Counts learner-updates, those of finished blocks included."""

    spec: Spec
    progress: Progress | None
    total: int = field(init=False)
    done: int = 0
    live: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.total = self.spec.updates + self.spec.fresh_updates

    def updates(self, block: StudyBlock) -> int:
        task = self.spec.tasks[block.task]
        return len(block.learners) * len(block.seeds) * task.problem.n_policies * task.steps

    def add(self, updates: int) -> None:
        """While a block runs on this machine."""
        self.live = True
        self._count(updates)

    def finish(self, block: StudyBlock) -> None:
        """A block is done; those of a cluster are counted as a whole."""
        if not self.live:
            self._count(self.updates(block))

    def skip(self, block: StudyBlock) -> None:
        """A block need not run."""
        self.total -= self.updates(block)

    def confirming(self, best: Sequence[tuple[int, Learner]]) -> None:
        """The second stage is known: a learner that always diverged has no part in it."""
        blocks = confirm_blocks(self.spec, best)
        self.total += sum(self.updates(block) for block in blocks) - self.spec.fresh_updates

    def _count(self, updates: int) -> None:
        if self.progress is not None:
            with self.lock:
                self.done += updates
                self.progress(self.done, max(self.total, self.done))


@contextmanager
def _only_run(directory: Path) -> Iterator[None]:
    """Keep a second run out of the same directory. The lock goes away with the process."""
    from filelock import FileLock, Timeout

    lock = FileLock(directory / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"another run of a study is at work in '{directory}'; wait for it, or name another "
            "directory."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _ours(directory: Path) -> bool:
    """Whether nothing is there but what runs make."""
    stages = [directory / stage for stage in dataset.STAGES]
    blocks = [path for stage in stages if stage.is_dir() for path in stage.iterdir()]
    others = {path.name for path in directory.iterdir() if not dataset.left_behind(path)}
    return others <= {*dataset.STAGES, LOCK, "provenance.json"} and all(
        dataset.BLOCK.fullmatch(path.name) or dataset.left_behind(path) for path in blocks
    )


def _require_same(kept: Path, spec: Spec) -> None:
    """Complain, key by key, if the directory's study is another one than `spec`."""
    try:
        before = load_spec(kept)
    except InputError as error:
        raise InputError(f"{error} It cannot be resumed; use --fresh.") from None
    differences = list(_differences(before, spec))
    if differences:
        raise InputError(
            f"the study has changed since '{kept.parent}' was begun: {'; '.join(differences)}. "
            "Its results do not fit together: name another directory with --out, or discard the "
            "old results with --fresh."
        )


def _differences(before: Spec, now: Spec) -> Iterator[str]:
    """What differs in meaning; comments, order of keys and texts for readers do not count."""
    for key in ("seeds", "errors", "confirm"):
        old, new = getattr(before.file, key), getattr(now.file, key)
        if old != new:
            yield f"{key} was {_shown(old)} and is {_shown(new)}"
    old_tasks = {task.label: task for task in before.tasks}
    for label in old_tasks.keys() - {task.label for task in now.tasks}:
        yield f"problem {label} was dropped"
    for task in now.tasks:
        old_task = old_tasks.get(task.label)
        if old_task is None:
            yield f"problem {task.label} was added"
            continue
        for key in ("name", "options", "steps", "every", "per_decade"):
            old, new = getattr(old_task, key), getattr(task, key)
            if old != new:
                yield f"{key} on {task.label} was {_shown(old)} and is {_shown(new)}"
        runs, old_runs = (list(map(str, t.learners)) for t in (task, old_task))
        added, dropped = set(runs) - set(old_runs), set(old_runs) - set(runs)
        if added or dropped:
            example = sorted(added or dropped)[0]
            yield (
                f"on {task.label} {len(added)} configurations were added and {len(dropped)} "
                f"dropped, for instance {example}"
            )


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
