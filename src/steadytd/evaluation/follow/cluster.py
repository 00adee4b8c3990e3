"""Both passes over a log's parts as tasks of a cluster: checkpointed, restartable.

Results of parts are put together in the order of the log, as on one machine that takes the same
parts, so both give the same bits. Online learners need the stream from beginning to end: this
process follows them over all parts while the cluster makes the first pass.

A checkpoint holds the arrays of one result, its own identity (code, versions, plan, and how the log
is read; of the second pass also the weights) and a hash of the rows it was made from, taken while
they were read. It is used again only if the identity is the one wanted and the rows, read and
hashed once more, are the same.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, reading_arrays, write_arrays
from steadytd.base.identity import digest, modules
from steadytd.base.parallel import connect, require_dask, single_threaded
from steadytd.base.source import UnreadableError
from steadytd.evaluation.follow.local import (
    Progress,
    Work,
    first_followers,
    follow_online,
)
from steadytd.evaluation.follow.online import Followed
from steadytd.evaluation.passes import (
    FirstPass,
    Plan,
    first_pass,
    merge_sums,
    part_sums,
    read_tables,
    wanted,
)
from steadytd.evaluation.scores import RowSums, Units
from steadytd.logs.log import Log

Arrays = dict[str, NDArray[Any]]


class Result(NamedTuple):
    """The arrays that a task has made, hashes of the rows behind them, and outdated checkpoints."""

    arrays: Arrays
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
                with reading_arrays(self.file, "checkpoint") as archive:
                    arrays = dict(archive)
                made_from = str(arrays.pop("identity")), arrays.pop("contents").tolist()
            except Exception:  # damaged in whatever way
                made_from = None
            if made_from == (self.identity, found):
                return Result(arrays, found)
            stale = int(made_from is not None)
        made = make()
        marks = {"identity": np.array(self.identity), "contents": np.array(made.contents)}
        write_arrays(self.file, {**made.arrays, **marks})
        return made._replace(stale=stale)


def code() -> str:
    """A hash of the code that makes the sums and follows the learners."""
    return modules(__name__)


@dataclass
class ClusterPasses:
    """The passes on the cluster at `address`, or on threads of this machine."""

    work: Work
    progress: Progress | None = None
    address: str | None = None
    checkpoint: str | Path | None = None
    first: FirstPass = field(init=False)
    online: list[Followed] = field(init=False)

    def __post_init__(self) -> None:
        require_dask()
        self._directory = None if self.checkpoint is None else output_directory(self.checkpoint)
        parts = [replace(part, hashing=self._directory is not None) for part in self.work.parts]
        self.work = replace(self.work, parts=parts)
        self._contents: list[list[str]] = []
        self._done, self._lock = count(1), threading.Lock()
        self._rounds = 2 * len(parts) + bool(self.work.online)

    def _place(self, name: str, *what: object) -> Checkpoint | None:
        """The place of a result."""
        if self._directory is None:
            return None
        try:
            identity = digest(name, code(), self.work.plan, *what)
        except UnreadableError as error:
            raise InputError(
                f"checkpoint='{self._directory}' keeps results for later, which needs to see "
                f"whether anything has changed, but {error}. Give a plain function of numbers and "
                "arrays, put its probabilities into a column of the log, or leave out checkpoint."
            ) from None
        return Checkpoint(self._directory / f"{name}-{identity[:16]}.npz", identity)

    def _report(self) -> None:
        with self._lock:
            rows = self.work.plan.division.rows
            finished = rows * min(next(self._done), self._rounds) // self._rounds
            if self.progress is not None:
                self.progress(finished, rows)

    @single_threaded  # once, around all threads: each on its own would restore what another had set
    def run(self) -> None:
        """Make the first pass."""
        plan, parts, stop = self.work.plan, self.work.parts, threading.Event()

        def go_on() -> None:
            if stop.is_set():
                raise InterruptedError("the evaluation was stopped.")

        place = self._place("online", self.work.online, [part.reads() for part in parts])
        tasks = [
            (replace(part), plan, self._place(f"part-{i:05d}", part.reads()))
            for i, part in enumerate(parts)
        ]  # copies of the parts: who reads one writes to it
        with ThreadPoolExecutor(1) as pool:
            try:
                following = pool.submit(online_outcomes, self.work, place, go_on)
                found = self._spread(first_of_part, tasks)
                self.online, stale = following.result()
            except BaseException:
                stop.set()
                raise
        if self.work.online:
            self._report()

        def restored(one: Result) -> FirstPass:
            made = FirstPass.of(plan, parts[0].n_obs)
            made.restore(one.arrays)
            return made

        self.first = reduce(FirstPass.merged, map(restored, found))
        if not self.first.ratios.n_rows:
            raise InputError("the log has no row that can be learned from.")
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
            merge_sums(programs, one.arrays)
        self._warn(sum(one.stale for one in found))

    def _spread(self, task: Callable[..., Result], tasks: list[Any]) -> list[Result]:
        """The results of all parts, in their order."""
        if self.address is None:
            import dask

            def reported(*args: Any) -> Result:
                result = task(*args)
                self._report()
                return result

            delayed = [dask.delayed(reported)(*args) for args in tasks]
            return list(dask.compute(*delayed, scheduler="threads"))
        from distributed import as_completed

        client = connect(self.address)
        try:
            futures = [client.submit(remote, code(), task, *args, pure=False) for args in tasks]
            for _ in as_completed(futures):
                self._report()
            return [future.result() for future in futures]
        finally:
            client.close()

    def _warn(self, stale: int) -> None:
        if stale:
            warnings.warn(
                f"{stale} of the results kept in '{self._directory}' were made from other rows or "
                "belong elsewhere; they were computed again.",
                stacklevel=5,
            )


@single_threaded
def remote(wanted_code: str, task: Callable[..., Result], *args: Any) -> Result:
    """A task on a worker: the same code, and one BLAS thread, as everywhere else."""
    if code() != wanted_code:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba differs from that of the process which "
            "evaluates the log; install the same versions everywhere."
        )
    return task(*args)


def first_of_part(part: Log, plan: Plan, place: Checkpoint | None) -> Result:
    """The first pass of a part, from its checkpoint or from the log."""

    def make() -> Result:
        arrays = first_pass(part, plan, keep=False).arrays()
        return Result(arrays, [part.contents or ""])

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
    work: Work, place: Checkpoint | None, go_on: Callable[[], None]
) -> tuple[list[Followed], int]:
    """Where the online learners end, likewise; and how many checkpoints were outdated.

    `go_on` is called again and again, and raises an error if all is to be stopped.
    """
    if not work.online:
        return [], 0
    followers = first_followers(work)

    def contents() -> list[str]:
        found = []
        for part in work.parts:
            go_on()
            found.append(read_contents(part))
        return found

    def make() -> Result:
        follow_online(work, followers, go_on)
        return Result(followers.state, [part.contents or "" for part in work.parts])

    result = make() if place is None else place.result(contents, make)
    followers.restore(result.arrays)
    return followers.outcomes(), result.stale


def read_contents(part: Log) -> str:
    """A hash of the rows of a part, as the first pass reads them."""
    return part.read_contents(wanted(part))
