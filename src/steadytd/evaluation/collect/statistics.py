"""The sums of a log, block by block of episodes: what every estimate and interval is made from.

Sums of different parts of a log are put together by stringing their pieces in order, so that
merging is exact and associative; only `units` adds up the pieces of one block, always in the order
of the log. Hence one machine and many give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs
from steadytd.base.files import reading_arrays, write_arrays
from steadytd.evaluation.collect.rows.table import RowTable, empty_table, in_units, joined

ACTION_SUMS = ("q_counts", "q_start", "q_G", "q_systems", "q_traced", "q_weighted")
BINS = 62  # of rho: zero, then bins that begin at 2^e and 1.5 2^e
RATIO_SUMS = ("rho", "rho_squared", "zeros", "largest", "product", "product_squared", "product_max")
LARGEST_OF = (3, 6)  # of these sums the largest counts
ENOUGH_UNITS = 20  # whole episodes are kept together where that leaves so many units
KEPT_ROWS = 20  # row numbers that are remembered of support violations


def _none() -> Floats:
    return np.empty(0)


@dataclass
class Statistics:
    """Pieces of blocks, in the order of the log. Axis 0 of all but the last fields is the piece.

    ============== ==================== =======================================================
    `block`        [p]                  the number of the block
    `continues`    [p]                  begins within an episode
    `counts`       [p, 4]               rows, episodes, episodes cut short, their discount there
    `G`            [p, d, d]            sum of x x'
    `x`, `x_start` [p, d]               sums of x over all rows, and over first rows of episodes
    `systems`      [p, T, K, d, d + 1]  sums of z (x - gamma' x')' and, last column, of r z
    `mass`         [p, T, K, d]         sums of (1 - gamma') z
    `behavior`     [p, d, d + 1]        sums of x (x - gamma' x')' and of r x: ratios of 1
    `weighted`     [p, T + 1, L, d + 2] sums of c (x - gamma' x', r, 1 - gamma') for each lam, with
                                        c = rho (gamma lam c + 1 at a start); last, ratios of 1
    `cut`          [p, T, L, d + 1]     sums of gamma' (z, c) for each lam at cut-offs
    `ratios`       [p, T, 7]            see `RATIO_SUMS`
    `numerator`    [p, T, H]            of snpdis: discounted product times reward at step t
    `denominator`  [p, T, H]            products at step t, of episodes that have such a step
    `ended`        [p, T, H]            products of episodes that ended after t steps
    `q_...`        [p, W, ...]          of the W targets known as a whole: see `action_sums`
    `histogram`    [T, bins]            rows by ratio
    `largest_row`  [T]                  row number of the largest ratio
    `violations`   [T]                  rows where pi > 0 and mu = 0
    `violating`    [T, 20]              the first of them, -1 where there are fewer
    `extent`       [4]                  least and largest reward, largest discount, longest episode
    ============== ==================== =======================================================

    Where few features are active in a row, `table` has the rows themselves, and the sums over
    features (`G`, `systems`, `mass`, `behavior`, `weighted`, `cut`) have no entries.
    """

    block: Longs
    continues: Bools
    counts: Floats
    G: Floats
    x: Floats
    x_start: Floats
    systems: Floats
    mass: Floats
    behavior: Floats
    weighted: Floats
    cut: Floats
    ratios: Floats
    numerator: Floats
    denominator: Floats
    ended: Floats
    histogram: Longs
    largest_row: Longs
    violations: Longs
    violating: Longs
    extent: Floats
    q_counts: Floats = field(default_factory=_none)
    q_start: Floats = field(default_factory=_none)
    q_G: Floats = field(default_factory=_none)
    q_systems: Floats = field(default_factory=_none)
    q_traced: Floats = field(default_factory=_none)
    q_weighted: Floats = field(default_factory=_none)
    table: RowTable = field(default_factory=empty_table)

    def __post_init__(self) -> None:
        for name in ACTION_SUMS:
            if len(getattr(self, name)) != len(self.block):  # nobody asked for them
                setattr(self, name, np.zeros((len(self.block), 0)))
        for name in SUMMED:  # sums from a file have this layout: so have all, to add in one order
            setattr(self, name, np.ascontiguousarray(getattr(self, name)))

    def save(self, path: Path, **extra: NDArray[Any]) -> None:
        """Write all sums to a NumPy archive, whole or not at all."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "table"}
        table = {f"table_{name}": array for name, array in self.table._asdict().items()}
        write_arrays(path, own | table | extra)

    @classmethod
    def load(cls, path: Path) -> tuple[Statistics, dict[str, NDArray[Any]]]:
        """The sums of a file and what else was saved."""
        with reading_arrays(path, "pass over a log") as file:
            names = {f.name for f in fields(cls) if f.name != "table"}
            own = {name: file[name] for name in names}
            table = RowTable(*(file[f"table_{name}"] for name in RowTable._fields))
            used = {*names, *(f"table_{name}" for name in RowTable._fields)}
            extra = {name: file[name] for name in file.files if name not in used}
        return cls(**own, table=table), extra

    @property
    def rows(self) -> int:
        """Number of transitions."""
        return int(self.counts[:, 0].sum())

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return int(self.counts[:, 1].sum())


SUMMED = (
    "counts", "G", "x", "x_start", "systems", "mass", "behavior", "weighted", "cut", "ratios",
    "numerator", "denominator", "ended", *ACTION_SUMS,
)  # fmt: skip
PIECEWISE = ("block", "continues", *SUMMED)


def merged(parts: Sequence[Statistics]) -> Statistics:
    """The sums of several parts of a log, in its order."""
    first, *_ = parts
    if len(parts) == 1:
        return first
    strung = {name: np.concatenate([getattr(p, name) for p in parts]) for name in PIECEWISE}
    tops = np.stack([p.ratios[:, :, 3].max(axis=0, initial=0.0) for p in parts])
    rows = np.stack([p.largest_row for p in parts])
    best = np.argmax(tops, axis=0)
    listed = np.concatenate([p.violating for p in parts], axis=1)
    return Statistics(
        **strung,
        histogram=np.sum([p.histogram for p in parts], axis=0),
        largest_row=rows[best, np.arange(len(best))],
        violations=np.sum([p.violations for p in parts], axis=0),
        violating=np.stack([_first_rows(rows) for rows in listed]),
        extent=widest([p.extent for p in parts]),
        table=joined([p.table for p in parts], [len(p.block) for p in parts]),
    )


def widest(extents: Sequence[Floats]) -> Floats:
    """The extent of all rows from those of some of them."""
    all_of_them = np.stack(extents)
    return np.append(all_of_them[:, 0].min(), all_of_them[:, 1:].max(axis=0))


def _first_rows(rows: Longs) -> Longs:
    found = rows[rows >= 0][:KEPT_ROWS]
    return np.concatenate([found, np.full(KEPT_ROWS - len(found), -1)])


def units(s: Statistics) -> Statistics:
    """The sums of the units that are resampled: whole blocks, and whole episodes if there are 20.

    With fewer (a log of one endless episode) a unit is a stretch of consecutive rows.
    """
    blocks = np.append(True, s.block[1:] != s.block[:-1])
    whole = blocks & ~s.continues
    begin = whole if int(whole.sum()) >= ENOUGH_UNITS else blocks
    begin[0] = True
    return _joined(s, np.flatnonzero(begin))


def halved(s: Statistics) -> Statistics:
    """Units twice as long: every second one together with the next."""
    return _joined(s, np.arange(0, len(s.block), 2))


def _joined(s: Statistics, starts: Longs) -> Statistics:
    """Units that begin at these pieces."""
    if len(starts) == len(s.block):
        return s
    added: dict[str, Any] = {
        name: np.add.reduceat(getattr(s, name), starts, axis=0) for name in SUMMED
    }
    for largest in LARGEST_OF:
        tops = np.maximum.reduceat(s.ratios[:, :, largest], starts, axis=0)
        added["ratios"][:, :, largest] = tops
    rest: dict[str, Any] = {
        f.name: getattr(s, f.name) for f in fields(s) if f.name not in (*SUMMED, *PIECEWISE[:2])
    }
    rest["table"] = in_units(s.table, starts)
    return Statistics(block=s.block[starts], continues=s.continues[starts], **added, **rest)
