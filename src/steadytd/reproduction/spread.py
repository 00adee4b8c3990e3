"""What the runs of a learner look like whose expectation no ten runs show.

Emphatic TD's follow-on trace has infinite variance on the paper's problems: rare bursts carry the
mean, and ten runs nearly never hold one that counts. So many more runs are made, with seeds of
their own, and groups as large as the number of runs shown are drawn from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.files import cached_arrays
from steadytd.base.identity import digest, modules
from steadytd.base.progress import Progress
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.reproduction.statements import Spread
from steadytd.runs.run import run
from steadytd.theory.variance import variance

RUNS = 200
FIRST_SEED = 1_000_000  # far from the seeds of the runs that are shown
GROUPS = 2000
POINTS = 201


def is_heavy(problem: Problem, learner: Learner) -> bool:
    """Whether what the learner carries from step to step has infinite variance here."""
    return not variance(problem, learner).finite


def spreads(
    problem: Problem,
    learners: list[Learner],
    steps: int,
    shown: int,
    runs: int,
    progress: Progress | None = None,
) -> dict[str, Spread]:
    """The spread of the heavy ones among the learners, for means over `shown` runs.

    The runs are kept: they have seeds of their own, and nothing that a user asks for changes them.
    """
    heavy = [learner for learner in learners if is_heavy(problem, learner)]
    if not heavy:
        return {}
    seeds = range(FIRST_SEED, FIRST_SEED + runs)

    def make() -> dict[str, Any]:
        result = run(problem, heavy, steps=steps, seeds=seeds, points=POINTS, progress=progress)
        return {"steps": result.steps, "errors": result.errors}

    identity = digest(modules(__name__), problem, heavy, steps, runs)
    known = cached_arrays(f"spread.{problem.name}", identity, make)
    groups = np.random.default_rng(FIRST_SEED).integers(runs, size=(GROUPS, shown))
    return {
        str(learner): Spread(known["steps"], errors, _means(errors, groups))
        for learner, errors in zip(heavy, known["errors"], strict=True)
    }


def _means(errors: Floats, groups: Longs) -> Floats:
    """The mean over each group's runs, [group, point]; one member after the other, to save room."""
    total = np.zeros((len(groups), errors.shape[1]))
    for member in groups.T:
        total += errors[member]
    return np.asarray(total / groups.shape[1])
