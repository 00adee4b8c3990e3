"""`run`: many learners, many seeds, one problem; every learner a lane of one stream per seed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.base.numbers import all_seeds, require_room, whole
from steadytd.base.progress import Progress, reporting
from steadytd.engine.law import AUTO, Law
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.action_values import ActionValues, Task, require_match
from steadytd.mdp.problem import Problem
from steadytd.problems import is_family
from steadytd.problems import problem as make_problem
from steadytd.runs.lanes import Lane, RunSetup, SeedResult, grouped, lanes_of, run_seed
from steadytd.runs.result import Result
from steadytd.theory.closed_form import require_right

if TYPE_CHECKING:
    from steadytd.runs.gym_stream import GymStream


def run(
    problem: Task | GymStream | str,
    learners: Sequence[Learner | Law | str] | Learner | Law | str,
    *,
    steps: float,
    seeds: float | Iterable[int] = 1,
    points: float = 1000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run learners on a problem and record their errors.

    `steps` is a whole number, also written 1e6; `seeds` a number of seeds (0, 1, ...) or the seeds
    themselves, a list or a range; `points` the number of recording points, evenly spaced with step
    0 and the last step among them; `threads` the number of threads (default: all processors). The
    result does not depend on `threads`, nor a learner's numbers on the other learners. Problem and
    learners may be texts as on the command line, also `mine.npz` and `my.py:my_law:alpha=0.1` (the
    file is run). A family's name (collision) means that each seed draws its own instance; a problem
    object means that one. A Gymnasium stream (`gym_stream`) may stand in the place of a problem.
    `progress(done, total)` is called with learner-updates; without it, a run of more than two
    seconds says on a terminal or in a notebook how far it is.

    >>> r = run("three_state", ["perturbed_td:alpha=0.01,eta=0.6"], steps=1000, seeds=2, points=3)
    >>> r.curves["step"].to_list()
    [0, 500, 1000, 0, 500, 1000]
    """
    if not isinstance(problem, str | Problem | ActionValues):
        from steadytd.runs.gym_stream import run_gym

        with reporting(progress, "running") as report:
            return run_gym(
                problem, _learners(learners), all_seeds(seeds), _points(steps, points),
                _threads(threads), report,
            )  # fmt: skip
    found = make_problem(problem) if isinstance(problem, str) else problem
    family = problem if isinstance(problem, str) and is_family(problem) else None
    chosen = _learners(learners)
    numbers = all_seeds(seeds)
    where, workers = _points(steps, points), _threads(threads)
    asked = [str(one) for one in chosen]
    chosen = numbered(found, chosen, family is not None)
    instance = None if family is None else lambda seed: make_problem(family, seed=seed)
    runs = len(chosen) * found.n_policies * len(numbers)
    require_room(
        f"{runs:,} curves of {len(where):,} points", 16.0 * runs * len(where),
        "record fewer points, or run fewer learners or seeds",
    )  # fmt: skip
    setup = RunSetup(found, where, instance=instance)
    with reporting(progress, "running") as report:
        outcomes = _execute(setup, lanes_of(chosen, found.n_policies), numbers, workers, report)
    return Result.collect(found, chosen, asked, numbers, setup.points, outcomes, family or "")


def _points(steps: float, points: float) -> Longs:
    return recording_points(whole("steps", steps, 1), whole("points", points, 2))


def _threads(threads: float | None) -> int:
    return os.cpu_count() or 1 if threads is None else whole("threads", threads, 1)


def recording_points(steps: int, points: int) -> Longs:
    """At most `points` step numbers from 0 to `steps`, evenly spaced."""
    count = min(points, steps + 1)  # there are no more steps
    require_room(f"{count:,} recording points", 24.0 * count, "record fewer points")
    return np.unique(np.rint(np.linspace(0, steps, count)).astype(np.int64))


def _learners(given: Sequence[Learner | Law | str] | Learner | Law | str) -> list[Learner]:
    several = [given] if isinstance(given, str | Law | Learner) else given
    if not isinstance(several, Iterable) or not (several := list(several)):
        raise InputError("give at least one learner, for instance 'td:alpha=0.01'.")
    chosen = [make_learner(one) for one in several]
    seen: set[str] = set()
    for one in chosen:
        if str(one) in seen:
            raise InputError(f"learner '{one}' is given twice; leave one out.")
        seen.add(str(one))
    return chosen


def numbered(problem: Task, learners: list[Learner], family: bool) -> list[Learner]:
    """`with_numbers` of all; whether a learner matches the problem is a matter of its law alone."""
    for one in {learner.law: learner for learner in learners}.values():
        require_right(one.law)
        with_numbers(problem, one, family)
    return [with_numbers(problem, one, family) if AUTO in one.values.values() else one
            for one in learners]  # fmt: skip


def with_numbers(problem: Task, learner: Learner, family: bool = False) -> Learner:
    """The learner with its "auto" values chosen by the problem's exact model."""
    for policy in range(problem.n_policies):
        require_match(problem, learner, policy)
    if not learner.automatic:
        return learner
    if family:
        raise InputError(
            f"{learner}: auto needs one problem, but each seed draws its own instance of "
            f"{problem.name}; give a number, or one instance: problem('{problem.name}', seed=0)."
        )
    if isinstance(problem, ActionValues):
        raise InputError(f"{learner}: auto chooses for state values only; give a number.")
    if problem.n_policies > 1:
        raise InputError(
            f"{learner}: auto chooses for one target policy, but {problem.name} has "
            f"{problem.n_policies}; give a number."
        )
    from steadytd.theory.cures import resolve

    return resolve(problem, learner)


def _execute(
    setup: RunSetup,
    lanes: list[Lane],
    seeds: list[int],
    workers: int,
    progress: Progress | None,
) -> list[SeedResult]:
    """All seeds and parts over threads. An interrupt stops every thread at its next chunk."""
    groups = grouped(lanes, setup.problem.n_features)
    parts = min(len(groups), max(1, -(-2 * workers // len(seeds))))
    tasks = [(seed, groups[part::parts]) for seed in seeds for part in range(parts)]
    stop = threading.Event()
    done = 0
    lock = threading.Lock()

    def report(updates: int) -> None:
        nonlocal done
        if progress is not None:
            with lock:
                done += updates
                progress(done, len(lanes) * len(seeds) * setup.steps)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run_seed, setup, *task, stop, report) for task in tasks]
        try:
            return [future.result() for future in as_completed(futures)]
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
