"""What the loops run on: two streams, and learners whose hyper-parameters differ in every lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from steadytd import Learner, Problem, learner, problem
from steadytd.base.arrays import Floats, Ints
from steadytd.engine.block import Block, Transitions
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.streams.finite import FiniteStream


@dataclass(frozen=True)
class Stream:
    """One seed's steps with the tables that they point into."""

    name: str
    transitions: Transitions
    rows: Rows
    events: Ints
    factor: Floats
    w0: Floats

    def first(self, steps: int) -> Stream:
        """The same stream, cut off after some steps."""
        cut = self.events[:steps], self.factor[:steps]
        return Stream(self.name, self.transitions, self.rows, *cut, self.w0)


class Loop(Protocol):
    """Something that takes all steps of a stream, and can be set back to do it again."""

    def reset(self) -> None: ...

    def go(self) -> None: ...

    def vectors(self) -> Floats: ...


class EngineLoop:
    """The compiled kernel, called as `steadytd.run` calls it."""

    def __init__(self, stream: Stream, learners: list[Learner]) -> None:
        self.stream = stream
        self.block = Block(learners, stream.w0)
        self.start = self.block.state.copy()

    def reset(self) -> None:
        self.block.state[:] = self.start
        self.block.step = 0

    def go(self) -> None:
        s = self.stream
        self.block.advance(s.events, s.factor, s.transitions, s.rows)

    def vectors(self) -> Floats:
        """All vectors [vector, feature, lane], traces last."""
        return np.concatenate([self.block.V, self.block.Z])


def baird(steps: int) -> Stream:
    """Baird's problem: 2 active features of 8, and six steps of seven have rho = 0."""
    return stream_of(problem("baird"), steps)


def sparse(steps: int, active: int = 10, features: int = 1024, states: int = 300) -> Stream:
    """A random problem with sparse features and four successors to every state; rho is never 0."""
    random = np.random.default_rng(1)
    actions = 4
    Phi = np.zeros((states, features))
    for x in Phi:
        some = random.choice(features, active, replace=False)
        x[some] = random.uniform(0.5, 1.5, active) / np.sqrt(active)
    P = np.zeros((states, actions, states))
    for s, p in enumerate(P):
        others = random.choice(states, actions, replace=False)
        others[0] = (s + 1) % states  # so that every state leads to every other
        p[np.arange(actions), others] = 1.0
    made = Problem(
        name="sparse", P=P, r=random.normal(size=(states, actions)), gamma=0.9, Phi=Phi,
        mu=np.full((states, actions), 1 / actions),
        pi=random.dirichlet(np.ones(actions), states), w0=np.ones(features),
    )  # fmt: skip
    return stream_of(made, steps)


def stream_of(problem: Problem, steps: int) -> Stream:
    """The steps of seed 0 of a run."""
    stream = FiniteStream(problem)
    events, _ = stream.take(stream.begin(0), steps)
    rows = sparse_rows(problem.Phi)
    return Stream(problem.name, stream.transitions[0], rows, events, np.ones(steps), problem.w0)


def learners(algorithm: str, lanes: int, lam: float = 0.0) -> list[Learner]:
    """Learners of one algorithm that differ in the step size and, if there is one, another value.

    The step sizes are so small that no weight shrinks to a denormal number, whose arithmetic would
    be measured instead of the loop.
    """
    other = {"perturbed_td": "eta", "tdc": "ratio", "htd": "ratio"}.get(algorithm)
    own = [{other: b} if other else {} for b in np.linspace(1.0, 3.0, lanes)]
    alphas = np.geomspace(1e-6, 1e-5, lanes)
    return [learner(algorithm, alpha=a, lam=lam, **p) for a, p in zip(alphas, own, strict=True)]
