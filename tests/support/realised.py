"""Problems made to measure: any chain P under pi with any d > 0 as the distribution under mu."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steadytd import Problem
from tests.support.helpers import random_problem

# The chain of THEORY.md whose stability is not monotone: 0 -> 1 -> 2 -> 2
CHAIN = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
CHAIN_D = (0.54, 0.02, 0.44)
CHAIN_PHI = ((0.0, 2.0), (-2.0, 2.0), (-3.0, -2.0))

KINDS = ("constant", "transition", "sparse", "wide", "off_policy", "off_policy_wide", "chain")


def realised(
    P: ArrayLike, d: ArrayLike, Phi: ArrayLike, gamma: ArrayLike, r: ArrayLike = 0.0
) -> Problem:
    """Two actions: pi always follows P; mu does so with probability p <= 1/kappa, else resets to q.

    q = (d - p P'd)/(1 - p) is a distribution as p (P'd)_j <= d_j, and d = p P'd + (1 - p) q.
    """
    chain, weights = np.array(P, dtype=np.float64), np.array(d, dtype=np.float64)
    n = len(weights)
    arriving = weights @ chain
    p = 0.9 / float((arriving / weights).max())
    q = (weights - p * arriving) / (1.0 - p)
    return Problem(
        name="realised",
        P=np.stack([chain, np.tile(q, (n, 1))], axis=1),
        r=r,
        gamma=gamma,
        mu=np.tile([p, 1.0 - p], (n, 1)),
        pi=np.tile([1.0, 0.0], (n, 1)),
        Phi=Phi,
    )


def chained(k: int, seed: int, go: float = 0.05, gamma: float = 0.95) -> Problem:
    """k copies of theta2theta, each with a feature of its own; then all features are rotated.

    pi leaves a copy for the next one with probability `go`, and the last one for good. So G^-1 A_0
    has the eigenvalue 1 - 1.2 gamma (1 - go) k times and one eigenvector: a Jordan block.
    """
    rng, copies = np.random.default_rng([seed, k]), np.arange(k)
    P, discounts = np.zeros((k, 2, k, 2)), np.full((k, 2, k, 2), gamma)
    P[copies, :, copies, 1], P[copies, :, (copies + 1) % k, 1] = 1.0 - go, go
    discounts[-1, :, 0] = 0.0
    Phi = np.kron(np.eye(k), [[1.0], [2.0]]) @ np.linalg.qr(rng.normal(size=(k, k)))[0]
    n = 2 * k
    return realised(
        P.reshape(n, n), np.full(n, 1.0 / n), Phi,
        np.repeat(discounts.reshape(n, 1, n), 2, axis=1), rng.normal(size=(n, 2)),
    )  # fmt: skip


def off_policy(seed: int, *, wide: bool = False) -> Problem:
    """A random chain that drifts to states which its data rarely show: TD is often unstable.

    Half of the chains are deterministic, half have a discount of their own on every transition.
    """
    rng = np.random.default_rng([seed, 4711])
    n = int(rng.integers(2, 7))
    P = np.eye(n)[rng.integers(np.arange(n), n)]
    if rng.integers(2):
        P = 0.8 * P + 0.2 * rng.dirichlet(np.ones(n), size=n)
    d = np.sort(rng.dirichlet(np.full(n, 0.7)) + 0.01)[::-1]
    gamma: ArrayLike = rng.choice([0.9, 0.95, 0.99])
    if rng.integers(2):
        gamma = np.where(rng.random((n, 2, n)) < 0.1, 0.0, rng.uniform(0.8, 1.0, size=(n, 2, n)))
    features = n + 2 if wide else int(rng.integers(1, 3))
    Phi = rng.uniform(-0.2, 1.0, size=(n, features)) * np.arange(1.0, n + 1.0)[:, None]
    return realised(P, d / d.sum(), Phi, gamma, rng.normal(size=(n, 2)))


def near_the_chain(seed: int) -> Problem:
    """The chain that is not monotone, a little changed: most of these are not monotone either."""
    rng = np.random.default_rng([seed, 1848])
    d = np.array(CHAIN_D) * np.exp(0.1 * rng.normal(size=3))
    Phi = np.array(CHAIN_PHI) + 0.1 * rng.normal(size=(3, 2))
    return realised(CHAIN, d / d.sum(), Phi, 0.95, rng.normal(size=(3, 2)))


def drawn(kind: str, seed: int) -> Problem:
    """A random problem of one of `KINDS`."""
    made = {
        "constant": lambda: random_problem(seed, gamma=0.95),
        "transition": lambda: random_problem(seed, states=6, features=4),
        "sparse": lambda: random_problem(seed, states=6, gamma=0.99, sparse=True),
        "wide": lambda: random_problem(seed, states=4, features=6, sparse=True),
        "off_policy": lambda: off_policy(seed),
        "off_policy_wide": lambda: off_policy(seed, wide=True),
        "chain": lambda: near_the_chain(seed),
    }
    return made[kind]()
