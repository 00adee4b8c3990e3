"""Predictions whose law changes all features in a step: one block of the engine for each kind.

Maps, windows, averages, whole vectors and solved systems cost O(d) or more per step whatever is
active; they are learned as in a run, in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.engine.facts import fact_table
from steadytd.engine.online import LiveBlock
from steadytd.engine.rows import Rows
from steadytd.engine.settings import Settings
from steadytd.hordes.facts import ActiveFeatures, LiveSteps
from steadytd.hordes.part import LanePlace


class WholeBlock(LiveBlock):
    """Predictions with the same facts that may share a block."""

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], place: LanePlace, w0: Floats
    ) -> None:
        self.order = np.array(members, dtype=np.int64)
        self.count, self.place = len(members), place
        super().__init__([learners[i] for i in members], w0)

    @property
    def nbytes(self) -> int:
        """The memory of all that changes."""
        return sum(array.nbytes for array in self.state.values())

    def advance(self, steps: LiveSteps) -> Floats:
        """Take some steps; return delta [steps, predictions], each with the weights before it."""
        n, place = steps.x.steps, self.place
        t = steps.tables
        policy = [table[:, place.policy] for table in (t.rhos, t.pis, t.mus)]
        rho, pi, mu = policy
        gamma = t.discounts[:, place.discount]
        facts = fact_table(
            reward=t.cumulants[:, place.cumulant], gamma_next=gamma,
            gamma_carried=gamma * t.carries, rho=rho, pi=pi, mu=mu, interest=t.interests,
            peak_min=t.peaks_min[:, place.policy], peak_max=t.peaks_max[:, place.policy],
        )  # fmt: skip
        delta = np.empty((n, self.count))
        for i in range(n):
            rows = _rows(steps.x.part(i, i + 1), steps.x_next.part(i, i + 1))
            delta[i] = self.take(rows, facts[i : i + 1])
        return delta

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x [steps, predictions]."""
        shown = self.block.shown
        out = np.empty((x.steps, self.count))
        for t in range(x.steps):
            low, high = x.first[t], x.first[t + 1]
            with np.errstate(all="ignore"):
                out[t] = x.value[low:high].astype(np.float64) @ shown[x.feature[low:high]]
        return out

    def weights(self, lane: int) -> Floats:
        """The weights of one prediction."""
        return np.array(self.block.shown[:, lane])


def _rows(x: ActiveFeatures, x_next: ActiveFeatures) -> Rows:
    """x and x_next of one step as a feature table of two rows."""
    length = np.array([len(x.feature), len(x_next.feature)], dtype=np.int64)
    first = np.array([0, length[0]], dtype=np.int64)
    value = np.concatenate([x.value, x_next.value]).astype(np.float64)
    feature = np.concatenate([x.feature, x_next.feature]).astype(np.int32)
    return Rows(first, length, np.zeros(2, dtype=np.int64), feature, value)
