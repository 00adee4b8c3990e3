"""Sums that are 0 in the mean if the logged probabilities are right, in standard deviations.

    ratio     sum (rho - 1) = 0
    action    sum (1{a_t = a} / mu(a_t|s_t) - 1) f(s_t) <= 0 for every action a and every f >= 0;
              = 0 where the behaviour takes a everywhere. Needs the logged action's probability only
    residual  sum (1{a_t = a} - mu(a|s_t)) f(s_t) = 0; needs the whole distribution

f is 1, and every feature moved to the range from 0 to 1. Two stated distributions that differ
somewhere have an action that is stated too small there, so the one-sided check sees every error
that the features can see, and never takes an action that is forbidden in some states for an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.worlds.drl import Floats, Rows
from benchmarks.worlds.rows import Stated
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from scipy.stats import norm

LEVEL = 0.001  # of false alarms, of each check as a whole


def scores(rows: Rows, stated: Stated, unit: NDArray[np.int64]) -> dict[str, Floats]:
    """All z of every check."""
    n = len(unit)
    gather: Any = csr_matrix((np.ones(n), (unit, np.arange(n))))
    f = _between_0_and_1(rows.x)
    y = gather @ (rows.rho - 1.0)
    found = {
        "ratio": np.array([y.sum() / np.sqrt(max((y**2).sum(), 1e-300))]) if y.any() else y[:1]
    }
    number = _sums(gather, f, np.ones(n))
    action, residual = [], []
    for a in range(stated.action.max() + 1):
        taken = stated.action == a
        action.append(_one_sided(_sums(gather, f, taken / stated.mu), number))
        if stated.whole is not None:
            mu = stated.whole[:, a]
            square = _sums(gather, _squared(f), mu * (1.0 - mu)).sum(axis=0)
            residual.append(_two_sided(_sums(gather, f, taken - mu), square))
    found["action"] = np.concatenate(action)
    if residual:
        found["residual"] = np.concatenate(residual)
    return found


def alarms(z: dict[str, Floats]) -> list[str]:
    """The checks that fail: each is wrong in one case of a thousand, Bonferroni's way."""
    failed = []
    for name, values in z.items():
        sides = 1 if name == "action" else 2
        largest = values.max() if sides == 1 else np.abs(values).max()
        if largest > norm.isf(LEVEL / sides / len(values)):
            failed.append(name)
    return failed


def _one_sided(weighted: Floats, number: Floats) -> Floats:
    """(S - n) / sqrt(sum of squares over units), S = sum 1{a} f / mu, n = sum f."""
    y = weighted - number
    square = (y**2).sum(axis=0)
    with np.errstate(all="ignore"):
        z = y.sum(axis=0) / np.sqrt(square)
    return np.asarray(np.where(square > 0.0, z, 0.0))


def _two_sided(y: Floats, square: Floats) -> Floats:
    """With the larger of the stated variance and that seen over units."""
    seen = np.maximum((y**2).sum(axis=0), square)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(seen > 1e-12, y.sum(axis=0) / np.sqrt(seen), 0.0))


def _between_0_and_1(x: Any) -> Any:
    """1, and the features, moved; constant ones are left out."""
    one = np.ones((x.shape[0], 1))
    if hasattr(x, "tocsr"):  # one-hot: there already
        both: Any = [csr_matrix(one), x]
        return hstack(both).tocsr()
    low, high = x.min(axis=0), x.max(axis=0)
    moves = high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high))
    return np.hstack([one, (x[:, moves] - low[moves]) / (high - low)[moves]])


def _squared(f: Any) -> Any:
    return f.multiply(f).tocsr() if hasattr(f, "tocsr") else f * f


def _sums(gather: Any, f: Any, y: Floats) -> Floats:
    """Per unit, sum y f [k, m]."""
    weighted = f.multiply(y[:, None]).tocsr() if hasattr(f, "tocsr") else f * y[:, None]
    found = gather @ weighted
    return np.asarray(found.todense() if hasattr(found, "tocsr") else found)
