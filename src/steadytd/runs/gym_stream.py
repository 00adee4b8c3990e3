"""Learners on a Gymnasium environment: policies, features, true values, and the run itself.

The environment is walked once per seed, for all learners. It runs in Python, and its cost is
shared; the learners are blocks of lanes as on a finite problem, side by side on threads. A chunk's
feature table is the chunk's own observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.base.numbers import whole
from steadytd.engine.active import make_block
from steadytd.engine.block import Goal
from steadytd.engine.learner import Learner
from steadytd.engine.schedule import step_factors
from steadytd.features import FeatureMap, feature_map
from steadytd.runs.lanes import Lane, SeedResult, grouped, lanes_of
from steadytd.runs.result import Result
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
CHUNK = 4096  # steps at a time, whose features are in memory


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


def run_gym(
    stream: object,
    learners: list[Learner],
    seeds: list[int],
    points: Longs,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Run learners on a stream and record their errors against the Monte Carlo values.

    `points` are the step numbers at which errors are recorded, the first 0 and the last the number
    of steps. `progress(done, total)` is called with learner-updates.
    """
    if not isinstance(stream, GymStream):
        raise InputError(
            "learners run on a problem, the name of a problem, or a stream made by st.gym_stream, "
            f"got {stream!r}."
        )
    for learner in learners:
        learner.require_numbers("a Gymnasium stream")
        if learner.law.action_values:
            raise InputError(
                f"{learner.name} learns action values, but a stream has state values; use tdc."
            )
        if learner.law.average_reward:
            raise InputError(
                f"{learner.name} learns the average reward, but a stream has a discount; use td or "
                "another learner, or st.learner(...).start(...) in a loop of your own."
            )
    groups = grouped(lanes_of(learners, stream.n_policies), stream.n_features)
    goals = stream.goals()
    each = len(learners) * stream.n_policies * int(points[-1])
    outcomes = []
    with ThreadPoolExecutor(threads) as pool:
        for i, seed in enumerate(seeds):

            def report(updates: int, before: int = i * each) -> None:
                if progress is not None:
                    progress(before + updates, each * len(seeds))

            outcomes.append(_run_seed(stream, seed, groups, goals, points, pool, report))
    asked = [str(learner) for learner in learners]
    return Result.collect(stream, learners, asked, seeds, points, outcomes)


def _run_seed(
    stream: GymStream,
    seed: int,
    groups: list[list[Lane]],
    goals: list[Goal],
    points: Longs,
    pool: ThreadPoolExecutor,
    report: Callable[[int], None],
) -> SeedResult:
    """All groups of lanes on one seed's walk."""
    w0 = np.zeros(stream.n_features)
    blocks = [make_block([lane.learner for lane in some], w0) for some in groups]
    numbers = [lane.number for some in groups for lane in some]
    steps, recorded = int(points[-1]), []
    walk = stream.source.begin(seed)
    while walk.step < steps:
        before = walk.step
        chunk = walk.take(min(CHUNK, steps - before))
        rows = stream.features.rows(chunk.obs)
        seen = [chunk.transitions(k, peaks) for k, peaks in enumerate(stream.sample.peaks)]
        first = 0 if before == 0 else int(np.searchsorted(points, before, side="right"))
        last = int(np.searchsorted(points, walk.step, side="right"))
        events = np.arange(walk.step - before, dtype=np.int32)
        jobs = []
        for lanes, block in zip(groups, blocks, strict=True):
            learner, policy = lanes[0].learner, lanes[0].policy
            factor = step_factors(before, len(events), *learner.schedule)
            arguments = events, factor, seen[policy], rows, points[first:last], goals[policy]
            jobs.append(pool.submit(block.advance, *arguments))
        recorded.append(np.concatenate([job.result() for job in jobs], axis=1))
        report(walk.step * len(numbers))
    walk.close()
    errors = np.concatenate(recorded)[:, None, :]
    weights = np.concatenate([block.reported.T for block in blocks])
    diverged = np.concatenate([block.first_divergence for block in blocks])
    return SeedResult(seed, numbers, errors, weights, diverged)
