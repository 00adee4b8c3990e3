"""True values by Monte Carlo: the target policy is followed from states that were visited.

The value of a state is that of the environment without its time limit: learners bootstrap through
truncation, so a rollout goes on through it as well, to a termination or to `horizon` steps, after
which nothing counts any more (gamma^horizon <= 1e-4).

A rollout needs the environment in the visited state. In this order: a function of the user's sets
it; or a copy made at the visit is restored, where everything that changes is plain data; or the
episode is played again from its seed, action by action.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, frozen
from steadytd.base.errors import InputError
from steadytd.streams.gymnasium_env import Snapshot, replay, reseed, restore_snapshot, snapshot
from steadytd.streams.gymnasium_stream import ROLLOUT, SAMPLE, Probabilities, Source, Walk, draw

if TYPE_CHECKING:
    from steadytd.streams.gymnasium_env import Env

NEGLIGIBLE = 1e-4
LONGEST = 100_000  # steps of a rollout without a discount

Restore = Callable[[Any, Any], object]


class Visit(NamedTuple):
    """A state that was visited, and the ways back to it."""

    obs: Any
    vector: Floats
    snapshot: Snapshot | None
    seed: int
    actions: tuple[int, ...]


class Sample(NamedTuple):
    """Observations of a walk, some of its states, and the peaks of every target."""

    obs: Floats
    visits: list[Visit]
    peaks: list[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Truth:
    """Mean returns at visited states: `obs` [n, k], `value` and `stderr` [targets, n]."""

    obs: Floats
    value: Floats
    stderr: Floats

    @property
    def resolution(self) -> Floats:
        """The error that exact values would seem to have, one for each target.

        The root mean square of the standard errors: smaller errors cannot be distinguished from
        zero.
        """
        return np.asarray(np.sqrt(np.mean(self.stderr**2, axis=1)))


def sample_states(source: Source, seed: int, steps: int, count: int) -> Sample:
    """Walk `steps` steps and keep `count` of the states, drawn without repetition."""
    walk = source.begin(seed, SAMPLE)
    rng = np.random.default_rng([SAMPLE, 3, int(seed)])
    where = np.sort(rng.choice(steps, size=count, replace=False))
    parts, visits = [], []
    for step in where.tolist():
        if step > walk.step:
            parts.append(walk.take(step - walk.step).obs)
        visits.append(_visit(walk))
    parts.append(walk.take(steps - walk.step).obs)
    walk.close()
    peaks = [(low, high) for low, high in walk.peaks]
    return Sample(np.concatenate(parts), visits, peaks)


def _visit(walk: Walk) -> Visit:
    obs = copy.deepcopy(walk.obs)
    saved = snapshot(walk.env)
    return Visit(obs, walk.vector(obs), saved, walk.episode_seed, tuple(walk.actions))


def default_horizon(gamma: float) -> int:
    """The number of steps after which the discount is negligible."""
    if gamma == 1.0:
        return LONGEST
    return math.ceil(math.log(NEGLIGIBLE) / math.log(gamma)) if gamma > 0.0 else 1


def monte_carlo(
    source: Source,
    visits: list[Visit],
    rollouts: int,
    horizon: int,
    seed: int,
    restore: Restore | None = None,
) -> Truth:
    """The mean discounted return of every target policy from every visited state."""
    walk = source.begin(seed, ROLLOUT)
    returns = np.empty((len(walk.targets), len(visits), rollouts))
    for i, visit in enumerate(visits):
        for k, target in enumerate(walk.targets):
            for j in range(rollouts):
                rng = np.random.default_rng([ROLLOUT, int(seed), i, k, j])
                obs = _go_back(walk, visit, restore)
                reseed(walk.env, np.random.default_rng(rng.integers(2**63)))
                returns[k, i, j] = _return(walk.env, target, obs, source.gamma, horizon, rng)
    walk.close()
    return Truth(
        frozen([visit.vector for visit in visits]),
        frozen(returns.mean(axis=2)),
        frozen(returns.std(axis=2, ddof=1) / math.sqrt(rollouts)),
    )


def _go_back(walk: Walk, visit: Visit, restore: Restore | None) -> Any:
    if restore is not None:
        walk.env.reset(seed=visit.seed)
        restore(walk.env, copy.deepcopy(visit.obs))
    elif visit.snapshot is not None:
        restore_snapshot(walk.env, visit.snapshot)
    else:
        obs = replay(walk.env, visit.seed, visit.actions)
        if not np.array_equal(walk.vector(obs), visit.vector):
            raise InputError(
                "replaying its seed and actions does not reproduce an episode, so rollouts cannot "
                "start from a visited state; give restore=, a function (env, obs) that sets the "
                "environment's state."
            )
    return visit.obs


def _return(
    env: Env,
    target: Probabilities,
    obs: Any,
    gamma: float,
    horizon: int,
    rng: np.random.Generator,
) -> float:
    total, discount = 0.0, 1.0
    for _ in range(horizon):
        obs, reward, terminated, _, _ = env.step(draw(target(obs), rng.random()))
        total += discount * float(reward)
        discount *= gamma
        if terminated:
            return total
    if gamma == 1.0:
        raise InputError(
            f"with gamma = 1 every rollout must terminate, but one did not within {horizon:,d} "
            "steps; use gamma < 1 or a larger horizon."
        )
    return total
