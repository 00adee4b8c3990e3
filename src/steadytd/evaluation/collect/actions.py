"""What the logged probabilities of actions can be held against: sums by action, bin and feature.

For a row with state s, action a_t and logged probability mu = mu(a_t|s), by block of the log:

    by action a           1{a_t = a} and 1{a_t = a} / mu
    by action and f       1{a_t = a} f(s) / mu, beside f(s), for every feature f

(sums of neighbouring features where there are many), or where the whole distribution mu(.|s) is
logged instead of the last,

    by action a           1{mu(a|s) > 0}
    by bin of mu(a|s)     number of pairs of row and action, mu(a|s), 1{a_t = a}
    by action and feature (1{a_t = a} - mu(a|s)) x(s), of random projections where x has many

each with its variance if mu is right: 1/mu(a|s) - 1, mu(a|s) (1 - mu(a|s)), the same times x(s)^2.
Actions are numbers; a log with lists, with texts or with more than `MOST_ACTIONS` different numbers
(continuous actions) has no such sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs
from steadytd.base.jit import compiled, compiled_disjoint
from steadytd.base.random import PROJECTIONS, uniforms
from steadytd.evaluation.collect.vectors import LANES, add_product, eight, least, most, put, spread

MOST_ACTIONS = 64
BINS = 10  # of probability, equally wide
TOGETHER = 128  # rows that stay in the cache while all their functions are added up
MOMENTS = 48  # numbers by action and feature, about
MOST_FUNCTIONS = 32  # of the state: more features are added up in groups


class ProbabilitySums(NamedTuple):
    """Sums by piece of a block, in the order of the log; `actions` [K] are sorted.

    `taken` [pieces, K, 2] has rows and sums of 1/mu, `leaning` [pieces, K, m] sums of f/mu, `plain`
    [pieces, m] of f, and `span` [2, m] the least and the largest f. The others have no columns
    where the whole distribution is not logged: `possible` [pieces, 2 A], `bins` [pieces, 4 BINS],
    `moments` [pieces, 2 A m], variances last. `unusable` counts rows whose action cannot be
    counted.
    """

    actions: Floats
    taken: Floats
    leaning: Floats
    plain: Floats
    span: Floats
    possible: Floats
    bins: Floats
    moments: Floats
    unusable: int

    @staticmethod
    def merged(parts: Sequence[ProbabilitySums]) -> ProbabilitySums:
        """The sums of several parts of a log, in its order."""
        actions = np.unique(np.concatenate([p.actions for p in parts]))

        def wide(name: str) -> Floats:
            found = []
            for p in parts:
                own = getattr(p, name)
                found.append(np.zeros((len(own), len(actions), own.shape[2])))
                found[-1][:, np.searchsorted(actions, p.actions)] = own
            return np.concatenate(found)

        spans = np.stack([p.span for p in parts])
        return ProbabilitySums(
            actions,
            wide("taken"),
            wide("leaning"),
            np.concatenate([p.plain for p in parts]),
            np.stack([spans[:, 0].min(axis=0), spans[:, 1].max(axis=0)]),
            np.concatenate([p.possible for p in parts]),
            np.concatenate([p.bins for p in parts]),
            np.concatenate([p.moments for p in parts]),
            sum(p.unusable for p in parts),
        )


class Actions:
    """Adds up the sums, stretch by stretch of rows."""

    def __init__(self) -> None:
        self.known = np.empty(0)  # actions, as they were met
        self.unusable = 0
        self.taken: list[Floats] = []
        self.leaning: list[Floats] = []
        self.plain: list[Floats] = []
        self.span = np.empty((2, 0))
        self.whole: list[Whole] = []

    def add(self, rows: LoggedActions, stretches: list[tuple[int, int, int]]) -> None:
        """The rows of a batch; a stretch is lo, hi and the number of its piece."""
        code, F = self._codes(rows), functions(rows.X)
        m = F.shape[1]
        if not self.taken:
            self.span = np.stack([np.full(m, np.inf), np.full(m, -np.inf)])
        for lo, hi, piece in stretches:
            while len(self.taken) <= piece:
                self.taken.append(np.zeros((MOST_ACTIONS, 2)))
                self.leaning.append(np.zeros((MOST_ACTIONS, m)))
                self.plain.append(np.zeros(m))
            if code is not None:
                mu = rows.behavior[lo:hi]
                count(code[lo:hi], mu, self.taken[piece])
                if rows.whole is None:
                    sums = self.leaning[piece], self.plain[piece], self.span
                    lean(code[lo:hi], mu, F[lo:hi], *sums)
            if rows.whole is not None:
                while len(self.whole) <= piece:
                    self.whole.append(Whole.nothing(rows.whole.shape[1], rows.X.shape[1]))
                self.whole[piece].add(rows, lo, hi)

    def _codes(self, rows: LoggedActions) -> Longs | None:
        """The place of every action among the known ones; None where they cannot be counted."""
        action = rows.action
        usable = action is not None and action.ndim == 1 and len(self.known) <= MOST_ACTIONS
        if action is None or not usable:
            self.unusable += len(rows.behavior)
            return None
        numbers = action.astype(np.float64, copy=False)
        code = np.empty(len(numbers), dtype=np.int64)
        at = 0
        while (at := place(numbers, self.known, at, code)) < len(numbers):
            if len(self.known) == MOST_ACTIONS:
                self.known = np.full(MOST_ACTIONS + 1, np.nan)
                self.unusable += len(numbers)
                return None
            self.known = np.append(self.known, numbers[at])
        return code

    def sums(self) -> ProbabilitySums:
        """All sums, of sorted actions; none of actions if there are too many."""
        known = self.known if len(self.known) <= MOST_ACTIONS else self.known[:0]
        order = np.argsort(known)
        pieces = len(self.taken)
        m = self.span.shape[1]
        taken = np.array(self.taken).reshape(pieces, MOST_ACTIONS, 2).take(order, axis=1)
        leaning = np.array(self.leaning).reshape(pieces, MOST_ACTIONS, m).take(order, axis=1)
        plain = np.array(self.plain).reshape(pieces, m)

        def all_of(name: str) -> Floats:
            found = [getattr(w, name).ravel() for w in self.whole]
            return np.array(found) if found else np.empty((pieces, 0))

        whole = all_of("possible"), all_of("bins"), all_of("moments")
        return ProbabilitySums(
            known[order], taken, leaning, plain, self.span, whole[0], whole[1], whole[2],
            self.unusable,
        )  # fmt: skip


def functions(X: Floats) -> Floats:
    """The functions of the state that actions are held against: features, or sums of neighbours."""
    d = X.shape[1]
    if d <= MOST_FUNCTIONS:
        return X
    first = np.arange(MOST_FUNCTIONS) * d // MOST_FUNCTIONS
    return np.asarray(np.add.reduceat(X, first, axis=1))


class LoggedActions(NamedTuple):
    """The rows of a batch: logged actions and probabilities, and the features."""

    action: NDArray[Any] | None
    behavior: Floats
    whole: Floats | None  # [n, A]: the probability of every action 0 .. A - 1
    X: Floats


class Whole:
    """The sums of one piece where the whole distribution is logged."""

    def __init__(self, actions: int, projected: int, project: Floats | None) -> None:
        self.possible = np.zeros((2, actions))
        self.bins = np.zeros((4, BINS))
        self.moments = np.zeros((2, actions, projected))
        self.project = project

    @staticmethod
    def nothing(actions: int, features: int) -> Whole:
        """All sums 0; too many features are mixed with random signs."""
        few = max(1, MOMENTS // actions)
        if features <= few:
            return Whole(actions, features, None)
        signs = np.sign(uniforms(0, PROJECTIONS, features * few) - 0.5)
        return Whole(actions, few, signs.reshape(features, few))

    def add(self, rows: LoggedActions, lo: int, hi: int) -> None:
        """The rows lo .. hi."""
        assert rows.whole is not None and rows.action is not None
        mu = rows.whole[lo:hi]
        happened = rows.action[lo:hi, None] == np.arange(mu.shape[1])
        some, spread = mu > 0.0, mu * (1.0 - mu)
        self.possible[0] += some.sum(axis=0)
        self.possible[1] += np.divide(1.0 - mu, mu, out=np.zeros_like(mu), where=some).sum(axis=0)
        number = np.minimum((mu * BINS).astype(np.int64), BINS - 1).ravel()
        for i, of in enumerate((None, mu, happened, spread)):
            weights = None if of is None else of.ravel().astype(np.float64)
            self.bins[i] += np.bincount(number, weights, minlength=BINS)
        X = rows.X[lo:hi] if self.project is None else rows.X[lo:hi] @ self.project
        self.moments += (happened - mu).T @ X, spread.T @ X**2


@compiled
def place(action: Floats, known: Floats, at: int, code: Longs) -> int:
    """Find the place of every action from row `at` on; returns the first row that has none."""
    last = 0
    for i in range(at, len(action)):
        if last >= len(known) or known[last] != action[i]:
            last = 0
            while last < len(known) and known[last] != action[i]:
                last += 1
            if last == len(known):
                return i
        code[i] = last
    return len(action)


@compiled_disjoint
def lean(
    code: Longs, behavior: Floats, F: Floats, leaning: Floats, plain: Floats, span: Floats
) -> None:
    """Add f/mu by action, and f; widen the range of every f. Eight functions at a time."""
    m, f, by_action, ends = F.shape[1], F.reshape(-1), leaning.reshape(-1), span.reshape(-1)
    full, by = m - m % LANES, np.empty(TOGETHER)
    for begin in range(0, len(code), TOGETHER):
        n = min(TOGETHER, len(code) - begin)
        for i in range(n):
            mu = behavior[begin + i]
            by[i] = 1.0 / mu if mu > 0.0 else 0.0
        for k in range(0, full, LANES):
            total, low, high = eight(plain, k), eight(ends, k), eight(ends, m + k)
            for i in range(n):
                one, at = eight(f, (begin + i) * m + k), code[begin + i] * m + k
                total, low, high = total + one, least(one, low), most(one, high)
                put(by_action, at, add_product(eight(by_action, at), spread(by[i]), one))
            put(plain, k, total), put(ends, k, low), put(ends, m + k, high)
        for k in range(full, m):
            for i in range(n):
                number = f[(begin + i) * m + k]
                by_action[code[begin + i] * m + k] += by[i] * number
                plain[k] += number
                ends[k], ends[m + k] = min(ends[k], number), max(ends[m + k], number)


@compiled
def count(code: Longs, behavior: Floats, sums: Floats) -> None:
    """Count rows and 1/mu by action."""
    for i in range(len(code)):
        sums[code[i], 0] += 1.0
        if behavior[i] > 0.0:
            sums[code[i], 1] += 1.0 / behavior[i]
