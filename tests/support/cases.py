"""Every learner of the registry as test cases, and streams rich enough to tell laws apart."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import steadytd as st
from steadytd.base.arrays import Floats, Ints
from steadytd.engine.block import Transitions
from steadytd.engine.facts import fact_table
from steadytd.engine.law import Law, Param, Value
from steadytd.engine.learner import Learner
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.engine.settings import variant_names
from steadytd.learners import algorithm, names
from steadytd.mdp.action_values import Task
from tests.support.helpers import random_problem
from tests.support.scope import everything

# Values that bring out more than a parameter's default or the rule below would.
EXAMPLES = {
    "n": 3.0,
    "b": 3.0,
    "t": 3.0,
    "alpha": 0.03,
    "eta": 0.7,
    "ratio": 2.5,
    "ridge": 0.5,
    "h0": 0.5,
}
DECAY = 0.6  # of the traces, where a case has them


def example_value(name: str, param: Param) -> Value:
    """A value for a hyper-parameter: from the table, its default, or something inside its range."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    if param.default is not None:
        return param.default
    if np.isfinite(param.high):
        return (max(param.low, param.high - 1.0) + param.high) / 2
    return param.low + 0.5 if np.isfinite(param.low) else 0.5


def example(law: Law, **params: object) -> Learner:
    """A learner of the law, with example values for what is not given."""
    given = {name: example_value(name, param) for name, param in law.all_params.items()}
    return st.learner(law, **{**given, **params})


def varied(case: Learner) -> dict[str, float]:
    """A step-size schedule, for learners that have step sizes."""
    return {"power": 0.6, "delay": 50.0} if "power" in case.values else {}


def window_params(law: Law) -> set[str]:
    """The hyper-parameters that say how far back a trace or memory of the law looks."""
    return {window.param for window in law.windows.values()}


def cases_of(law: Law) -> list[Learner]:
    """A learner per variant of the law, and each without and (where it has them) with traces."""
    variants: list[dict[str, object]] = [
        {law.variant_param: name} for name in variant_names(law)
    ] or [{}]
    decays: list[dict[str, object]] = [{}]
    traced = law.traces or law.each
    if traced and law.trace_param in law.params and law.trace_param not in window_params(law):
        decays = [{law.trace_param: 0.0}, {law.trace_param: DECAY}]
    return [example(law, **variant, **decay) for variant in variants for decay in decays]


# Whose loops without trace vectors are compiled for `make test-all` only: those with them have the
# same equations, and the loops without are written by one piece of code for all laws.
TRACED_ONLY = (
    "abtd", "etd_beta", "htd", "implicit_td", "lsetd", "perturbed_etd", "perturbed_lstd", "pgtd2",
    "remembering", "ridge_td", "tree_backup", "true_online_etd", "true_online_gtd",
    "true_online_td", "vtrace",
)  # fmt: skip


def is_quick(case: Learner) -> bool:
    """Whether a case belongs to `make test`, too."""
    return everything() or case.traced or case.name not in TRACED_ONLY


CASES = [case for name in names() for case in cases_of(algorithm(name)) if is_quick(case)]
STEPS_OF_A_LAW = [case for case in CASES if case.law.block is None]  # the others solve a system


CLOSED = [case for case in STEPS_OF_A_LAW if case.law.expectation is not None]


def kind_of(case: Learner) -> str:
    """What the learner can be run on, in a word."""
    law = case.law
    return "pairs" if law.action_values else "endless" if law.average_reward else "states"


def endless(p: st.Problem) -> st.Problem:
    """The same problem without discount, ends and interest, of average reward."""
    arrays = {name: getattr(p, name) for name in ("P", "r", "mu", "pi", "Phi", "w0", "start")}
    gamma = np.ones_like(p.gamma)
    return st.Problem(name=p.name, gamma=gamma, average_reward=True, **arrays)


def task_for(case: Learner, problem: st.Problem) -> Task:
    """What the learner can be run on: the problem, its action values with random features, ..."""
    if case.law.average_reward:
        return endless(problem)
    if not case.law.action_values:
        return problem
    rng = np.random.default_rng(problem.n_features)
    size = (problem.n_states, problem.n_actions, problem.n_features)
    return st.ActionValues(problem, rng.normal(size=size), problem.w0)


@cache
def off_policy_problem(seed: int, policies: int | None = None, **options: Any) -> st.Problem:
    """A random problem with interest, ends of episodes, and actions that only mu takes.

    In every second state pi avoids an action, unless it is its only one. Every way from state 1 to
    state 0 ends an episode, beside those that the random problem itself has.
    """
    p = random_problem(seed, policies=policies, interest=True, **options)
    gamma = np.array(p.gamma)
    gamma[..., 1, :, 0] = 0.0
    pi = np.array(p.pi)
    avoided = np.zeros(pi.shape, dtype=bool)
    avoided[..., ::2, 0] = pi[..., ::2, 0] < 1.0
    pi = np.where(avoided, 0.0, pi)
    pi /= pi.sum(axis=-1, keepdims=True)
    return st.Problem(
        name=p.name,
        P=p.P,
        r=p.r,
        gamma=gamma,
        mu=p.mu,
        pi=pi,
        Phi=p.Phi,
        w0=p.w0,
        start=p.start,
        interest=p.interest,
    )


def random_features(rng: Generator, rows: int = 7, features: int = 4) -> Floats:
    """A feature table with some zeros (so that sparse and dense tables differ)."""
    return np.asarray(rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7))


def random_transitions(rng: Generator, rows: int = 7, count: int = 60) -> Transitions:
    """Transitions between random rows; a fifth have rho = 0.

    About a sixth end an episode; after about a sixth of the others it is cut off.
    """
    mu = rng.uniform(0.4, 1.0, count)
    pi = np.where(rng.random(count) < 0.2, 0.0, rng.random(count))
    reward = rng.normal(size=count)
    gamma_next = np.where(rng.random(count) < 1 / 6, 0.0, rng.uniform(0.3, 1.0, count))
    interest, peaks = rng.uniform(0.2, 2.0, count), np.maximum(pi, mu)
    row, row_next = rng.integers(rows, size=(2, count)).astype(np.int32)
    facts = fact_table(
        reward=reward, gamma_next=gamma_next, rho=pi / mu, pi=pi, mu=mu, interest=interest,
        gamma_carried=np.where(rng.random(count) < 1 / 6, 0.0, gamma_next),
        peak_min=peaks.min(), peak_max=peaks.max(),
    )  # fmt: skip
    return Transitions(row, row_next, facts)


class RandomStream:
    """A feature table, transitions over it and a sequence of them."""

    def __init__(self, seed: int, steps: int) -> None:
        rng = np.random.default_rng(seed)
        self.Phi = random_features(rng)
        self.rows: Rows = sparse_rows(self.Phi)
        self.transitions = random_transitions(rng)
        self.events: Ints = rng.integers(60, size=steps).astype(np.int32)
        self.w0: Floats = rng.normal(size=(self.Phi.shape[1],))

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that a block is fed with."""
        return (self.events, *self.transitions, *self.rows, self.w0)


def assert_same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Equal to the last bit (NaN and the sign of zero included), and not empty."""
    assert expected.size > 0
    assert actual.dtype == expected.dtype
    kind = f"i{actual.dtype.itemsize}"
    left, right = np.ascontiguousarray(actual), np.ascontiguousarray(expected)
    np.testing.assert_array_equal(left.view(kind), right.view(kind))
