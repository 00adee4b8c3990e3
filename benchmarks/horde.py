"""Tens of thousands of predictions on one live stream: `python benchmarks/horde.py`.

The record to beat: 60,000 prediction-updates per second (Modayil, White and Sutton 2014: 6,000
predictions of about 6,000 binary features at 10 Hz). A live step is bound by memory: with 457 of
6,065 features active, tdc with traces reads and writes 3 x 457 rows, 22 kB for each prediction. So
the memory bandwidth (of reading and writing, with all threads) is measured in the same run, before
each case, and what a case moves is shown as a share of it. `cores` is the processor time that the
case got per second: less than there are cores means that the machine was busy with other work.

`update_many` gets 256 steps at once; `times` is how much faster it is than live steps. `memory` is
that of the Horde over that of its weights. `--first` measures the first case alone; `--quick` takes
the smallest sizes, to see that it runs.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import steadytd as st
from steadytd.base.arrays import Floats

THREADS = os.cpu_count() or 1
LEARNER = "tdc:alpha=1e-5,ratio=1,lam=0.8"


class World(NamedTuple):
    """A stream to be predicted: which features are active, and how ratios are drawn."""

    features: int
    active: int
    policies: int = 300
    zero: float = 0.0  # share of ratios that are 0
    moves: float = 1.0  # share of the active features that change from step to step


class Steps(NamedTuple):
    """Some steps; x_next of one is x of the next."""

    indices: NDArray[np.int64]
    cumulants: Floats
    rhos: Floats


ROBOT, SMALL = World(6065, 457), World(1000, 20)
CUMULANTS = 64
LIVE = 64  # steps one by one, where more are given to `update_many`


def draw(world: World, steps: int, seed: int = 0) -> Steps:
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(world.features)[: world.active]]
    for _ in range(steps):
        stay = rng.permutation(rows[-1])[: round(world.active * (1.0 - world.moves))]
        others = np.setdiff1d(np.arange(world.features), stay)
        new = rng.permutation(others)[: world.active - len(stay)]
        rows.append(np.concatenate([stay, new]))
    rhos = rng.uniform(0.5, 1.5, size=(steps, world.policies))
    rhos *= rng.random(rhos.shape) >= world.zero
    return Steps(np.sort(rows, axis=1), rng.normal(size=(steps, CUMULANTS)), rhos)


def make(world: World, count: int, dtype: str, learner: str = LEARNER) -> st.Horde:
    """Predictions of all cumulants under all policies, with one discount."""
    made = st.learner(learner)
    predictions = [
        st.prediction(made, cumulant=i % CUMULANTS, policy=i % world.policies, discount=0.9)
        for i in range(count)
    ]
    return st.horde(world.features, predictions, dtype=dtype, threads=THREADS)


def touch(numbers: Floats) -> None:
    numbers += 1.0


def bandwidth(numbers: int) -> float:
    """Bytes per second that all threads read and write together, the best of five."""
    parts = [np.zeros(numbers) for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(touch, parts))
        best = min(seconds(lambda: list(pool.map(touch, parts)))[0] for _ in range(5))
    return 2 * sum(part.nbytes for part in parts) / best


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall clock and processor time of a piece of work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


class Measured(NamedTuple):
    """Seconds per step: the best mean over a stretch, the slowest single step, and cores had."""

    live: float
    slowest: float
    many: float
    cores_live: float
    cores_many: float


def measure(h: st.Horde, given: Steps, repeats: int) -> Measured:
    x = given.indices
    n, total = min(LIVE, len(given.rhos)), len(given.rhos)

    def step(t: int) -> None:
        h.update((x[t], None), (x[t + 1], None), given.cumulants[t], given.rhos[t])

    def stretch() -> None:
        h.update_many((x[:-1], None), (x[1:], None), given.cumulants, given.rhos)

    stretch()  # compiles, and fills the traces
    live, many = [], []
    for _ in range(repeats):
        live.append([seconds(lambda t=t: step(t)) for t in range(n)])  # type: ignore[misc]
        many.append(seconds(stretch))
    best = min(live, key=lambda times: sum(wall for wall, _ in times))
    wall, cpu = (sum(column) for column in zip(*best, strict=True))
    whole, busy = min(many)
    slowest = max(wall for wall, _ in best)
    return Measured(wall / n, slowest, whole / total, cpu / wall, busy / whole)


def show(name: str, world: World, h: st.Horde, steps: int, repeats: int, numbers: int) -> None:
    """One line of the table."""
    found = measure(h, draw(world, steps), repeats)
    count, size = len(h), 4 if h.dtype == "float32" else 8
    live, many = count / found.live / 1e6, count / found.many / 1e6
    moved = 2 * 3 * world.active * size * live * 1e6
    weights = count * world.features * 2 * size
    print(
        f"{name:34}{count:8,}{1 / found.live:10.1f}{live:8.2f}{moved / bandwidth(numbers):8.0%}"
        f"{1e3 * found.slowest:9.1f}{found.cores_live:7.1f}{many:8.2f}"
        f"{found.live / found.many:7.1f}{found.cores_many:7.1f}{h.nbytes / weights:8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    parser.add_argument("--first", action="store_true", help="the first case alone")
    given = parser.parse_args()
    usual, large, counts = 10_000, 50_000, [100, 1_000, 10_000, 100_000]  # predictions
    most, some, few = 256, 64, 16  # steps
    repeats, numbers = 5, 25_000_000
    if given.quick:
        usual, large, counts = 20, 40, [10]
        most, some, few, repeats, numbers = 4, 4, 4, 1, 10_000
    line = partial(show, repeats=repeats, numbers=numbers)
    print(f"tdc with traces, lam = 0.8, {THREADS} threads; M/s: million prediction-updates per")
    print(f"second. Memory bandwidth (reading and writing): {bandwidth(numbers) / 1e9:.1f} GB/s.\n")
    head = f"{'':34}{'number':>8}{'steps/s':>10}{'M/s':>8}{'of mem.':>8}{'worst ms':>9}{'cores':>7}"
    print(head + f"{'many M/s':>9}{'times':>6}{'cores':>7}{'memory':>8}")
    line("457 of 6,065, double", ROBOT, make(ROBOT, usual, "float64"), most)
    if given.first:
        return
    half, slow = ROBOT._replace(zero=0.5), ROBOT._replace(moves=0.1)
    line("  half of all ratios 0", half, make(half, usual, "float64"), most)
    line("  one feature in ten changes", slow, make(slow, usual, "float64"), most)
    one = slow._replace(policies=1)
    line("  the same, one policy", one, make(one, usual, "float64"), most)
    line("  single", ROBOT, make(ROBOT, usual, "float32"), most)
    line("  double", ROBOT, make(ROBOT, large, "float64"), few, repeats=2)
    line("  single", ROBOT, make(ROBOT, large, "float32"), few, repeats=2)
    line("20 of 1,000, double", SMALL, make(SMALL, usual, "float64"), most)
    line("  lam = 0", SMALL, make(SMALL, usual, "float64", LEARNER[:-8]), most)
    print()
    for count in counts:
        line("20 of 1,000, double", SMALL, make(SMALL, count, "float64"), some)
    for count in counts[:3]:
        line("457 of 6,065, double", ROBOT, make(ROBOT, count, "float64"), some)
    line("  single", ROBOT, make(ROBOT, counts[-1], "float32"), few // 2, repeats=1)


if __name__ == "__main__":
    main()
