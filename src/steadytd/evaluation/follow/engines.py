"""Both passes over a log: on threads of this machine, or by part on a Dask cluster.

Results of parts are put together in the order of the log, so both give the same bits for the same
parts. Online learners need the stream from beginning to end: on one machine they are followed
beside the sums; on a cluster this process follows them while others make the first pass.

A checkpoint holds one result, its own identity (code, versions, plan, and how the log
is read; of the second pass also the weights) and a hash of the rows it was made from, taken while
they were read. It is used again only if the identity is the one wanted and the rows, read and
hashed once more, are the same.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory
from steadytd.base.identity import digest, modules
from steadytd.base.parallel import connect, require_dask, single_threaded
from steadytd.base.source import UnreadableError
from steadytd.evaluation.follow.online import PILOT_ROWS, Followed, Followers, Peaks, chosen
from steadytd.evaluation.passes import (
    FirstPass,
    Plan,
    first_pass,
    merge_sums,
    part_sums,
    read,
    read_rows,
    read_tables,
    wanted,
)
from steadytd.evaluation.records import load_record, save_record
from steadytd.evaluation.requests import Request
from steadytd.evaluation.rows import RowTable
from steadytd.evaluation.scores import RowSums, Units
from steadytd.logs.log import Log

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Work:
    """The log's parts in order, and what is asked of them."""

    parts: Sequence[Log]
    plan: Plan
    asked: Sequence[Request]

    @property
    def online(self) -> list[Request]:
        """The learners that are followed along the log."""
        return [one for one in self.asked if one.kind == "online"]

    def total(self, found: Sequence[FirstPass]) -> FirstPass:
        """The first pass over all parts."""
        first = reduce(FirstPass.merged, found)
        if not first.ratios.n_rows:
            raise InputError("the log has no row that can be learned from.")
        return first


@dataclass
class LocalPasses:
    """The passes on threads of this machine; `first` and `online` are results of the first one."""

    work: Work
    threads: int | None = None
    progress: Progress | None = None
    first: FirstPass = field(init=False)
    online: list[Followed] = field(init=False)
    _done: int = 0
    _tables: list[list[RowTable]] = field(default_factory=list)

    @property
    def _shares(self) -> int:
        return self.threads or os.cpu_count() or 1

    @single_threaded
    def run(self) -> None:
        """Make the first pass."""
        plan, followers = self.work.plan, first_followers(self.work)
        in_memory = plan.keeps(self.work.parts[0].n_obs)

        def also(table: RowTable) -> Sequence[Callable[[], None]]:
            self._report(len(table), in_memory)
            return followers.works(table, self._shares)

        with ThreadPoolExecutor(self._shares) as pool:
            own = pool if self._shares > 1 else None
            found = [first_pass(part, plan, also, own, in_memory) for part in self.work.parts]
        self._tables = [one.tables for one in found] if in_memory else []
        self.first = self.work.total(found)
        self.online = followers.outcomes()

    def sweep(self, programs: Sequence[RowSums], units: Units) -> None:
        """Make the second pass: over the tables in memory, else over the log once more."""
        with ThreadPoolExecutor(self._shares) as pool:
            own = pool if self._shares > 1 else None
            for tables in self._tables or map(self._read, self.work.parts):
                merge_sums(programs, part_sums(tables, programs, units, own, self._shares))

    def _read(self, part: Log) -> Iterator[RowTable]:
        for table in read_tables(part, self.work.plan):
            self._report(len(table), False)
            yield table

    def _report(self, rows: int, in_memory: bool) -> None:
        """Report progress: a log that is read twice is half done after the first time."""
        self._done += rows * (2 if in_memory else 1)
        total = self.work.plan.division.rows
        if self.progress is not None:
            self.progress(min(self._done // 2, total), total)


class Result(NamedTuple):
    """What a task has made, hashes of the rows behind it, and outdated checkpoints."""

    made: Any
    contents: list[str]
    stale: int = 0


class Checkpoint(NamedTuple):
    """Where a result is saved, and all that decides it but for the rows of the log."""

    file: Path
    identity: str

    def result(self, contents: Callable[[], list[str]], make: Callable[[], Result]) -> Result:
        """What the file holds if it is whole, has this identity and is of rows with these hashes.

        Otherwise the result is made and saved. A file that is whole, but of others, is outdated.
        """
        stale = 0
        if self.file.exists():
            found = contents()
            try:
                identity, read_from, made = load_record(self.file, "checkpoint")
            except Exception:  # damaged in whatever way
                identity = read_from = made = None
            if (identity, read_from) == (self.identity, found):
                return Result(made, found)
            stale = int(identity is not None)
        result = make()
        save_record(self.file, [self.identity, result.contents, result.made], compressed=False)
        return result._replace(stale=stale)


def code() -> str:
    """A hash of the code that makes the sums and follows the learners."""
    return modules(__name__)


@dataclass
class ClusterPasses:
    """The passes by part, on the cluster at `address` or on threads of this machine."""

    work: Work
    progress: Progress | None = None
    address: str | None = None
    checkpoint: str | Path | None = None
    first: FirstPass = field(init=False)
    online: list[Followed] = field(init=False)
    _done: int = 0

    def __post_init__(self) -> None:
        require_dask()
        self._directory = None if self.checkpoint is None else output_directory(self.checkpoint)
        parts = [replace(part, hashing=self._directory is not None) for part in self.work.parts]
        self.work = replace(self.work, parts=parts)
        self._contents: list[list[str]] = []

    def _place(self, name: str, *what: object) -> Checkpoint | None:
        """The place of a result."""
        if self._directory is None:
            return None
        try:
            identity = digest(name, code(), self.work.plan, *what)
        except UnreadableError as error:
            raise InputError(
                f"checkpoint='{self._directory}' saves results, and must see whether anything "
                f"they depend on has changed, but {error}. Give a plain function of numbers and "
                "arrays, put its probabilities into a column of the log, or leave out checkpoint."
            ) from None
        return Checkpoint(self._directory / f"{name}-{identity[:16]}.npz", identity)

    @single_threaded  # once, around all threads: each on its own would restore what another had set
    def run(self) -> None:
        """Make the first pass."""
        plan, parts, stop = self.work.plan, self.work.parts, threading.Event()
        place = self._place("online", self.work.online, [part.reads() for part in parts])
        tasks = [
            (replace(part), plan, self._place(f"part-{i:05d}", part.reads()))
            for i, part in enumerate(parts)
        ]  # copies of the parts: who reads one writes to it
        with ThreadPoolExecutor(1) as pool:
            try:
                following = pool.submit(online_outcomes, self.work, place, stop)
                found = self._spread(first_of_part, tasks)
                self.online, stale = following.result()
            finally:
                stop.set()

        self.first = self.work.total([one.made for one in found])
        self._contents = [one.contents for one in found]
        self._warn(stale + sum(one.stale for one in found))

    @single_threaded
    def sweep(self, programs: Sequence[RowSums], units: Units) -> None:
        """Make the second pass."""
        plan = self.work.plan
        asked = [(type(one).__name__, vars(one)) for one in programs] if self._directory else []
        tasks = [
            (replace(part, hashing=False), plan, list(programs), units,
             self._place(f"scores-{i:05d}", part.reads(), units, asked), self._contents[i])
            for i, part in enumerate(self.work.parts)
        ]  # fmt: skip
        found = self._spread(scores_of_part, tasks)
        for one in found:
            merge_sums(programs, one.made)
        self._warn(sum(one.stale for one in found))

    def _spread(self, task: Callable[..., Result], tasks: list[Any]) -> list[Result]:
        """The results of all parts, in their order."""
        rows, rounds = self.work.plan.division.rows, 2 * len(tasks)
        with executor(self.address) as pool:
            futures = [pool.submit(remote, code(), task, *args) for args in tasks]
            for future in as_completed(futures):
                future.result()
                self._done += 1
                if self.progress is not None:
                    self.progress(rows * min(self._done, rounds) // rounds, rows)
            return [future.result() for future in futures]

    def _warn(self, stale: int) -> None:
        if stale:
            warnings.warn(
                f"{stale} of the results saved in '{self._directory}' came from other rows or "
                "another evaluation; they were computed again.",
                stacklevel=5,
            )


@contextmanager
def executor(address: str | None) -> Iterator[Executor]:
    """The workers of the cluster at `address`, or threads of this machine."""
    if address is not None:
        with closing(connect(address)) as client:
            yield client.get_executor(pure=False)
        return
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def remote(wanted_code: str, task: Callable[..., Result], *args: Any) -> Result:
    """A task on a worker: the same code, and one BLAS thread, as everywhere else."""
    if code() != wanted_code:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba differs from that of the process which "
            "evaluates the log; install the same versions everywhere."
        )
    return single_threaded(task)(*args)


def first_of_part(part: Log, plan: Plan, place: Checkpoint | None) -> Result:
    """The first pass of a part, from its checkpoint or from the log."""

    def make() -> Result:
        return Result(first_pass(part, plan), [part.contents or ""])

    return make() if place is None else place.result(lambda: [read_contents(part)], make)


def scores_of_part(
    part: Log,
    plan: Plan,
    programs: Sequence[RowSums],
    units: Units,
    place: Checkpoint | None,
    contents: list[str],
) -> Result:
    """The second pass of a part, likewise; `contents` is what the first pass has read."""

    def make() -> Result:
        return Result(part_sums(read_tables(part, plan), programs, units), contents)

    return make() if place is None else place.result(lambda: contents, make)


def online_outcomes(
    work: Work, place: Checkpoint | None, stop: threading.Event
) -> tuple[list[Followed], int]:
    """Where the online learners end, likewise; and how many checkpoints were outdated."""
    if not work.online:
        return [], 0
    followers = first_followers(work)

    def contents() -> list[str]:
        return [read_contents(part) for part in until(stop, work.parts)]

    def make() -> Result:
        for table in until(stop, chain(*(read_tables(part, work.plan) for part in work.parts))):
            for advance in followers.works(table):
                advance()
        return Result(followers.state, [part.contents or "" for part in work.parts])

    result = make() if place is None else place.result(contents, make)
    followers.restore(result.made)
    return followers.outcomes(), result.stale


T = TypeVar("T")


def until(stop: threading.Event, each: Iterable[T]) -> Iterator[T]:
    """All of `each`; an error as soon as the evaluation is stopped."""
    for one in each:
        if stop.is_set():
            raise InterruptedError("the evaluation was stopped.")
        yield one


def first_followers(work: Work) -> Followers:
    """The online learners before the first row, with automatic numbers from the first rows."""
    plan, learners, online = work.plan, [], work.online
    if online:
        few = (replace(part, batch_rows=PILOT_ROWS) for part in work.parts)
        learners = chosen(chain(*(read_rows(part, plan) for part in few)), plan, online)
    averaging = [one.auto_alpha for one in online]
    rows = plan.division.rows
    return Followers(learners, averaging, _peaks(work), plan.features.n_features, rows)


def _peaks(work: Work) -> list[Peaks]:
    """The extremes over all rows, by a pass of its own if a law asks for them."""
    targets = len(work.plan.targets)
    if not any(one.learner and one.learner.law.needs_peaks for one in work.online):
        return [(1.0, 1.0)] * targets
    low, high = np.full(targets, np.inf), np.full(targets, -np.inf)
    for part in work.parts:
        for batch in read(replace(part)):
            assert batch.behavior_prob is not None
            taken = batch.behavior_prob > 0.0
            peak = np.maximum(batch.target_prob, batch.behavior_prob)[:, taken]
            low = np.minimum(low, peak.min(axis=1, initial=np.inf))
            high = np.maximum(high, peak.max(axis=1, initial=-np.inf))
    return list(zip(low.tolist(), high.tolist(), strict=True))


def read_contents(part: Log) -> str:
    """A hash of the rows of a part, as the first pass reads them."""
    return part.read_contents(wanted(part))
