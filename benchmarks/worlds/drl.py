"""DRL(lam) in plain NumPy, row by row: slow, short, and what the product is compared with.

Cross-fitted: rows of fold k use w and beta of the other folds, where

    A = sum rho x (x - gamma' x')',  b = sum rho r x,  A w = b,  A' beta = sum of x at the starts,
    V(s) = x(s).w,  omega(s) = x(s).beta

and along an episode

    U_0 = (1 - lam) omega(s_0) + lam,   U_t = (1 - lam) omega(s_t) + lam gamma_t rho_{t-1} U_{t-1}
    score = V(s_0) + sum_t U_t rho_t (r_t + gamma_{t+1} V(s_{t+1}) - V(s_t)).

Endless: every row is a start, U_t = (1 - lam) omega(s_t) + lam (gamma_t rho_{t-1} U_{t-1} + 1).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]
LAMS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
FOLDS, UNITS, RANK = 5, 200, 1e-10
ALIKE, FREQUENT, SIZES, SEEN, TINY = 1.25, 0.05, 2, 10, 1e-6  # of sizes of rewards
FEW_THERE = 30  # rows of the same action in the same place


class Rows(NamedTuple):
    """A log as arrays, in the order of episodes and time."""

    x: Any  # [n, d], sparse or dense
    x_next: Any  # [n, d], 0 where the episode ends
    reward: Floats
    rho: Floats
    discount: Floats  # of the step to the next state, 0 where the episode ends
    first: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    endless: bool
    action: NDArray[Any] | None = None


class Units(NamedTuple):
    """Sums over units of rows: scores and weights for every lam [k, L], and number of starts."""

    score: Floats
    weight: Floats
    cut: Floats  # the weight with which episodes are cut off
    beyond: Floats  # of the score: values of states at which episodes are cut off
    tries: Floats  # the weights U rho of rows
    tries_squared: Floats
    more: Floats  # by how much they exceed the behaviour's own
    more_squared: Floats
    starts: Floats


class Fitted(NamedTuple):
    """Cross-fitted numbers of each row."""

    v: Floats
    v_next: Floats
    omega: Floats


def independent(G: Floats) -> NDArray[np.int64]:
    """The numbers of a largest set of linearly independent features."""
    scale = np.sqrt(np.diag(G))
    shown = np.flatnonzero(scale > 0.0)
    inner = G[np.ix_(shown, shown)] / np.outer(scale[shown], scale[shown])
    _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
    return np.sort(shown[order[:rank] - 1])


def _solve(A: Floats, b: Floats) -> Floats:
    """A^-1 b; by least squares where A is singular as far as can be told."""
    with np.errstate(all="ignore"):
        try:
            found = np.linalg.solve(A, b)
            error, size = np.linalg.norm(A @ found - b), np.linalg.norm(b)
            if np.isfinite(found).all() and error <= 1e-6 * size:
                return np.asarray(found, dtype=np.float64)
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(A, b, rcond=RANK)[0], dtype=np.float64)


def _dense(product: Any) -> Floats:
    return np.asarray(product.todense() if hasattr(product, "todense") else product)


def _times(x: Any, weight: Floats) -> Any:
    return x.multiply(weight[:, None]).tocsr() if hasattr(x, "multiply") else x * weight[:, None]


class Solution(NamedTuple):
    """w and beta of some folds."""

    w: Floats
    beta: Floats


def solved(rows: Rows, fold: NDArray[np.int64]) -> list[Solution]:
    """Those of all folds but one, for each of them, and last those of all."""
    start = rows.first | rows.endless
    sums = []
    for k in range(FOLDS):
        own = np.flatnonzero(fold == k)
        x = rows.x[own]
        weighted = _times(x, rows.rho[own])
        ahead = x - _times(rows.x_next[own], rows.discount[own])
        b = np.asarray(weighted.T @ rows.reward[own]).ravel()
        x0 = np.asarray(x.T @ start[own].astype(float)).ravel()
        sums.append((_dense(weighted.T @ ahead), b, x0, _dense(x.T @ x)))
    total = [np.sum([s[i] for s in sums], axis=0) for i in range(4)]
    found = []
    for left_out in (*sums, [0.0] * 4):
        A, b, x0, G = (t - s for t, s in zip(total, left_out, strict=True))
        kept = independent(G)
        inner = A[np.ix_(kept, kept)]
        w, beta = np.zeros(len(b)), np.zeros(len(b))
        w[kept], beta[kept] = _solve(inner, b[kept]), _solve(inner.T, x0[kept])
        found.append(Solution(w, beta))
    return found


def fit(rows: Rows, fold: NDArray[np.int64]) -> Fitted:
    """V, V at the next state and omega of every row, from the other folds."""
    n = len(rows.reward)
    found = Fitted(np.zeros(n), np.zeros(n), np.zeros(n))
    for k, (w, beta) in enumerate(solved(rows, fold)[:-1]):
        own = np.flatnonzero(fold == k)
        found.v[own] = rows.x[own] @ w
        found.v_next[own] = rows.x_next[own] @ w
        found.omega[own] = rows.x[own] @ beta
    return found


class Visits(NamedTuple):
    """omega of the log's rows, with beta of the whole log, and its standard error."""

    omega: Floats
    error: Floats

    @property
    def negative(self) -> float:
        """The share of omega that is negative by more than two standard errors."""
        beyond = np.maximum(-self.omega - 2.0 * self.error, 0.0)
        return float(beyond.sum() / max(np.abs(self.omega).sum(), 1e-300))


def visits(rows: Rows, fold: NDArray[np.int64]) -> Visits:
    """The ratio of visits; its error is the jackknife's over folds."""
    *parts, whole = solved(rows, fold)
    apart = [np.asarray(rows.x @ one.beta) for one in parts]
    error = np.sqrt((FOLDS - 1) / FOLDS * ((apart - np.mean(apart, axis=0)) ** 2).sum(axis=0))
    return Visits(np.asarray(rows.x @ whole.beta), error)


def furthest(rows: Rows) -> float:
    """Of all distances of returns from their median, the share of the largest twentieth."""
    if rows.endless:
        return 0.0
    episode = np.cumsum(rows.first) - 1
    discount = np.where(rows.first, 1.0, np.append(1.0, rows.discount[:-1]))
    place = np.flatnonzero(rows.first)
    left = np.concatenate([np.cumprod(part) for part in np.split(discount, place[1:])])
    returns = np.bincount(episode, left * rows.reward)
    apart = np.sort(np.abs(returns - np.median(returns)))[::-1]
    return float(apart[: max(len(apart) // 20, 1)].sum() / max(apart.sum(), 1e-300))


def row_weights(rows: Rows, omega: Floats, lams: tuple[float, ...] = LAMS) -> Floats:
    """U rho of every row [n, lams]."""
    nothing = np.zeros(len(rows.reward))
    return np.asarray(row_scores(rows, Fitted(nothing, nothing, omega), lams)[4])


def scarce(rows: Rows, omega: Floats, lams: tuple[float, ...] = LAMS) -> Floats:
    """By lam: the part of all weights beyond the log where FEW_THERE rows or more are not the same.

    The same are rows of equal features and ratio. 0 where the policy that made the log has as large
    a part of its own there: then nothing comes often in it.
    """
    keys = _keys(rows)
    number = Counter(keys)
    few = np.array([number[key] < FEW_THERE for key in keys])
    weight = row_weights(rows, omega, lams)
    own = row_weights(rows._replace(rho=np.ones(len(keys))), omega, (1.0,))
    more = np.maximum(weight - own, 0.0)
    part = more[few].sum(axis=0) / np.maximum(np.abs(weight).sum(axis=0), 1e-300)
    return np.asarray(np.where(part > own[few].sum() / own.sum(), part, 0.0))


def _keys(rows: Rows) -> list[bytes]:
    """Features and ratio of every row."""
    x = rows.x.toarray() if hasattr(rows.x, "toarray") else rows.x
    return [(x[t] + 0.0).tobytes() + np.float64(rows.rho[t]).tobytes() for t in range(len(x))]


def by_chance(rows: Rows) -> float:
    """Of the variance of rewards, the part within rows of equal features, ratio and action."""
    apart = rows.reward - rows.reward.mean()
    if rows.action is None or not apart.any():
        return 0.0
    keys = list(zip(_keys(rows), rows.action.tolist(), strict=True))
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    of = np.array([place[key] for key in keys])
    usual = np.bincount(of, apart) / np.bincount(of)
    return float(((apart - usual[of]) ** 2).sum() / (apart**2).sum())


def rising(rows: Rows, omega: Floats, lams: tuple[float, ...] = LAMS) -> Floats:
    """By lam: how fast the weights of rows grow with the size of their rewards, where that is rare.

    Sizes are distances from the median reward, on either side; sizes of which each is less than
    ALIKE times the next are one. Rare are the largest, down to one that FREQUENT of all rows have.
    The growth of the mean weight with log size is in parts of it. It is 0 where there are fewer
    than SIZES sizes, or SEEN rows have the largest.
    """
    n = len(rows.reward)
    weight = np.abs(row_weights(rows, omega, lams))
    apart = rows.reward - np.median(rows.reward)
    least = TINY * np.abs(apart).max()
    found = np.zeros(len(lams))
    for size in (apart, -apart):
        order = [i for i in np.argsort(-size, kind="stable") if size[i] > least]
        sizes: list[list[int]] = []
        for i in order:
            if not sizes or size[i] * ALIKE <= size[sizes[-1][-1]]:
                sizes.append([])
            sizes[-1].append(int(i))
        common = [len(one) > FREQUENT * n for one in sizes]
        rare = sizes[: common.index(True)] if True in common else sizes
        if len(rare) >= SIZES and len(rare[0]) < SEEN:
            at = np.concatenate(rare)
            x = np.log(size[at]) - np.log(size[at]).mean()
            growth = x @ weight[at] / (x @ x) / np.maximum(weight[at].mean(axis=0), 1e-300)
            found = np.maximum(found, growth)
    return found


@numba.njit(cache=True)
def _follow(rows: Any, fitted: Any, endless: float, lam: float) -> Any:
    """What `Units` sums, of every row."""
    rho, discount, reward, first, cut = rows
    v, v_next, omega = fitted
    n = len(rho)
    out = np.zeros((8, n))
    U = own = 0.0
    for t in range(n):
        if first[t]:
            U, own = (1.0 - lam) * omega[t] + lam, 1.0
        else:
            U = (1.0 - lam) * omega[t] + lam * (discount[t - 1] * rho[t - 1] * U + endless)
            own = discount[t - 1] * own + endless
        delta = reward[t] + discount[t] * v_next[t] - v[t]
        out[0, t] = U * rho[t] * delta
        if first[t] or endless:
            out[0, t] += v[t]
        out[1, t] = U * rho[t] * (1.0 - discount[t])
        if cut[t]:
            out[2, t] = U * rho[t] * discount[t]
            out[3, t] = out[2, t] * v_next[t]
        more = max(U * rho[t] - own, 0.0)
        out[4, t], out[5, t], out[6, t], out[7, t] = U * rho[t], (U * rho[t]) ** 2, more, more**2
    return out


def row_scores(rows: Rows, fitted: Fitted, lams: tuple[float, ...] = LAMS) -> Floats:
    """What `Units` sums, in its order [8, n, lams]."""
    own = rows.rho, rows.discount, rows.reward, rows.first, rows.cut
    return np.stack([_follow(own, fitted, float(rows.endless), lam) for lam in lams], axis=2)


def unit_of(rows: Rows, units: int = UNITS) -> NDArray[np.int64]:
    """The unit of every row: blocks of whole episodes that begin in the same stretch of rows."""
    n = len(rows.reward)
    place = np.arange(n)
    if not rows.endless:
        place = np.maximum.accumulate(np.where(rows.first, place, 0))
    return np.unique(place * min(units, n) // n, return_inverse=True)[1]


def fold_of(rows: Rows, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fold of every row."""
    return unit * FOLDS // (unit[-1] + 1) if rows.endless else unit % FOLDS


def in_units(values: Floats, unit: NDArray[np.int64]) -> Floats:
    """Sums over the rows of each unit [k, ...]."""
    order = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    return np.asarray(np.add.reduceat(values, order, axis=0))


def estimate(rows: Rows, lams: tuple[float, ...] = LAMS) -> tuple[Units, Units]:
    """Units of the target's scores, and of the behaviour's own."""
    unit = unit_of(rows)
    fold = fold_of(rows, unit)
    own = rows._replace(rho=np.ones(len(rows.rho)))
    pair = [row_scores(r, fit(r, fold), lams) for r in (rows, own)]
    starts = (rows.first | rows.endless).astype(float)
    target, behavior = (Units(*(in_units(x, unit) for x in (*s, starts))) for s in pair)
    return target, behavior


def paired(x: Floats) -> Floats:
    """Neighbouring units joined: stretches of twice the length."""
    if len(x) % 2:
        x = np.concatenate([x[:-2], x[-2:-1] + x[-1:]])
    return np.asarray(x[::2] + x[1::2])


def sparse_if(x: Floats) -> Any:
    """Sparse where fewer than a tenth of the numbers are not 0."""
    return csr_matrix(x) if x.shape[1] > 10 and np.count_nonzero(x) < 0.1 * x.size else x
