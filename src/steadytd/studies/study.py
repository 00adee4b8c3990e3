"""`study`: run a study file, block by block, into a directory; stop and resume at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, unknown, visible
from steadytd.base.files import file_name, output_directory, write_whole
from steadytd.base.numbers import whole
from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, confirm_blocks, grid_blocks, updates
from steadytd.studies.engines import Address, Submit, cluster
from steadytd.studies.engines import threads as over_threads
from steadytd.studies.own import PLACE, Own, study_text
from steadytd.studies.results import StudyResults, choose_best, load_study
from steadytd.studies.spec import Spec, load_spec, parse_spec

ENGINES = ("local", "dask")
LOCK = ".lock"
Progress = Callable[[int, int], None]
Say = Callable[[str], None]


def study(source: str | Path | Mapping[str, object], name: str = "") -> Study:
    """A study from a TOML file, from one of the package's by name, or from a dictionary.

    `study("quick").run(out="results/quick")`. A dictionary has the keys of a file, and may hold
    problems, laws and learners themselves where a file has their names; `name` names the study
    (default: that of the file, or "study"). A Python file that a study names for its law is run.

    >>> s = study({"problem": "baird", "steps": 1000, "seeds": 2,
    ...            "learners": [{"name": "td", "alpha": [0.01, 0.1]}]}, name="mine")
    >>> s
    <study mine: 2 configurations on baird>
    """
    if isinstance(source, Mapping):
        own = Own(folder=Path())
        return Study(parse_spec(study_text(source, own), name or "study", "the study", own))
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
        """Write the study file, problems of your own beside it; `steadytd.study` reads it back."""
        own, target = self.spec.own, Path(path)
        if nowhere := sorted(own.laws.keys() - own.files.keys()):
            raise InputError(
                f"the law '{nowhere[0]}' is in no file that a study file could name; write it into "
                f"a file of its own and name it my.py:{nowhere[0]}."
            )
        own.write(target.parent)
        return write_whole(target, self.spec.text)

    def results(self, out: str | Path | None = None) -> StudyResults:
        """What is in a directory (default: results/NAME) of this study, finished or not."""
        return load_study(self._directory(out), self.spec.own.laws.values())

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
        learner-updates after each block, `say` short remarks on what was found in the directory.
        """
        if engine not in ENGINES:
            raise unknown("engine", engine, ENGINES)
        if address is not None and engine != "dask":
            raise InputError("address is for a Dask cluster; give engine='dask' too.")
        workers = os.cpu_count() or 1 if threads is None else whole("threads", threads, 1)
        directory = self._directory(out)
        self._require_usable(directory, fresh)  # before anything is made there
        on = cluster(address, workers) if engine == "dask" else over_threads(workers)
        with on as submit:  # first: without Dask, or a scheduler, the directory stays as it is
            output_directory(directory)
            with _only_run(directory):
                self._prepare(directory, fresh)
                return self._stages(directory, progress or (lambda done, total: None), say, submit)

    def _require_usable(self, directory: Path, fresh: bool) -> None:
        """Complain if the directory is not empty, and not this study's."""
        saved = directory / "study.toml"
        if saved.exists():
            if not fresh:
                _require_same(saved, self.spec)
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
            if self.spec.own.problems:
                self.spec.own.write(output_directory(directory / PLACE))

    def _stages(
        self, directory: Path, progress: Progress, say: Say, submit: Submit
    ) -> StudyResults:
        """The grid, then the best configurations of each learner on fresh seeds."""
        grid = grid_blocks(self.spec)
        later = self.spec.fresh_updates  # an estimate until the best are known
        self._stage(directory, grid, lambda done, total: progress(done, total + later), say, submit)
        before = self.spec.updates
        fresh = confirm_blocks(self.spec, choose_best(StudyResults.of(directory, self.spec, grid)))
        self._stage(
            directory, fresh, lambda done, total: progress(before + done, before + total), say,
            submit,
        )  # fmt: skip
        return StudyResults.of(directory, self.spec, grid)

    def _stage(
        self, directory: Path, blocks: list[StudyBlock], progress: Progress, say: Say,
        submit: Submit,
    ) -> None:  # fmt: skip
        finished, remarks = dataset.finished_blocks(directory, blocks)
        for remark in remarks:
            say(remark)
        if finished:
            part = "grid" if blocks[0].stage == "grid" else "rerun on fresh seeds"
            say(f"{len(finished)} of {len(blocks)} blocks of the {part} are finished.")
        known = {block.fingerprint for block in finished}
        total = sum(updates(self.spec, block) for block in blocks)
        done = sum(updates(self.spec, block) for block in finished)
        for block, content in submit(self.spec, [b for b in blocks if b.fingerprint not in known]):
            dataset.save(directory, block, content)
            done += updates(self.spec, block)
            progress(done, total)


@contextmanager
def _only_run(directory: Path) -> Iterator[None]:
    """Keep a second run out of the same directory. The lock goes away with the process."""
    from filelock import FileLock, Timeout

    lock = FileLock(directory / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"another process is running a study in '{directory}'; wait for it, or name "
            "another directory."
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
    return others <= {*dataset.STAGES, PLACE, LOCK, "provenance.json"} and all(
        dataset.BLOCK.fullmatch(path.name) or dataset.left_behind(path) for path in blocks
    )


def _require_same(saved: Path, spec: Spec) -> None:
    """Complain, key by key, if the directory's study is another one than `spec`."""
    try:
        before = load_spec(saved, spec.own)
    except InputError as error:
        raise InputError(f"{error} It cannot be resumed; use --fresh.") from None
    differences = list(_differences(before, spec))
    if differences:
        raise InputError(
            f"the study has changed since '{saved.parent}' was begun: {'; '.join(differences)}. "
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
