"""Drawn problems with one sparse matrix per action, and the same problems with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import steadytd as st


def sparse_mdp(
    seed: int, states: int, features: int, *, period: int = 1, **more: Any
) -> st.Problem:
    """Four successors of every pair (s, a), in the next of `period` parts of the states."""
    rng, A, k = np.random.default_rng(seed), 3, 4
    part, rows = states // period, np.repeat(np.arange(states), k)
    begin = (rows // part + 1) % period * part
    P = []
    for _ in range(A):
        to = begin + rng.integers(part, size=states * k)
        p = rng.dirichlet(np.ones(k), states).reshape(-1)
        P.append(sp.coo_array((p, (rows, to)), shape=(states, states)))
    given: dict[str, Any] = {
        "r": rng.normal(size=(states, A)), "gamma": 0.9, "Phi": rng.normal(size=(states, features)),
        "mu": rng.dirichlet(np.full(A, 3.0), states), "pi": rng.dirichlet(np.ones(A), states),
    }  # fmt: skip
    return st.Problem(name="sparse", P=P, **(given | more))


def with_arrays(p: st.Problem) -> st.Problem:
    """The same problem, P as one array."""
    P = np.stack([one.toarray() for one in p.P], axis=1)
    return st.Problem(
        name=p.name, P=P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi, w0=p.w0,
        start=p.start, interest=p.interest,
    )  # fmt: skip
