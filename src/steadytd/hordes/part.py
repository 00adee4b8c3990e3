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
from steadytd.engine.step.program import lane_params
from steadytd.hordes.facts import ActiveFeatures
from steadytd.hordes.loop.learn import PIECE
from steadytd.hordes.loop.names import TABLES
from steadytd.hordes.loop.pieces import source_pieces
from steadytd.hordes.loop.shape import (
    LANES,
    NONE,
    SLOTS,
    LoopShape,
    asked_by_traces,
    fits_pieces,
    trace_asks_for_weights,
)
from steadytd.hordes.loop.write import source_double, source_single

SHARED = 12  # predictions per trace from which on a block is worth being cut into pieces
OWN_CACHE = 1 << 19  # bytes: the second-level cache of a core
VISITS = 4  # of every feature, on average, from which on a piece is worth being copied
ACTIVE = 64  # features of a step from which on pieces are worth what each costs per step
FIRST_X = TABLES.index("first_x")
STATE = ("V", "Z", "slots", "scales", "groups", "sums", "lanes", "heads")


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
        self.shape = LoopShape(self.law, self.traced)
        keys = [self._key(i, learners[i], places[i]) for i in members]
        found = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        ranked = sorted(range(len(members)), key=lambda n: (found[keys[n]], n))
        size = LANES[dtype]
        blocks = -(-len(members) // size)
        ranked += [ranked[-1]] * (blocks * size - len(members))
        self.count = len(members)
        self.order: Longs = np.array([members[n] for n in ranked], dtype=np.int64)
        self.rank = np.argsort(self.order[: self.count])  # the lane of each member
        group = np.array([found[keys[n]] for n in ranked]).reshape(blocks, size)
        self._group(group)
        self._place([places[i] for i in self.order], blocks, size)
        self._allocate([learners[i] for i in self.order], w0, dtype, (blocks, size))
        fixed = self.begins, *self.columns, self.group_of, self.starts
        self.fixed = read_only(self.params), self.heads, *map(read_only, fixed)
        source = source_single if dtype == "float32" else source_double
        self.kernel = kernel(self.law, self.traced, False, source)
        self.in_pieces = self._can_be_in_pieces(dtype)

    def _can_be_in_pieces(self, dtype: str) -> bool:
        """Whether many steps may be taken in pieces: blocks leave the cache, and pieces do not.

        Where few predictions share a trace, most of a piece would be neighbours that do not.
        """
        row = self.V[0].nbytes // self.size
        kept = self.size * row > OWN_CACHE and PIECE * row < 4 * OWN_CACHE
        shared = self.blocks * self.size >= SHARED * int(self.begins[-1])
        return kept and shared and fits_pieces(self.law, self.traced, dtype)

    def _key(self, i: int, learner: Settings, place: LanePlace) -> tuple[Any, ...]:
        """Predictions with the same key have the same traces."""
        law = self.law
        if not self.traced:
            return ()
        asked, own = asked_by_traces(law), trace_asks_for_weights(law)
        params = tuple(learner.values[n] for n in sorted(asked) if n in law.all_params)
        cumulant = place.cumulant if "reward" in asked else -1
        schedule = place.schedule if "alpha" in asked else -1
        return place.policy, place.discount, cumulant, schedule, params, i if own else -1

    def _group(self, group: NDArray[Any]) -> None:
        """Where the groups of each block begin; a group that spans two blocks stands in both."""
        new = np.ones(group.shape, dtype=bool)
        new[:, 1:] = group[:, 1:] != group[:, :-1]
        if not self.traced:
            new[:, 1:] = False
        counts = new.sum(axis=1)
        self.begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.group_of = np.cumsum(new, axis=1) - 1
        size = group.shape[1]
        self.starts = np.concatenate([[*np.flatnonzero(row), size] for row in new]).astype(np.uintp)

    def _place(self, places: list[LanePlace], blocks: int, size: int) -> None:
        table = np.array(places, dtype=np.int64).reshape(blocks, size, 4)
        self.columns = [np.ascontiguousarray(table[:, :, i]) for i in range(4)]

    def _allocate(
        self, learners: list[Settings], w0: Floats, dtype: str, shape: tuple[int, int]
    ) -> None:
        blocks, size = shape
        s, d, groups = self.shape, len(w0), int(self.begins[-1])
        traces = len(s.traces)
        self.V: NDArray[Any] = zeros((blocks, d, len(s.vectors) * size), dtype)
        self.Z = on_cache_line((traces, groups * d))
        self.slots = np.full((traces, groups * d), NONE, dtype=np.uint8)
        self.scales = np.zeros((2 * traces, groups * SLOTS))
        self.groups = np.zeros((len(s.group_rows), groups))
        self.sums = np.zeros((blocks, len(s.along), SLOTS, size))
        self.lanes = np.zeros((blocks, len(s.lane_rows), size))
        self.heads = np.zeros((traces, groups), dtype=np.int64)
        for v in s.factors:
            self.lanes[:, s.lane_rows.index(f"f_{v}")] = 1.0
        params = [[float(x.values[p]) for x in learners] for p in lane_params(self.law)]
        table = np.array(params).reshape(len(params), blocks, size)
        self.params = np.ascontiguousarray(table.transpose(1, 0, 2))
        if w0.any():
            for lane, learner in enumerate(learners):
                b, j = divmod(lane, size)
                self.V[b, :, j::size] = learner.first_vectors(w0).T

    @property
    def blocks(self) -> int:
        """How many blocks there are: the unit that threads share."""
        return len(self.sums)

    @property
    def size(self) -> int:
        """How many lanes a block has."""
        return int(self.sums.shape[3])

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
        active, steps = len(given[FIRST_X + 1]), len(given[FIRST_X]) - 1
        worth = active >= ACTIVE * steps and active >= VISITS * self.V.shape[1]
        cut = self.in_pieces and worth
        run = kernel(self.law, True, False, source_pieces) if cut else self.kernel
        run(
            self.V, self.Z, self.slots, self.scales, self.groups, self.sums, self.lanes,
            *self.fixed, *given, out, low, high,
        )  # fmt: skip

    def cut(self) -> None:
        """The episode was cut off after the last step: the next one begins another."""
        if "gamma" in self.shape.carried:
            self.lanes[:, self.shape.lane_rows.index("last_gamma")] = 0.0

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x of every lane [steps, lanes]."""
        out = np.empty((x.steps, self.blocks, self.size))
        look(self._kept, x.read_only(), out)
        return out.reshape(x.steps, -1)

    def weights(self, lane: int) -> Floats:
        """The weights of one lane."""
        out = np.empty(self.V.shape[1])
        b, j = divmod(lane, self.size)
        look_at(self._kept, b, j, out)
        return out

    @property
    def _kept(self) -> KeptWeights:
        s = self.shape
        along = [(i, s.traces.index(z)) for i, (v, z) in enumerate(s.along) if v == "w"]
        pairs = np.array(along, dtype=np.int64).reshape(len(along), 2)
        factor = np.ones((self.blocks, self.size))
        if "w" in s.factors:
            factor[:] = self.lanes[:, s.lane_rows.index("f_w")]
        places = self.begins, self.group_of, pairs, factor
        return KeptWeights(*map(read_only, (self.V, self.sums, self.Z, self.slots, *places)))


def zeros(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Zeros of either type that begin on a cache line."""
    size = int(np.prod(shape))
    room = np.zeros(size + 64, dtype=dtype)
    begin = -room.ctypes.data % 64 // room.itemsize
    return room[begin : begin + size].reshape(shape)


class KeptWeights(NamedTuple):
    """What weights are made of: rows, sums along traces, entries of traces, factors."""

    V: NDArray[Any]
    sums: Floats
    Z: Floats
    slots: NDArray[np.uint8]
    begins: Longs
    group_of: Longs
    pairs: Longs  # [n, 2]: row of `sums`, number of the trace
    factor: Floats


@compiled
def look(kept: KeptWeights, x: ActiveFeatures, out: Floats) -> None:
    """out[t, b, j] = w.x of step t in lane j of block b."""
    first, feature, value = x
    for b in range(len(kept.sums)):
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
    """Weight k of lane j in block b: f (V + sum over traces of S_e Z)."""
    total = np.float64(kept.V[b, k, j])  # w is the first vector of a row
    count = kept.begins[b + 1] - kept.begins[b]
    for n in range(len(kept.pairs)):
        row, z = kept.pairs[n]
        cell = kept.begins[b] * kept.V.shape[1] + k * count + kept.group_of[b, j]
        e = kept.slots[z, cell]
        if e < kept.sums.shape[2]:
            total += kept.sums[b, row, e, j] * kept.Z[z, cell]
    return float(kept.factor[b, j] * total)
