"""The table of rows: the one record that leads from a log's batches to the estimators.

`tables` turns batches into tables: it follows episodes across batches (discounts, steps, returns),
knows which row is the last of its episode, and gives each row its unit. Features are added by
`with_features`, dense or as `scipy.sparse.csr_array`; all else is the same for every feature map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.features import FeatureMap
from steadytd.logs.log import LogBatch

Where = Literal["start", "states"]  # values are asked for: at first states, or at all of them

ENOUGH_EPISODES = 20  # with fewer, units are stretches of rows
STRETCHES = 200
BLOCKS = 200  # of units: means over rows have their errors from these
GROUPS = 20  # of units: the equations are summed by group
FOLDS = 5  # of groups: the equations of four give the weights for the fifth
FEWEST_SPARSE, SHARE = 64, 8  # features from which on few active ones (one in 8) are kept sparse


@dataclass(frozen=True)
class Division:
    """How the rows of a log are divided into units, and units into blocks, groups and folds.

    A unit is an episode; without enough episodes, one of 200 stretches of rows. Episodes are dealt
    out in turn. Neighbouring stretches are alike, so groups and folds of them are consecutive.
    """

    rows: int
    stretches: bool = False

    @property
    def n_stretches(self) -> int:
        """How many stretches there are."""
        return max(1, min(STRETCHES, self.rows))

    def units(self, batch: LogBatch) -> Longs:
        """The unit of every row."""
        if self.stretches:
            return np.minimum(batch.rows * self.n_stretches // self.rows, self.n_stretches - 1)
        return batch.episode

    def block(self, unit: Longs) -> Longs:
        """The block of units."""
        return unit if self.stretches else unit % BLOCKS

    def group(self, unit: Longs) -> Longs:
        """The group of units."""
        return unit * GROUPS // self.n_stretches if self.stretches else unit % GROUPS

    def fold(self, group: Longs) -> Longs:
        """The fold of groups."""
        return group * FOLDS // GROUPS if self.stretches else group % FOLDS


@dataclass(frozen=True)
class RowTable:
    """Consecutive rows of a log with n transitions of T targets.

    =============== ============= ============================================================
    `obs`           [m, k]        observations: rows 0..n-1 are those of the transitions
    `X`             [m, d]        their features, dense or a `csr_array`; None before they are made
    `row_next`      [n]           where the next state stands in `obs` and `X`
    `reward`        [n]
    `discount`      [n]           of the next state: 0 at termination
    `gamma`         [n]           of the row's own state: 0 at the beginning of an episode
    `discounted`    [n]           the product of the discounts before the row, in its episode
    `returned`      [n]           the discounted return of the episode so far, this row included
    `step`          [n]           the row's place in its episode
    `first`, `last` [n]           the row begins, ends an episode
    `unit`, `group` [n]           numbers of the row's unit and of its group
    `fold`          [m]           of every observation: that of the row which it belongs to
    `episode`       [n]           running number of the episode in the log
    `number`        [n]           number of the row in the log
    `rho`           [T, n]        ratios pi/mu; 0 where mu = 0
    `behavior_prob` [n]           mu of the logged action
    `target_prob`   [T, n]        pi of the logged action
    `action`        [n], [n, k]   as logged; None if the log has no numeric actions
    `probs`         [m, p, a]     probabilities of all actions, as in `LogBatch`
    =============== ============= ============================================================
    """

    obs: NDArray[Any]
    row_next: Ints
    reward: Floats
    discount: Floats
    gamma: Floats
    discounted: Floats
    returned: Floats
    step: Longs
    first: Bools
    last: Bools
    unit: Longs
    group: Longs
    fold: Longs
    episode: Longs
    number: Longs
    rho: Floats
    behavior_prob: Floats
    target_prob: Floats
    action: NDArray[Any] | None = None
    probs: Floats | None = None
    X: Any = None

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def cut(self) -> Bools:
        """The rows after which an episode is cut off."""
        return np.asarray(self.last & (self.discount > 0.0))

    def with_features(self, features: FeatureMap) -> RowTable:
        """The table with the features of a map."""
        return replace(self, X=features_of(self.obs, features))

    def take(self, rows: Longs) -> RowTable:
        """The table of some rows, with their next states behind them."""
        both = np.concatenate([rows, self.row_next[rows]])
        found: dict[str, Any] = {name: getattr(self, name)[rows] for name in BY_ROW}
        found |= {name: getattr(self, name)[both] for name in ("obs", "fold")}
        found |= {name: getattr(self, name)[:, rows] for name in ("rho", "target_prob")}
        for name, where in (("action", rows), ("probs", both)):
            own = getattr(self, name)
            found[name] = None if own is None else own[where]
        ahead = np.arange(len(rows), len(both), dtype=np.int32)
        return RowTable(row_next=ahead, **found)


BY_ROW = (
    "reward", "discount", "gamma", "discounted", "returned", "step", "first", "last", "unit",
    "group", "episode", "number", "behavior_prob",
)  # fmt: skip


def joined(parts: Sequence[RowTable]) -> RowTable:
    """The rows of several tables as one, without features; next states stand behind all others."""

    def both(name: str) -> Any:
        own = [getattr(one, name)[: len(one)] for one in parts]
        ahead = [getattr(one, name)[one.row_next] for one in parts]
        return np.concatenate([*own, *ahead])

    found: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in parts]) for name in BY_ROW
    }
    n = len(found["reward"])
    for name in ("rho", "target_prob"):
        found[name] = np.concatenate([getattr(one, name) for one in parts], axis=1)
    if all(one.action is not None for one in parts):
        found["action"] = np.concatenate([one.action for one in parts if one.action is not None])
    if all(one.probs is not None for one in parts):
        found["probs"] = both("probs")
    return RowTable(
        obs=both("obs"),
        fold=both("fold"),
        row_next=np.arange(n, 2 * n, dtype=np.int32),
        **found,
    )


def is_sparse(features: FeatureMap) -> bool:
    """Whether rows of these features are kept as their few active ones."""
    enough = features.n_features >= FEWEST_SPARSE
    return enough and features.most_active * SHARE <= features.n_features


def features_of(obs: NDArray[Any], features: FeatureMap) -> Any:
    """The features of checked observations: an array, or a `csr_array` where few are active."""
    if not is_sparse(features):
        X = np.empty((len(obs), features.n_features))
        features.fill(obs, X)
        return X
    from scipy.sparse import csr_array

    rows = features.rows(obs)
    ends = np.append(rows.first, len(rows.value))
    return csr_array((rows.value, rows.feature, ends), shape=(len(obs), features.n_features))


def tables(batches: Iterable[LogBatch], division: Division) -> Iterator[RowTable]:
    """The tables of consecutive batches, from the first row of an episode on; no features yet."""
    state = np.zeros(4)
    for batch, last in _with_last_rows(batches):
        yield _table(batch, last, division, state)


def _with_last_rows(batches: Iterable[LogBatch]) -> Iterator[tuple[LogBatch, Bools]]:
    """Every batch, and which of its rows end an episode: the next batch tells of the last one."""
    held: LogBatch | None = None
    for batch in batches:
        if held is not None:
            yield held, np.append(held.first[1:], batch.first[0])
        held = batch
    if held is not None:
        yield held, np.append(held.first[1:], True)


def _table(batch: LogBatch, last: Bools, division: Division, state: Floats) -> RowTable:
    assert batch.behavior_prob is not None
    n, mu = len(batch), batch.behavior_prob
    along = np.empty((3, n))
    step = np.empty(n, dtype=np.int64)
    follow(batch.first, batch.discount, batch.reward, state, along, step)
    rho = np.empty(batch.target_prob.shape)
    if mu.min() > 0.0:
        np.divide(batch.target_prob, mu, out=rho)
    else:
        rho[:] = 0.0
        np.divide(batch.target_prob, mu, out=rho, where=mu > 0.0)
    unit = division.units(batch)
    group = division.group(unit)
    fold = np.empty(len(batch.obs), dtype=np.int64)
    fold[:n] = division.fold(group)
    obs, row_next, probs = batch.obs, batch.row_next, batch.probs
    fold[row_next[row_next >= n]] = fold[:n][row_next >= n]
    if division.stretches:  # a next state has the weights of its row's fold
        other = np.flatnonzero(fold[row_next] != fold[:n])
        places = row_next[other]
        row_next = row_next.copy()
        row_next[other] = len(obs) + np.arange(len(other))
        obs, fold = np.concatenate([obs, obs[places]]), np.concatenate([fold, fold[other]])
        probs = None if probs is None else np.concatenate([probs, probs[places]])
    return RowTable(
        obs=obs, row_next=row_next, reward=batch.reward, discount=batch.discount,
        gamma=along[0], discounted=along[1], returned=along[2], step=step, first=batch.first,
        last=last, unit=unit, group=group, fold=fold, episode=batch.episode, number=batch.rows,
        rho=rho, behavior_prob=mu, target_prob=batch.target_prob, action=batch.action, probs=probs,
    )  # fmt: skip


@compiled
def follow(
    first: Bools, discount: Floats, reward: Floats, state: Floats, along: Floats, step: Longs
) -> None:
    """Gamma, product of discounts and return of every row, and its step.

    `state` holds the discount of the last row, the product behind it, its return and step + 1.
    """
    before, product, returned, steps = state[0], state[1], state[2], int(state[3])
    for i in range(len(first)):
        if first[i]:
            before, product, returned, steps = 0.0, 1.0, 0.0, 0
        returned += product * reward[i]
        along[0, i], along[1, i], along[2, i], step[i] = before, product, returned, steps
        before = discount[i]
        product *= discount[i]
        steps += 1
    state[0], state[1], state[2], state[3] = before, product, returned, steps
