"""The table of rows: the one record that leads from a log's batches to the estimators.

`tables` turns batches into tables: it follows episodes across batches (discounts, steps, returns),
knows which row is the last of its episode, and gives each row its unit. Features are added by
`with_features`, dense or as `scipy.sparse.csr_array`; all else is the same for every feature map.
A table has all rewards that are evaluated: nothing but returns depends on them (`of_reward`).
Everything that is followed along the rows is one linear recursion, `recursion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.features import FeatureMap
from steadytd.logs.log import LogBatch

Rewards = Sequence[Mapping[str, float]]  # of each, the weights of the columns it is made of
# Values are asked for: at first states, at all of them, or as rewards per step (`average`)
Where = Literal["start", "states", "average"]

ENOUGH_EPISODES = 20  # with fewer, units are stretches of rows
STRETCHES = 200
BLOCKS = 200  # of units: means over rows have their errors from these
GROUPS = 20  # of units: the equations are summed by group
FOLDS = 5  # of groups: the equations of four give the weights for the fifth
FEWEST_SPARSE, SHARE = 64, 8  # features from which on few active ones (one in 8) are stored sparse
LARGEST = 1e100  # recursions along the rows stop here: their squares must stay finite


@dataclass(frozen=True)
class Division:
    """How the rows of a log are divided into units, and units into blocks, groups and folds.

    A unit is what the log's column of units says, if it has one; else an episode, or without enough
    episodes one of 200 stretches of rows. Units are dealt out in turn, in the order of the log.
    Neighbouring stretches are alike, so groups and folds of them are consecutive.
    """

    rows: int
    stretches: bool = False
    units: int = 0  # how many the log's column of units has; 0: there is none

    @property
    def n_stretches(self) -> int:
        """How many stretches there are."""
        return max(1, min(STRETCHES, self.rows))

    def unit(self, number: Longs, episode: Longs) -> Longs:
        """The unit of rows with these numbers, in these episodes."""
        if self.stretches:
            return np.minimum(number * self.n_stretches // self.rows, self.n_stretches - 1)
        return episode

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
    `rewards`       [R, n]        `reward` is the first one
    `discount`      [n]           of the next state: 0 at termination
    `gamma`         [n]           of the row's own state: 0 at the beginning of an episode
    `discounted`    [n]           the product of the discounts before the row, in its episode
    `returns`       [R, n]        discounted, of the episode so far; `returned` is the first one
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
    `weight`        [n]           1 / probability with which the row's episode was stored
    =============== ============= ============================================================
    """

    obs: NDArray[Any]
    row_next: Ints
    rewards: Floats
    discount: Floats
    gamma: Floats
    discounted: Floats
    returns: Floats
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
    weight: Floats
    action: NDArray[Any] | None = None
    probs: Floats | None = None
    X: Any = None

    def __len__(self) -> int:
        return len(self.discount)

    @property
    def reward(self) -> Floats:
        """The first reward."""
        return np.asarray(self.rewards[0])

    @property
    def returned(self) -> Floats:
        """Its discounted return so far."""
        return np.asarray(self.returns[0])

    def of_reward(self, r: int) -> RowTable:
        """The table with one of the rewards."""
        return replace(self, rewards=self.rewards[r : r + 1], returns=self.returns[r : r + 1])

    @property
    def cut(self) -> Bools:
        """The rows after which an episode is cut off."""
        return np.asarray(self.last & (self.discount > 0.0))

    def with_features(self, features: FeatureMap, average: bool = False) -> RowTable:
        """The table with the features of a map; `average` adds that of `with_rate`."""
        if average:
            return with_rate(joined([self]), features)
        return replace(self, X=features_of(self.obs, features))

    def take(self, rows: Longs) -> RowTable:
        """The table of some rows, without features."""
        return joined([self], rows)


def joined(parts: Sequence[RowTable], rows: Longs | None = None) -> RowTable:
    """Some rows (default: all) of several tables as one, without features.

    The next states stand behind all others, one for each row.
    """
    total = sum(map(len, parts))
    mine = np.arange(total) if rows is None else rows

    def column(name: str) -> Any:
        values = [getattr(one, name) for one in parts]
        if values[0] is None:
            return None
        if name not in ("obs", "fold", "probs"):
            axis = 1 if name in ("rho", "target_prob", "rewards", "returns") else 0
            return np.concatenate(values, axis=axis).take(mine, axis=axis)
        both = list(zip(values, parts, strict=True))
        here = np.concatenate([value[: len(one)] for value, one in both])
        ahead = np.concatenate([value[one.row_next] for value, one in both])
        return np.concatenate([here[mine], ahead[mine]])

    names = [one.name for one in fields(RowTable) if one.name not in ("X", "row_next")]
    after = np.arange(len(mine), 2 * len(mine), dtype=np.int32)
    return RowTable(row_next=after, **{name: column(name) for name in names})


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


def with_rate(table: RowTable, features: FeatureMap) -> RowTable:
    """The features, and one more: 1 in every row, 0 at next states, which stand behind all rows.

    Its weight is the reward per step (`average`).
    """
    X = features_of(table.obs, features)
    here = np.repeat([1.0, 0.0], len(table))[:, None]
    if isinstance(X, np.ndarray):
        return replace(table, X=np.hstack([X, here]))
    from scipy.sparse import csr_array, hstack

    return replace(table, X=csr_array(hstack([X, csr_array(here)])))


def tables(
    batches: Iterable[LogBatch], division: Division, rewards: Rewards = ()
) -> Iterator[RowTable]:
    """The tables of consecutive batches, from the first row of an episode on; no features yet.

    `rewards` are weights of further columns; without them the log's own reward is the only one.
    """
    discount, carry = 0.0, np.zeros(2 + max(len(rewards), 1))
    for batch, after in pairwise(chain(batches, [None])):
        assert batch is not None
        last = np.append(batch.first[1:], after is None or after.first[0])
        yield _table(batch, last, division, rewards, discount, carry)
        discount = batch.discount[-1]


def _table(
    batch: LogBatch,
    last: Bools,
    division: Division,
    rewards: Rewards,
    discount: float,
    carry: Floats,
) -> RowTable:
    """One table; `discount` is that of the row before, `carry` its discounts, step and returns."""
    assert batch.behavior_prob is not None
    n, mu, first = len(batch), batch.behavior_prob, batch.first
    gamma = np.where(first, 0.0, np.append(discount, batch.discount[:-1]))
    goes_on = (~first).astype(np.float64)
    discounted = recursion(gamma, first.astype(np.float64), carry[:1])
    step = recursion(goes_on, goes_on, carry[1:2])
    earned = rewards_of(batch, rewards)
    returns = recursion(goes_on, discounted * earned, carry[2:])
    rho = np.zeros(batch.target_prob.shape)
    np.divide(batch.target_prob, mu, out=rho, where=mu > 0.0)
    unit = division.unit(batch.rows, batch.episode) if batch.unit is None else batch.unit
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
        obs=obs, row_next=row_next, rewards=earned, discount=batch.discount, gamma=gamma,
        discounted=discounted, returns=returns, step=step.astype(np.int64), first=first,
        last=last, unit=unit, group=group, fold=fold, episode=batch.episode, number=batch.rows,
        rho=rho, behavior_prob=mu, target_prob=batch.target_prob, action=batch.action, probs=probs,
        weight=np.ones(n) if batch.weight is None else batch.weight,
    )  # fmt: skip


def rewards_of(batch: LogBatch, rewards: Rewards) -> Floats:
    """All rewards of a batch [R, n]; without any weights that is the log's own."""
    found = [sum(w * batch.extra[name] for name, w in one.items()) for one in rewards]
    return np.array(found or [batch.reward])


def recursion(decay: Floats, added: Floats, carry: Floats) -> Floats:
    """y_i = decay_i y_{i-1} + added_i along the rows i, for one or for several of each [k, n].

    `carry` [k] is y of the row before, and becomes that of the last one. One `decay` may serve all.

    >>> recursion(np.array([0.0, 0.5]), np.array([1.0, 1.0]), np.zeros(1)).tolist()
    [1.0, 1.5]
    """
    out = np.empty(added.shape)
    _recursion(np.atleast_2d(decay), np.atleast_2d(added), carry, np.atleast_2d(out))
    return out


@compiled
def _recursion(decay: Floats, added: Floats, carry: Floats, out: Floats) -> None:
    for k in range(len(added)):
        by, y = decay[k if len(decay) > 1 else 0], carry[k]
        for i in range(added.shape[1]):
            y = min(max(by[i] * y + added[k, i], -LARGEST), LARGEST)
            out[k, i] = y
        carry[k] = y
