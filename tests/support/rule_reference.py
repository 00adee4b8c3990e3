"""The slow reference of the rule of trust on given units."""

from __future__ import annotations

import numpy as np
from benchmarks.worlds.drl import FOLDS, LAMS, Rows, Units, fit, in_units, row_scores

from steadytd.base.arrays import Longs


def by_units(rows: Rows, unit: Longs, divided: bool | None = None) -> tuple[Units, Units]:
    """Units of the target's scores, and of the behaviour's own; `divided`: they are stretches."""
    fold = folds_of(unit, rows.endless if divided is None else divided)
    own = rows._replace(rho=np.ones(len(rows.rho)))
    starts = (rows.first | rows.endless).astype(float)
    pair = [row_scores(one, fit(one, fold), LAMS) for one in (rows, own)]
    target, behavior = (Units(*(in_units(x, unit) for x in (*s, starts))) for s in pair)
    return target, behavior


def folds_of(unit: Longs, divided: bool) -> Longs:
    """The fold of every row: five, or as many as there are units."""
    k, number = int(unit[-1]) + 1, min(FOLDS, int(unit[-1]) + 1)
    return unit * number // k if divided else unit % number


def units_of(rows: Rows, blocks: int) -> Longs:
    """The units of an evaluation; an endless episode's rows count in the block before their own."""
    n = len(rows.reward)
    place = np.arange(n)
    if not rows.endless:
        place = np.maximum.accumulate(np.where(rows.first, place, 0))
    block = place * blocks // n
    if rows.endless:
        block = np.maximum(block - 1, 0)
    return np.unique(block, return_inverse=True)[1]
