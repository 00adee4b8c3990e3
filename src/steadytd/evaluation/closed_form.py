"""What a law's own expectation says of its fixed point on a log. Nothing is known by name.

A law gives its mean update E[change of y] = alpha (g - M y) as a function of a problem's moments.
A log has no such moments, only sums: A and b of a `System`, and G. Whether a law's fixed point, or
M itself, is made of these sums is found out by trial: the law's closed form is evaluated on a few
small problems and compared there. Their numbers are drawn and all differ (discounts from transition
to transition, ratios from 0.01 to beyond 1000), so what is equal on all of them is equal because
the equations are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats
from steadytd.engine.law import GENERAL
from steadytd.engine.learner import Learner
from steadytd.evaluation.sums import System
from steadytd.mdp.moments import Expectation
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import slowest
from steadytd.theory.closed_form import require_right
from steadytd.theory.dynamics import expectation

TRIALS, STATES, ACTIONS, FEATURES = 3, 7, 3, 4
SAME = 1e-8  # relative difference up to which numbers of a trial are the same
TINY, HUGE = 1e-3, 100.0  # parameters beyond are tried with a number whose part can be seen
BELOW_ONE = 1.0 - 1e-4
ROUNDING = 1e-10  # parts of M below this, relative, are none


class Decays(NamedTuple):
    """The parameters that are a system's lam and beta; "": the number 0, None: beta = gamma."""

    lam: str = ""
    emphatic: bool = False
    beta: str | None = None

    def system(self, values: Mapping[str, float]) -> System:
        """The system with these parameters' values."""
        beta = None if self.beta is None else values.get(self.beta, 0.0)
        return System(values.get(self.lam, 0.0), self.emphatic, beta)


class FixedPoint(NamedTuple):
    """(A + eta G) w = b of a system; `penalty` is the parameter that is eta, "" where eta = 0."""

    system: System
    decays: Decays = Decays()
    penalty: str = ""


@cache
def trials() -> tuple[Problem, ...]:
    """The small problems; in every second state one action is rare in the log."""
    found = []
    for seed in range(TRIALS):
        rng = np.random.default_rng(seed)
        mu = rng.dirichlet(np.full(ACTIONS, 2.0), size=STATES)
        mu[::2, 0] *= 1e-3
        shape = (STATES, ACTIONS, STATES)
        gamma = np.where(rng.random(shape) < 0.2, 0.0, rng.uniform(0.5, 1.0, shape))
        found.append(
            Problem(
                name=f"trial {seed}",
                P=rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS)),
                r=rng.normal(size=shape),
                gamma=gamma,
                mu=mu / mu.sum(axis=1, keepdims=True),
                pi=rng.dirichlet(np.full(ACTIONS, 2.0), size=STATES),
                Phi=rng.normal(size=(STATES, FEATURES)),
            )
        )
    return tuple(found)


def own_numbers(learner: Learner) -> dict[str, float]:
    """The numbers of a law's own parameters, without those of the step size."""
    common = {"alpha", *GENERAL}
    return {k: v for k, v in learner.values.items() if isinstance(v, float) and k not in common}


def with_trial_numbers(learner: Learner) -> Learner:
    """The learner with plain numbers for what the data are to choose, and for extreme ones."""
    params, numbers = learner.algorithm.all_params, own_numbers(learner)
    extreme = [name for name, value in numbers.items() if value and not TINY <= value <= HUGE]
    named = enumerate([*learner.automatic, *extreme])
    return learner.replace(**{name: params[name].inside(0.3719 + 0.1013 * i) for i, name in named})


def _below_one(learner: Learner) -> Learner:
    """The learner with decays of 1 a little smaller: there A(1) = G, and F has no part in z."""
    ends = [n for n, param in learner.algorithm.all_params.items() if param.high == 1.0]
    found = own_numbers(learner)
    return learner.replace(**{name: BELOW_ONE for name in ends if found.get(name) == 1.0})


@lru_cache(maxsize=4096)
def fixed_point(learner: Learner) -> FixedPoint | None:
    """The equations of the learner's fixed point; None where the sums of a log do not give it."""
    tried = _below_one(with_trial_numbers(learner))
    means = _means(tried)
    if means is None:
        return None
    found = [np.linalg.lstsq(e.M, e.g, rcond=None)[0][:FEATURES] for e in means]
    values, given = own_numbers(tried), own_numbers(learner)
    penalties = {"": 0.0, **{name: value for name, value in values.items() if value > 0.0}}
    for decays in _decays({name: values[name] for name in given}):
        sums = [_sums(problem, decays.system(values)) for problem in trials()]
        for penalty, eta in penalties.items():
            solved = [np.linalg.solve(A + eta * G, b) for A, b, G in sums]
            if all(_same(f, s) for f, s in zip(found, solved, strict=True)):
                return FixedPoint(decays.system(given), decays, penalty)
    return None


def _decays(values: Mapping[str, float]) -> Iterator[Decays]:
    """The systems that a log can sum: any number up to 1 may be a decay."""
    names = ["", *(name for name, value in values.items() if 0.0 < value <= 1.0)]
    yield from (Decays(lam) for lam in names)
    for beta in (None, *names):
        yield from (Decays(lam, True, beta) for lam in names)


@dataclass(frozen=True)
class MeanMatrix:
    """M in blocks, one per pair of the law's vectors: block ij is a A + b A' + c G + d I.

    `parts` holds a, b, c, d: [vectors, vectors, 4]. It belongs to the A of one system.
    """

    parts: Floats

    def at(self, A: Floats, G: Floats) -> Floats:
        """M for the A and G of a log."""
        basis = np.stack([A, A.T, G, np.eye(len(A))])
        blocks = np.einsum("ijp,pkl->ikjl", self.parts, basis)
        return np.asarray(blocks.reshape(len(A) * len(self.parts), -1))

    @cached_property
    def saddle(self) -> bool:
        """Whether M is [[P, -k C'], [C, Q]] with k > 0, Q a positive sum of G and I, and P none.

        Then no eigenvalue has a real part below 0, and if C is regular none has 0 (in the scalar
        product that makes the two blocks C antisymmetric, M + M' is Q + Q').
        """
        if len(self.parts) != 2:
            return False
        (P, across), (C, Q) = self.parts
        back = C[[1, 0, 2, 3]]
        k = -float(across @ back) / max(float(back @ back), 1e-300)
        held = not Q[:2].any() and Q.min() >= 0.0 and Q.any()
        return bool(not P.any() and k > 0.0 and _same(across, -k * back) and held)

    def stable(self, A: Floats, G: Floats) -> bool:
        """Whether the mean update leads to the fixed point for small enough step sizes."""
        return self.saddle or slowest(self.at(A, G)) > 0.0


@lru_cache(maxsize=4096)
def mean_matrix(learner: Learner, decays: Decays) -> MeanMatrix | None:
    """The learner's M by the sums of its system, or None where other moments are in it."""
    learner = _below_one(learner)
    means = _means(learner)
    if means is None:
        return None
    system = decays.system(own_numbers(learner))
    basis = []
    for problem in trials():
        A, _, G = _sums(problem, system)
        basis.append(np.stack([A, A.T, G, np.eye(FEATURES)], axis=-1).reshape(-1, 4))
    columns, n = np.concatenate(basis), len(means[0].g) // FEATURES
    M = np.stack([e.M.reshape(n, FEATURES, n, FEATURES) for e in means])
    parts = np.empty((n, n, 4))
    for i, j in np.ndindex(n, n):
        block = M[:, i, :, j].reshape(-1)
        parts[i, j] = np.linalg.lstsq(columns, block, rcond=None)[0]
        if not _same(columns @ parts[i, j], block):
            return None
    parts[np.abs(parts) < ROUNDING * np.abs(parts).max()] = 0.0
    return MeanMatrix(parts)


def _sums(problem: Problem, system: System) -> tuple[Floats, Floats, Floats]:
    """A, b and G that a log's sums tend to, per row."""
    m, lam = problem.moments(0), system.lam
    if not system.emphatic:
        return m.A(lam), m.b(lam), m.G
    follow_on = m.follow_on if system.beta is None else m.follow_on_at(system.beta)
    e = m.emphatic(lam * m.d + (1.0 - lam) * follow_on, lam)
    return e.M, e.g, m.G


def _means(learner: Learner) -> list[Expectation] | None:
    """The mean updates on the trials; None where the law has none that is linear.

    Maps of entries are not linear, and an expectation may hold for its author's problem only.
    """
    if learner.law.maps:
        return None
    require_right(learner.law)
    size = FEATURES * len(learner.law.vectors)
    try:
        means = [expectation(problem, learner) for problem in trials()]
    except (ValueError, IndexError, KeyError, np.linalg.LinAlgError):
        return None
    fits = all(np.shape(e.M) == (size, size) and np.shape(e.g) == (size,) for e in means)
    return means if fits and all(np.isfinite(e.M).all() for e in means) else None


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return bool(np.abs(one - other).max() <= SAME * np.abs(other).max())
