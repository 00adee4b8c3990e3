"""The parts of a Horde: predictions of one law that learn together.

`LanePart` has laws whose update changes the active features alone: blocks of lanes in the layout
`engine.step.layouts.horde`. `WholePart` has laws that change all features in a step (maps, windows,
averages, whole vectors, solved systems): a block of the engine as in a run, in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.jit import compiled
from steadytd.engine.active import ActiveLanes, trace_keys
from steadytd.engine.facts import fact_table
from steadytd.engine.learner import LiveBlock
from steadytd.engine.rows import Rows
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel
from steadytd.engine.step.kernels import StoredVector, entries, entry
from steadytd.engine.step.layouts.active import asked_by_traces
from steadytd.engine.step.layouts.horde import LANES, Horde, horde_source
from steadytd.engine.step.program import active_program
from steadytd.hordes.inputs import ActiveFeatures, LiveSteps


class Columns(NamedTuple):
    """The columns of a prediction's cumulant, ratio, discount and step factor."""

    cumulant: int
    policy: int
    discount: int
    schedule: int


class LanePart:
    """Predictions of one law, with or without trace vectors, sorted by group.

    `order[lane]` is the number of the prediction in that lane; the lanes that fill the last block
    repeat the last prediction.
    """

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], columns: Sequence[Columns],
        w0: Floats, dtype: str,
    ) -> None:  # fmt: skip
        own, at = [learners[i] for i in members], [columns[i] for i in members]
        law, traced = own[0].law, own[0].traced
        program = active_program(law, traced)
        used = asked_by_traces(program)
        facts = [
            (
                one.policy, one.discount, one.cumulant if "reward" in used else -1,
                one.schedule if "alpha" in used else -1,
            )
            for one in at
        ]  # fmt: skip
        keys = trace_keys(program, own, facts) if traced else [()] * len(own)
        self.lanes = ActiveLanes(Horde(program), own, keys, LANES, w0, dtype)
        self.count, self.blocks, self.rank = len(members), self.lanes.blocks, self.lanes.rank
        self.order: Longs = np.array(members, dtype=np.int64)[self.lanes.order]
        table = np.array(at, dtype=np.int64)[self.lanes.order]
        by_block = table.reshape(self.blocks, LANES, len(Columns._fields)).transpose(0, 2, 1)
        self.arguments = self.lanes.arguments(np.ascontiguousarray(by_block))
        self.kernel = kernel(law, traced, False, horde_source)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return self.lanes.arrays

    def advance(self, given: tuple[NDArray[Any], ...], out: Floats, low: int, high: int) -> None:
        """Take some steps with the blocks `low` to `high`; `out` [steps, block, lane] is delta."""
        self.kernel(*self.arguments, *given, out, low, high)

    def cut(self) -> None:
        """The episode was cut off after the last step: the next one begins another."""
        if "last_gamma" in self.lanes.numbers:
            self.lanes.M[:, self.lanes.numbers.index("last_gamma")] = 0.0

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x of every lane [steps, lanes]."""
        out = np.empty((x.steps, self.blocks, LANES))
        inner_products(self.lanes.vector(), x.read_only(), out)
        return out.reshape(x.steps, -1)

    def weights(self, lane: int) -> Floats:
        """The weights of one lane."""
        d = self.lanes.V.shape[1]
        out = np.empty((d, 1))
        entries(self.lanes.vector(), *divmod(lane, LANES), np.arange(d, dtype=np.int32), out)
        return out[:, 0]


@compiled
def inner_products(w: StoredVector, x: ActiveFeatures, out: Floats) -> None:
    """out[t, b, j] = w.x of step t in lane j of block b."""
    first, feature, value = x
    for b in range(out.shape[1]):
        for t in range(len(first) - 1):
            for j in range(out.shape[2]):
                out[t, b, j] = 0.0
            for q in range(first[t], first[t + 1]):
                for j in range(out.shape[2]):
                    out[t, b, j] += entry(w, b, feature[q], j) * value[q]


class WholePart(LiveBlock):
    """Predictions of the same columns that share a block of the engine."""

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], columns: Columns, w0: Floats
    ) -> None:
        self.order = np.array(members, dtype=np.int64)
        self.count, self.columns = len(members), columns
        super().__init__([learners[i] for i in members], w0)

    def advance(self, steps: LiveSteps) -> Floats:
        """Take some steps; return delta [steps, predictions], each with the weights before it."""
        n, t, policy = steps.x.steps, steps.tables, self.columns.policy
        gamma = t.discounts[:, self.columns.discount]
        facts = fact_table(
            reward=t.cumulants[:, self.columns.cumulant], gamma_next=gamma,
            gamma_carried=gamma * t.carries, rho=t.rhos[:, policy], pi=t.pis[:, policy],
            mu=t.mus[:, policy], interest=t.interests, peak_min=t.peaks_min[:, policy],
            peak_max=t.peaks_max[:, policy],
        )  # fmt: skip
        delta = np.empty((n, self.count))
        for i in range(n):
            rows = _rows(steps.x.part(i, i + 1), steps.x_next.part(i, i + 1))
            delta[i] = self.take(rows, facts[i : i + 1])
        return delta

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x [steps, predictions]."""
        weights = self.block.reported
        out = np.empty((x.steps, self.count))
        for t in range(x.steps):
            low, high = x.first[t], x.first[t + 1]
            with np.errstate(all="ignore"):
                out[t] = x.value[low:high].astype(np.float64) @ weights[x.feature[low:high]]
        return out

    def weights(self, lane: int) -> Floats:
        """The weights of one prediction."""
        return np.array(self.block.reported[:, lane])


def _rows(x: ActiveFeatures, x_next: ActiveFeatures) -> Rows:
    """x and x_next of one step as a feature table of two rows."""
    length = np.array([len(x.feature), len(x_next.feature)], dtype=np.int64)
    first = np.array([0, length[0]], dtype=np.int64)
    value = np.concatenate([x.value, x_next.value]).astype(np.float64)
    feature = np.concatenate([x.feature, x_next.feature]).astype(np.int32)
    return Rows(first, length, np.zeros(2, dtype=np.int64), feature, value)
