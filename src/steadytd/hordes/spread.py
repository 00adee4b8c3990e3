"""Spreads work over threads in contiguous pieces; the compiled loops release the lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple


class Job(NamedTuple):
    """run(low, high) over 0 .. size."""

    run: Callable[[int, int], None]
    size: int


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="horde")


def spread(jobs: Sequence[Job], threads: int) -> None:
    """All jobs, each in as many contiguous pieces as there are threads.

    A thread takes its piece of every job and waits for nobody in between: waking a thread costs
    as much as some hundred predictions.
    """
    pieces = min(threads, max((job.size for job in jobs), default=0))
    if pieces <= 1:
        _take(jobs, 0, 1)
        return
    pool = _pool(threads)
    waiting = [pool.submit(_take, jobs, i, pieces) for i in range(1, pieces)]
    _take(jobs, 0, pieces)
    for one in waiting:
        one.result()


def _take(jobs: Sequence[Job], piece: int, pieces: int) -> None:
    """One piece of every job."""
    for job in jobs:
        low, high = (job.size * i // pieces for i in (piece, piece + 1))
        if low < high:
            job.run(low, high)
