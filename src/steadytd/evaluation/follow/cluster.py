"""The sums of a log's parts as tasks of a cluster: checkpointed, restartable, reduced as a tree.

Merging strings pieces together and adds nothing, so the tree gives the same bits as one machine
that takes the same parts in order. Online learners need the stream from beginning to end: this
process follows them over all parts while the cluster takes the sums.

A checkpoint holds its own identity (code, versions, features, plan, learners, and how the log is
read) and a hash of the rows it was made from, taken while they were read. It is used again only if
the identity is the one wanted and the rows, read and hashed once more, are the same. Beside these a
part's checkpoint holds its sums, that of the online learners the state of their blocks.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, reading_arrays, write_arrays
from steadytd.base.identity import digest, modules
from steadytd.base.parallel import connect, require_dask, single_threaded
from steadytd.base.source import UnreadableError
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.checks import Checked, Checks
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.collect.statistics import Statistics, merged
from steadytd.evaluation.follow.local import (
    Passed,
    Progress,
    Work,
    features_of,
    first_followers,
    follow_online,
    read,
    wanted,
)
from steadytd.evaluation.follow.online import Followed
from steadytd.features import FeatureMap
from steadytd.logs.log import Log

Marks = Mapping[str, NDArray[Any]]
T = TypeVar("T")


class Found(NamedTuple):
    """The sums of parts (None: no usable row) and rows left out.

    `stale` counts checkpoints that were not what was wanted; `checked` is there where sums are.
    """

    sums: Statistics | None
    left_out: int
    stale: int = 0
    checked: Checked | None = None


class Kept(NamedTuple):
    """Where a result is kept, and all that decides it but for the rows of the log."""

    file: Path
    identity: str

    def marks(self, *parts: Log) -> Marks:
        """What a checkpoint made from these parts says of itself."""
        contents = [part.contents or "" for part in parts]
        return {"identity": np.array(self.identity), "contents": np.array(contents)}


def code() -> str:
    """A hash of the code that makes the sums and follows the learners."""
    return modules(__name__)


def _place(directory: Path, name: str, work: Work, *what: object) -> Kept:
    """The place of a result."""
    try:
        identity = digest(name, code(), work.features, work.plan, *what)
    except UnreadableError as error:
        raise InputError(
            f"checkpoint='{directory}' keeps results for later, which needs to see "
            f"whether anything has changed, but {error}. Give a plain function of numbers and "
            "arrays, put its probabilities into a column of the log, or leave out checkpoint."
        ) from None
    return Kept(directory / f"{name}-{identity[:16]}.npz", identity)


@single_threaded  # once, around all threads: each on its own would restore what another had set
def spread(
    work: Work, progress: Progress | None, address: str | None, checkpoint: str | Path | None
) -> Passed:
    """All parts, on the cluster at `address` or on threads of this machine."""
    require_dask()
    directory = None if checkpoint is None else output_directory(checkpoint)
    parts = [replace(part, hashing=directory is not None) for part in work.parts]
    work, plan = replace(work, parts=parts), work.plan
    done, lock, stop = count(1), threading.Lock(), threading.Event()

    def report() -> None:
        with lock:
            finished = plan.rows * next(done) // (len(parts) + bool(work.online))
            if progress is not None:
                progress(finished, plan.rows)

    def go_on() -> None:
        if stop.is_set():
            raise InterruptedError("the evaluation was stopped.")

    def kept(name: str, *what: object) -> Kept | None:
        return None if directory is None else _place(directory, name, work, *what)

    reads = [part.reads() for part in parts]
    online = kept("online", work.seed, work.online, reads) if work.online else None
    tasks = [
        (replace(part), work.features, plan, kept(f"part-{i:05d}", reads[i]))
        for i, part in enumerate(parts)
    ]  # copies of the parts: who reads one writes to it
    with ThreadPoolExecutor(1) as pool:
        try:
            following = pool.submit(online_outcomes, work, online, go_on)
            found = _on_cluster(tasks, address, report) if address else _on_threads(tasks, report)
            outcomes, stale = following.result()
        except BaseException:
            stop.set()
            raise
    if work.online:
        report()
    if found.sums is None or found.checked is None:
        raise InputError("the log has no row that can be learned from.")
    stale += found.stale
    if stale:
        warnings.warn(
            f"{stale} of the results kept in '{directory}' were made from other rows or belong "
            "elsewhere; they were computed again.",
            stacklevel=4,
        )
    return Passed(found.sums, outcomes, found.left_out, found.checked)


def _on_threads(tasks: list[Any], report: Callable[[], None]) -> Found:
    import dask

    def task(*args: Any) -> Found:
        sums = part_sums(*args)
        report()
        return sums

    leaves = [dask.delayed(task)(*args) for args in tasks]
    (found,) = dask.compute(_tree(leaves, dask.delayed(joined)), scheduler="threads")
    result: Found = found
    return result


def _on_cluster(tasks: list[Any], address: str, report: Callable[[], None]) -> Found:
    from distributed import as_completed

    client = connect(address)
    try:
        leaves = [client.submit(remote_sums, code(), *args, pure=False) for args in tasks]
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
    checks = [found.checked for found in (one, other) if found.checked is not None]
    checked = Checked.merged(checks) if checks else None
    sums = merged(known) if known else None
    return Found(sums, one.left_out + other.left_out, one.stale + other.stale, checked)


@single_threaded
def remote_sums(
    wanted: str, part: Log, features: FeatureMap, plan: Plan, kept: Kept | None
) -> Found:
    """The task on a worker: the same code, and one BLAS thread, as everywhere else."""
    if code() != wanted:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba differs from that of the process which "
            "evaluates the log; install the same versions everywhere."
        )
    return part_sums(part, features, plan, kept)


def part_sums(part: Log, features: FeatureMap, plan: Plan, kept: Kept | None) -> Found:
    """The sums of one part: from its checkpoint if that is whole and right, else from the log."""
    old, stale = _saved(kept, _saved_sums, [part])
    if old is not None:
        return old
    sums, checks, room = Accumulator(plan), Checks(plan), Room()
    for batch in read(part):
        X = features_of(batch, features, room)
        prepared = sums.prepare(batch, room)
        sums.add_rows(prepared, X)
        checks.add(batch, prepared, X)
    left_out = int(part.left_out or 0)
    if not sums.pieces:
        return Found(None, left_out, stale)
    found, checked = sums.statistics(), checks.found()
    if kept is not None:
        extra = {"left_out": np.array(left_out), **kept.marks(part), **checked.arrays()}
        found.save(kept.file, **extra)
    return Found(found, left_out, stale, checked)


def online_outcomes(
    work: Work, kept: Kept | None, go_on: Callable[[], None]
) -> tuple[list[Followed], int]:
    """Where the online learners end, likewise; and how many checkpoints were not wanted.

    `go_on` is called again and again, and raises an error if all is to be stopped.
    """

    def parts() -> Iterator[Log]:
        for part in work.parts:
            go_on()
            yield part

    if not work.online:
        return [], 0
    old, stale = _saved(kept, _saved_state, parts())
    if old is not None:
        followers = first_followers(work)
        followers.restore(old)
        return followers.outcomes(), 0
    followers = follow_online(work, go_on)
    if kept is not None:
        write_arrays(kept.file, {**kept.marks(*work.parts), **followers.state})
    return followers.outcomes(), stale


def _saved_sums(file: Path) -> tuple[Found, Marks]:
    sums, extra = Statistics.load(file)
    return Found(sums, int(extra["left_out"]), checked=Checked.of(extra)), extra


def _saved_state(file: Path) -> tuple[Marks, Marks]:
    with reading_arrays(file, "checkpoint") as archive:
        found = dict(archive)
    return found, found


def _saved(
    kept: Kept | None, load: Callable[[Path], tuple[T, Marks]], parts: Iterable[Log]
) -> tuple[T | None, int]:
    """What a checkpoint holds; None if there is none, or it is damaged or not what is wanted.

    It is not if it belongs elsewhere or was made from other rows: then the second number is 1.
    """
    if kept is None:
        return None, 0
    try:
        found, marks = load(kept.file)
        identity, contents = str(marks["identity"]), marks["contents"].tolist()
    except Exception:
        return None, 0
    same = identity == kept.identity
    if same and contents == [part.read_contents(wanted(part)) for part in parts]:
        return found, 0
    return None, 1
