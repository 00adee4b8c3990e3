"""A part of a Horde: its predictions of one law, in blocks of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.jit import compiled
from steadytd.engine.active import ActiveLanes, StoredVector, entries, entry, trace_keys
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel
from steadytd.engine.step.layouts.active import LIMITS, active_program, asked_by_traces
from steadytd.engine.step.layouts.horde import LANES, Horde, horde_source
from steadytd.hordes.facts import ActiveFeatures

__all__ = ["LIMITS", "LanePart", "LanePlace"]


class LanePlace(NamedTuple):
    """Where a prediction's facts stand: columns of cumulants, ratios, discounts, step factors."""

    cumulant: int
    policy: int
    discount: int
    schedule: int


class LanePart:
    """Predictions of one law with one path (with or without trace vectors), sorted by group.

    `order[lane]` is the number of the prediction in that lane; the lanes that fill the last block
    repeat the last prediction.
    """

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], places: Sequence[LanePlace],
        w0: Floats, dtype: str,
    ) -> None:  # fmt: skip
        own, at = [learners[i] for i in members], [places[i] for i in members]
        program = active_program(own[0].law, own[0].traced)
        asked = asked_by_traces(program)
        facts = [
            (
                one.policy, one.discount, one.cumulant if "reward" in asked else -1,
                one.schedule if "alpha" in asked else -1,
            )
            for one in at
        ]  # fmt: skip
        keys = trace_keys(program, own, facts) if own[0].traced else [()] * len(own)
        self.lanes = ActiveLanes(Horde(program), own, keys, LANES, w0, dtype)
        self.count, self.blocks, self.rank = len(members), self.lanes.blocks, self.lanes.rank
        self.order: Longs = np.array(members, dtype=np.int64)[self.lanes.order]
        columns = np.array(at, dtype=np.int64)[self.lanes.order]
        by_block = columns.reshape(self.blocks, LANES, len(LanePlace._fields)).transpose(0, 2, 1)
        self.arguments = self.lanes.arguments(np.ascontiguousarray(by_block))
        self.kernel = kernel(own[0].law, own[0].traced, False, horde_source)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return self.lanes.arrays

    @property
    def nbytes(self) -> int:
        """The memory of all that changes."""
        return sum(array.nbytes for array in self.state.values())

    def advance(self, given: tuple[NDArray[Any], ...], out: Floats, low: int, high: int) -> None:
        """Take some steps with the blocks `low` to `high`; `out` [steps, block, lane] is delta."""
        self.kernel(*self.arguments, *given, out, low, high)

    def cut(self) -> None:
        """The episode was cut off after the last step: the next one begins another."""
        if "last_gamma" in self.lanes.kept:
            self.lanes.M[:, self.lanes.kept.index("last_gamma")] = 0.0

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x of every lane [steps, lanes]."""
        out = np.empty((x.steps, self.blocks, LANES))
        look(self.lanes.vector(), x.read_only(), out)
        return out.reshape(x.steps, -1)

    def weights(self, lane: int) -> Floats:
        """The weights of one lane."""
        d = self.lanes.V.shape[1]
        out = np.empty((d, 1))
        entries(self.lanes.vector(), *divmod(lane, LANES), np.arange(d, dtype=np.int32), out)
        return out[:, 0]


@compiled
def look(w: StoredVector, x: ActiveFeatures, out: Floats) -> None:
    """out[t, b, j] = w.x of step t in lane j of block b."""
    first, feature, value = x
    for b in range(out.shape[1]):
        for t in range(len(first) - 1):
            for j in range(out.shape[2]):
                out[t, b, j] = 0.0
            for q in range(first[t], first[t + 1]):
                for j in range(out.shape[2]):
                    out[t, b, j] += entry(w, b, feature[q], j) * value[q]
