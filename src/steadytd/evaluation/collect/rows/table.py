"""The rows of a log as they are, for features of which few are active: sums by row, not by pair.

The d x d sums of a block are nearly all zeros where a row has one active feature among hundreds.
There the pass keeps, of every row, its active features and ratios: all sums of any block are made
from them afterwards (`estimate.sparse`), each in time proportional to the active features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.rows.active import Active, of_rows

FEWEST_FEATURES = 64  # with fewer, sums of all pairs cost less
MOST_ONE_HOT, MOST_TOGETHER = 10_000, 1500  # features, if one is active at a time, or several
TABLE_BYTES = 400e6  # of the rows that are kept
SHARE = 8  # of the features at most one in so many may be active


class RowTable(NamedTuple):
    """All rows in the order of the log; the active features of a row follow those of the last."""

    piece: Ints  # [n], the piece of a block that the row is in
    first: Bools  # [n]
    reward: Floats  # [n]
    discount: Floats  # [n], of the next state
    gamma: Floats  # [n], of the row's own state
    rho: Floats  # [n, targets]
    emphasis: Floats  # [n, emphatic systems * targets]: rho M
    length: Longs  # [n], how many features are active,
    feature: Ints  # which,
    value: Floats  # and with what values
    next_length: Longs  # the same of the next state
    next_feature: Ints
    next_value: Floats


def empty_table() -> RowTable:
    """No rows: the sums hold everything."""
    long, number, place = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    return RowTable(
        place, np.empty(0, bool), number, number, number, np.empty((0, 0)), np.empty((0, 0)),
        long, place, number, long, place, number,
    )  # fmt: skip


def joined(tables: Sequence[RowTable], pieces: Sequence[int]) -> RowTable:
    """One table of several parts of a log, whose sums have so many pieces each."""
    before = np.concatenate([[0], np.cumsum(pieces)[:-1]])
    moved = [t._replace(piece=t.piece + np.int32(b)) for t, b in zip(tables, before, strict=True)]
    return RowTable(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


def in_units(table: RowTable, starts: Longs) -> RowTable:
    """The table of units that begin at these pieces."""
    unit = np.searchsorted(starts, table.piece, side="right") - 1
    return table._replace(piece=unit.astype(np.int32))


def bytes_per_row(plan: Plan, active: int) -> int:
    """How much memory a row takes, about."""
    emphatic = sum(system.emphatic for system in plan.systems)
    return 8 * (6 + len(plan.targets) * (1 + emphatic)) + 24 * active


def table_fits(plan: Plan, active: int) -> bool:
    """Whether rows are to be kept rather than summed: many features, few of them active."""
    most = MOST_ONE_HOT if active == 1 else MOST_TOGETHER
    sparse = FEWEST_FEATURES <= plan.features <= most and active * SHARE <= plan.features
    return sparse and plan.rows * bytes_per_row(plan, active) <= TABLE_BYTES


class BatchRows(NamedTuple):
    """The rows of a batch, and the active features of its observations.

    `row_next` says which observation is a row's next state.
    """

    piece: Ints
    first: Bools
    reward: Floats
    discount: Floats
    gamma: Floats
    rho: Floats
    emphasis: Floats
    row_next: Ints
    active: Active


class RowKeeper:
    """Collects the rows of consecutive batches."""

    def __init__(self) -> None:
        self.batches: list[RowTable] = []

    def add(self, rows: BatchRows) -> None:
        """Keep copies of the rows of a batch."""
        n, S = len(rows.piece), rows.active
        here, ahead = of_rows(S, np.arange(n)), of_rows(S, rows.row_next[:n].astype(np.int64))
        own = {name: np.array(getattr(rows, name)) for name in RowTable._fields[:7]}
        found: dict[str, Any] = dict(zip(RowTable._fields[7:], (*here, *ahead), strict=True))
        self.batches.append(RowTable(**own, **found))

    def table(self) -> RowTable:
        """All rows that were added."""
        if not self.batches:
            return empty_table()
        return joined(self.batches, [0] * len(self.batches))
