"""What scaled traces cost: next to trace vectors, next to lam = 0, and over the number of features.

Times are those of the processor (`thread_time`), so that other programs disturb little, and every
figure is a ratio of times that were measured in turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from benchmarks import cases
from benchmarks.cases import EngineLoop, Loop, Stream
from benchmarks.figures import Figure, Group, Target
from benchmarks.timing import QUICK, Effort

from steadytd import Learner
from steadytd.base.arrays import Floats
from steadytd.engine.active import ActiveBlock

LANES = 64
STEPS = 16_384
SHORT = 2_048  # of the plain loop, whose steps cost 30 times as much
NANO = 1e9
FASTER, PER_FEATURE, FLAT = Target(12.0, at_least=True), Target(3.0), Target(1.3)
SIZES = (1_024, 16_384, 131_072, 1_000_000)


class ScaledLoop(EngineLoop):
    """The scaled loop, as `steadytd.run` calls it."""

    def __init__(self, stream: Stream, learners: list[Learner]) -> None:
        self.stream = stream
        self.block = self.scaled = ActiveBlock(learners, stream.w0)

    def reset(self) -> None:
        """Begin the same steps again with the weights as they are: their size does not matter."""
        self.scaled.step = 0

    def vectors(self) -> Floats:
        return self.scaled.vector("w")


def costs(loops: Sequence[EngineLoop], rounds: int) -> list[float]:
    """The least cost of each loop, ns per learner-update, measured in turns."""
    best = [float("inf")] * len(loops)
    for turn in range(rounds + 1):
        for i, loop in enumerate(loops):
            loop.reset()
            begin = time.thread_time()
            loop.go()
            taken = (time.thread_time() - begin) / (len(loop.stream.events) * LANES)
            best[i] = min(best[i], taken * NANO if turn else float("inf"))  # the first one compiles
    return best


def against_vectors(effort: Effort) -> Group:
    """Scaled traces next to trace vectors and next to lam = 0: 10 active features of 1,024."""
    group = Group(
        "Scaled traces, 10 active of 1,024, 64 lanes (ns per learner-update)",
        ("scaled", "other", "ratio"),
    )
    stream = cases.sparse(STEPS)
    for name in ("td", "tdc"):
        for lam in (0.5, 0.9):
            learners = cases.learners(name, LANES, lam)
            loops = [
                ScaledLoop(stream, learners),
                EngineLoop(stream.first(SHORT), learners),
                EngineLoop(stream, cases.learners(name, LANES)),
            ]
            check(stream.first(SHORT), learners)
            scaled, plain, without = costs(loops, effort.repeats)
            case = f"{name}, lam = {lam}"
            group.figures += [
                Figure(f"{case}: trace vectors / scaled", scaled, plain, plain / scaled, FASTER),
                Figure(f"{case}: scaled / lam = 0", scaled, without, scaled / without, PER_FEATURE),
            ]
    return group


def over_features(effort: Effort) -> Group:
    """The cost over the number of features, with as many of them ever active."""
    group = Group(
        "Scaled traces over the number of features (td, lam = 0.9, 10 active, 64 lanes)",
        ("ns per update", "least", "relative"),
    )
    sizes = SIZES[:2] if effort is QUICK else SIZES  # a million features take 1 GB
    loops = [ScaledLoop(spread(size), cases.learners("td", LANES, 0.9)) for size in sizes]
    cost = costs(loops, effort.repeats)
    for size, each in zip(sizes, cost, strict=True):
        group.figures.append(Figure(f"{size:,} features", each, cost[0], each / cost[0], FLAT))
    return group


def spread(features: int) -> Stream:
    """The stream of 1,024 features, these drawn from more of them, weights from 0 on."""
    stream = cases.sparse(STEPS)
    drawn = np.sort(np.random.default_rng(0).choice(features, SIZES[0], replace=False))
    rows = stream.rows._replace(feature=drawn[stream.rows.feature].astype(np.int32))
    return Stream(
        "sparse", stream.transitions, rows, stream.events, stream.factor, np.zeros(features)
    )


def check(stream: Stream, learners: list[Learner]) -> None:
    """A comparison means something only if both do the same work."""
    loops: tuple[Loop, Loop] = ScaledLoop(stream, learners), EngineLoop(stream, learners)
    for loop in loops:
        loop.go()
    one, other = loops[0].vectors(), loops[1].vectors()[0]
    if not np.allclose(one, other, rtol=1e-11, atol=0.0):
        raise RuntimeError("scaled traces and trace vectors compute different weights.")
