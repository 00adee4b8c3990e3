"""The weights with which episodes are cut off: sums of gamma' (z, c) over their last rows.

z = rho (gamma lam z + x) and c = rho (gamma lam c + 1 at a start), as everywhere, for every lam.
Only rows of episodes that are cut off are followed, and of the one under way.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.scan import LARGEST, Weighted


class Cuts:
    """Goes over the rows in order; the last row of a batch waits for what comes next."""

    def __init__(self, plan: Plan) -> None:
        self.lams = np.array(plan.lams)
        self.state = np.zeros((len(plan.targets), len(plan.lams), plan.features + 1))
        self.waiting: tuple[Floats, Floats] | None = None

    def begin(self, first: Bools, discount: Floats) -> tuple[Bools, Bools]:
        """Which rows of a batch end a cut-off episode, and which have to be followed."""
        if first[0]:
            self.end()
        self.waiting = None
        cut = np.append(first[1:], False) & (discount > 0.0)
        wanted = np.empty(len(first), dtype=np.bool_)
        followed(first, cut, wanted)
        return cut, wanted

    def take(
        self, lo: int, hi: int, rows: Weighted, which: tuple[Bools, Bools], total: Floats
    ) -> None:
        """Add the cuts among rows lo..hi to `total` [T, L, d + 1]."""
        cut, wanted = which
        if wanted[lo:hi].any():
            add(lo, hi, rows, which, self.lams, self.state, total)
        if hi == len(cut) and rows.discount[hi - 1] > 0.0:
            self.waiting = rows.discount[hi - 1] * self.state, total

    def end(self) -> None:
        """An episode begins, or the log ends: the row before was its episode's last."""
        if self.waiting is not None:
            found, total = self.waiting
            total += found
        self.waiting = None


@compiled
def followed(first: Bools, cut: Bools, wanted: Bools) -> None:
    """Rows of episodes that are cut off, or are not over at the end of the batch."""
    needed = True
    for i in range(len(first) - 1, -1, -1):
        if i + 1 < len(first) and first[i + 1]:
            needed = cut[i]
        wanted[i] = needed


@compiled
def add(
    lo: int, hi: int, rows: Weighted, which: tuple[Bools, Bools], lams: Floats, state: Floats,
    total: Floats,
) -> None:  # fmt: skip
    """Follow z and c of every target and lam; at cuts, add them times gamma'."""
    cut, wanted = which
    d, R = rows.X.shape[1], rows.ratios
    for row in range(lo, hi):
        if not wanted[row]:
            continue
        start = 1.0 if rows.every or rows.first[row] else 0.0
        for t in range(len(state)):
            rho = rows.rho[row * R + t]
            for m in range(len(lams)):
                by, s = lams[m] * rows.gamma[row], state[t, m]
                if lams[m] < 1.0:  # else (1 - lam) z counts nothing
                    for k in range(d):
                        z = rho * (by * s[k] + rows.X[row, k])
                        s[k] = min(max(z, -LARGEST), LARGEST)
                s[d] = min(rho * (by * s[d] + start), LARGEST)
                if cut[row]:
                    for k in range(d + 1):
                        total[t, m, k] += rows.discount[row] * s[k]
