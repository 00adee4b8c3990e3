"""The exact mean of one step of a law in the steady state, by enumeration of all transitions.

Only the law's own Python functions are used, no formula of its documentation. A step depends on the
past through what the previous transition carries over, the law's memory and its traces. At given
vectors, memory and traces are linear in their own past, so their conditional expectations given the
previous transition may stand for them, and those are found by repeating the law's functions over
all pairs of consecutive transitions until nothing changes. (A law's maps, which cut or project
after the update, are left out.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.facts import CARRIED, fact_table, named
from steadytd.engine.law import Function, arguments
from steadytd.engine.learner import Learner
from steadytd.mdp.action_values import Task
from steadytd.mdp.moments import Expectation

ALPHA = 2.0**-40  # scales without rounding, and leaves nothing of terms in alpha squared
CONVERGED = 1e-14
REPETITIONS = 20_000


class MeanStep:
    """E[change of y] / alpha as a function of y, the stacked vectors of a learner."""

    def __init__(self, learner: Learner, task: Task, alpha: float = ALPHA) -> None:
        self.law, self.n_features, self.alpha = learner.law, task.n_features, alpha
        m = task.base.moments()
        self.values = {**learner.values, "alpha": alpha}
        s, a, s_next = np.nonzero(m.d[:, None, None] * m.mu[:, :, None] * m.P)
        row, row_next = task.rows(s, a, s_next, 0)
        self.x, self.x_next = task.table[row], task.table[row_next]
        frequency = m.d[s] * m.mu[s, a] * m.P[s, a, s_next]
        pi, mu = m.pi[s, a], m.mu[s, a]
        peaks = np.maximum(m.pi, m.mu)[m.mu > 0.0]
        facts = fact_table(
            reward=m.r[s, a, s_next], gamma_next=m.gamma[s, a, s_next], rho=pi / mu, pi=pi, mu=mu,
            interest=m.interest[s], peak_min=peaks.min(), peak_max=peaks.max(),
        )  # fmt: skip
        self.facts = [named(row) for row in facts]
        # pairs of consecutive transitions; `chance` is that of the first given the second
        self.before, self.now = np.nonzero(s_next[:, None] == s[None, :])
        self.chance = frequency[self.before] / m.d[s[self.now]]
        self.frequency = self.chance * frequency[self.now]
        asked = arguments(self.law.update)
        self.products = {n: pair for n, pair in self.law.products.items() if n in asked}
        # what a law remembers, as one vector: its memory, then its traces
        self.remembered = len(self.law.memory) + len(self.law.traces) * self.n_features

    def __call__(self, y: Floats) -> Floats:
        """The mean change at y, divided by alpha."""
        pasts = self._steady(y)
        changes = [self._step(p, past, y)[1] for p, past in enumerate(pasts[self.before])]
        return np.asarray(self.frequency @ np.array(changes) / self.alpha)

    def expectation(self) -> Expectation:
        """M and g of E[change of y] = alpha (g - M y), from its values at 0 and unit vectors."""
        size = len(self.law.vectors) * self.n_features
        g = self(np.zeros(size))
        return Expectation(M=np.stack([g - self(unit) for unit in np.eye(size)], axis=1), g=g)

    def _step(self, p: int, past: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The second step of pair p: what is remembered after it, and the change of y."""
        law, d = self.law, self.n_features
        size = len(law.memory)
        memory = dict(zip(law.memory, past[:size].tolist(), strict=True))
        old = dict(zip(law.traces, past[size:].reshape(-1, d), strict=True))
        previous, present = self.facts[self.before[p]], self.facts[self.now[p]]
        scope: dict[str, Any] = {**self.values, **present, **memory}
        scope |= {now: previous[then] for now, then in CARRIED.items()}
        for name, function in law.memory.items():
            if function is not None:
                memory[name] = scope[name] = _call(function, scope)
        vectors = dict(zip(law.vectors, np.split(y, len(law.vectors)), strict=True))
        vectors["x"] = self.x[self.now[p]]
        vectors["x_next"] = self.x_next[self.now[p]]
        for name, function in law.traces.items():
            decay, scale = _call(function, scope)
            vectors[name] = decay * old[name] + scale * vectors["x"]
        scope |= {n: float(vectors[a] @ vectors[b]) for n, (a, b) in self.products.items()}
        returned = _call(law.update, scope)
        change = {name: np.zeros(d) for name in law.vectors}
        for (name, parts), given in zip(
            law.writes.items(), returned if len(law.writes) > 1 else (returned,), strict=True
        ):
            if name in memory:
                memory[name] = given
            else:
                multiples = given if len(parts) > 1 else (given,)
                change[name] = sum(m * vectors[v] for m, v in zip(multiples, parts, strict=True))
        kept = [np.array(list(memory.values())), *(vectors[name] for name in law.traces)]
        return np.concatenate(kept), np.concatenate(list(change.values()))

    def _steady(self, y: Floats) -> Floats:
        """What is remembered on average after every transition: [transition, remembered]."""
        size, pairs = self.remembered, range(len(self.now))
        fresh = np.array([self._step(p, np.zeros(size), y)[0] for p in pairs])
        decay = np.array(
            [[self._step(p, unit, y)[0] for unit in np.eye(size)] for p in pairs]
        ).reshape(len(pairs), size, size)
        decay = decay - fresh[:, None, :]
        self._check_linear(y)
        mean = np.zeros((len(self.x), size))
        for _ in range(REPETITIONS):
            after = np.zeros_like(mean)
            pasts = mean[self.before]
            kept = fresh + np.einsum("pi,pij->pj", pasts, decay)
            np.add.at(after, self.now, self.chance[:, None] * kept)
            if np.abs(after - mean).max(initial=0.0) <= CONVERGED * np.abs(after).max(initial=0.0):
                return after
            mean = after
        raise AssertionError("the law's memory or trace has no finite mean on this problem")

    def _check_linear(self, y: Floats) -> None:
        """The change and the next memory must be linear in the past: (f(0) + f(2u)) / 2 = f(u)."""
        rng = np.random.default_rng(0)
        for p in rng.integers(len(self.now), size=20):
            u = rng.normal(size=self.remembered)
            none, one, two = (np.concatenate(self._step(p, k * u, y)) for k in (0.0, 1.0, 2.0))
            np.testing.assert_allclose((none + two) / 2, one, rtol=1e-9, atol=1e-12)


names_of = cache(arguments)


def _call(function: Function, scope: Mapping[str, Any]) -> Any:
    return function(*(scope[name] for name in names_of(function)))
