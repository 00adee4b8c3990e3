"""What theory says beforehand about a configuration of a study: its fixed point, and the way there.

In a family every seed has its own instance; the numbers are then means over the instances of the
seeds, so they can be held against a mean over the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.studies.spec import Task
from steadytd.theory.dynamics import fixed_point, is_stable, mean_weights


class Prediction(NamedTuple):
    """Theory's view of one configuration.

    `stable` is the share of instances (and target policies) whose mean update leads to its fixed
    point, `asymptote` the error of the fixed point over those, `last` the error of the mean
    dynamics after the last step over all; None where there is no closed form.
    """

    stable: float
    asymptote: float | None
    last: float | None


def instances(task: Task, seeds: Sequence[int]) -> list[Problem]:
    """The problems that the seeds run on: one for all, or one each."""
    return [task.instance(seed) for seed in seeds] if task.family else [task.problem]


def predict(problems: Sequence[Problem], learner: Learner, steps: int = 0) -> Prediction | None:
    """Fixed point and stability, and if `steps` are given the mean dynamics.

    None if the learner has no closed form here.
    """
    stable: list[bool] = []
    fixed: list[float] = []
    last: list[float] = []
    try:
        for problem in problems:
            for policy in range(problem.n_policies):
                steady = is_stable(problem, learner, policy)
                stable.append(steady)
                if steady:
                    fixed.append(_error(problem, policy, fixed_point(problem, learner, policy)))
                if steps and learner.schedule[0] == 0.0 and not learner.averaged:
                    with np.errstate(over="ignore", invalid="ignore"):
                        w = mean_weights(problem, learner, steps, policy)
                        last.append(_error(problem, policy, w))
    except (InputError, np.linalg.LinAlgError):
        return None
    return Prediction(
        stable=float(np.mean(stable)),
        asymptote=float(np.mean(fixed)) if fixed else None,
        last=float(np.mean(last)) if last else None,
    )


def _error(
    problem: Problem, policy: int, w: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> float:
    weight = problem.error_weights(policy)
    difference = problem.Phi @ w - problem.moments(policy).v_pi
    error = float(np.sqrt(weight @ difference**2))
    return error if np.isfinite(error) else float("inf")
