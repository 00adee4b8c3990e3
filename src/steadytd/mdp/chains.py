"""Transition probabilities as one sparse matrix [s, s'] per action, and what is solved with them.

A problem of 10^5 states has no array [s, a, s'], and no matrix of all pairs of states is made of
it. Sparse products, and the equations y = Q y + x that are solved by iteration, take its place.
Whatever an iteration finds comes with a bound of its error or with its residual.

**The bound.** Let Q have no negative entries, and h > 0 with h - Q h >= c > 0. Then (I - Q)^-1 has
no negative entries either, (I - Q)^-1 c <= h, and a solution whose residual is at most e in every
entry is wrong by at most e max(h) / c. Such an h is the solution for x = 1, however inexact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.mdp.sparse import is_sparse
from steadytd.mdp.stationary import closed_classes, require_one_class

SOLVED = 1e-13  # residual next to the solution's largest entry,
ROUNDS = 5  # of solving for what is left, each
MOST = 3000  # iterations at most
STATIONARY = 1e-14  # sum of |d P - d|,
REPEATED = 20_000  # after so many steps of the chain at most
LOOK = 20  # steps between two looks at it
ENDS = 1e-12  # a row sum this close to 1 counts as 1


class Solution(NamedTuple):
    """A solution, and a bound of its error (or its residual) next to its largest entry."""

    value: Any
    error: float


def is_per_action(P: object) -> bool:
    """Whether these are sparse matrices, one for each action."""
    return isinstance(P, list | tuple) and bool(P) and all(map(is_sparse, P))


def listed(P: tuple[Any, ...], mu: Floats) -> tuple[Longs, Longs, Longs, Floats]:
    """The transitions (s, a, s') of positive probability where mu is positive, in this order."""
    parts = [one.tocoo() for one in P]
    s, t = (np.concatenate([part.coords[i] for part in parts]).astype(np.int64) for i in (0, 1))
    a = np.repeat(np.arange(len(parts)), [part.nnz for part in parts])
    p = np.concatenate([part.data for part in parts])
    order = np.lexsort((t, a, s))
    order = order[(mu[s, a] > 0.0)[order]]
    return s[order], a[order], t[order], p[order]


def flow(P: tuple[Any, ...], weight: Floats, gamma: Any = 1.0) -> Any:
    """sum_a weight(s, a) p(s'|s, a) gamma(s'), sparse."""
    from scipy.sparse import diags_array

    n = len(weight)
    mixed = sum(diags_array(weight[:, a]) @ one for a, one in enumerate(P))
    found = (mixed @ diags_array(np.broadcast_to(gamma, n).astype(np.float64))).tocsr()
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


def stationary(P: Any) -> Solution:
    """The stationary distribution d of a sparse chain, and the sum of |d P - d|.

    By repeated steps of the chain that stays where it is half of the time, which forgets its start
    whatever the period of P is.
    """
    (states,) = require_one_class(closed_classes(P))
    d = np.zeros(P.shape[0])
    d[states] = 1.0 / len(states)
    backward = P.T.tocsr()
    left = np.inf
    for _ in range(REPEATED // LOOK):
        for _ in range(LOOK):
            d = (d + backward @ d) / 2.0
        d /= d.sum()
        left = float(np.abs(backward @ d - d).sum())
        if left <= STATIONARY:
            return Solution(d, left)
    raise InputError(
        f"the stationary distribution of {P.shape[0]:,} states was not found: after {REPEATED:,} "
        f"steps the chain still moves a share of {left:.1g}. It mixes too slowly for sparse "
        "matrices; give P as one array [s, a, s'], or join states."
    )


def ends(Q: Any) -> bool:
    """Whether the powers of Q, whose rows sum to at most 1, go to 0: every path loses something."""
    sums = np.asarray(Q.sum(axis=1))
    largest = 1.0 - ENDS
    return sums.max() < largest or all(sums[c].min() < largest for c in closed_classes(Q))


def settled(Q: Any, x: Floats) -> Solution:
    """y = Q y + x for a sparse Q without negative entries, columns [s, k] one by one."""
    h, _ = _solved(Q, np.ones(Q.shape[0]))
    slack = float((h - Q @ h).min())
    if not (slack > 0.0 and h.min() > 0.0):
        raise _unsolved(Q)
    columns = x.reshape(len(x), -1).T
    found, left = zip(*(_solved(Q, column) for column in columns), strict=True)
    y = np.stack(found, axis=1).reshape(x.shape)
    return Solution(y, max(left) * float(h.max()) / slack)


def _solved(Q: Any, x: Floats) -> tuple[Floats, float]:
    """The solution for one column and its residual, next to its largest entry."""
    from scipy.sparse.linalg import LinearOperator, bicgstab

    rest = LinearOperator(Q.shape, matvec=lambda y: y - Q @ y, dtype=np.float64)
    y, left = np.zeros(len(x)), np.array(x, dtype=np.float64)
    for _ in range(ROUNDS):
        if not left.any():
            return y, 0.0
        y = y + bicgstab(rest, left, rtol=SOLVED, atol=0.0, maxiter=MOST // ROUNDS)[0]
        left = x + Q @ y - y
        off = float(np.abs(left).max() / max(np.abs(y).max(), np.finfo(float).tiny))
        if off <= SOLVED:
            return y, off
    raise _unsolved(Q)


def _unsolved(Q: Any) -> InputError:
    return InputError(
        f"an equation of {Q.shape[0]:,} states was not solved by iteration: its discounts are too "
        "close to 1. Use smaller discounts, or give P as one array [s, a, s']."
    )


def largest_eigenvalue(symmetric: Any, first: Floats) -> Solution:
    """Of a symmetric sparse matrix without negative entries, whose vector is not orthogonal to
    the positive `first`; an eigenvalue lies within the stated residual.
    """
    from scipy.sparse.linalg import eigsh

    if symmetric.shape[0] < 3:
        return Solution(float(np.linalg.eigvalsh(symmetric.toarray())[-1]), 0.0)
    values, vectors = eigsh(symmetric, k=1, which="LA", v0=first)
    value, vector = float(values[0]), vectors[:, 0]
    left = float(np.linalg.norm(symmetric @ vector - value * vector))
    return Solution(value, left / max(value, np.finfo(float).tiny))


def spectral_radius(K: Any) -> float:
    """Of a sparse matrix without negative entries: its eigenvalue of the largest real part."""
    from scipy.sparse.linalg import eigs

    found = eigs(K, k=1, which="LR", v0=np.ones(K.shape[0]), return_eigenvectors=False)
    return float(found[0].real)
