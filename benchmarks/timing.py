"""Timing side by side: noise on a shared machine hits all alike, and the best time counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.cases import Loop


@dataclass(frozen=True)
class Effort:
    """How long to measure: fresh loops `rounds` times, each timed `repeats` times."""

    rounds: int
    repeats: int
    work: float  # features read by all lanes in one timed call, about
    steps: tuple[int, int]  # fewest and most steps of a timed call
    traced: int  # fewest steps where one step touches a thousand features

    def steps_for(self, lanes: int, active: int) -> int:
        low, high = self.steps
        return int(min(max(self.work / (lanes * active), low), high))


FULL = Effort(rounds=4, repeats=5, work=1e8, steps=(70_000, 1_000_000), traced=2_000)
QUICK = Effort(rounds=1, repeats=1, work=1e5, steps=(500, 2_000), traced=50)
ROUGH = "--quick shows that everything runs. Its figures are too rough to be judged."


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def race(makers: Sequence[Callable[[], Loop]], effort: Effort) -> tuple[list[float], list[Loop]]:
    """The best time of each loop, and the loops of the last round as they ended.

    Every round makes the loops anew while the old ones still hold their memory: where arrays happen
    to lie relative to each other changes a loop's speed, and no side shall win by that luck.
    """
    best = [float("inf")] * len(makers)
    rounds: list[list[Loop]] = []
    for _ in range(effort.rounds):
        loops = [make() for make in makers]
        rounds.append(loops)
        for loop in loops:
            loop.go()  # compiles, and warms the caches
        for _ in range(effort.repeats):
            for i, loop in enumerate(loops):
                loop.reset()
                best[i] = min(best[i], seconds(loop.go))
    return best, rounds[-1]


def best_interleaved(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The best time of each piece of work, taken in turns."""
    times = [[seconds(work) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]
