"""A Gymnasium environment as something to run learners on: policies, features and true values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.numbers import whole
from steadytd.engine.block import Goal
from steadytd.features import FeatureMap, feature_map
from steadytd.streams.gymnasium_env import factory, name_of
from steadytd.streams.gymnasium_stream import Policy, Source
from steadytd.streams.rollouts import (
    Restore,
    Sample,
    Truth,
    default_horizon,
    monte_carlo,
    sample_states,
)

DISCOUNT = 0.99


@dataclass(frozen=True, eq=False)
class GymStream:
    """What `st.run` runs on: see `gym_stream`."""

    name: str
    source: Source = field(repr=False)
    features: FeatureMap
    seed: int
    rollouts: int
    horizon: int
    sample: Sample = field(repr=False)
    restore: Restore | None = field(repr=False)

    @property
    def discount(self) -> float:
        """What the next state's value counts for."""
        return self.source.gamma

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.features.n_features

    @property
    def n_policies(self) -> int:
        """The number of target policies."""
        return len(self.source.targets)

    @cached_property
    def truth(self) -> Truth:
        """True values at the visited states, with standard errors; computed when first asked."""
        visits = self.sample.visits
        return monte_carlo(
            self.source, visits, self.rollouts, self.horizon, self.seed, self.restore
        )

    def goals(self) -> list[Goal]:
        """What errors are measured against, for every target: the mean over the visited states."""
        truth = self.truth
        rows, even = self.features.rows(truth.obs), np.full(len(truth.obs), 1.0 / len(truth.obs))
        return [Goal(rows, even, np.ascontiguousarray(value)) for value in truth.value]

    def values(self, weights: Floats) -> Floats:
        """The values that weights [..., d] give to the visited states: [..., states]."""
        return np.asarray(weights @ self.features(self.truth.obs).T)


def gym_stream(
    env: Any,
    *,
    behavior: Policy,
    target: Policy | Sequence[Policy],
    features: object = "rbf:100",
    discount: float | None = None,
    seed: int = 0,
    sample: int = 10_000,
    states: int = 100,
    rollouts: int = 30,
    horizon: int | None = None,
    restore: Restore | None = None,
    gamma: float | None = None,
) -> GymStream:
    """A stream from a Gymnasium environment, for `st.run`.

    `env` is an id or a function that makes the environment; its actions must be Discrete.
    `behavior` acts, `target` is to be evaluated: functions from an observation to the actions'
    probabilities, or constant probabilities; a list of target policies gives several at once.
    `discount` is 0.99 unless given; `gamma` is its old name.
    `features` is a text such as `rbf:100`, a feature map or a scikit-learn transformer, fitted on
    `sample` steps of the behaviour policy unless it already is. Errors are measured at `states` of
    the observations met there, against the mean of `rollouts` returns of the target policy from
    each; `horizon` limits a rollout's steps. `restore(env, obs)` sets the environment to the state
    of an observation, for environments that can neither be copied nor repeated. `seed` decides the
    sample and the rollouts; the seeds of a run are `run`'s.
    """
    targets = _targets(target)
    sample, states = whole("sample", sample, 1), whole("states", states, 1)
    rollouts = whole("rollouts", rollouts, 2)
    if states > sample:
        raise InputError(f"states must be at most sample = {sample}, got {states}.")
    gamma = _discount(discount, gamma)
    make = factory(env)
    source = Source(make, behavior, targets, gamma)
    found = sample_states(source, seed, sample, states)
    features_map = feature_map(features, seed)
    fitted = features_map if features_map.fitted else features_map.fit(found.obs)
    steps = default_horizon(gamma) if horizon is None else whole("horizon", horizon, 1)
    return GymStream(name_of(make), source, fitted, seed, rollouts, steps, found, restore)


def _discount(discount: float | None, gamma: float | None) -> float:
    """The discount under its name or its old one."""
    if discount is not None and gamma is not None:
        raise InputError(
            f"discount = {discount!r} and gamma = {gamma!r} are the same number; leave out gamma."
        )
    given = discount if gamma is None else gamma
    found = DISCOUNT if given is None else given
    if not isinstance(found, int | float) or not 0.0 <= found <= 1.0:
        raise InputError(f"discount must be between 0 and 1, got {found!r}.")
    return float(found)


def _targets(given: Any) -> tuple[Policy, ...]:
    """The target policies: one, or a list in which something is not a mere number."""
    if callable(given) or not isinstance(given, list | tuple | np.ndarray):
        return (given,)
    if any(callable(one) or np.ndim(one) > 0 for one in given):
        return tuple(given)
    return (given,)
