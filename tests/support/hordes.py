"""Streams for Hordes, and a Horde whose loops are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import steadytd as st
from steadytd.base.arrays import Bools, Floats
from steadytd.engine.law import Function, Law
from steadytd.engine.reference import ReferenceLearner
from steadytd.engine.step.program import growth, law_functions


def not_compiled(
    law: Law, traced: bool, averaged: bool, write: Callable[[Law, bool, bool], str]
) -> Function:
    """In place of `engine.step.compile.kernel`: the same source, run by Python."""
    source = write(law, traced, averaged)
    plain = source.replace("from numba import njit", "njit = lambda **_: (lambda f: f)")
    assert plain != source
    names: dict[str, Any] = {"disjoint": {}, **law_functions(law), "growth": growth}
    exec(plain, names)

    def run(*given: Any) -> None:
        with np.errstate(all="ignore"):
            names["run"](*given)

    return run


class Stream(NamedTuple):
    """Some steps, one row each."""

    x: Floats
    x_next: Floats
    cumulants: Floats
    pi: Floats
    mu: Floats
    discounts: Floats
    terminated: Bools
    truncated: Bools

    @property
    def rhos(self) -> Floats:
        return np.asarray(self.pi / self.mu)

    def facts(self, policies: bool = False) -> dict[str, Any]:
        """What `update_many` takes beside the features."""
        ratios = {"pi": self.pi, "mu": self.mu} if policies else {"rhos": self.rhos}
        return {
            "cumulants": self.cumulants, "discounts": self.discounts, **ratios,
            "terminated": self.terminated, "truncated": self.truncated,
        }  # fmt: skip

    def part(self, begin: int, end: int) -> Stream:
        return Stream(*(np.asarray(one[begin:end]) for one in self))  # type: ignore[arg-type]


def stream(steps: int, features: int = 10, seed: int = 0, share: float = 0.3) -> Stream:
    """Drawn features, two cumulants, three policies, two discounts.

    One ratio in five is 0, one step in 20 ends an episode, one in 20 is cut off after it.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(steps + 1, features)) * (rng.random((steps + 1, features)) < share)
    mu = rng.uniform(0.2, 1.0, size=(steps, 3))
    pi = rng.uniform(0.0, 1.0, size=(steps, 3)) * (rng.random((steps, 3)) < 0.8)
    discounts = rng.choice([0.0, 0.5, 0.9, 1.0], size=(steps, 2), p=[0.1, 0.2, 0.5, 0.2])
    ends = rng.random((2, steps)) < 0.05
    cumulants = rng.normal(size=(steps, 2))
    return Stream(x[:-1], x[1:], cumulants, pi, mu, discounts, ends[0], ends[1])


def asked(text: str | st.Learner, count: int = 5) -> list[st.HordePrediction]:
    """Predictions that share policies and discounts, or not; one has a discount of its own."""
    about = [(0, 0, 0), (1, 1, 0), (0, 2, 1), (1, 0, 0)]  # the first and the last share a trace
    made = [
        st.prediction(text, cumulant=c, policy=p, discount_column=d)
        for c, p, d in (about[i % 4] for i in range(count - 1))
    ]
    return [*made, st.prediction(text, cumulant=1, policy=2, discount=0.8)]


def slow_weights(one: st.HordePrediction, seen: Stream, w0: Floats) -> Floats:
    """The weights of a prediction by the engine's slow loop; the mean ones of an average."""
    learner = ReferenceLearner(one.learner, w0)
    for t in range(len(seen.x)):
        column = one.discount_column
        gamma = float(one.discount if column is None else seen.discounts[t, column])  # type: ignore[arg-type]
        gamma = 0.0 if seen.terminated[t] else gamma
        pi, mu = (float(table[t, one.policy or 0]) for table in (seen.pi, seen.mu))
        facts = {
            "reward": float(seen.cumulants[t, one.cumulant]), "gamma_next": gamma,
            "gamma_carried": 0.0 if seen.truncated[t] else gamma, "rho": pi / mu, "pi": pi,
            "mu": mu, "interest": 1.0, "peak_min": max(pi, mu), "peak_max": max(pi, mu),
        }  # fmt: skip
        learner.update(seen.x[t], seen.x_next[t], facts)
    return learner.reported
