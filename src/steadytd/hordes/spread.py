"""Spreads work over threads in contiguous pieces; the compiled loops release the lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="horde")


def spread(run: Callable[[int, int], None], count: int, threads: int) -> None:
    """run(low, high) over 0 .. count, in as many contiguous pieces as there are threads."""
    pieces = min(threads, count)
    if pieces <= 1:
        run(0, count)
        return
    ends = [count * i // pieces for i in range(pieces + 1)]
    pool = _pool(threads)
    waiting = [pool.submit(run, ends[i], ends[i + 1]) for i in range(1, pieces)]
    run(ends[0], ends[1])
    for one in waiting:
        one.result()
