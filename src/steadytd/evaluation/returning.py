"""Units that come back: which of their episodes count, and when a unit is complete.

A unit counts from the batch in which it first appears, for `batches` batches, with at most
`episodes` episodes, the first ones. Neither depends on what its episodes have earned, and complete
units go on in the order in which they first appeared. If a unit went on when it stops to come, or
if the units that are still there were left out, those would be chosen by how well they fared.

Every unit is remembered, by a hash of its name, so that one that comes later is not taken for new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError, visible


class Complete(NamedTuple):
    """Units that are complete: as shares of `episodes`, their episodes and sums of scores."""

    shares: Floats  # [units]
    scores: Floats  # [k, units]


@dataclass
class Returning:
    """The units of a monitor; `batches` None: a unit must not come back in a later batch."""

    column: str
    episodes: int
    batches: int | None
    seen: dict[str, int] = field(default_factory=dict)  # hash of the name: its first batch
    sums: dict[str, list[float]] = field(default_factory=dict)  # not yet complete: n, scores
    left_out: int = 0  # episodes that do not count

    def check(self, names: list[str]) -> None:
        """Refuse units that come back if nothing is stated about that."""
        back = next((n for n in names if self.batches is None and hashed(n) in self.seen), None)
        if back is not None:
            raise InputError(
                f"{visible(self.column)} '{visible(back)}' was in an earlier batch, and its "
                "episodes may be alike; begin a new monitor with unit_batches=n: a unit counts "
                "for n batches from its first one on."
            )

    def add(self, names: list[str], unit: Longs, scores: Floats, batch: int) -> Complete:
        """Add the episodes of a batch: `unit` [n] counts in `names`, `scores` are [k, n]."""
        lasts, keys = self.batches or 1, [hashed(name) for name in names]
        for key in keys:
            if key not in self.seen:
                self.seen[key] = batch
                self.sums[key] = [0.0] * (1 + len(scores))
        before = np.array([self.sums[key][0] if key in self.sums else np.inf for key in keys])
        order = np.argsort(unit, kind="stable")
        number = np.arange(len(unit)) - np.searchsorted(unit[order], unit[order])
        mine = np.zeros(len(unit), dtype=bool)
        mine[order] = before[unit[order]] + number < self.episodes
        self.left_out += int((~mine).sum())
        added = np.array([
            np.bincount(unit[mine], row[mine], len(names))
            for row in (np.ones(len(unit)), *scores)
        ])  # fmt: skip
        for key, more in zip(keys, added.T.tolist(), strict=True):
            if key in self.sums:
                self.sums[key] = [a + b for a, b in zip(self.sums[key], more, strict=True)]
        over = [key for key in self.sums if self.seen[key] + lasts <= batch + 1]
        found = np.array([self.sums.pop(key) for key in over]).reshape(-1, 1 + len(scores))
        return Complete(found[:, 0] / self.episodes, found[:, 1:].T / self.episodes)


def hashed(name: str) -> str:
    """What stands for a unit's name in the file.

    >>> hashed("user 7")
    '13419e5dee5570f9'
    """
    return blake2b(name.encode(), digest_size=8).hexdigest()
