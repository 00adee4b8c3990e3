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

from steadytd.base.arrays import Floats, Longs, on_cache_line, read_only
from steadytd.base.jit import compiled
from steadytd.engine.facts import fact_table
from steadytd.engine.law import Law
from steadytd.engine.online import LiveBlock
from steadytd.engine.rows import Rows
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
from steadytd.hordes.inputs import ActiveFeatures, LiveSteps

STATE = ("V", "Z", "row_of", "A", "I", "S", "C", "M", "counts")
LIMITS = {  # the least scale C, the least I, the least factor B, by the type of the weights
    "float64": (LOW, GONE, SMALL),
    "float32": (2.0**-5, 2.0**-35, 1e-10),
}


class Columns(NamedTuple):
    """The columns of a prediction's cumulant, ratio, discount and step factor."""

    cumulant: int
    policy: int
    discount: int
    schedule: int


class LanePart:
    """Predictions of one law, with or without trace vectors, sorted by group.

    `order[lane]` is the number of the prediction in that lane; the lanes that fill the last block
    repeat the last prediction. A row of V has all vectors of a feature.
    """

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], columns: Sequence[Columns],
        w0: Floats, dtype: str,
    ) -> None:  # fmt: skip
        self.law: Law = learners[members[0]].law
        self.traced = learners[members[0]].traced
        self.program = horde_program(self.law, self.traced)
        keys = self._keys(members, learners, columns)
        found = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        ranked = sorted(range(len(members)), key=lambda n: (found[keys[n]], n))
        blocks = -(-len(members) // LANES)
        ranked += [ranked[-1]] * (blocks * LANES - len(members))
        self.count = len(members)
        self.order: Longs = np.array([members[n] for n in ranked], dtype=np.int64)
        self.rank = np.argsort(self.order[: self.count])  # the lane of each member
        self._group(np.array([found[keys[n]] for n in ranked]).reshape(blocks, LANES))
        table = np.array([columns[i] for i in self.order], dtype=np.int64)
        by_block = table.reshape(blocks, LANES, len(Columns._fields)).transpose(0, 2, 1)
        self.places = np.concatenate([by_block, self.group_of[:, None]], axis=1)
        self._allocate([learners[i] for i in self.order], w0, dtype, blocks)
        fixed = self.params, self.places, self.starts, self.begins, np.array(LIMITS[dtype])
        self.fixed = tuple(map(read_only, fixed))
        self.kernel = kernel(self.law, self.traced, False, horde_source)

    def _keys(
        self, members: Sequence[int], learners: Sequence[Settings], columns: Sequence[Columns]
    ) -> list[tuple[Any, ...]]:
        """Predictions with the same key have the same traces."""
        if not self.traced:
            return [()] * len(members)
        used, own = asked_by_traces(self.program), traces_are_own(self.program)
        params = [name for name in self.program.params if name in used]
        return [
            (
                columns[i].policy, columns[i].discount,
                columns[i].cumulant if "reward" in used else -1,
                columns[i].schedule if "alpha" in used else -1,
                *(learners[i].values[name] for name in params), i if own else -1,
            )
            for i in members
        ]  # fmt: skip

    def _group(self, group: NDArray[Any]) -> None:
        """Where the groups of each block begin; a group that spans two blocks counts in both."""
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
        self.numbers = Horde(program).kept_numbers()
        self.V = on_cache_line((blocks, d, len(program.vectors), LANES), dtype)
        self.Z = on_cache_line((traces, cells))
        self.row_of = np.full(cells, NONE, dtype=np.uint8)
        self.A = np.zeros((blocks, pairs, ROWS + 1, LANES))  # nothing is in the last
        self.I = np.ones((blocks, traces, ROWS + 1, LANES))
        self.S = np.zeros((blocks, pairs, LANES))
        self.C = np.ones((blocks, traces, LANES))
        self.M = np.zeros((blocks, len(self.numbers), LANES))
        self.counts = np.zeros((blocks, len(COUNTS), LANES), dtype=np.int64)
        for row, name in enumerate(self.numbers):
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
        if "last_gamma" in self.numbers:
            self.M[:, self.numbers.index("last_gamma")] = 0.0

    def values(self, x: ActiveFeatures) -> Floats:
        """w.x of every lane [steps, lanes]."""
        out = np.empty((x.steps, self.blocks, LANES))
        inner_products(self._weight_parts, x.read_only(), out)
        return out.reshape(x.steps, -1)

    def weights(self, lane: int) -> Floats:
        """The weights of one lane."""
        out = np.empty(self.V.shape[1])
        b, j = divmod(lane, LANES)
        lane_weights(self._weight_parts, b, j, out)
        return out

    @property
    def _weight_parts(self) -> WeightParts:
        program = self.program
        along = [(i, program.traces.index(z)) for i, (v, z) in enumerate(program.pairs) if v == "w"]
        pairs = np.array(along, dtype=np.int64).reshape(len(along), 2)
        factor = np.ones((self.blocks, LANES))
        if "B_w" in self.numbers:
            factor[:] = self.M[:, self.numbers.index("B_w")]
        rest = self.begins, self.group_of, pairs, factor
        own = self.V, self.Z, self.row_of, self.A, self.I, self.S
        return WeightParts(*map(read_only, (*own, *rest)))


class WeightParts(NamedTuple):
    """What a weight is computed from; see `engine.step.layouts.horde`."""

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
def inner_products(parts: WeightParts, x: ActiveFeatures, out: Floats) -> None:
    """out[t, b, j] = w.x of step t in lane j of block b."""
    first, feature, value = x
    for b in range(out.shape[1]):
        for t in range(len(first) - 1):
            for j in range(out.shape[2]):
                out[t, b, j] = 0.0
            for q in range(first[t], first[t + 1]):
                for j in range(out.shape[2]):
                    out[t, b, j] += entry(parts, b, feature[q], j) * value[q]


@compiled
def lane_weights(parts: WeightParts, b: int, j: int, out: Floats) -> None:
    """out[k] = weight k of lane j in block b."""
    for k in range(len(out)):
        out[k] = entry(parts, b, k, j)


@compiled
def entry(parts: WeightParts, b: int, k: int, j: int) -> float:
    """Weight k of lane j in block b: B (V + Z (A[s] + S I[s]))."""
    total = np.float64(parts.V[b, k, 0, j])  # w is the first vector of a row
    count, g = parts.begins[b + 1] - parts.begins[b], parts.group_of[b, j]
    for n in range(len(parts.pairs)):
        p, z = parts.pairs[n]
        cell = parts.begins[b] * parts.V.shape[1] + k * count + g
        s = parts.row_of[cell]
        total += parts.Z[z, cell] * (parts.A[b, p, s, j] + parts.S[b, p, j] * parts.I[b, z, s, g])
    return float(parts.factor[b, j] * total)


class WholePart(LiveBlock):
    """Predictions of the same columns that share a block of the engine."""

    def __init__(
        self, members: Sequence[int], learners: Sequence[Settings], columns: Columns, w0: Floats
    ) -> None:
        self.order = np.array(members, dtype=np.int64)
        self.count, self.columns = len(members), columns
        super().__init__([learners[i] for i in members], w0)

    @property
    def nbytes(self) -> int:
        """The memory of all that changes."""
        return sum(array.nbytes for array in self.state.values())

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
        weights = self.block.shown
        out = np.empty((x.steps, self.count))
        for t in range(x.steps):
            low, high = x.first[t], x.first[t + 1]
            with np.errstate(all="ignore"):
                out[t] = x.value[low:high].astype(np.float64) @ weights[x.feature[low:high]]
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
