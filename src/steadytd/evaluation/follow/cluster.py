"""The sums of a log's parts as tasks of a cluster: checkpointed, restartable, reduced as a tree.

Merging strings pieces together and adds nothing, so the tree gives the same bits as one machine
that takes the same parts in order. Online learners need the stream from beginning to end: this
process follows them over all parts while the cluster takes the sums.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.cluster import connect, require_dask
from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, write_whole
from steadytd.engine.compile import law_functions, meaning
from steadytd.evaluation.collect.accumulate import Accumulator
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.requests import Request
from steadytd.evaluation.collect.room import Room
from steadytd.evaluation.collect.statistics import Statistics, merged
from steadytd.evaluation.follow.local import (
    Passed,
    Progress,
    features_of,
    first_members,
    follow_online,
    read,
)
from steadytd.evaluation.follow.online import Outcome
from steadytd.features import FeatureMap
from steadytd.logs.log import Log

Found = tuple[Statistics | None, int]  # the sums of a part (None: no usable row), rows left out


@dataclass(frozen=True)
class Work:
    """The log's parts, what is asked of them, and where results are kept."""

    parts: Sequence[Log]
    features: FeatureMap
    plan: Plan
    asked: Sequence[Request]  # online learners
    seed: int
    directory: Path | None

    def tasks(self) -> list[tuple[Log, FeatureMap, Plan, Path | None]]:
        """The arguments of `part_sums` for every part."""
        names = (f"part-{i:05d}" for i in range(len(self.parts)))
        return [
            (part, self.features, self.plan, self.file(name, part.fingerprint()))
            for name, part in zip(names, self.parts, strict=True)
        ]

    def file(self, name: str, what: str) -> Path | None:
        """Named after all that decides the result, so that a stale checkpoint is never found."""
        if self.directory is None:
            return None
        digest = hashlib.sha256(repr((what, self.plan)).encode())
        for label, array in sorted(self.features.save_arrays().items()):
            digest.update(label.encode() + np.ascontiguousarray(array).tobytes())
        return self.directory / f"{name}-{digest.hexdigest()[:16]}.npz"


def spread(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    asked: Sequence[Request],
    address: str | None,
    checkpoint: str | Path | None,
    seed: int,
    progress: Progress | None,
) -> Passed:
    """All parts, on the cluster at `address` or on threads of this machine."""
    require_dask()
    from threadpoolctl import threadpool_limits

    directory = None if checkpoint is None else output_directory(checkpoint)
    online = [one for one in asked if one.kind == "online"]
    work = Work(parts, features, plan, online, seed, directory)
    report = _reporter(len(parts) + bool(online), plan, progress)
    stop = threading.Event()
    # once, around all threads: each on its own would restore what another one had set
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(1) as pool:
        following = pool.submit(online_outcomes, work, report, stop) if online else None
        try:
            sums, left_out = (
                _on_threads(work, report) if address is None else _on_cluster(work, address, report)
            )
            outcomes = [] if following is None else following.result()
        except BaseException:
            stop.set()
            raise
    if sums is None:
        raise InputError("the log has no row that can be learned from.")
    return Passed(sums, outcomes, left_out)


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
        leaves = [client.submit(remote_sums, *args, pure=False) for args in work.tasks()]
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
    known = [sums for sums, _ in (one, other) if sums is not None]
    return merged(known) if known else None, one[1] + other[1]


def remote_sums(part: Log, features: FeatureMap, plan: Plan, file: Path | None) -> Found:
    """The task on a worker: one BLAS thread there, as everywhere else."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return part_sums(part, features, plan, file)


def part_sums(part: Log, features: FeatureMap, plan: Plan, file: Path | None) -> Found:
    """The sums of one part: from its checkpoint if that is whole, else from the log."""
    kept = None if file is None else _kept(file)
    if kept is not None:
        return kept
    sums, room = Accumulator(plan), Room()
    for batch in read(part):
        X = features_of(batch, features, room)
        sums.add_rows(sums.prepare(batch, room), X)
    left_out = int(part.left_out or 0)
    if not sums.pieces:
        return None, left_out
    found = sums.statistics()
    if file is not None:
        found.save(file, left_out=np.array(left_out))
    return found, left_out


def online_outcomes(work: Work, report: Callable[[], None], stop: threading.Event) -> list[Outcome]:
    """Where the online learners end: from their checkpoint if that is whole, else from the log."""
    learners = [one.learner for one in work.asked if one.learner is not None]
    laws = [(str(x), meaning(tuple(law_functions(x.law).items()))) for x in learners]
    what = work.seed, laws, [part.fingerprint() for part in work.parts]
    file = work.file("online", repr(what))

    def go_on(done: int, total: int) -> None:
        if stop.is_set():
            raise InterruptedError("the evaluation was stopped.")

    found = None if file is None else _kept_outcomes(file, work)
    if found is None:
        found = follow_online(work.parts, work.features, work.plan, work.asked, work.seed, go_on)
        if file is not None:
            steps = [-1 if one.diverged is None else one.diverged for one in found]
            arrays = {"weights": np.array([one.weights for one in found]), "diverged": steps}
            write_whole(file, partial(_save, arrays))
    report()
    return found


def _save(arrays: dict[str, Any], where: Path) -> None:
    with where.open("wb") as handle:
        np.savez(handle, **arrays)


def _kept_outcomes(file: Path, work: Work) -> list[Outcome] | None:
    """A finished checkpoint. The learners' numbers come again from the first rows of the log."""
    try:
        with file.open("rb") as handle, np.load(handle, allow_pickle=False) as kept:
            weights, diverged = kept["weights"], kept["diverged"].tolist()
    except Exception:
        return None
    first = first_members(work.parts, work.features, work.plan, work.asked, work.seed)
    if weights.shape != (len(first), work.plan.features) or len(diverged) != len(first):
        return None
    return [
        Outcome(one.learner, one.target, w, step if step >= 0 else None)
        for one, w, step in zip(first, weights, diverged, strict=True)
    ]


def _kept(file: Path) -> Found | None:
    """A finished checkpoint; None where there is none, or it is damaged."""
    try:
        sums, extra = Statistics.load(file)
        return sums, int(extra["left_out"])
    except Exception:
        return None


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
