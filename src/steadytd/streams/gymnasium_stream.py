"""The stream of a Gymnasium environment: the steps of the behaviour policy, chunk by chunk.

Termination is discount 0 and, as in a finite problem, a step to the next start state. Truncation
is not an end: its step bootstraps from the true next observation, and then a new episode begins
(see `engine.facts`).

Same seed, same bits: a seed decides the actions' uniform numbers and the seed of every episode's
reset, and nothing else is random. The chunks' lengths do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats, Ints
from steadytd.base.errors import InputError
from steadytd.base.numbers import one_seed
from steadytd.engine.block import Transitions
from steadytd.engine.facts import fact_table
from steadytd.streams.gymnasium_env import action_count, vectoriser

if TYPE_CHECKING:
    from steadytd.streams.gymnasium_env import Env, Factory

Policy = Callable[[Any], ArrayLike] | ArrayLike
Probabilities = Callable[[Any], list[float]]
TOLERANCE = 1e-6  # by which probabilities may miss a sum of 1
RUN, SAMPLE, ROLLOUT = 1, 2, 3  # what a seed's numbers are for: each use has its own
ACTIONS, RESETS = 1, 2


class Steps(NamedTuple):
    """Consecutive steps: step i goes from obs[row[i]] to obs[row_next[i]]."""

    obs: Floats
    row: Ints
    row_next: Ints
    reward: Floats
    gamma_next: Floats
    gamma_carried: Floats  # 0 where the episode ends or is cut off
    mu: Floats
    pi: Floats  # [targets, steps]

    def transitions(self, policy: int, peaks: tuple[float, float]) -> Transitions:
        """The steps as the engine takes them, for one target policy."""
        pi, (low, high) = self.pi[policy], peaks
        facts = fact_table(
            reward=self.reward, gamma_next=self.gamma_next, gamma_carried=self.gamma_carried,
            rho=pi / self.mu, pi=pi, mu=self.mu, peak_min=low, peak_max=high,
        )  # fmt: skip
        return Transitions(self.row, self.row_next, facts)


@dataclass(frozen=True)
class Source:
    """An environment, the behaviour policy, the target policies and the discount."""

    make: Factory
    behavior: Policy
    targets: tuple[Policy, ...]
    gamma: float

    def begin(self, seed: int, use: int = RUN) -> Walk:
        """The stream of a seed before its first step."""
        return Walk(self, seed, use)


class Walk:
    """A behaviour policy that acts in an environment."""

    def __init__(self, source: Source, seed: int, use: int) -> None:
        seed = one_seed(seed)
        self.source = source
        self.env: Env = source.make()
        count = action_count(self.env)
        self.vector = vectoriser(self.env)
        self.behavior = probabilities("behavior", source.behavior, count)
        self.targets = [probabilities("target", one, count) for one in source.targets]
        self._uniform = np.random.default_rng([use, ACTIONS, seed])
        self._resets = np.random.default_rng([use, RESETS, seed])
        self.peaks = [[1.0, 0.0] for _ in self.targets]  # least and largest max(pi, mu) so far
        self.step = 0
        self.was_cut = False
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self.episode_seed = int(self._resets.integers(2**31))
        self.actions: list[int] = []
        self.obs, _ = self.env.reset(seed=self.episode_seed)

    def take(self, count: int) -> Steps:
        """The next `count` steps."""
        obs = [self.vector(self.obs)]
        row, row_next = [], []
        reward, gamma_next, gamma_carried, mu = [], [], [], []
        pi: list[list[float]] = [[] for _ in self.targets]
        for i, u in enumerate(self._uniform.random(count).tolist()):
            if self.was_cut and i > 0:
                obs.append(self.vector(self.obs))
            row.append(len(obs) - 1)
            action, likely = self._choose(u, pi)
            self.actions.append(action)
            self.obs, gain, terminated, truncated, _ = self.env.step(action)
            self.was_cut = bool(truncated) and not terminated
            reward.append(self._finite(gain, self.step + i))
            gamma_next.append(0.0 if terminated else self.source.gamma)
            gamma_carried.append(0.0 if self.was_cut else gamma_next[-1])
            mu.append(likely)
            if terminated:
                self.reset()
            obs.append(self.vector(self.obs))
            row_next.append(len(obs) - 1)
            if self.was_cut:
                self.reset()
        self.step += count
        return Steps(
            np.array(obs),
            np.array(row, dtype=np.int32),
            np.array(row_next, dtype=np.int32),
            np.array(reward),
            np.array(gamma_next),
            np.array(gamma_carried),
            np.array(mu),
            np.array(pi).reshape(len(self.targets), count),
        )

    def _choose(self, u: float, pi: list[list[float]]) -> tuple[int, float]:
        """An action by inversion and its probability; the targets' are added to `pi`."""
        chances = self.behavior(self.obs)
        action = draw(chances, u)
        for target, found, peaks in zip(self.targets, pi, self.peaks, strict=True):
            intended = target(self.obs)
            for a, p in enumerate(intended):
                peak = max(p, chances[a])
                peaks[:] = min(peaks[0], peak), max(peaks[1], peak)
                if p > 0.0 and chances[a] == 0.0:
                    raise InputError(
                        f"the target policy takes action {a} with probability {p:g} at the "
                        f"observation {self.vector(self.obs).tolist()}, which the behaviour policy "
                        "never takes there; give it positive probability."
                    )
            found.append(intended[action])
        return action, chances[action]

    def _finite(self, gain: Any, step: int) -> float:
        number = float(gain)
        if not math.isfinite(number):
            raise InputError(f"the environment's reward at step {step} is {number}.")
        return number

    def close(self) -> None:
        """Free the environment."""
        self.env.close()


def draw(chances: Sequence[float], u: float) -> int:
    """The first action whose cumulative probability exceeds u, among those that are possible."""
    total, last = 0.0, 0
    for action, p in enumerate(chances):
        if p > 0.0:
            total += p
            last = action
            if u < total:
                return action
    return last


def probabilities(name: str, policy: Policy, count: int) -> Probabilities:
    """A policy as a function from an observation to checked probabilities."""
    if not callable(policy):
        fixed = _checked(name, policy, count)
        return lambda obs: fixed
    return lambda obs: _checked(name, policy(obs), count)


def _checked(name: str, given: Any, count: int) -> list[float]:
    try:
        found = [float(p) for p in given]
    except (TypeError, ValueError):
        found = []
    if len(found) == count and min(found) >= 0.0 and abs(sum(found) - 1.0) <= TOLERANCE:
        return found
    raise InputError(
        f"the {name} policy must give {count} probabilities, one for each action, that sum to 1, "
        f"got {given!r}."
    )
