"""What the logged probabilities of actions can be held against: sums by action, bin and feature.

For a row with state s, action a_t and logged probability mu = mu(a_t|s), by block of the log:

    by action a           1{a_t = a} and 1{a_t = a} / mu

and where the whole distribution mu(.|s) is logged,

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
from steadytd.base.jit import compiled
from steadytd.base.random import PROJECTIONS, uniforms

MOST_ACTIONS = 64
BINS = 10  # of probability, equally wide
MOMENTS = 48  # numbers by action and feature, about


class ProbabilitySums(NamedTuple):
    """Sums by piece of a block, in the order of the log; `actions` [K] are sorted.

    `taken` [pieces, K, 2] has rows and sums of 1/mu. The others have no columns where the whole
    distribution is not logged: `possible` [pieces, 2 A], `bins` [pieces, 4 BINS], `moments`
    [pieces, 2 A m], variances last. `unusable` counts rows whose action cannot be counted.
    """

    actions: Floats
    taken: Floats
    possible: Floats
    bins: Floats
    moments: Floats
    unusable: int

    @staticmethod
    def merged(parts: Sequence[ProbabilitySums]) -> ProbabilitySums:
        """The sums of several parts of a log, in its order."""
        actions = np.unique(np.concatenate([p.actions for p in parts]))
        taken = []
        for p in parts:
            wide = np.zeros((len(p.taken), len(actions), 2))
            wide[:, np.searchsorted(actions, p.actions)] = p.taken
            taken.append(wide)
        return ProbabilitySums(
            actions,
            np.concatenate(taken),
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
        self.whole: list[Whole] = []

    def add(self, rows: LoggedActions, stretches: list[tuple[int, int, int]]) -> None:
        """The rows of a batch; a stretch is lo, hi and the number of its piece."""
        code = self._codes(rows)
        for lo, hi, piece in stretches:
            while len(self.taken) <= piece:
                self.taken.append(np.zeros((MOST_ACTIONS, 2)))
            if code is not None:
                count(code[lo:hi], rows.behavior[lo:hi], self.taken[piece])
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
        taken = np.array(self.taken).reshape(pieces, MOST_ACTIONS, 2)[:, order]

        def all_of(name: str) -> Floats:
            found = [getattr(w, name).ravel() for w in self.whole]
            return np.array(found) if found else np.empty((pieces, 0))

        whole = all_of("possible"), all_of("bins"), all_of("moments")
        return ProbabilitySums(known[order], taken, whole[0], whole[1], whole[2], self.unusable)


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


@compiled
def count(code: Longs, behavior: Floats, sums: Floats) -> None:
    """Count rows and 1/mu by action."""
    for i in range(len(code)):
        sums[code[i], 0] += 1.0
        if behavior[i] > 0.0:
            sums[code[i], 1] += 1.0 / behavior[i]
