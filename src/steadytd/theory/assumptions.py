"""The six assumptions of the paper's convergence theorem, checked for a learner on a problem."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from steadytd.base.errors import InputError
from steadytd.engine.learner import Learner
from steadytd.mdp.moments import Expectation
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
    period = chain_period(problem.chain, int(problem.d_mu.argmax()))
    bounded = not (learner.traced or learner.law.remembered)
    try:
        mean = dynamics.reduced(problem, learner, policy)
    except InputError:
        mean = None
    power, _ = learner.schedule
    definite, why_definite = False, "unknown: the law has no closed-form expectation"
    if mean is not None:
        definite, why_definite = _definite(problem, learner, policy, mean)
    if not bounded:
        why_mixing = "the theorem is for iterations without trace: see the learner's own reference"
    elif period > 1:
        why_mixing = (
            f"the behaviour policy's chain has period {period}: conditional means do not converge"
        )
    else:
        why_mixing = "a finite aperiodic chain forgets its start geometrically fast"
    return [
        Assumption(
            1, "step sizes sum to infinity, their squares do not",
            0.5 < power <= 1.0, _step_sizes(learner),
        ),
        Assumption(
            2, "the Markov process (s, a, s') has a unique invariant distribution",
            True, "the behaviour policy's chain has one closed class of states",
        ),
        Assumption(
            3, "A and b are the stationary means of A(X_n) and b(X_n)", mean is not None,
            "the law has no closed-form expectation" if mean is None else "the law's closed form",
        ),
        Assumption(4, "the matrix A is positive definite", definite, why_definite),
        Assumption(
            5, "conditional means of A(X_n), b(X_n) converge summably fast",
            period == 1 and bounded, why_mixing,
        ),
        Assumption(
            6, "moments of the function h stay bounded", bounded,
            "h is constant: there are finitely many states" if bounded
            else "the trace or follow-on trace is not bounded by a function of the state",
        ),
    ]  # fmt: skip


def _step_sizes(learner: Learner) -> str:
    """Why assumption 1 holds or not."""
    power, _ = learner.schedule
    if learner.law.block is not None:
        return "there is no step size: the sums so far are solved directly"
    if power == 0.0:
        return (
            "the step size is constant: the weights converge to a neighbourhood of the fixed point "
            "whose size shrinks with alpha, not to the point"
        )
    if power <= 0.5:
        return (
            f"power {power:g} is at most 1/2, so the squares of the step sizes have no finite sum"
        )
    if power > 1.0:
        return f"power {power:g} exceeds 1: the step sizes have a finite sum, so learning stops"
    return f"power {power:g} lies in (1/2, 1]"


def _definite(
    problem: Problem, learner: Learner, policy: int, mean: Expectation
) -> tuple[bool, str]:
    """Whether assumption 4 holds, and why."""
    least = slowest((mean.M + mean.M.T) / 2.0)
    full = problem.moments(policy).row_space.shape[1] == problem.n_features
    where = "" if full else " on the row space of the features"
    why = f"the symmetric part's least eigenvalue{where} is {least:.4g}"
    if least <= 0.0 and dynamics.is_stable(problem, learner, policy):
        why += "; the mean update is stable all the same, which is what convergence really needs"
    return least > 0.0, why
