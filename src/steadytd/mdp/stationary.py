"""The stationary distribution of a finite Markov chain, without subtractions."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Ints, Longs
from steadytd.base.errors import InputError

LARGE = 1e150  # where the weights relative to state 0 are scaled down: a long drift overflows


def stationary_distribution(P: Floats, policy: str = "behaviour") -> Floats:
    """The unique d with d P = d, sum d = 1; zero on transient states.

    The elimination of Grassmann, Taksar and Heyman (1985) on the recurrent class: it adds and
    multiplies non-negative numbers only, so it is accurate to the last digits for periodic and
    nearly decomposable chains alike. Two recurrent classes are an error: which of them the chain
    ends in depends on the start.

    >>> stationary_distribution(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([0.5, 0.5])
    """
    (states,) = require_one_class(closed_classes(P), policy)
    d = np.zeros(len(P))
    d[states] = _gth(P[np.ix_(states, states)])
    return d


def require_one_class(classes: list[Longs], policy: str = "behaviour") -> list[Longs]:
    """The closed classes of a policy's chain, if there is only one."""
    if len(classes) > 1:
        some = ", ".join(str([int(s) for s in c[:6]]) for c in classes[:3])
        raise InputError(
            f"the {policy} policy's chain has {len(classes)} closed classes of states ({some}), "
            "so its stationary distribution is not unique; connect them, or leave out the states "
            "that the start does not reach."
        )
    return classes


def chain_period(P: Any, start: int) -> int:
    """The period of the closed class of a recurrent state (1: aperiodic).

    >>> chain_period(np.array([[0.0, 1.0], [1.0, 0.0]]), 0)
    2
    """
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(P > 0.0, start)
    depth = np.full(len(before), -1)
    depth[start] = 0
    for s in order[1:]:
        depth[s] = depth[before[s]] + 1
    s, t = (P > 0.0).nonzero()
    inside = depth[s] >= 0
    return int(np.gcd.reduce(depth[s][inside] + 1 - depth[t][inside]))


def closed_classes(P: Any) -> list[Longs]:
    """The closed communicating classes: sets of states that lead to each other and nowhere else.

    In the order of their first states.
    """
    from scipy.sparse.csgraph import connected_components

    label: Ints = connected_components(P > 0.0, directed=True, connection="strong")[1]
    source, destination = (P > 0.0).nonzero()
    leaving = np.unique(label[source[label[source] != label[destination]]])
    closed = np.setdiff1d(np.unique(label), leaving)
    found = [np.flatnonzero(label == c) for c in closed]
    return sorted(found, key=lambda states: int(states[0]))


def _gth(P: Floats) -> Floats:
    """GTH elimination on an irreducible chain: the chain watched on ever fewer states."""
    A = np.array(P, dtype=np.float64)
    n = len(A)
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    d = np.ones(n)
    for k in range(1, n):
        d[k] = d[:k] @ A[:k, k]
        if d[k] > LARGE:
            d[: k + 1] /= d[k]
    return np.asarray(d / d.sum())
