"""A law step by step in plain NumPy, from the definition: no compiled code, no shortcuts.

An episode begins with `begin`, whatever ended the one before; all vectors and traces are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.law import LAM, Param, accumulating_trace, arguments, law
from steadytd.engine.learner import Learner
from tests.support.evaluate_helpers import Step


class SlowLaw:
    """One learner: its weights after each step, and the sums of a law that is solved."""

    def __init__(self, learner: Learner, w0: Floats) -> None:
        self.law, d = learner.law, len(w0)
        self.values = {
            name: np.nan if isinstance(value, str) else value
            for name, value in learner.values.items()
        }
        self.averaged = learner.averaged
        self.vectors = {name: np.zeros(d) for name in self.law.vectors}
        self.vectors["w"] = np.array(w0)
        self.traces = {name: np.zeros(d) for name in self.law.traces}
        self.memory = dict.fromkeys(self.law.memory, 0.0)
        self.gamma = self.rho_prev = self.pi_prev = self.mu_prev = 0.0
        self.A, self.b = np.zeros((d, d)), np.zeros(d)
        self.history: list[Floats] = []
        self.windows = {name: learner.window(name) for name in self.law.windows}
        self.past: list[dict[str, Any]] = []  # what was known at every step, for windows

    @property
    def shown(self) -> Floats:
        """The weights that the learner reports."""
        return np.mean(self.history, axis=0) if self.averaged else self.vectors["w"]

    def begin(self) -> None:
        """The next step is the first one of an episode."""
        self.gamma = 0.0

    def take(self, x: Floats, x_next: Floats, facts: Mapping[str, float]) -> None:
        """One step; `facts` need not say what is carried."""
        known = {**self.values, **facts, "gamma": self.gamma, "rho_prev": self.rho_prev}
        known |= {"pi_prev": self.pi_prev, "mu_prev": self.mu_prev}
        if "power" in known:
            t, alpha = len(self.history), float(known["alpha"])
            known["alpha"] = alpha / (1 + t / known["delay"]) ** known["power"]
        self.past.append({**known, "x": x})
        for name, function in self.law.memory.items():
            if name in self.windows:
                self.memory[name] = self._from_nothing(name)
            elif function is not None:
                self.memory[name] = call(function, known | self.memory)
        known |= self.memory
        old = {**self.vectors, **self.traces, "x": x, "x_next": x_next}
        pairs = {n: float(old[left] @ old[right]) for n, (left, right) in self.law.products.items()}
        for name, trace in self.law.traces.items():
            decay, scale = call(trace, known | pairs)
            self.traces[name] = decay * self.traces[name] + scale * x
            if name in self.windows:
                self.traces[name] = self._from_nothing(name)
        vectors = {**self.vectors, **self.traces, "x": x, "x_next": x_next}
        for name, (left, right) in self.law.products.items():
            known[name] = float(vectors[left] @ vectors[right])
        result = call(self.law.update, known)
        if self.law.block is not None:
            self._sum(result, vectors)
        else:
            self._write(result, vectors)
        for vector, entry in self.law.maps.items():
            mapped = [call(entry, known | {"value": v}) for v in self.vectors[vector]]
            self.vectors[vector] = np.array(mapped)
        self.history.append(self.vectors["w"])
        self.gamma, self.rho_prev = facts["gamma_next"], facts["rho"]
        self.pi_prev, self.mu_prev = facts["pi"], facts["mu"]

    def _from_nothing(self, name: str) -> Any:
        """A memory or trace that began with nothing as many steps ago as its window is long."""
        value: Any = 0.0
        for known in self.past[-self.windows[name] :]:
            if name in self.memory:
                value = call(self.law.memory[name], {**known, name: value})
            else:
                decay, scale = call(self.law.traces[name], known)
                value = decay * value + scale * known["x"]
        return value

    def _sum(self, result: Any, vectors: Mapping[str, Floats]) -> None:
        target, on_x, on_x_next = result
        (z,) = self.traces.values()
        self.A += np.outer(z, on_x * vectors["x"] + on_x_next * vectors["x_next"])
        self.b += target * z

    def _write(self, result: Any, old: Mapping[str, Floats]) -> None:
        given = result if len(self.law.writes) > 1 else (result,)
        for (name, parts), multiples in zip(self.law.writes.items(), given, strict=True):
            if name in self.memory:
                self.memory[name] = multiples
                continue
            each = multiples if len(parts) > 1 else (multiples,)
            added = [m * old[part] for m, part in zip(each, parts, strict=True)]
            self.vectors[name] = old[name] + np.sum(added, axis=0)


def call(function: Callable[..., Any] | None, known: Mapping[str, Any]) -> Any:
    """A law's function with the arguments that it names."""
    assert function is not None
    return function(*(known[name] for name in arguments(function)))


def followed(
    episodes: Sequence[Sequence[Step]],
    learner: Learner,
    target: int,
    peaks: tuple[float, float] = (1.0, 1.0),
) -> SlowLaw:
    """The learner after all episodes of a log, from weights 0."""
    slow = SlowLaw(learner, np.zeros(len(episodes[0][0].x)))
    for episode in episodes:
        slow.begin()
        for p in episode:
            facts = {
                "reward": p.reward, "gamma_next": p.discount, "rho": float(p.rho[target]),
                "pi": float(p.pi[target]), "mu": p.mu, "interest": 1.0, "peak_min": peaks[0],
                "peak_max": peaks[1],
            }  # fmt: skip
            slow.take(p.x, p.x_next, facts)
    return slow


def faded(gamma: float, rho_prev: float, faded: float, reward: float) -> float:
    """A memory that an episode's end clears, as a user would write it."""
    return 0.5 * gamma * rho_prev * faded + reward


def count(count: float) -> float:
    """A memory that nothing clears: it counts steps."""
    return count + 1.0


@law(
    writes={"w": ("z", "x_next"), "h": "x"},
    params={"kappa": Param("a weight", default=0.3), "lam": LAM},
    traces={"z": accumulating_trace},
    memory={"faded": faded, "count": count},
)
def remembering(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float, alpha: float,
    kappa: float, faded: float, count: float,
) -> tuple[tuple[float, float], float]:  # fmt: skip
    """A user's own law, with traces, two vectors and two memories."""
    delta = reward + gamma_next * w_x_next - w_x
    step = alpha * (delta + kappa * h_x)
    return (step, -alpha * kappa * faded / count), alpha * (delta - h_x)
