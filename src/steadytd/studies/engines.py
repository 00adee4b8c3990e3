"""Where the blocks of a study run: over this machine's threads, or on a Dask cluster.

Both are executors that get a few blocks at a time, and both give the same bits. A cluster gets a
study's text, problems and laws of the user's own, and a block's fingerprint, and returns the
content of the block's file, which this process writes; so workers need steadytd and nothing else,
no shared disk. A worker that dies costs its blocks under way: Dask gives them to another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.parallel import connect, require_dask
from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, compute, confirm_blocks, grid_blocks
from steadytd.studies.own import Own
from steadytd.studies.spec import Spec, parse_spec

Submit = Callable[[Spec, list[StudyBlock]], Iterator[tuple[StudyBlock, bytes]]]
Address = Any  # "tcp://...", a Dask Client, a cluster object, or None

PER_WORKER = 3  # blocks handed out per thread: enough that none waits


def block_file(spec: Spec, block: StudyBlock, stop: threading.Event | None = None) -> bytes:
    """Run a block and return the content of its file."""
    numbers = compute(spec, block, stop)
    if numbers is None:
        raise InterruptedError
    return dataset.to_bytes(dataset.table(block, numbers, spec.measures))


@contextmanager
def threads(workers: int) -> Iterator[Submit]:
    """Run blocks over threads. Leaving, for whatever reason, stops every thread at its chunk."""
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield lambda spec, blocks: _contents(
                pool, PER_WORKER * workers, ((b, (block_file, spec, b, stop)) for b in blocks)
            )
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: Address, workers: int) -> Iterator[Submit]:
    """Run blocks on the cluster at `address`, or on `workers` processes of this machine."""
    require_dask()
    from distributed import Client, LocalCluster

    with ExitStack() as opened:
        if isinstance(address, Client):
            client = address
        elif address is None:
            own = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
            client = opened.enter_context(closing(Client(opened.enter_context(closing(own)))))
        else:
            client = opened.enter_context(closing(connect(address)))
        pool = client.get_executor()
        most = PER_WORKER * max(1, sum(client.nthreads().values()))
        try:
            yield lambda spec, blocks: _contents(
                pool, most, ((b, (remote_block, sent(spec), *_named(b))) for b in blocks)
            )
        finally:
            pool.shutdown(wait=False)


def _contents(
    pool: Executor, most: int, calls: Iterator[tuple[StudyBlock, tuple[Any, ...]]]
) -> Iterator[tuple[StudyBlock, bytes]]:
    """The blocks with their files as they are ready; at most `most` are handed out at a time."""
    running: dict[Future[bytes], StudyBlock] = {}
    while True:
        for block, call in calls:
            running[pool.submit(*call)] = block
            if len(running) >= most:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


def _named(block: StudyBlock) -> tuple[str, tuple[tuple[int, str], ...]]:
    """What a worker finds a block by; in the second stage also the best configurations."""
    again = block.learners if block.stage == "confirm" else ()
    return block.fingerprint, tuple((block.task, str(x)) for x in again)


@lru_cache(maxsize=4)
def sent(spec: Spec) -> bytes:
    """What a worker makes a study from: its text, and all that is not registered."""
    import cloudpickle

    own = {"problems": spec.own.problems, "laws": list(spec.own.laws.values())}
    return bytes(cloudpickle.dumps({"text": spec.text, "name": spec.name, **own}))


@lru_cache(maxsize=4)
def _received(study: bytes) -> tuple[Spec, dict[str, StudyBlock]]:
    """The study, and the blocks of its grid by their fingerprints."""
    import cloudpickle

    given = cloudpickle.loads(study)
    own = Own(laws=given["laws"])
    own.problems.update(given["problems"])
    spec = parse_spec(given["text"], given["name"], own=own)
    return spec, {block.fingerprint: block for block in grid_blocks(spec)}


def remote_block(study: bytes, fingerprint: str, best: tuple[tuple[int, str], ...] = ()) -> bytes:
    """Run one block of a study as it was `sent`; what a worker does."""
    spec, blocks = _received(study)
    if best:
        again = confirm_blocks(spec, [(task, spec.learner(one)) for task, one in best])
        blocks = {block.fingerprint: block for block in again}
    if fingerprint not in blocks:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba, or a module that a law of your own "
            "imports, differs from that of the process which runs the study; install the same "
            "versions everywhere."
        )
    return block_file(spec, blocks[fingerprint])
