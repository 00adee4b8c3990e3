"""The maps of a learner's steps, on a chain that knows what the learner remembers.

Without traces and memory a step maps the vectors by y <- B_e y + c_e, which depends on the
transition e alone. With them B and c depend on what is remembered, too. Where that takes finitely
many values (in windows, on a clock, after ratios of 0 or ends of episodes), pairs of a state and a
memory are the states of a larger chain, and its transitions have maps again.

The pairs are found by walking from the start, with the interpreted learner as it is: no law has to
say anything. Pairs from which every transition maps alike and leads to pairs that are alike are one
state. Numbers that agree to 11 digits count as equal, so a trace that fades may take finitely many
values as well.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.engine.facts import CARRIED, named
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.mdp.problem import Problem
from steadytd.theory.exact import LINEAR, Maps
from steadytd.theory.reading import Steps, can_be_read

MOST_PAIRS = 400  # of a state and a memory: a learner that remembers more is given up
DIGITS = 11  # to which equal memories agree


class Memory(NamedTuple):
    """What a learner carries from one step to the next beside its vectors."""

    traces: dict[str, Any]
    memory: dict[str, Any]
    younger: dict[str, list[Any]]
    carried: dict[str, Any]

    @property
    def key(self) -> tuple[str, ...] | None:
        """Its numbers as texts, the same for equal ones; None if one of them is not finite."""
        parts = [list(part.values()) for part in (self.traces, self.memory, self.carried)]
        parts += list(self.younger.values())
        numbers = [x for part in parts for z in part for x in np.ravel(z).tolist()]
        return _texts(numbers) if np.isfinite(numbers).all() else None


class Walker:
    """A learner that takes any transition, from any memory and vectors y on the row space."""

    def __init__(self, problem: Problem, learner: Learner, policy: int) -> None:
        self.m, law = problem.moments(policy), learner.law
        self.active = problem.active_in(policy)
        self.basis, self.places = law.basis(self.m.row_space), law.places(problem.n_features)
        self.learner = ReferenceLearner(learner.replace(power=0.0), problem.w0)
        self.asked = [name for name in CARRIED if name in law.asked]
        self.s, self.a, self.t, self.facts, self.p = Steps.of(self.m, np.ones(problem.n_states))
        self.nothing = self.remembered()
        self.size = self.basis.shape[1]
        self.zero: Floats = np.zeros(self.size)
        self.probe: Floats = np.array(np.random.default_rng(0).normal(size=self.size))

    def remembered(self) -> Memory:
        """What counts of the present memory: of a window all but what it forgets next."""
        own, zero = self.learner, np.float64(0.0)
        return Memory(
            {z: 0.0 * v if z in own.younger else v for z, v in own.traces.items()},
            {F: zero if F in own.younger else own.memory[F] for F in own.law.remembered},
            {name: [zero, *values[1:]] for name, values in own.younger.items()},
            {name: v if name in self.asked else zero for name, v in own.carried.items()},
        )

    def take(self, e: int, before: Memory, y: Floats) -> tuple[Memory, Floats]:
        """The memory, and the vectors and scalars, after transition e."""
        if not self.active[self.s[e]]:
            return before, y
        own = self.learner
        own.traces, own.memory, own.younger, own.carried = (dict(part) for part in before)
        now = {name: (self.basis @ y)[place] for name, place in self.places.items()}
        own.vectors = {name: now[name] for name in own.law.vectors}
        own.memory |= {name: now[name][0] for name in own.law.scalars}
        own.update(self.m.Phi[self.s[e]], self.m.Phi[self.t[e]], named(self.facts[e]))
        scalars = [own.memory[name] for name in own.law.scalars]
        return self.remembered(), self.basis.T @ np.append(list(own.vectors.values()), scalars)

    def map(self, e: int, before: Memory) -> tuple[Floats, Floats] | None:
        """B and c of transition e; None where it is not affine."""
        c = self.take(e, before, self.zero)[1]
        ones: list[Floats] = list(np.eye(self.size))
        B = np.array([self.take(e, before, y)[1] - c for y in ones]).T
        return (B, c) if self.maps_by(e, before, B, c) else None

    def maps_by(self, e: int, before: Memory, B: Floats, c: Floats) -> bool:
        """Whether transition e truly maps by B and c: tried at random vectors."""
        found = self.take(e, before, self.probe)[1]
        most = 1.0 + np.abs(B).max() + np.abs(c).max()
        return bool(np.abs(found - B @ self.probe - c).max() <= LINEAR * most)


class Chain(NamedTuple):
    """The maps of a learner, and in which of their states a run begins, for each first state."""

    maps: Maps
    first: Longs

    @staticmethod
    def of(
        problem: Problem, learner: Learner, policy: int, pairs: int = MOST_PAIRS
    ) -> Chain | None:
        """None where a step is not affine, or there are more than so many pairs."""
        law = learner.law
        if law.block or law.action_values or learner.averaged:
            return None
        walker, states = Walker(problem, learner, policy), np.arange(problem.n_states)
        if not can_be_read(law, learner.values):
            return _walked(walker, problem, min(pairs, MOST_PAIRS))
        maps = Maps.of(problem, learner, policy, np.ones(problem.n_states))
        each = enumerate(zip(maps.B, maps.c, strict=True))
        affine = all(walker.maps_by(e, walker.nothing, B, c) for e, (B, c) in each)
        return Chain(maps, states) if affine else None


def _walked(walker: Walker, problem: Problem, most: int) -> Chain | None:
    """The chain of all pairs that are met from the first states on."""
    leaving = [np.flatnonzero(walker.s == s).tolist() for s in range(problem.n_states)]
    number: dict[Any, int] = {}
    pairs: list[tuple[int, Memory]] = []

    def place(s: int, memory: Memory) -> int:
        key = (s, memory.key)
        if key not in number:
            number[key] = len(pairs)
            pairs.append((s, memory))
        return number[key]

    begin, first = np.flatnonzero(problem.start), np.zeros(problem.n_states, dtype=np.int64)
    first[begin] = [place(s, walker.nothing) for s in begin.tolist()]
    onward: list[list[tuple[int, tuple[str, ...]]]] = []  # by transition: to where, and how
    for s, before in pairs:  # grows on the way
        onward.append([])
        for e in leaving[s]:
            still = walker.take(e, before, walker.zero)[0]
            after, image = walker.take(e, before, walker.probe)
            if after.key is None or after.key != still.key or len(pairs) > most:
                return None
            onward[-1].append((place(int(walker.t[e]), after), _texts(image.tolist())))
    alike = _alike([s for s, _ in pairs], onward)
    found: dict[str, list[Any]] = defaultdict(list)
    examples = np.unique(alike, return_index=True)[1].tolist()  # a pair of each kind
    for own, i in enumerate(examples):
        s, memory = pairs[i]
        for e, (to, _) in zip(leaving[s], onward[i], strict=True):
            known = walker.map(e, memory)
            if known is None:
                return None
            chance = walker.m.mu[s, walker.a[e]] * walker.p[e]
            for name, value in zip("stpBc", (own, alike[to], chance, *known), strict=True):
                found[name].append(value)
    maps = Maps(len(examples), *(np.array(found[name]) for name in "stpBc"))
    return Chain(maps, np.array(alike)[first])


def _alike(kind: list[int], onward: list[list[tuple[int, tuple[str, ...]]]]) -> list[int]:
    """A number for each pair, the same for pairs of the same state and future."""
    while True:
        known: dict[Any, int] = {}
        finer = [
            known.setdefault((own, tuple((kind[j], how) for j, how in after)), len(known))
            for own, after in zip(kind, onward, strict=True)
        ]
        if len(known) == len(set(kind)):
            return finer
        kind = finer


def _texts(numbers: list[float]) -> tuple[str, ...]:
    return tuple(f"{x + 0.0:.{DIGITS}g}" for x in numbers)
