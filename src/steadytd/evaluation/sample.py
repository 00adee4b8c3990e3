"""A sample of a log's episodes: how each ended, and of some all rows. Memory is bounded.

Episode number e has the uniform number e of the seed for its key. Of the episodes with the smallest
keys at most `MOST_EPISODES` outcomes are kept, and of those with the very smallest all rows: as
many whole episodes, in the order of their keys, as the number of rows asked for allows. Both are
decided by the log and the seed alone, so that any batches, parts and machines find the same. For
rewards per step rows are sampled in pieces of 1,000, since an episode may be the whole log.
"""

from __future__ import annotations

import copy

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.random import EPISODES, uniforms_of
from steadytd.evaluation.rows import RowTable, joined

MOST_EPISODES = 100_000
OUTCOME_BYTES = 16e6
SPARE = 1.25  # times as many rows may be held until those that no longer fit are dropped
PIECE = 1000  # rows that are sampled together where episodes do not matter
MANY = 2  # times the rows asked for: so many are considered
KEY, EPISODE, LEFT, STEPS, UNIT, ROW, WEIGHT, RETURN = range(8)  # columns of outcomes
PRODUCTS = RETURN + 1  # where there is one reward


class EpisodeSample:
    """Episodes of a log.

    `outcomes` [episodes, 7 + rewards + targets]: key, number, the discount left at the last row
    (above 0: cut off), steps, unit, number of the last row, the weight, the returns, and the weight
    times the product of all ratios for each target; in the order of the log. `rows` is the table of
    the sampled rows, None where there are none.
    """

    def __init__(
        self,
        seed: int,
        targets: int,
        most_rows: int,
        rows: int,
        pieces: bool = False,
        rewards: int = 1,
    ) -> None:
        """At most `most_rows` of a log that has `rows`, in pieces or whole episodes."""
        self.seed, self.most_rows, self.pieces = seed, most_rows, pieces
        self.rewards, width = rewards, RETURN + rewards + targets
        self.most_episodes = min(MOST_EPISODES, int(OUTCOME_BYTES / (8 * width)))
        self._outcomes = [np.empty((0, width))]
        self._tables: list[RowTable] = []
        self._keys: list[Floats] = []  # of the rows of each table
        self._bound = np.inf
        self._row_bound = np.inf if rows <= MANY * most_rows else MANY * most_rows / rows

    def add(self, rows: RowTable, products: Floats) -> None:
        """The rows of a table; `products` [T, n] are w rho_0 ... rho_t of each row."""
        number = rows.number // PIECE if self.pieces else rows.episode
        begins = np.append(0, np.flatnonzero(np.diff(number)) + 1)
        keys = uniforms_of(self.seed, EPISODES, number[begins])
        length = np.diff(np.append(begins, len(rows)))
        self._add_outcomes(rows, products, np.repeat(keys, length))
        if keys.min() < self._row_bound:
            key = np.repeat(keys, length)
            mine = np.flatnonzero(key < self._row_bound)
            self._tables.append(rows.take(mine))
            self._keys.append(key[mine])
            if sum(map(len, self._keys)) > SPARE * self.most_rows:
                self._drop_rows()

    def _add_outcomes(self, rows: RowTable, products: Floats, key: Floats) -> None:
        ends = np.flatnonzero(rows.last & (key < self._bound))
        left = rows.discounted[ends] * rows.discount[ends]
        about = key[ends], rows.episode[ends], left, rows.step[ends] + 1.0
        whose = rows.unit[ends], rows.number[ends], rows.weight[ends]
        earned = rows.returns[:, ends].T, products[:, ends].T
        self._outcomes.append(np.column_stack([*about, *whose, *earned]))
        if sum(map(len, self._outcomes)) > 2 * self.most_episodes:
            self._drop_outcomes()

    def _drop_outcomes(self) -> None:
        found = np.concatenate(self._outcomes)
        if len(found) > self.most_episodes:
            order = np.argsort(found[:, KEY], kind="stable")[: self.most_episodes]
            found = found[np.sort(order)]
            self._bound = float(found[:, KEY].max())
        self._outcomes = [found]

    def _drop_rows(self) -> None:
        """Keep whole episodes only, as many as fit together."""
        if len(self._tables) < 2 and sum(map(len, self._keys)) <= self.most_rows:
            return
        key = np.concatenate(self._keys)
        distinct, number = np.unique(key, return_inverse=True)
        fit = np.cumsum(np.bincount(number)) <= self.most_rows
        if not fit.all():
            self._row_bound = min(self._row_bound, float(distinct[np.argmin(fit)]))
        mine = np.flatnonzero(key < self._row_bound)
        table = joined(self._tables)
        self._tables, self._keys = [table.take(mine)], [key[mine]]

    @property
    def outcomes(self) -> Floats:
        """How the sampled episodes ended."""
        self._drop_outcomes()
        return self._outcomes[0]

    @property
    def rows(self) -> RowTable | None:
        """All rows of the sampled whole episodes."""
        self._drop_rows()
        return self._tables[0] if self._tables and len(self._tables[0]) else None

    def fewer(self, most: int) -> RowTable | None:
        """The rows of the whole episodes with the smallest keys that have at most so many."""
        table = self.rows
        if table is None or len(table) <= most:
            return table
        key = self._keys[0]
        number = np.unique(key, return_inverse=True)[1]
        fits = np.cumsum(np.bincount(number)) <= most
        chosen: Bools = fits[number]
        return table.take(np.flatnonzero(chosen)) if chosen.any() else None

    def of_reward(self, r: int) -> EpisodeSample:
        """The same sample with one of the rewards."""
        outcomes, table, found = self.outcomes, self.rows, copy.copy(self)
        others = [RETURN + k for k in range(self.rewards) if k != r]
        found.rewards, found._outcomes = 1, [np.delete(outcomes, others, axis=1)]
        found._tables = [] if table is None else [table.of_reward(r)]
        return found

    def merge(self, other: EpisodeSample) -> None:
        """Add the sample of the next part of the log."""
        self._outcomes += other._outcomes
        self._bound = min(self._bound, other._bound)
        self._tables += other._tables
        self._keys += other._keys
        self._row_bound = min(self._row_bound, other._row_bound)
        self._drop_rows()
