"""The usual online learners at lam = 0 for all targets at once.

In the general engine a block of lanes shares the ratio rho, so every target would be a block of one
lane, and one lane is slow: its inner products are chains of additions. Here a lane is a learner for
one target, and lanes stand side by side. `td`, `perturbed_td`, `etd` and `etd_beta` are one update,

    w += alpha m (r + gamma' w.x' - (1 + eta) w.x) x,      m = rho, or rho F,

with m from the pass that makes the sums; `tdc` has a second vector. Tests hold the lanes against
the engine; they differ by rounding, since inner products are added up in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numba import njit

from steadytd.core.arrays import Floats, Ints
from steadytd.core.engine import on_cache_line
from steadytd.core.kernels import Disjoint
from steadytd.core.learner import Learner

WEIGHTED = {"td", "perturbed_td", "etd", "etd_beta"}
CORRECTED = {"tdc"}


def side_by_side(learner: Learner) -> bool:
    """Whether a learner can be a lane here; all others are followed by the general engine."""
    plain = not learner.traced and not learner.averaged and learner.schedule[0] == 0.0
    return plain and learner.name in WEIGHTED | CORRECTED


class Lanes:
    """Some lanes of one kind: their weights W [d, lanes], for tdc also H."""

    def __init__(self, learners: Sequence[Learner], columns: Sequence[int], features: int) -> None:
        """Lane j is `learners[j]`, its multiple m is column `columns[j]` of the rows' weights."""
        n = len(learners)
        self.chosen = evenly(columns)
        self.corrected = learners[0].name in CORRECTED
        self.W, self.H = on_cache_line((features, n)), on_cache_line((features, n))
        self.alpha = np.array([float(x.values["alpha"]) for x in learners])
        self.penalty = np.array([1.0 + float(x.values.get("eta", 0.0)) for x in learners])
        self.ratio = np.array([float(x.values.get("ratio", 0.0)) for x in learners])
        self.scratch = [np.zeros(n) for _ in range(6)]

    def advance(
        self, lo: int, hi: int, X: Floats, row_next: Ints, discount: Floats, reward: Floats,
        weight: Floats,
    ) -> None:  # fmt: skip
        """Take the rows lo..hi of a batch with features X."""
        m = np.ascontiguousarray(weight[lo:hi, self.chosen])
        rows = (lo, hi, X, row_next, discount, reward, m)
        if self.corrected:
            with_correction(*rows, self.alpha, self.ratio, self.W, self.H, *self.scratch)
        else:
            weighted(*rows, self.alpha, self.penalty, self.W, *self.scratch[:3])


def evenly(columns: Sequence[int]) -> slice | list[int]:
    """The columns as a slice where they are evenly spaced: a slice is copied much faster.

    >>> evenly([0, 2, 4]), evenly([3]), evenly([0, 1, 3])
    (slice(0, 5, 2), slice(3, 4, 1), [0, 1, 3])
    """
    gaps = {b - a for a, b in pairwise(columns)} or {1}
    if len(gaps) == 1 and min(gaps) > 0:
        return slice(columns[0], columns[-1] + 1, gaps.pop())
    return list(columns)


@njit(cache=True, nogil=True, error_model="numpy", pipeline_class=Disjoint)
def weighted(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    m: Floats,
    alpha: Floats,
    penalty: Floats,
    W: Floats,
    w_x: Floats,
    w_next: Floats,
    by: Floats,
) -> None:
    """w += alpha m (r + gamma' w.x' - penalty w.x) x, lane by lane; four features at a time."""
    d, lanes = W.shape
    for i in range(lo, hi):
        j = np.uintp(row_next[i])
        for n in range(lanes):
            w_x[n] = 0.0
            w_next[n] = 0.0
        for k in range(0, d - 3, 4):
            a0, a1, a2, a3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
            b0, b1, b2, b3 = X[j, k], X[j, k + 1], X[j, k + 2], X[j, k + 3]
            for n in range(lanes):
                u0, u1, u2, u3 = W[k, n], W[k + 1, n], W[k + 2, n], W[k + 3, n]
                w_x[n] += (u0 * a0 + u1 * a1) + (u2 * a2 + u3 * a3)
                w_next[n] += (u0 * b0 + u1 * b1) + (u2 * b2 + u3 * b3)
        for k in range(d - d % 4, d):
            a, b = X[i, k], X[j, k]
            for n in range(lanes):
                w_x[n] += W[k, n] * a
                w_next[n] += W[k, n] * b
        g, r = discount[i], reward[i]
        for n in range(lanes):
            by[n] = alpha[n] * m[i - lo, n] * (r + g * w_next[n] - penalty[n] * w_x[n])
        for k in range(d):
            a = X[i, k]
            for n in range(lanes):
                W[k, n] += by[n] * a


@njit(cache=True, nogil=True, error_model="numpy", pipeline_class=Disjoint)
def with_correction(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    rho: Floats,
    alpha: Floats,
    ratio: Floats,
    W: Floats,
    H: Floats,
    w_x: Floats,
    w_next: Floats,
    h_x: Floats,
    by: Floats,
    by_next: Floats,
    by_h: Floats,
) -> None:
    """w += alpha rho (delta x - gamma' (h.x) x'); h += ratio alpha (rho delta - h.x) x."""
    d, lanes = W.shape
    for i in range(lo, hi):
        j = np.uintp(row_next[i])
        for n in range(lanes):
            w_x[n] = 0.0
            w_next[n] = 0.0
            h_x[n] = 0.0
        for k in range(0, d - 3, 4):
            a0, a1, a2, a3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
            b0, b1, b2, b3 = X[j, k], X[j, k + 1], X[j, k + 2], X[j, k + 3]
            for n in range(lanes):
                u0, u1, u2, u3 = W[k, n], W[k + 1, n], W[k + 2, n], W[k + 3, n]
                w_x[n] += (u0 * a0 + u1 * a1) + (u2 * a2 + u3 * a3)
                w_next[n] += (u0 * b0 + u1 * b1) + (u2 * b2 + u3 * b3)
                h_x[n] += (H[k, n] * a0 + H[k + 1, n] * a1) + (H[k + 2, n] * a2 + H[k + 3, n] * a3)
        for k in range(d - d % 4, d):
            a, b = X[i, k], X[j, k]
            for n in range(lanes):
                w_x[n] += W[k, n] * a
                w_next[n] += W[k, n] * b
                h_x[n] += H[k, n] * a
        g, r = discount[i], reward[i]
        for n in range(lanes):
            delta = rho[i - lo, n] * (r + g * w_next[n] - w_x[n])
            by[n] = alpha[n] * delta
            by_next[n] = -alpha[n] * g * rho[i - lo, n] * h_x[n]
            by_h[n] = ratio[n] * alpha[n] * (delta - h_x[n])
        for k in range(d):
            a, b = X[i, k], X[j, k]
            for n in range(lanes):
                W[k, n] += by[n] * a + by_next[n] * b
                H[k, n] += by_h[n] * a
