"""What several test files share: random problems that are valid by construction, two threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from steadytd import Problem


def random_problem(
    seed: int,
    states: int = 5,
    actions: int = 3,
    features: int = 3,
    policies: int | None = None,
    *,
    gamma: float | None = None,
    sparse: bool = False,
    interest: bool = False,
) -> Problem:
    """A problem drawn from `seed`: the same arguments give the same problem.

    `policies=None` is one target policy without a policy axis, a number gives the axis to pi, r,
    gamma and interest. `gamma=None` draws a discount for every transition, one in ten of them 0
    (the end of an episode); a number is used as it is. `sparse` leaves most transitions out, keeps
    a ring so that every state is still reached, and lets mu and pi avoid some actions; otherwise
    every transition and action has positive probability. `interest` draws one of the states' own.
    """
    rng = np.random.default_rng([seed, states, actions, features, policies or 0])
    K = () if policies is None else (policies,)
    S, A = states, actions
    P = rng.dirichlet(np.ones(S), size=(S, A))
    mu = rng.dirichlet(np.full(A, 2.0), size=S)
    pi = rng.dirichlet(np.ones(A), size=(*K, S))
    if sparse:
        keep = rng.random((S, A, S)) < min(1.0, 2.0 / S)
        keep[np.arange(S), :, (np.arange(S) + 1) % S] = True
        P = np.where(keep, P, 0.0)
        P /= P.sum(axis=-1, keepdims=True)
        taken = rng.random((S, A)) < 0.7
        taken[np.arange(S), rng.integers(A, size=S)] = True
        mu = np.where(taken, mu, 0.0)
        mu /= mu.sum(axis=-1, keepdims=True)
        pi = np.where(taken, pi + 1e-3, 0.0)
        pi /= pi.sum(axis=-1, keepdims=True)
    discount = rng.uniform(0.5, 0.95, size=(*K, S, A, S))
    discount[rng.random(discount.shape) < 0.1] = 0.0
    return Problem(
        name=f"random_{seed}",
        P=P,
        r=rng.normal(size=(*K, S, A, S)),
        gamma=discount if gamma is None else gamma,
        mu=mu,
        pi=pi,
        Phi=rng.normal(size=(S, features)),
        w0=rng.normal(size=features),
        start=rng.dirichlet(np.ones(S)),
        interest=rng.uniform(0.1, 2.0, size=(*K, S)) if interest else None,
    )


def rewritten(path: Path, changes: dict[str, Any]) -> Path:
    """A saved file in which some entries are changed, or with None left out."""
    with np.load(path) as file:
        content = {key: file[key] for key in file.files} | changes
    np.savez(path, **{key: value for key, value in content.items() if value is not None})
    return path


def by_two_threads(work: Callable[[], object]) -> None:
    """Do the work twice at once, with threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(work) for _ in range(2)]:
                done.result()
    finally:
        sys.setswitchinterval(before)
