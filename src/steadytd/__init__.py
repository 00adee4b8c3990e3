"""Off-policy value prediction that stays steady.

>>> import steadytd as st
>>> p = st.problem("three_state")
>>> r = st.run(p, ["perturbed_td:alpha=0.01,eta=0.6"], steps=20_000, seeds=4)
>>> bool(r.summary["final"][0] < 6)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.base.finding import Finding
from steadytd.engine.law import Law, Param, law
from steadytd.engine.learner import Learner
from steadytd.engine.online import OnlineLearner
from steadytd.learners import learner, learners, load_learner
from steadytd.mdp.action_values import ActionValues
from steadytd.mdp.problem import Problem, load_problem
from steadytd.problems import problem, problems
from steadytd.problems import problem as make_problem
from steadytd.runs.greedy_gq import Control, greedy_gq
from steadytd.runs.nonlinear import Curves, nonlinear
from steadytd.runs.result import Result
from steadytd.runs.run import run

if TYPE_CHECKING:
    from pathlib import Path

    from steadytd.evaluation.result import Evaluation
    from steadytd.evaluation.value_function import ValueFunction
    from steadytd.runs.gym_stream import GymStream
    from steadytd.studies.study import Study
    from steadytd.theory.certificate import Certificate

__version__ = "0.1.0"


def certify(problem: Problem | str, policy: int = 0) -> Certificate:
    """Will a learner converge on this problem, to what, and how good is that? See `Certificate`."""
    from steadytd.theory.certificate import certify as do

    if isinstance(problem, ActionValues):
        raise InputError("certify knows state values only; for gq see steadytd.theory.dynamics.")
    return do(make_problem(problem) if isinstance(problem, str) else problem, policy)


def study(source: str | Path) -> Study:
    """A study from a TOML file, to `run` into a directory. See `steadytd.studies.study.Study`."""
    from steadytd.studies.study import study as load

    return load(source)


def evaluate(source: Any, *, discount: float | None = None, **options: Any) -> Evaluation:
    """What target policies are worth, from a log. See `steadytd.evaluation.evaluate.evaluate`."""
    from steadytd.evaluation.evaluate import evaluate as do

    return do(source, discount=discount, **options)


def gym_stream(env: Any, **options: Any) -> GymStream:
    """A Gymnasium environment to run learners on. See `steadytd.runs.gym_stream.gym_stream`."""
    from steadytd.runs.gym_stream import gym_stream as do

    return do(env, **options)


def load_value_function(path: str | Path) -> ValueFunction:
    """Read a value function that `ValueFunction.save` wrote."""
    from steadytd.evaluation.value_function import load_value_function as load

    return load(path)


__all__ = [
    "ActionValues",
    "Control",
    "Curves",
    "Finding",
    "InputError",
    "Law",
    "Learner",
    "OnlineLearner",
    "Param",
    "Problem",
    "Result",
    "certify",
    "evaluate",
    "greedy_gq",
    "gym_stream",
    "law",
    "learner",
    "learners",
    "load_learner",
    "load_problem",
    "load_value_function",
    "nonlinear",
    "problem",
    "problems",
    "run",
    "study",
]
