"""The sums of a log's parts as tasks of a cluster: checkpointed, restartable, reduced as a tree.

Merging strings pieces together and adds nothing, so the tree gives the same bits as one machine
that takes the same parts in order. Online learners need the stream from beginning to end: this
process follows them over all parts while the cluster takes the sums.

A kept result holds its own identity (code, versions, features, plan, learners, and how the log is
read) and a hash of the rows it was made from, taken while they were read. It is used again only if
the identity is the one wanted and the rows, read and hashed once more, are the same.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, reading_arrays, write_arrays
from steadytd.base.identity import digest, modules
from steadytd.base.outside.source import UnreadableError
from steadytd.base.parallel import connect, require_dask
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.checks import Checked, Checks
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.collect.statistics import Statistics, merged
from steadytd.evaluation.estimate.requests import Request
from steadytd.evaluation.follow.local import (
    Passed,
    Progress,
    features_of,
    first_members,
    follow_online,
    read,
    wanted,
)
from steadytd.evaluation.follow.online import Followed
from steadytd.features import FeatureMap
from steadytd.logs.log import Log


class Found(NamedTuple):
    """The sums of parts (None: no usable row), rows left out, and hashes of what was read.

    `stale` counts kept results that were not what was wanted; `checked` is there where sums are.
    """

    sums: Statistics | None
    left_out: int
    contents: tuple[str, ...] = ()
    stale: int = 0
    checked: Checked | None = None


class Kept(NamedTuple):
    """Where a result is kept, and all that decides it but for the rows of the log."""

    file: Path
    identity: str


@dataclass(frozen=True)
class Work:
    """The log's parts, what is asked of them, and where results are kept."""

    parts: Sequence[Log]
    features: FeatureMap
    plan: Plan
    asked: Sequence[Request]  # online learners
    seed: int
    directory: Path | None

    def tasks(self) -> list[tuple[Log, FeatureMap, Plan, Kept | None]]:
        """The arguments of `part_sums` for every part, a copy: who reads it writes to it."""
        names = (f"part-{i:05d}" for i in range(len(self.parts)))
        return [
            (replace(part), self.features, self.plan, self.kept(name, part.reads()))
            for name, part in zip(names, self.parts, strict=True)
        ]

    def kept(self, name: str, *what: object) -> Kept | None:
        """The place of a result, None if none is wanted."""
        if self.directory is None:
            return None
        try:
            identity = digest(name, code(), self.features, self.plan, *what)
        except UnreadableError as error:
            raise InputError(
                f"checkpoint='{self.directory}' keeps results for later, which needs to see "
                f"whether anything has changed, but {error}. Give a plain function of numbers and "
                "arrays, put its probabilities into a column of the log, or leave out checkpoint."
            ) from None
        return Kept(self.directory / f"{name}-{identity[:16]}.npz", identity)


class Cluster(NamedTuple):
    """The address of a cluster, None for threads of this machine; where results are kept."""

    address: str | None
    checkpoint: str | Path | None


def code() -> str:
    """A hash of the code that makes the sums and follows the learners."""
    return modules(__name__)


def spread(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    asked: Sequence[Request],
    seed: int,
    progress: Progress | None,
    cluster: Cluster,
) -> Passed:
    """All parts, on a cluster or on threads of this machine."""
    address, checkpoint = cluster
    require_dask()
    from threadpoolctl import threadpool_limits

    directory = None if checkpoint is None else output_directory(checkpoint)
    online = [one for one in asked if one.kind == "online"]
    hashed = [replace(part, hashing=directory is not None) for part in parts]
    work = Work(hashed, features, plan, online, seed, directory)
    report = _reporter(len(parts) + bool(online), plan, progress)
    following = _Following(work, report)
    # once, around all threads: each on its own would restore what another one had set
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(1) as pool:
        try:
            following.begin(pool)
            found = (
                _on_threads(work, report) if address is None else _on_cluster(work, address, report)
            )
            outcomes = following.end(found.contents)
        except BaseException:
            following.stop.set()
            raise
    if found.sums is None or found.checked is None:
        raise InputError("the log has no row that can be learned from.")
    stale = found.stale + following.stale
    if stale:
        warnings.warn(
            f"{stale} of the results kept in '{directory}' were made from other rows or belong "
            "elsewhere; they were computed again.",
            stacklevel=3,
        )
    return Passed(found.sums, outcomes, found.left_out, found.checked)


def _on_threads(work: Work, report: Callable[[], None]) -> Found:
    import dask

    def task(*args: Any) -> Found:
        sums = part_sums(*args)
        report()
        return sums

    leaves = [dask.delayed(task)(*args) for args in work.tasks()]
    (found,) = dask.compute(_tree(leaves, dask.delayed(joined)), scheduler="threads")
    result: Found = found
    return result


def _on_cluster(work: Work, address: str, report: Callable[[], None]) -> Found:
    from distributed import as_completed

    client = connect(address)
    try:
        leaves = [client.submit(remote_sums, code(), *args, pure=False) for args in work.tasks()]
        for _ in as_completed(leaves):
            report()

        def join(one: Any, other: Any) -> Any:
            return client.submit(joined, one, other, pure=False)

        found: Found = _tree(leaves, join).result()
    finally:
        client.close()
    return found


def _tree(leaves: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Neighbours joined, then their results, until one is left."""
    while len(leaves) > 1:
        pairs = [leaves[i : i + 2] for i in range(0, len(leaves), 2)]
        leaves = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0]


def joined(one: Found, other: Found) -> Found:
    """The sums of two neighbours, in the order of the log."""
    known = [found.sums for found in (one, other) if found.sums is not None]
    sums = merged(known) if known else None
    contents = one.contents + other.contents
    checks = [found.checked for found in (one, other) if found.checked is not None]
    checked = Checked.merged(checks) if checks else None
    return Found(sums, one.left_out + other.left_out, contents, one.stale + other.stale, checked)


def remote_sums(
    wanted: str, part: Log, features: FeatureMap, plan: Plan, kept: Kept | None
) -> Found:
    """The task on a worker: the same code, and one BLAS thread, as everywhere else."""
    from threadpoolctl import threadpool_limits

    if code() != wanted:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba differs from that of the process which "
            "evaluates the log; install the same versions everywhere."
        )
    with threadpool_limits(limits=1, user_api="blas"):
        return part_sums(part, features, plan, kept)


def part_sums(part: Log, features: FeatureMap, plan: Plan, kept: Kept | None) -> Found:
    """The sums of one part: from its checkpoint if that is whole and right, else from the log."""
    old, stale = _kept_sums(kept)
    if old is not None:
        if (part.read_contents(wanted(part)),) == old.contents:
            return old
        stale = 1
    sums, checks, room = Accumulator(plan), Checks(plan), Room()
    for batch in read(part):
        X = features_of(batch, features, room)
        prepared = sums.prepare(batch, room)
        sums.add_rows(prepared, X)
        checks.add(batch, prepared, X)
    left_out, contents = int(part.left_out or 0), (part.contents or "",)
    if not sums.pieces:
        return Found(None, left_out, contents, stale)
    found, checked = sums.statistics(), checks.found()
    if kept is not None:
        marks = {"identity": np.array(kept.identity), "contents": np.array(contents)}
        found.save(kept.file, left_out=np.array(left_out), **marks, **checked.arrays())
    return Found(found, left_out, contents, stale, checked)


def _kept_sums(kept: Kept | None) -> tuple[Found | None, int]:
    """A finished checkpoint, None where there is none or it is damaged; 1 if it is another's."""
    if kept is None:
        return None, 0
    try:
        sums, extra = Statistics.load(kept.file)
        contents, checked = tuple(extra["contents"].tolist()), Checked.of(extra)
        found = Found(sums, int(extra["left_out"]), contents, checked=checked)
        own = str(extra["identity"])
    except Exception:
        return None, 0
    return (found, 0) if own == kept.identity else (None, 1)


class _Following:
    """The online learners: followed while the sums are taken, unless a checkpoint may do.

    Whether it does is known when all parts have been read for the sums.
    """

    def __init__(self, work: Work, report: Callable[[], None]) -> None:
        self.work, self.report = work, report
        reads = [part.reads() for part in work.parts]
        self.kept = work.kept("online", work.seed, work.asked, reads) if work.asked else None
        self.old, self.stale = _kept_outcomes(self.kept)
        self.stop = threading.Event()
        self.future: Future[list[Followed]] | None = None

    def begin(self, pool: ThreadPoolExecutor) -> None:
        """Follow the learners on a thread of their own, if it is known that they have to be."""
        if self.work.asked and self.old is None:
            self.future = pool.submit(self._follow)

    def end(self, contents: tuple[str, ...]) -> list[Followed]:
        """Where the learners end; `contents` are hashes of the parts as they are now."""
        if not self.work.asked:
            return []
        if self.future is not None:
            found = self.future.result()
        else:
            assert self.old is not None
            known = self._outcomes(self.old) if self.old.contents == contents else None
            self.stale += known is None
            found = self._follow() if known is None else known
        self.report()
        return found

    def _follow(self) -> list[Followed]:
        work = self.work
        found = follow_online(
            work.parts, work.features, work.plan, work.asked, work.seed, self._go_on
        )
        if self.kept is not None:
            steps = [-1 if one.diverged is None else one.diverged for one in found]
            arrays = {
                "identity": self.kept.identity,
                "contents": [part.contents or "" for part in work.parts],
                "weights": np.array([one.weights for one in found]),
                "diverged": steps,
            }
            write_arrays(self.kept.file, arrays)
        return found

    def _go_on(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise InterruptedError("the evaluation was stopped.")

    def _outcomes(self, old: _Ended) -> list[Followed] | None:
        """The learners' numbers come again from the first rows of the log."""
        work = self.work
        first = first_members(work.parts, work.features, work.plan, work.asked, work.seed)
        steps = old.diverged
        if old.weights.shape != (len(first), work.plan.features) or len(steps) != len(first):
            return None
        return [
            Followed(one.learner, one.target, w, step if step >= 0 else None)
            for one, w, step in zip(first, old.weights, steps, strict=True)
        ]


class _Ended(NamedTuple):
    """A checkpoint of online learners."""

    contents: tuple[str, ...]
    weights: Floats
    diverged: list[int]


def _kept_outcomes(kept: Kept | None) -> tuple[_Ended | None, int]:
    """A finished checkpoint, None where there is none or it is damaged; 1 if it is another's."""
    if kept is None:
        return None, 0
    try:
        with reading_arrays(kept.file, "checkpoint") as file:
            contents = tuple(file["contents"].tolist())
            found = _Ended(contents, file["weights"], file["diverged"].tolist())
            own = str(file["identity"])
    except InputError:
        return None, 0
    return (found, 0) if own == kept.identity else (None, 1)


def _reporter(tasks: int, plan: Plan, progress: Progress | None) -> Callable[[], None]:
    """Called once per finished task."""
    lock = threading.Lock()
    done = 0

    def report() -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(plan.rows * done // tasks, plan.rows)

    return report
