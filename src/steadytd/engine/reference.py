"""The engine without the compiler: one learner takes the steps of its program in plain Python.

Slow and obvious. Tests compare the compiled loop with it, to the last bit.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.engine.block import Block
from steadytd.engine.facts import CARRIED
from steadytd.engine.schedule import step_factor
from steadytd.engine.settings import Settings
from steadytd.engine.step.program import (
    FEATURES,
    Call,
    Dot,
    Drop,
    Each,
    Gather,
    Keep,
    Let,
    Mean,
    Move,
    Outer,
    Skip,
    Slide,
    Step,
    Sum,
    Total,
    Write,
)


class ReferenceLearner:
    """The state of one learner, and its step.

    With `traced` it keeps traces at lam = 0, too, and takes steps with rho = 0: equal up to
    rounding. Of a law that is solved it has the sums A and b.
    """

    def __init__(self, learner: Settings, w0: Floats, traced: bool = False) -> None:
        self.learner, self.law = learner, learner.law
        kind = self.law.block or Block
        self.program = kind.program(self.law, traced or learner.traced, True)
        self.values = {
            name: np.float64(np.nan if isinstance(value, str) else value)
            for name, value in learner.values.items()
        }
        self.A, self.b = np.zeros((len(w0), len(w0))), np.zeros(len(w0))
        self.vectors = dict(zip(self.law.vectors, learner.first_vectors(w0), strict=True))
        self.average = np.array(w0, dtype=np.float64)
        self.traces = {name: np.zeros(len(w0)) for name in self.program.traces}
        self.memory: dict[str, Any] = dict.fromkeys(self.law.memory, np.float64(0.0))
        # what has a window: as it is, without its oldest step, and so on
        self.younger: dict[str, list[Any]] = {
            name: [np.float64(0.0)] * learner.window(name) for name in self.law.windows
        }
        self.carried = dict.fromkeys(CARRIED, np.float64(0.0))
        self.listed: Bools = np.zeros(len(w0), dtype=np.bool_)
        self.step = 0

    @property
    def reported(self) -> Floats:
        """The weights that count: the present ones, or their mean over all steps."""
        return self.average if self.learner.averaged else self.vectors["w"]

    def update(self, x: Floats, x_next: Floats, facts: Mapping[str, float]) -> None:
        """One step. `facts` holds `facts.STEP_FACTS`."""
        factor = step_factor(self.step, *self.learner.schedule)
        self.numbers: dict[str, Any] = {**facts, **self.carried, **self.values}
        if "alpha" in self.values:
            self.numbers["alpha"] = self.values["alpha"] * factor
        self.features = {"x": x, "x_next": x_next}
        with np.errstate(all="ignore"):
            self._take(self.program.steps)
        self.carried = {now: np.float64(facts[then]) for now, then in CARRIED.items()}
        self.step += 1

    def cut(self) -> None:
        """As `Block.cut`."""
        self.carried["gamma"] = np.float64(0.0)

    def _take(self, steps: Iterable[Step]) -> None:  # noqa: PLR0912 one case per kind of step
        for step in steps:
            match step:
                case Dot(name, left, right):
                    self.numbers[name] = _dot(self._vector(left), self._vector(right))
                case Let(name, value):
                    self.numbers[name] = self._sum(value)
                case Keep(name, value):
                    self.memory[name] = np.float64(self._sum(value))
                case Call(results, function, names):
                    returned = self._call(function, names)
                    for name, value in _pairs(
                        results, returned if len(results) > 1 else [returned]
                    ):
                        self.numbers[name] = value
                case Slide(name, function, names):
                    older = (*self.younger[name][1:], np.float64(0.0))
                    moved = [self._call(function, names, {name: old}) for old in older]
                    self.memory[name], self.younger[name] = moved[0], moved
                case Move(z, decay, scale):
                    self._move(z, self.numbers[decay], self.numbers[scale])
                case Write():
                    self._write(step)
                case Gather(vector):
                    self.listed = (self.features["x"] != 0.0) | (self.vectors[vector] != 0.0)
                case Drop():
                    pass
                case Each(results, over=over):
                    old = {v: self.vectors[v].copy() for v in results}
                    of_x = self.features["x"] != 0.0
                    chosen = {"": np.ones(of_x.shape, dtype=bool), "x": of_x}.get(over, self.listed)
                    for k, returned in self._each(step, chosen):
                        new = returned if len(results) > 1 else (returned,)
                        for v, entry in zip(results, new, strict=True):
                            old[v][k] = entry
                    self.vectors |= old
                case Total(name):
                    terms = self._each(step, self.features["x"] != 0.0)
                    self.numbers[name] = reduce(operator.add, (term for _, term in terms), 0.0)
                case Outer(z=(number, basis), equation=equation):
                    trace = self._vector(basis) * (self.numbers[number] if number else 1.0)
                    target, on_x, on_x_next = (self.numbers[name] for name in equation)
                    v = on_x * self.features["x"] + on_x_next * self.features["x_next"]
                    self.A, self.b = self.A + np.outer(trace, v), self.b + target * trace
                case Skip(steps) if self.numbers["rho"] != 0.0:
                    self._take(steps)
                case Mean(vector):
                    share = 1.0 / (self.step + 1)
                    self.average = self.average + (self.vectors[vector] - self.average) * share

    def _each(self, step: Each | Total, chosen: Bools) -> Iterator[tuple[int, Any]]:
        """What a function of entries returns, for the chosen ones."""
        for k in np.flatnonzero(chosen).tolist():
            own = {name: self._vector(name)[k] for name in step.entries}
            yield k, self._call(step.function, step.arguments, own)

    def _vector(self, name: str) -> Floats:
        every: dict[str, Floats] = {**self.vectors, **self.traces, **self.features}
        return every[name]

    def _sum(self, value: Sum) -> Any:
        known = {**self.numbers, **self.memory}
        terms = [prod(known[name] for name in product) for product in value]
        return reduce(operator.add, terms) if terms else 0.0

    def _call(self, function: str, names: Iterable[str], more: Mapping[str, Any] = {}) -> Any:
        known = {**self.numbers, **self.memory, **more}
        return self.program.functions[function](*(known[name] for name in names))

    def _move(self, z: str, decay: float, scale: float) -> None:
        older = (*self.younger[z][1:], np.float64(0.0)) if z in self.younger else (self.traces[z],)
        moved = [decay * old + scale * self.features["x"] for old in older]
        self.traces[z] = moved[0]
        if z in self.younger:
            self.younger[z] = moved

    def _write(self, write: Write) -> None:
        """Add the multiples: of the vector itself, others, traces, x, x_next, in this order."""
        old = {**self.vectors, **self.traces, **self.features}
        for vector, parts in write.sums:
            by = {basis: self.numbers[number] for number, basis in parts}
            for basis in dict.fromkeys((vector, *self.vectors, *self.traces, *FEATURES)):
                if basis in by:
                    self.vectors[vector] = self.vectors[vector] + by[basis] * old[basis]


def _pairs(names: Iterable[Any], values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    """Names of results with their values, those of inner tuples too."""
    for name, value in zip(names, values, strict=True):
        yield from [(name, value)] if isinstance(name, str) else _pairs(name, value)


def _dot(a: Floats, b: Floats) -> float:
    """A sum in index order, as the compiled loop takes it (NumPy's own sums in another order)."""
    total = 0.0
    for left, right in zip(a.tolist(), b.tolist(), strict=True):
        if right != 0.0:
            total += left * right
    return total
