"""The six assumptions of the paper's convergence theorem, checked for a learner on a problem."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import slowest
from steadytd.mdp.stationary import chain_period
from steadytd.theory import dynamics


@dataclass(frozen=True)
class Assumption:
    """One assumption: what it says, whether it holds, and why."""

    number: int
    statement: str
    holds: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def check_assumptions(problem: Problem, learner: Learner, policy: int = 0) -> list[Assumption]:
    """Theorem 1 of the paper: assumptions 1 to 6 for the iteration of this learner."""
    chain = np.einsum("sa,sat->st", problem.mu, problem.P)
    period = chain_period(chain, int(problem.d_mu.argmax()))
    return [
        _step_sizes(learner),
        Assumption(
            2,
            "the Markov process (s, a, s') has a unique invariant distribution",
            True,
            "the behaviour policy's chain has one closed class of states",
        ),
        _closed_form(problem, learner, policy),
        _definite(problem, learner, policy),
        _mixing(learner, period),
        Assumption(
            6,
            "moments of the function h stay bounded",
            not _unbounded(learner),
            "h is constant: there are finitely many states"
            if not _unbounded(learner)
            else "the trace or follow-on trace is not bounded by a function of the state",
        ),
    ]


def _unbounded(learner: Learner) -> bool:
    return learner.traced or bool(learner.law.memory)


def _step_sizes(learner: Learner) -> Assumption:
    power, _ = learner.schedule
    if learner.law.block is not None:
        why = "there is no step size: the sums so far are solved directly"
    elif power == 0.0:
        why = (
            "the step size is constant: the weights converge to a neighbourhood of the fixed point "
            "whose size shrinks with alpha, not to the point"
        )
    elif power <= 0.5:
        why = f"power {power:g} is at most 1/2, so the squares of the step sizes have no finite sum"
    elif power > 1.0:
        why = f"power {power:g} exceeds 1: the step sizes have a finite sum, so learning stops"
    else:
        why = f"power {power:g} lies in (1/2, 1]"
    statement = "step sizes sum to infinity, their squares do not"
    return Assumption(1, statement, 0.5 < power <= 1.0, why)


def _closed_form(problem: Problem, learner: Learner, policy: int) -> Assumption:
    known = _known(problem, learner, policy)
    why = "the law's closed form" if known else "the law has no closed-form expectation"
    return Assumption(3, "A and b are the stationary means of A(X_n) and b(X_n)", known, why)


def _known(problem: Problem, learner: Learner, policy: int) -> bool:
    try:
        dynamics.expectation(problem, learner, policy)
    except InputError:
        return False
    return True


def _definite(problem: Problem, learner: Learner, policy: int) -> Assumption:
    statement = "the matrix A is positive definite"
    if not _known(problem, learner, policy):
        return Assumption(4, statement, False, "unknown: the law has no closed-form expectation")
    e = dynamics.reduced(problem, learner, policy)
    least = slowest((e.M + e.M.T) / 2.0)
    stable = dynamics.is_stable(problem, learner, policy)
    where = (
        ""
        if problem.moments(policy).row_space.shape[1] == problem.n_features
        else " on the row space of the features"
    )
    why = f"the symmetric part's least eigenvalue{where} is {least:.4g}"
    if least <= 0.0 and stable:
        why += "; the mean update is stable all the same, which is what convergence really needs"
    return Assumption(4, statement, least > 0.0, why)


def _mixing(learner: Learner, period: int) -> Assumption:
    if _unbounded(learner):
        why = "the theorem is for iterations without trace: see the learner's own reference"
    elif period > 1:
        why = f"the behaviour policy's chain has period {period}: conditional means do not converge"
    else:
        why = "a finite aperiodic chain forgets its start geometrically fast"
    holds = period == 1 and not _unbounded(learner)
    return Assumption(5, "conditional means of A(X_n), b(X_n) converge summably fast", holds, why)
