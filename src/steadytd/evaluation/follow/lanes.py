"""The usual online learners at lam = 0 for all targets at once.

In the general engine a block of lanes shares the ratio rho, so every target would be a block of one
lane, and one lane is slow: its inner products are chains of additions. Here a lane is a learner for
one target, and eight lanes stand side by side in one vector. `td`, `perturbed_td`, `etd` and
`etd_beta` are one update,

    w += alpha m (r + gamma' w.x' - (1 + eta) w.x) x,      m = rho, or rho F,

with m from the pass that makes the sums; `tdc` has a second vector. Tests hold the lanes against
the engine; they differ by rounding, since inner products are added up in another order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steadytd.base.arrays import Floats, Ints, on_cache_line
from steadytd.base.jit import compiled_disjoint
from steadytd.engine.learner import Learner
from steadytd.engine.vectors import LANES, eight, put, spread
from steadytd.evaluation.collect.room import Padded

WEIGHTED = {"td", "perturbed_td", "etd", "etd_beta"}
CORRECTED = {"tdc"}


def can_be_lane(learner: Learner) -> bool:
    """Whether a learner can be a lane here; all others are followed by the general engine."""
    plain = not learner.traced and not learner.averaged and learner.schedule[0] == 0.0
    return plain and learner.name in WEIGHTED | CORRECTED


class Lanes:
    """At most eight lanes of one kind: their weights W [d, 8], for tdc also H.

    A lane stands where its multiple m stands among the rows' weights, so that eight of these are
    read as they are: `first` is the column of lane 0. Lanes without a learner have alpha = 0.
    """

    def __init__(self, learners: Mapping[int, Learner], first: int, features: int) -> None:
        """`learners[j]` is lane j, its multiple is column `first + j`."""
        self.first = first
        self.corrected = any(x.name in CORRECTED for x in learners.values())
        self.W, self.H = on_cache_line((features, LANES)), on_cache_line((features, LANES))
        self.alpha, self.penalty, self.ratio = (on_cache_line((LANES,)) for _ in range(3))
        for j, learner in learners.items():
            self.alpha[j] = float(learner.values["alpha"])
            self.penalty[j] = 1.0 + float(learner.values.get("eta", 0.0))
            self.ratio[j] = float(learner.values.get("ratio", 0.0))

    def advance(
        self, lo: int, hi: int, X: Floats, row_next: Ints, discount: Floats, reward: Floats,
        weight: Padded,
    ) -> None:  # fmt: skip
        """Take the rows lo..hi of a batch with features X."""
        rows = (lo, hi, X, row_next, discount, reward, weight.array, self.first)
        W, H = self.W.reshape(-1), self.H.reshape(-1)
        if self.corrected:
            with_correction(*rows, self.alpha, self.ratio, W, H)
        else:
            weighted(*rows, self.alpha, self.penalty, W)


@compiled_disjoint
def weighted(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    weight: Floats,
    column: int,
    alpha: Floats,
    penalty: Floats,
    W: Floats,
) -> None:
    """w += alpha m (r + gamma' w.x' - penalty w.x) x."""
    d, m = X.shape[1], weight.reshape(-1)
    a, p = eight(alpha, 0), eight(penalty, 0)
    for i in range(lo, hi):
        j = np.uintp(row_next[i])
        w_x, w_next = spread(0.0), spread(0.0)
        for k in range(d):
            w = eight(W, LANES * k)
            w_x = w_x + w * spread(X[i, k])
            w_next = w_next + w * spread(X[j, k])
        delta = spread(reward[i]) + spread(discount[i]) * w_next - p * w_x
        by = a * eight(m, weight.shape[1] * i + column) * delta
        for k in range(d):
            put(W, LANES * k, eight(W, LANES * k) + by * spread(X[i, k]))


@compiled_disjoint
def with_correction(
    lo: int,
    hi: int,
    X: Floats,
    row_next: Ints,
    discount: Floats,
    reward: Floats,
    weight: Floats,
    column: int,
    alpha: Floats,
    ratio: Floats,
    W: Floats,
    H: Floats,
) -> None:
    """w += alpha rho (delta x - gamma' (h.x) x'); h += ratio alpha (rho delta - h.x) x."""
    d, m = X.shape[1], weight.reshape(-1)
    a, q = eight(alpha, 0), eight(alpha, 0) * eight(ratio, 0)
    for i in range(lo, hi):
        j = np.uintp(row_next[i])
        w_x, w_next, h_x = spread(0.0), spread(0.0), spread(0.0)
        for k in range(d):
            x, w = spread(X[i, k]), eight(W, LANES * k)
            w_x = w_x + w * x
            w_next = w_next + w * spread(X[j, k])
            h_x = h_x + eight(H, LANES * k) * x
        rho, g = eight(m, weight.shape[1] * i + column), spread(discount[i])
        delta = rho * (spread(reward[i]) + g * w_next - w_x)
        by, by_next, by_h = a * delta, a * rho * g * h_x, q * (delta - h_x)
        for k in range(d):
            x = spread(X[i, k])
            put(W, LANES * k, eight(W, LANES * k) + by * x - by_next * spread(X[j, k]))
            put(H, LANES * k, eight(H, LANES * k) + by_h * x)
