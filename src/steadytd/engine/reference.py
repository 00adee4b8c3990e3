"""The engine without the compiler: one learner, one step, plain Python in the loop's own order.

Slow and obvious. Tests hold the compiled loop against it, and it is the place to read what a step
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.facts import CARRIED
from steadytd.engine.law import arguments, call
from steadytd.engine.schedule import step_factor
from steadytd.engine.settings import Settings


class ReferenceLearner:
    """The state of one learner and its step, interpreted."""

    def __init__(self, learner: Settings, w0: Floats) -> None:
        self.learner, self.law = learner, learner.law
        self.vectors = dict(zip(self.law.vectors, learner.first_vectors(w0), strict=True))
        self.average = np.array(w0, dtype=np.float64)
        self.traces = {name: np.zeros(len(w0)) for name in self.law.traces}
        self.memory = dict.fromkeys(self.law.memory, np.float64(0.0))
        # what has a window: as it is, without its oldest step, and so on
        self.younger: dict[str, list[Any]] = {
            name: [np.float64(0.0)] * learner.window(name) for name in self.law.windows
        }
        self.carried = dict.fromkeys(CARRIED, np.float64(0.0))
        self.step = 0

    def update(self, x: Floats, x_next: Floats, facts: Mapping[str, float]) -> None:
        """One step. `facts` holds `facts.STEP_FACTS`."""
        law, learner = self.law, self.learner
        factor = step_factor(self.step, float(learner["power"]), float(learner["delay"]))
        scope: dict[str, Any] = {**facts, **self.carried, **learner.values}
        scope["alpha"] = np.float64(learner["alpha"]) * factor
        with np.errstate(all="ignore"):
            for name, function in law.memory.items():
                if function is None:
                    continue
                for old in self._moved_on(name, self.memory[name]):
                    self.memory[name] = call(function, {**scope, **self.memory, name: old})
                    self._keep(name, self.memory[name])
            scope |= self.memory
            before = self._before(x, x_next)
            scale: dict[str, float] = {}
            for name, function in law.traces.items():
                decay, scale[name] = call(function, {**scope, **before})
                for old in self._moved_on(name, self.traces[name]):
                    self.traces[name] = decay * old + scale[name] * x
                    self._keep(name, self.traces[name])
            basis = {"x": x, "x_next": x_next, **(self.traces if learner.traced else {})}
            asked = arguments(law.update)
            for product, (left, right) in law.products.items():
                if product in asked:
                    scope[product] = self._product(left, right, basis, scale)
            self._write(call(law.update, scope), basis, scale)
            for name, function in law.maps.items():
                entries = [call(function, {**scope, "value": v}) for v in self.vectors[name]]
                self.vectors[name] = np.array(entries)
            share = 1.0 / (self.step + 1)
            self.average = self.average + (self.vectors["w"] - self.average) * share
        self.carried = {now: np.float64(facts[then]) for now, then in CARRIED.items()}
        self.step += 1

    def cut(self) -> None:
        """As `Block.cut`."""
        self.carried["gamma"] = np.float64(0.0)

    def _moved_on(self, name: str, value: Any) -> list[Any]:
        """What a step makes the trace or memory from: the youngest first, the whole one last."""
        if name not in self.younger:
            return [value]
        old, self.younger[name] = self.younger[name], []
        return [np.float64(0.0), *old[:0:-1]]

    def _keep(self, name: str, value: Any) -> None:
        if name in self.younger:
            self.younger[name].insert(0, value)

    def _before(self, x: Floats, x_next: Floats) -> dict[str, float]:
        """Inner products before the traces move on; 0 with a trace that is not stored."""
        asked = {name for function in self.law.traces.values() for name in arguments(function)}
        if not asked:
            return {}
        known = {"x": x, "x_next": x_next, **self.vectors}
        known |= self.traces if self.learner.traced else {}
        return {
            name: _dot(known[left], known[right]) if {left, right} <= set(known) else 0.0
            for name, (left, right) in self.law.products.items()
            if name in asked
        }

    def _product(
        self, left: str, right: str, basis: dict[str, Floats], scale: dict[str, float]
    ) -> float:
        """An inner product; without trace vectors z is a multiple of x."""
        inner = [
            self.vectors[n] if n in self.vectors else basis.get(n, basis["x"])
            for n in (left, right)
        ]
        product = _dot(inner[0], inner[1])
        missing = [scale[n] for n in (left, right) if n in scale and n not in basis]
        multiple = missing[0] * missing[1] if len(missing) == 2 else missing[0] if missing else None
        return product if multiple is None else multiple * product

    def _write(self, result: Any, basis: dict[str, Floats], scale: dict[str, float]) -> None:
        old = {name: vector.copy() for name, vector in self.vectors.items()}
        returned = result if len(self.law.writes) > 1 else (result,)
        for (target, parts), given in zip(self.law.writes.items(), returned, strict=True):
            if target in self.memory:
                self.memory[target] = np.float64(given)
                continue
            multiples = dict(zip(parts, given if len(parts) > 1 else (given,), strict=True))
            for name in dict.fromkeys((target, *self.law.vectors, *self.law.traces)):
                if name in multiples and (name in basis or name in old):
                    other = old[name] if name in old else basis[name]
                    self.vectors[target] = self.vectors[target] + multiples[name] * other
            on_x = [
                m * scale[p] if p in scale else m
                for p, m in multiples.items()
                if p == "x" or (p in scale and p not in basis)
            ]
            if on_x:
                self.vectors[target] = self.vectors[target] + _sum(on_x) * basis["x"]
            if "x_next" in multiples:
                added = multiples["x_next"] * basis["x_next"]
                self.vectors[target] = self.vectors[target] + added


def _sum(terms: list[float]) -> float:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _dot(a: Floats, b: Floats) -> float:
    """A sum in index order, as the compiled loop takes it (NumPy's own sums in another order)."""
    total = 0.0
    for left, right in zip(a.tolist(), b.tolist(), strict=True):
        if right != 0.0:
            total += left * right
    return total
