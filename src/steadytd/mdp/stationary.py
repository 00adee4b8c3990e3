"""The stationary distribution of a finite Markov chain, without subtractions."""

from __future__ import annotations

import math

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
    classes = closed_classes(P)
    if len(classes) > 1:
        some = ", ".join(str([int(s) for s in c[:6]]) for c in classes[:3])
        raise InputError(
            f"the {policy} policy's chain has {len(classes)} closed classes of states ({some}), "
            "so its stationary distribution is not unique; connect them, or leave out the states "
            "that the start does not reach."
        )
    d = np.zeros(len(P))
    d[classes[0]] = _gth(P[np.ix_(classes[0], classes[0])])
    return d


def chain_period(P: Floats, start: int) -> int:
    """The period of the closed class of a recurrent state (1: aperiodic).

    >>> chain_period(np.array([[0.0, 1.0], [1.0, 0.0]]), 0)
    2
    """
    depth, queue, period = {start: 0}, [start], 0
    for s in queue:
        for t in np.flatnonzero(P[s] > 0.0).tolist():
            if t not in depth:
                depth[t] = depth[s] + 1
                queue.append(t)
            else:
                period = math.gcd(period, depth[s] + 1 - depth[t])
    return period


def closed_classes(P: Floats) -> list[Longs]:
    """The closed communicating classes: sets of states that lead to each other and nowhere else.

    In the order of their first states.
    """
    from scipy.sparse.csgraph import connected_components

    label: Ints = connected_components(P > 0.0, directed=True, connection="strong")[1]
    source, destination = np.nonzero(P > 0.0)
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
