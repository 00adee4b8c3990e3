"""A sample of a log's episodes: how each ended, and of some all rows. Memory is bounded.

Episode number e has the uniform number e of the seed for its key. Of the episodes with the smallest
keys at most `MOST_EPISODES` outcomes are kept, and of those with the very smallest all rows: as
many whole episodes, in the order of their keys, as have together no more rows than fit into
`ROW_BYTES`. Both are decided by the log and the seed alone, so that any batches, parts and machines
find the same episodes; and an outcome is computed row by row, so they find the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.errors import InputError
from steadytd.base.jit import compiled
from steadytd.base.random import EPISODES, uniforms_of
from steadytd.evaluation.collect.plan import Plan
from steadytd.evaluation.collect.rows.active import inside
from steadytd.evaluation.collect.scan import LARGEST

MOST_EPISODES = 100_000
OUTCOME_BYTES = 16e6
MOST_ROWS = 10_000
ROW_BYTES = 8e6
SPARE = 1.25  # times as many rows may be held until those that no longer fit are dropped
KEY, EPISODE, RETURN, LEFT, STEPS, PRODUCTS = range(6)  # columns of outcomes
MOST = 1e30  # of a feature
REWARD, DISCOUNT, RATIOS = range(3)  # columns of rows
ACTION = 2  # column of marks


Singles = NDArray[np.float32]


class Sampled(NamedTuple):
    """Episodes of a log.

    `outcomes` [episodes, 5 + targets]: key, number, return, the discount left at the last row
    (above 0: cut off), steps, and the product of all ratios for each target. `marks` [rows, 3]: key
    and number of the row's episode, and its action (NaN: none, or a list). `rows`
    [rows, 2 + targets + 2 d], in single precision: reward, discount, ratios, x and x'. All are in
    the order of the log. Of an episode with a key of at least `bound` no rows are kept.
    """

    outcomes: Floats
    marks: Floats
    rows: Singles
    bound: float

    @staticmethod
    def merged(parts: Sequence[Sampled]) -> Sampled:
        """The sample of several parts of a log, in its order."""
        *arrays, bounds = zip(*parts, strict=True)
        outcomes, marks, rows = map(np.concatenate, arrays)
        bound = end_of(marks[:, 0], np.ones(len(marks)), rows.shape[1], min(bounds))
        kept = marks[:, 0] < bound
        return Sampled(smallest(outcomes), marks[kept], rows[kept], bound)


def most_episodes(numbers: int) -> int:
    """How many outcomes of so many numbers are kept."""
    return min(MOST_EPISODES, int(OUTCOME_BYTES / (8 * numbers)))


def most_rows(numbers: int) -> int:
    """How many rows of so many numbers whole episodes may have together."""
    return min(MOST_ROWS, int(ROW_BYTES / (4 * numbers)))


def smallest(outcomes: Floats) -> Floats:
    """The outcomes with the smallest keys, in the order of the log."""
    most = most_episodes(outcomes.shape[1])
    if len(outcomes) <= most:
        return outcomes
    return np.asarray(outcomes[np.sort(np.argsort(outcomes[:, KEY], kind="stable")[:most])])


def end_of(keys: Floats, lengths: Floats, numbers: int, bound: float) -> float:
    """The least key of an episode that does not fit together with those before it.

    A key may be there several times, with the rows of some of its episode.
    """
    found, number = np.unique(keys, return_inverse=True)
    fit = np.cumsum(np.bincount(number, lengths)) <= most_rows(numbers)
    return min(bound, float("inf") if fit.all() else float(found[np.argmin(fit)]))


class EpisodeSteps(NamedTuple):
    """The rows of a batch."""

    first: Bools
    reward: Floats
    discount: Floats
    rho: Floats  # [n, targets]
    episode: Longs
    row_next: Ints
    X: Floats


class Outcomes:
    """The sample, batch by batch; an episode may span batches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.state = np.zeros(1 + PRODUCTS + len(plan.targets))
        self.kept: list[Floats] = []
        self.bound, self.row_bound = np.inf, np.inf
        self.lengths = np.empty((0, 2))  # key and rows of the episodes that are kept
        self.marks: list[Floats] = []
        self.rows: list[Singles] = []
        self.key = np.inf  # of the episode under way

    def add(self, rows: EpisodeSteps, action: NDArray[Any] | None = None) -> None:
        """The rows of a batch, and the action of each, if it is a number."""
        begins = np.flatnonzero(rows.first)
        keys = uniforms_of(self.plan.seed, EPISODES, rows.episode[begins])
        out = np.empty((len(begins), len(self.state) - 1))
        n = follow(rows, keys, self.bound, self.state, out)
        if n:
            self.kept.append(out[:n].copy())
            if sum(map(len, self.kept)) > 2 * most_episodes(out.shape[1]):
                self._drop()
        before = np.append(self.key, keys)
        if before.min() < self.row_bound:
            if action is None or action.ndim != 1:
                action = np.full(len(rows.first), np.nan)
            self._add_rows(rows, before, action)
        self.key = before[-1]

    def _add_rows(self, rows: EpisodeSteps, before: Floats, action: NDArray[Any]) -> None:
        """Copy the rows of the episodes that fit, as far as is known now."""
        begin = np.append(0, np.flatnonzero(rows.first))
        length = np.diff(np.append(begin, len(rows.first)))
        width = RATIOS + rows.rho.shape[1] + 2 * rows.X.shape[1]
        self.lengths = np.concatenate([self.lengths, np.stack([before, length], axis=1)])
        self.row_bound = end_of(self.lengths[:, 0], self.lengths[:, 1], width, self.row_bound)
        self.lengths = self.lengths[self.lengths[:, 0] < self.row_bound]
        fits = before < self.row_bound
        begin, length, key = begin[fits], length[fits], before[fits]
        i = np.repeat(begin, length) + inside(length)
        x = (rows.X[i], rows.X[rows.row_next[i]])
        largest = max(float(np.abs(part).max(initial=0.0)) for part in x)
        if largest > MOST:
            raise InputError(
                f"a feature has the value {largest:.2g}; at most {MOST:g} is possible, since sums "
                "of products lose all digits of the others. Use features of a lower degree, or "
                "observations in another unit."
            )
        numbers = (rows.reward[i, None], rows.discount[i, None], rows.rho[i], *x)
        marks = np.repeat(key, length), rows.episode[i], action[i]
        self.marks.append(np.stack(marks, axis=1))
        self.rows.append(np.concatenate(numbers, axis=1, dtype=np.float32, casting="same_kind"))
        if sum(map(len, self.rows)) > SPARE * most_rows(width):
            kept = self._whole_episodes()
            self.marks, self.rows = [kept.marks], [kept.rows]

    def _whole_episodes(self) -> Sampled:
        """The rows that fit, of all that were copied; no outcomes."""
        width = RATIOS + len(self.plan.targets) + 2 * self.plan.features
        marks = np.concatenate([np.empty((0, 3)), *self.marks])
        rows = np.concatenate([np.empty((0, width), dtype=np.float32), *self.rows])
        outcomes = np.empty((0, len(self.state) - 1))
        return Sampled.merged([Sampled(outcomes, marks, rows, self.row_bound)])

    def _drop(self) -> None:
        outcomes = smallest(np.concatenate(self.kept))
        self.kept, self.bound = [outcomes], float(outcomes[:, KEY].max())

    def sample(self) -> Sampled:
        """All that was kept; the episode under way ends here."""
        if self.state[0] > 0.0:
            self.kept.append(self.state[None, 1:].copy())
            self.state[0] = 0.0
        outcomes = np.concatenate([np.empty((0, len(self.state) - 1)), *self.kept])
        return self._whole_episodes()._replace(outcomes=smallest(outcomes))


@compiled
def follow(rows: EpisodeSteps, keys: Floats, bound: float, state: Floats, out: Floats) -> int:
    """Go on over the rows; write the chosen episodes that end to `out`, return how many.

    `state` says whether the episode under way is chosen, then holds its outcome so far.
    """
    n, begun, targets = 0, 0, rows.rho.shape[1]
    for i in range(len(rows.first)):
        if rows.first[i]:
            if state[0] > 0.0:
                for k in range(out.shape[1]):  # a slice takes Numba seconds to compile
                    out[n, k] = state[1 + k]
                n += 1
            state[0] = 1.0 if keys[begun] < bound else 0.0
            state[1 + KEY], state[1 + EPISODE] = keys[begun], rows.episode[i]
            state[1 + RETURN], state[1 + LEFT], state[1 + STEPS] = 0.0, 1.0, 0.0
            state[1 + PRODUCTS :] = 1.0
            begun += 1
        if state[0] > 0.0:
            state[1 + RETURN] += state[1 + LEFT] * rows.reward[i]
            state[1 + LEFT] *= rows.discount[i]
            state[1 + STEPS] += 1.0
            for t in range(targets):
                at = 1 + PRODUCTS + t
                state[at] = min(state[at] * rows.rho[i, t], LARGEST)
    return n
