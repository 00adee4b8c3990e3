"""Learners on a Gymnasium stream: the environment is walked once per seed, for all of them.

The environment runs in Python, and its cost is shared; the learners are blocks of lanes as on a
finite problem, side by side on threads. A chunk's feature table is the chunk's own observations.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.engine.active import make_block
from steadytd.engine.block import Goal
from steadytd.engine.learner import Learner
from steadytd.engine.schedule import step_factors
from steadytd.runs.gym_stream import GymStream
from steadytd.runs.lanes import Lane, SeedResult, grouped, lanes_of
from steadytd.runs.result import Result

CHUNK = 4096  # steps at a time, whose features are in memory


def run_gym(
    stream: object,
    learners: list[Learner],
    seeds: list[int],
    points: Longs,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Run learners on a stream and record their errors against the Monte Carlo values.

    `points` are the step numbers at which errors are recorded, the first 0 and the last the number
    of steps. `progress(done, total)` is called with learner-updates.
    """
    if not isinstance(stream, GymStream):
        raise InputError(
            "learners run on a problem, the name of a problem, or a stream made by st.gym_stream, "
            f"got {stream!r}."
        )
    for learner in learners:
        learner.require_numbers("a Gymnasium stream")
        if learner.law.action_values:
            raise InputError(
                f"{learner.name} learns action values, but a stream has state values; use tdc."
            )
    groups = grouped(lanes_of(learners, stream.n_policies), stream.n_features)
    goals = stream.goals()
    each = len(learners) * stream.n_policies * int(points[-1])
    outcomes = []
    with ThreadPoolExecutor(threads) as pool:
        for i, seed in enumerate(seeds):

            def report(updates: int, before: int = i * each) -> None:
                if progress is not None:
                    progress(before + updates, each * len(seeds))

            outcomes.append(_run_seed(stream, seed, groups, goals, points, pool, report))
    asked = [str(learner) for learner in learners]
    return Result.collect(stream, learners, asked, seeds, points, outcomes)


def _run_seed(
    stream: GymStream,
    seed: int,
    groups: list[list[Lane]],
    goals: list[Goal],
    points: Longs,
    pool: ThreadPoolExecutor,
    report: Callable[[int], None],
) -> SeedResult:
    """All groups of lanes on one seed's walk."""
    w0 = np.zeros(stream.n_features)
    blocks = [make_block([lane.learner for lane in some], w0) for some in groups]
    numbers = [lane.number for some in groups for lane in some]
    steps, recorded = int(points[-1]), []
    walk = stream.source.begin(seed)
    while walk.step < steps:
        before = walk.step
        chunk = walk.take(min(CHUNK, steps - before))
        rows = stream.features.rows(chunk.obs)
        seen = [chunk.transitions(k, peaks) for k, peaks in enumerate(stream.sample.peaks)]
        first = 0 if before == 0 else int(np.searchsorted(points, before, side="right"))
        last = int(np.searchsorted(points, walk.step, side="right"))
        events = np.arange(walk.step - before, dtype=np.int32)
        jobs = []
        for lanes, block in zip(groups, blocks, strict=True):
            learner, policy = lanes[0].learner, lanes[0].policy
            factor = step_factors(before, len(events), *learner.schedule)
            arguments = events, factor, seen[policy], rows, points[first:last], goals[policy]
            jobs.append(pool.submit(block.advance, *arguments))
        recorded.append(np.concatenate([job.result() for job in jobs], axis=1))
        report(walk.step * len(numbers))
    walk.close()
    errors = np.concatenate(recorded)[:, None, :]
    weights = np.concatenate([block.reported.T for block in blocks])
    diverged = np.concatenate([block.first_divergence for block in blocks])
    return SeedResult(seed, numbers, errors, weights, diverged)
