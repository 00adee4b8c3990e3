"""Where the blocks of a study run: over this machine's threads, or on a Dask cluster.

Both give the same bits. A cluster gets a study's text and a block's number and returns the content
of the block's file, which this process writes; so workers need steadytd and nothing else, no shared
disk. A worker that dies costs its blocks under way: Dask gives them to another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.parallel import connect, require_dask
from steadytd.learners import learner
from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, compute, confirm_blocks, grid_blocks
from steadytd.studies.spec import Spec, parse_spec

Submit = Callable[[Spec, list[StudyBlock]], Iterator[tuple[StudyBlock, bytes]]]
Address = Any  # "tcp://...", a Dask Client, a cluster object, or None

PER_WORKER = 3  # blocks handed out per thread of the cluster: enough that none waits


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

        def submit(spec: Spec, blocks: list[StudyBlock]) -> Iterator[tuple[StudyBlock, bytes]]:
            waiting = iter(blocks)
            running: dict[Future[bytes], StudyBlock] = {}
            while True:
                for block in waiting:
                    running[pool.submit(block_file, spec, block, stop)] = block
                    if len(running) > 2 * workers:
                        break
                if not running:
                    return
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    yield running.pop(future), future.result()

        try:
            yield submit
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: Address, workers: int) -> Iterator[Submit]:
    """Run blocks on the cluster at `address`, or on `workers` processes of this machine."""
    require_dask()
    from distributed import Client, LocalCluster, as_completed

    own = None
    if isinstance(address, Client):
        client = address
    elif address is None:
        own = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        client = Client(own)
    else:
        client = connect(address)

    def submit(spec: Spec, blocks: list[StudyBlock]) -> Iterator[tuple[StudyBlock, bytes]]:
        waiting = iter(blocks)
        room = PER_WORKER * max(1, sum(client.nthreads().values()))
        running: dict[str, StudyBlock] = {}
        stream = as_completed([], with_results=True)

        def more() -> bool:
            block = next(waiting, None)
            if block is None:
                return False
            best = None if block.stage == "grid" else [str(x) for x in block.learners]
            future = client.submit(
                remote_block, spec.text, spec.name, block.stage, block.task, best, block.seeds,
                block.fingerprint, key=f"{block.file}-{block.fingerprint}", pure=True,
            )  # fmt: skip
            running[future.key] = block
            stream.add(future)
            return True

        while len(running) < room and more():
            pass
        while running:
            future, content = next(stream)
            yield running.pop(future.key), content
            more()

    try:
        yield submit
    finally:
        if not isinstance(address, Client):
            client.close()
        if own is not None:
            own.close()


@lru_cache(maxsize=4)
def _spec(text: str, name: str) -> Spec:
    return parse_spec(text, name)


@lru_cache(maxsize=4)
def _grid(text: str, name: str) -> dict[str, StudyBlock]:
    return {block.fingerprint: block for block in grid_blocks(_spec(text, name))}


def remote_block(
    text: str,
    name: str,
    stage: str,
    task: int,
    best: list[str] | None,
    seeds: tuple[int, ...],
    fingerprint: str,
) -> bytes:
    """Run one block of a study given by its text; what a worker does."""
    spec = _spec(text, name)
    if stage == "grid":
        block = _grid(text, name).get(fingerprint)
    else:
        chosen = [(task, learner(one)) for one in best or []]
        found = [b for b in confirm_blocks(spec, chosen) if b.fingerprint == fingerprint]
        block = found[0] if found else None
    if block is None:
        raise InputError(
            "this worker's steadytd, NumPy, SciPy or Numba differs from that of the process which "
            "runs the study; install the same versions everywhere."
        )
    return block_file(spec, block)
