"""A part of a Horde: its predictions of one law, in blocks of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs, on_cache_line, read_only
from steadytd.base.jit import compiled
from steadytd.engine.law import Law
from steadytd.engine.settings import Settings
from steadytd.engine.step.compile import kernel
from steadytd.engine.step.layouts.horde import (
    COUNTS,
    LANES,
    NONE,
    ROWS,
    Horde,
    asked_by_traces,
    horde_program,
    horde_source,
    traces_are_own,
)
from steadytd.engine.step.state import GONE, LOW, SMALL
from steadytd.hordes.facts import ActiveFeatures

STATE = ("V", "Z", "row_of", "A", "I", "S", "C", "M", "counts")
LIMITS = {  # the least scale C, the least I, the least factor B, by the type of the weights
    "float64": (LOW, GONE, SMALL),
    "float32": (2.0**-5, 2.0**-35, 1e-10),
}


class LanePlace(NamedTuple):
    """Where a prediction's facts stand: columns of cumulants, ratios, discounts, step factors."""

    cumulant: int
    policy: int
    discount: int
    schedule: int


class LanePart:
    """Predictions of one law with one path (with or without trace vectors), sorted by group.

    `order[lane]` is the number of the prediction in that lane; the lanes that fill the last block
    repeat the last prediction. A row of V has all vectors of a feature.
    """

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], places: Sequence[LanePlace],
        w0: Floats, dtype: str,
    ) -> None:  # fmt: skip
        self.law: Law = learners[members[0]].law
        self.traced = learners[members[0]].traced
        self.program = horde_program(self.law, self.traced)
        keys = self._keys(members, learners, places)
        found = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        ranked = sorted(range(len(members)), key=lambda n: (found[keys[n]], n))
        blocks = -(-len(members) // LANES)
        ranked += [ranked[-1]] * (blocks * LANES - len(members))
        self.count = len(members)
        self.order: Longs = np.array([members[n] for n in ranked], dtype=np.int64)
        self.rank = np.argsort(self.order[: self.count])  # the lane of each member
        self._group(np.array([found[keys[n]] for n in ranked]).reshape(blocks, LANES))
        columns = np.array([places[i] for i in self.order], dtype=np.int64)
        by_block = columns.reshape(blocks, LANES, len(LanePlace._fields)).transpose(0, 2, 1)
        self.places = np.concatenate([by_block, self.group_of[:, None]], axis=1)
        self._allocate([learners[i] for i in self.order], w0, dtype, blocks)
        fixed = self.params, self.places, self.starts, self.begins, np.array(LIMITS[dtype])
        self.fixed = tuple(map(read_only, fixed))
        self.kernel = kernel(self.law, self.traced, False, horde_source)

    def _keys(
        self, members: Sequence[int], learners: Sequence[Settings], places: Sequence[LanePlace]
    ) -> list[tuple[Any, ...]]:
        """Predictions with the same key have the same traces."""
        if not self.traced:
            return [()] * len(members)
        asked, own = asked_by_traces(self.program), traces_are_own(self.program)
        params = [name for name in self.program.params if name in asked]
        return [
            (
                places[i].policy, places[i].discount,
                places[i].cumulant if "reward" in asked else -1,
                places[i].schedule if "alpha" in asked else -1,
                *(learners[i].values[name] for name in params), i if own else -1,
            )
            for i in members
        ]  # fmt: skip

    def _group(self, group: NDArray[Any]) -> None:
        """Where the groups of each block begin; a group that spans two blocks stands in both."""
        new = np.ones(group.shape, dtype=bool)
        new[:, 1:] = group[:, 1:] != group[:, :-1]
        self.begins = np.concatenate([[0], np.cumsum(new.sum(axis=1))]).astype(np.int64)
        self.group_of = np.cumsum(new, axis=1) - 1
        self.starts = np.full((len(group), LANES + 1), LANES, dtype=np.uintp)
        for own, row in zip(self.starts, new, strict=True):
            own[: row.sum()] = np.flatnonzero(row)

    def _allocate(self, learners: list[Settings], w0: Floats, dtype: str, blocks: int) -> None:
        program, d = self.program, len(w0)
        traces, pairs = len(program.traces), len(program.pairs)
        cells = int(self.begins[-1]) * d if traces else 0
        self.kept = Horde(program).kept_numbers()
        self.V: NDArray[Any] = zeros((blocks, d, len(program.vectors), LANES), dtype)
        self.Z = on_cache_line((traces, cells))
        self.row_of = np.full(cells, NONE, dtype=np.uint8)
        self.A = np.zeros((blocks, pairs, ROWS + 1, LANES))  # nothing is in the last
        self.I = np.ones((blocks, traces, ROWS + 1, LANES))
        self.S = np.zeros((blocks, pairs, LANES))
        self.C = np.ones((blocks, traces, LANES))
        self.M = np.zeros((blocks, len(self.kept), LANES))
        self.counts = np.zeros((blocks, len(COUNTS), LANES), dtype=np.int64)
        for row, name in enumerate(self.kept):
            self.M[:, row] = name.startswith("B_")
        params = [[float(x.values[p]) for x in learners] for p in program.params]
        table = np.array(params).reshape(len(params), blocks, LANES)
        self.params = np.ascontiguousarray(table.transpose(1, 0, 2))
        if w0.any():
            for lane, learner in enumerate(learners):
                b, j = divmod(lane, LANES)
                self.V[b, :, :, j] = learner.first_vectors(w0).T

    @property
    def blocks(self) -> int:
        """How many blocks there are: the unit that threads share."""
        return len(self.V)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return {name: getattr(self, name) for name in STATE}

    @property
    def nbytes(self) -> int:
        """The memory of all that changes."""
        return sum(array.nbytes for array in self.state.values())

    def advance(self, given: tuple[NDArray[Any], ...], out: Floats, low: int, high: int) -> None:
        """Take some steps with the blocks `low` to `high`; `out` [steps, block, lane] is delta."""
        self.kernel(
            self.V, self.Z, self.row_of, self.A, self.I, self.S, self.C, self.M, self.counts,
            *self.fixed, *given, out, low, high,
        )  # fmt: skip

    def cut(self) -> None:
        """The episode was cut off after the last step: the next one begins another."""
        if "last_gamma" in self.kept:
            self.M[:, self.kept.index("last_gamma")] = 0.0

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x of every lane [steps, lanes]."""
        out = np.empty((x.steps, self.blocks, LANES))
        look(self._kept, x.read_only(), out)
        return out.reshape(x.steps, -1)

    def weights(self, lane: int) -> Floats:
        """The weights of one lane."""
        out = np.empty(self.V.shape[1])
        b, j = divmod(lane, LANES)
        look_at(self._kept, b, j, out)
        return out

    @property
    def _kept(self) -> KeptWeights:
        program = self.program
        along = [(i, program.traces.index(z)) for i, (v, z) in enumerate(program.pairs) if v == "w"]
        pairs = np.array(along, dtype=np.int64).reshape(len(along), 2)
        factor = np.ones((self.blocks, LANES))
        if "B_w" in self.kept:
            factor[:] = self.M[:, self.kept.index("B_w")]
        rest = self.begins, self.group_of, pairs, factor
        own = self.V, self.Z, self.row_of, self.A, self.I, self.S
        return KeptWeights(*map(read_only, (*own, *rest)))


def zeros(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Zeros of either type that begin on a cache line."""
    size = int(np.prod(shape))
    room = np.zeros(size + 64, dtype=dtype)
    begin = -room.ctypes.data % 64 // room.itemsize
    return room[begin : begin + size].reshape(shape)


class KeptWeights(NamedTuple):
    """What weights are made of; see `engine.step.layouts.horde`."""

    V: NDArray[Any]
    Z: Floats
    row_of: NDArray[np.uint8]
    A: Floats
    I: Floats  # noqa: E741
    S: Floats
    begins: Longs
    group_of: Longs
    pairs: Longs  # [n, 2]: row of A and S, number of the trace
    factor: Floats


@compiled
def look(kept: KeptWeights, x: ActiveFeatures, out: Floats) -> None:
    """out[t, b, j] = w.x of step t in lane j of block b."""
    first, feature, value = x
    for b in range(out.shape[1]):
        for t in range(len(first) - 1):
            for j in range(out.shape[2]):
                out[t, b, j] = 0.0
            for q in range(first[t], first[t + 1]):
                for j in range(out.shape[2]):
                    out[t, b, j] += entry(kept, b, feature[q], j) * value[q]


@compiled
def look_at(kept: KeptWeights, b: int, j: int, out: Floats) -> None:
    """out[k] = weight k of lane j in block b."""
    for k in range(len(out)):
        out[k] = entry(kept, b, k, j)


@compiled
def entry(kept: KeptWeights, b: int, k: int, j: int) -> float:
    """Weight k of lane j in block b: B (V + Z (A[s] + S I[s]))."""
    total = np.float64(kept.V[b, k, 0, j])  # w is the first vector of a row
    count, g = kept.begins[b + 1] - kept.begins[b], kept.group_of[b, j]
    for n in range(len(kept.pairs)):
        p, z = kept.pairs[n]
        cell = kept.begins[b] * kept.V.shape[1] + k * count + g
        s = kept.row_of[cell]
        total += kept.Z[z, cell] * (kept.A[b, p, s, j] + kept.S[b, p, j] * kept.I[b, z, s, g])
    return float(kept.factor[b, j] * total)
