"""The sums of a log's parts as tasks of a cluster: checkpointed, restartable, reduced as a tree.

Merging strings pieces together and adds nothing, so the tree gives the same bits as one machine
that takes the same parts in order. Online learners need the stream from beginning to end; they are
not followed here.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.core.cluster import connect, require_dask
from steadytd.core.errors import InputError
from steadytd.core.files import output_directory
from steadytd.evaluate.accumulate import Accumulator
from steadytd.evaluate.follow import Passed, Progress, read
from steadytd.evaluate.plan import Plan
from steadytd.evaluate.statistics import Statistics, merged
from steadytd.features import FeatureMap
from steadytd.streams.log import Log

Found = tuple[Statistics | None, int]  # the sums of a part (None: no usable row), rows left out


def spread(
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    address: str | None,
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> Passed:
    """All parts, on the cluster at `address` or on threads of this machine."""
    require_dask()
    import dask

    directory = None if checkpoint is None else output_directory(checkpoint)
    files = [_file(directory, i, part, features, plan) for i, part in enumerate(parts)]
    report = _reporter(parts, plan, progress)
    if address is not None:
        found = _on_cluster(address, parts, features, plan, files, report)
    else:
        from threadpoolctl import threadpool_limits

        def task(part: Log, file: Path | None) -> Found:
            sums = part_sums(part, features, plan, file)
            report()
            return sums

        leaves = [dask.delayed(task)(p, f) for p, f in zip(parts, files, strict=True)]
        with threadpool_limits(limits=1, user_api="blas"):
            (found,) = dask.compute(_tree(leaves, dask.delayed(joined)), scheduler="threads")
    sums, left_out = found
    if sums is None:
        raise InputError("the log has no row that can be learned from.")
    return Passed(sums, [], left_out)


def _on_cluster(
    address: str,
    parts: Sequence[Log],
    features: FeatureMap,
    plan: Plan,
    files: list[Path | None],
    report: Callable[[], None],
) -> Found:
    from distributed import as_completed

    client = connect(address)
    try:
        leaves = [
            client.submit(remote_sums, part, features, plan, file, pure=False)
            for part, file in zip(parts, files, strict=True)
        ]
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
    if file is not None:
        kept = _kept(file)
        if kept is not None:
            return kept
    sums = Accumulator(plan)
    for batch in read(part):
        sums.add(batch, features(batch.obs))
    left_out = int(part.left_out or 0)
    if not sums.pieces:
        return None, left_out
    found = sums.statistics()
    if file is not None:
        found.save(file, left_out=np.array(left_out))
    return found, left_out


def _kept(file: Path) -> Found | None:
    """A finished checkpoint; None where there is none, or it is damaged."""
    try:
        sums, extra = Statistics.load(file)
        return sums, int(extra["left_out"])
    except Exception:
        return None


def _file(
    directory: Path | None, i: int, part: Log, features: FeatureMap, plan: Plan
) -> Path | None:
    """Named after all that decides the sums, so that a stale checkpoint is never found."""
    if directory is None:
        return None
    digest = hashlib.sha256(repr((part.fingerprint(), plan)).encode())
    for name, array in sorted(features.save_arrays().items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return directory / f"part-{i:05d}-{digest.hexdigest()[:16]}.npz"


def _reporter(parts: Sequence[Log], plan: Plan, progress: Progress | None) -> Callable[[], None]:
    """Called once per finished part."""
    lock = threading.Lock()
    done = 0

    def report() -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(plan.rows * done // len(parts), plan.rows)

    return report
