"""The exact mean of one step of a law in the steady state, by enumeration of all transitions.

Only the law's own Python functions are used, no closed form. A step depends on the
past through what the previous transition carries over, the law's memory and its traces. At given
vectors, memory and traces are linear in their own past, so their conditional expectations given the
previous transition may stand for them, and those are found by repeating the law's functions over
all pairs of consecutive transitions until nothing changes; with a window of n steps, n - 1 times. A
memory that asks for nothing but itself and hyper-parameters is a clock: the mean is that over its
cycle. Where a law is not linear in its past, or its memory has no finite mean, there is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.facts import CARRIED, fact_table, named
from steadytd.engine.law import Function, arguments, call
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
        asked_by_traces = {name for f in self.law.traces.values() for name in arguments(f)}
        self.trace_products = {n: p for n, p in self.law.products.items() if n in asked_by_traces}
        # what a law remembers, as one vector: its memory, then its traces
        self.clocks = [name for name, f in self.law.memory.items() if self._is_clock(name, f)]
        self.cycle = self._cycle()
        self.kept = [name for name in self.law.memory if name not in self.clocks]
        self.remembered = len(self.kept) + len(self.law.traces) * self.n_features
        moving = {*self.law.traces, *self.kept}
        windows = {learner.window(name) for name in self.law.windows}
        if windows and (moving != set(self.law.windows) or len(windows) > 1):
            raise self._unknown("its traces and memory have windows of different lengths")
        self.window = min(windows, default=0)
        self.steady: list[Floats] | None = None

    def __call__(self, y: Floats) -> Floats:
        """The mean change at y, divided by alpha."""
        means = []
        for phase, past in zip(self.cycle, self._remembered(y), strict=True):
            changes = [self._step(p, one, y, phase)[1] for p, one in enumerate(past[self.before])]
            means.append(self.frequency @ np.array(changes) / self.alpha)
        return np.asarray(np.mean(means, axis=0))

    def _remembered(self, y: Floats) -> list[Floats]:
        """`_steady`, found once where what is remembered does not depend on y."""
        if self.trace_products or None in self.law.memory.values():
            return self._steady(y)
        if self.steady is None:
            self.steady = self._steady(y)
        return self.steady

    def _is_clock(self, name: str, function: Function | None) -> bool:
        return function is not None and set(arguments(function)) <= {name, *self.law.params}

    def _cycle(self) -> list[dict[str, float]]:
        """The values of the clocks, one after the other until they begin again."""
        now, cycle = dict.fromkeys(self.clocks, 0.0), list[dict[str, float]]()
        while not cycle or cycle[0] != cycle[-1] or len(cycle) == 1:
            now = {n: call(self._moved(n), {**self.values, **now}) for n in self.clocks}
            cycle.append(now)
        return cycle[:-1]

    def _moved(self, name: str) -> Function:
        function = self.law.memory[name]
        assert function is not None
        return function

    def expectation(self) -> Expectation:
        """M and g of E[change of y] = alpha (g - M y), from its values at 0 and unit vectors."""
        size = len(self.law.vectors) * self.n_features
        g = self(np.zeros(size))
        return Expectation(M=np.stack([g - self(unit) for unit in np.eye(size)], axis=1), g=g)

    def _step(
        self, p: int, past: Floats, y: Floats, clocks: Mapping[str, float]
    ) -> tuple[Floats, Floats]:
        """The second step of pair p: what is remembered after it, and the change of y."""
        law, d = self.law, self.n_features
        size = len(self.kept)
        memory = dict(zip(self.kept, past[:size].tolist(), strict=True))
        old = dict(zip(law.traces, past[size:].reshape(-1, d), strict=True))
        previous, present = self.facts[self.before[p]], self.facts[self.now[p]]
        scope: dict[str, Any] = {**self.values, **present, **memory, **clocks}
        scope |= {now: previous[then] for now, then in CARRIED.items()}
        for name, function in law.memory.items():
            if function is not None and name not in clocks:
                memory[name] = scope[name] = call(function, scope)
        vectors = dict(zip(law.vectors, y.reshape(-1, d), strict=True))
        vectors["x"] = self.x[self.now[p]]
        vectors["x_next"] = self.x_next[self.now[p]]
        before = {**vectors, **old}
        pairs = {n: float(before[a] @ before[b]) for n, (a, b) in self.trace_products.items()}
        for name, function in law.traces.items():
            decay, scale = call(function, scope | pairs)
            vectors[name] = decay * old[name] + scale * vectors["x"]
        scope |= {n: float(vectors[a] @ vectors[b]) for n, (a, b) in self.products.items()}
        returned = call(law.update, scope)
        change = {name: np.zeros(d) for name in law.vectors}
        for (name, parts), given in zip(
            law.writes.items(), returned if len(law.writes) > 1 else (returned,), strict=True
        ):
            if name in memory:
                memory[name] = given
            else:
                multiples = given if len(parts) > 1 else (given,)
                change[name] = sum(m * vectors[v] for m, v in zip(multiples, parts, strict=True))
        for name, function in law.maps.items():
            moved = vectors[name] + change[name]
            mapped = [call(function, {**scope, "value": value}) for value in moved.tolist()]
            change[name] = change[name] + (np.array(mapped) - moved)
        kept = [np.array(list(memory.values())), *(vectors[name] for name in law.traces)]
        return np.concatenate(kept), np.concatenate(list(change.values()))

    def _steady(self, y: Floats) -> list[Floats]:
        """What is remembered on average before every phase: [phase][transition, remembered]."""
        size, pairs = self.remembered, range(len(self.now))
        maps = []
        for phase in self.cycle:
            fresh = np.array([self._step(p, np.zeros(size), y, phase)[0] for p in pairs])
            ahead = [[self._step(p, unit, y, phase)[0] for unit in np.eye(size)] for p in pairs]
            decay = np.array(ahead).reshape(len(pairs), size, size) - fresh[:, None, :]
            maps.append((fresh, decay))
        means = [np.zeros((len(self.x), size)) for _ in self.cycle]
        for repetition in range(REPETITIONS):
            if self.window and repetition == self.window - 1:
                break
            last = [mean.copy() for mean in means]
            for i, (fresh, decay) in enumerate(maps):
                after = np.zeros_like(means[i])
                kept = fresh + np.einsum("pi,pij->pj", means[i][self.before], decay)
                np.add.at(after, self.now, self.chance[:, None] * kept)
                means[(i + 1) % len(maps)] = after
            sizes = np.abs(means).max(axis=(0, 1), initial=0.0)
            if (np.abs(np.array(means) - last) <= CONVERGED * sizes).all() and not self.window:
                break
        else:
            raise self._unknown("its memory or trace has no finite mean")
        self._check_linear(y, means)
        return means

    def _check_linear(self, y: Floats, means: list[Floats]) -> None:
        """The change and the next memory must be linear in the past: (f(0) + f(2u)) / 2 = f(u).

        Around what is remembered on average, since some traces are as small as alpha. Memory that
        the update writes may multiply traces, but must itself not depend on the past.
        """
        rng = np.random.default_rng(0)
        written = [self.kept.index(n) for n in self.kept if self.law.memory[n] is None]
        for p in rng.integers(len(self.now), size=20):
            i = int(rng.integers(len(means)))
            past = means[i][self.before[p]]
            u = rng.normal(size=self.remembered) * np.abs(means[i]).max(axis=0, initial=0.0)
            u[written] = 0.0
            found = [self._step(p, past + k * u, y, self.cycle[i]) for k in (0.0, 1.0, 2.0)]
            none, one, two = (np.concatenate([kept, change / self.alpha]) for kept, change in found)
            scale = np.maximum(np.abs(none), np.abs(two))
            bent = np.abs((none + two) / 2 - one) > 1e-9 * scale + 1e-10 * scale.max()
            if bent.any() or (none[written] != two[written]).any():
                raise self._unknown("it is not linear in its own past")

    def _unknown(self, why: str) -> InputError:
        return InputError(f"the mean step of {self.law.name} cannot be enumerated: {why}.")
