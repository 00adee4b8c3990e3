"""`run`: many learners, many seeds, one problem; every learner a lane of one stream per seed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from steadytd.core.arrays import Floats, Longs
from steadytd.core.engine import Goal, group_key, lanes_per_block, make_block
from steadytd.core.errors import InputError
from steadytd.core.law import Law
from steadytd.core.learner import Learner
from steadytd.core.rows import Rows, sparse_rows
from steadytd.core.schedule import step_factors
from steadytd.learners import learner as make_learner
from steadytd.mdp.action_values import ActionValues, Task, require_match
from steadytd.problems import problem as make_problem
from steadytd.streams.finite import FiniteStream
from steadytd.study.result import Result

CHUNK = 32768  # steps generated at a time: few enough calls that threads do not wait for each other

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Lane:
    """One learner for one target policy, and its place in the results."""

    learner: Learner
    policy: int
    number: int


@dataclass(frozen=True)
class Plan:
    """What all seeds share: the problem's tables, the lanes in blocks, the recording points."""

    problem: Task
    stream: FiniteStream
    rows: Rows
    goals: list[Goal]
    blocks: list[list[Lane]]
    lanes: int
    points: Longs


@dataclass
class Outcome:
    """The lanes of one part of one seed: errors [points, lanes], weights [lanes, d], divergence."""

    seed: int
    numbers: list[int]
    errors: Floats
    weights: Floats
    diverged: Longs


def run(
    problem: Task | str,
    learners: Sequence[Learner | Law | str] | Learner | str,
    *,
    steps: int,
    seeds: int | Sequence[int] = 1,
    points: int = 1000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run learners on a problem and record their errors.

    `seeds` is a number of seeds (0, 1, ...) or the seeds themselves; `points` the number of
    recording points, evenly spaced with step 0 and the last step among them; `threads` the number
    of threads (default: all processors). The result does not depend on `threads`, nor a learner's
    numbers on the other learners. `progress(done, total)` is called with learner-updates.

    >>> r = run("three_state", ["perturbed_td:alpha=0.01,eta=0.6"], steps=1000, seeds=2, points=3)
    >>> r.curves["step"].to_list()
    [0, 500, 1000, 0, 500, 1000]
    """
    found = make_problem(problem) if isinstance(problem, str) else problem
    chosen = _learners(learners)
    numbers = _seeds(seeds)
    require_at_least("steps", steps, 1)
    require_at_least("points", points, 2)
    workers = os.cpu_count() or 1 if threads is None else threads
    require_at_least("threads", workers, 1)
    asked = [str(one) for one in chosen]
    chosen = [_with_numbers(found, one) for one in chosen]
    plan = _plan(found, chosen, steps, points)
    outcomes = _execute(plan, numbers, steps, workers, progress)
    return Result.collect(found, chosen, asked, numbers, plan.points, outcomes)


def recording_points(steps: int, points: int) -> Longs:
    """At most `points` step numbers from 0 to `steps`, evenly spaced."""
    return np.unique(np.rint(np.linspace(0, steps, points)).astype(np.int64))


def _learners(given: Sequence[Learner | Law | str] | Learner | str) -> list[Learner]:
    several = [given] if isinstance(given, str | Learner) else list(given)
    if not several:
        raise InputError("give at least one learner, for instance 'td:alpha=0.01'.")
    chosen = [make_learner(one) for one in several]
    for i, one in enumerate(chosen):
        if str(one) in map(str, chosen[:i]):
            raise InputError(f"learner '{one}' is given twice; leave one out.")
    return chosen


def _with_numbers(problem: Task, learner: Learner) -> Learner:
    """The learner with its "auto" values chosen by the problem's exact model."""
    for policy in range(problem.n_policies):
        require_match(problem, learner, policy)
    if not learner.automatic:
        return learner
    if isinstance(problem, ActionValues):
        raise InputError(f"{learner}: auto chooses for state values only; give a number.")
    if problem.n_policies > 1:
        raise InputError(
            f"{learner}: auto chooses for one target policy, but {problem.name} has "
            f"{problem.n_policies}; give a number."
        )
    from steadytd.theory.choose import resolve

    return resolve(problem, learner)


def _seeds(given: int | Sequence[int]) -> list[int]:
    if isinstance(given, int):
        require_at_least("seeds", given, 1)
        return list(range(given))
    numbers = list(given)
    whole = all(isinstance(seed, int | np.integer) for seed in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds must be different whole numbers, got {numbers}.")
    return [int(seed) for seed in numbers]


def require_at_least(name: str, value: int, low: int) -> None:
    """Complain unless `value` is a whole number from `low` on."""
    if not isinstance(value, int | np.integer) or value < low:
        raise InputError(f"{name} must be a whole number >= {low}, got {value}.")


def _plan(problem: Task, learners: list[Learner], steps: int, points: int) -> Plan:
    lanes = [
        Lane(learner, policy, i * problem.n_policies + policy)
        for i, learner in enumerate(learners)
        for policy in range(problem.n_policies)
    ]
    groups: dict[object, list[Lane]] = {}
    for lane in lanes:
        groups.setdefault((group_key(lane.learner), lane.policy), []).append(lane)
    blocks = []
    for group in groups.values():
        size = lanes_per_block(group[0].learner, problem.n_features)
        blocks += [group[i : i + size] for i in range(0, len(group), size)]
    rows = sparse_rows(problem.table)
    values = problem.targets
    goals = [
        Goal(rows, problem.error_weights(k), np.ascontiguousarray(values[k]))
        for k in range(problem.n_policies)
    ]
    where = recording_points(steps, points)
    return Plan(problem, FiniteStream(problem), rows, goals, blocks, len(lanes), where)


def _execute(
    plan: Plan, seeds: list[int], steps: int, workers: int, progress: Progress | None
) -> list[Outcome]:
    """All seeds and parts over threads. An interrupt stops every thread at its next chunk."""
    parts = min(len(plan.blocks), max(1, -(-2 * workers // len(seeds))))
    tasks = [(seed, plan.blocks[part::parts]) for seed in seeds for part in range(parts)]
    stop = threading.Event()
    done = 0
    lock = threading.Lock()

    def report(updates: int) -> None:
        nonlocal done
        if progress is not None:
            with lock:
                done += updates
                progress(done, plan.lanes * len(seeds) * steps)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(_run_part, plan, *task, steps, stop, report) for task in tasks]
        try:
            return [future.result() for future in as_completed(futures)]
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def _run_part(
    plan: Plan,
    seed: int,
    lanes: list[list[Lane]],
    steps: int,
    stop: threading.Event,
    report: Callable[[int], None],
) -> Outcome:
    """Some blocks of one seed, chunk by chunk of its stream."""
    blocks = [make_block([lane.learner for lane in some], plan.problem.w0) for some in lanes]
    numbers = [lane.number for some in lanes for lane in some]
    errors = np.empty((len(plan.points), len(numbers)))
    position = plan.stream.begin(seed)
    while position.step < steps and not stop.is_set():
        before = position.step
        events, position = plan.stream.take(position, min(CHUNK, steps - before))
        first = 0 if before == 0 else int(np.searchsorted(plan.points, before, side="right"))
        last = int(np.searchsorted(plan.points, position.step, side="right"))
        column = 0
        for some, block in zip(lanes, blocks, strict=True):
            learner, policy = some[0].learner, some[0].policy
            errors[first:last, column : column + len(some)] = block.advance(
                events,
                step_factors(before, len(events), *learner.schedule),
                plan.stream.transitions[policy],
                plan.rows,
                plan.points[first:last],
                plan.goals[policy],
            )
            column += len(some)
        report(len(events) * len(numbers))
    weights = np.concatenate([block.shown.T for block in blocks])
    diverged = np.concatenate([block.first_divergence for block in blocks])
    return Outcome(seed, numbers, errors, weights, diverged)
