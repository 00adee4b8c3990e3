"""Studies on this machine: blocks run over threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from steadytd.studies import dataset
from steadytd.studies.blocks import StudyBlock, compute
from steadytd.studies.spec import Spec

Submit = Callable[[Spec, list[StudyBlock]], Iterator[tuple[StudyBlock, bytes]]]


def block_file(
    spec: Spec,
    block: StudyBlock,
    stop: threading.Event | None = None,
    report: Callable[[int], None] = lambda updates: None,
) -> bytes:
    """Run a block and return the content of its file."""
    numbers = compute(spec, block, stop, report)
    if numbers is None:
        raise InterruptedError
    return dataset.to_bytes(dataset.table(block, numbers, spec.measures))


@contextmanager
def threads(workers: int, report: Callable[[int], None]) -> Iterator[Submit]:
    """Run blocks over threads. Leaving, for whatever reason, stops every thread at its chunk."""
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:

        def submit(spec: Spec, blocks: list[StudyBlock]) -> Iterator[tuple[StudyBlock, bytes]]:
            waiting = iter(blocks)
            running: dict[Future[bytes], StudyBlock] = {}
            while True:
                for block in waiting:
                    running[pool.submit(block_file, spec, block, stop, report)] = block
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
