"""The equations of action values, where a target's probabilities of all actions are known.

With q(s, a) = x(s).theta_a and x_a the features in the place of action a, zeros elsewhere,

    A = sum x_a (x_a - gamma' sum_a' pi(a'|s') x'_a')',   b = sum r x_a  (for every reward r)

over the rows whose next probabilities are known, by group of units as in `sums`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.evaluation.rows import GROUPS, RowTable, Where
from steadytd.evaluation.scores import known
from steadytd.evaluation.sums import independent


class ActionSolution(NamedTuple):
    """Theta of A theta = b and beta of A' beta = phi, each [actions, d]."""

    theta: Floats
    beta: Floats


class Support(NamedTuple):
    """What the log shows of a target's actions."""

    rows: int  # that the sums hold,
    left_out: int  # and that they do not, since the next probabilities are not known
    unseen: tuple[int, ...]  # actions that the target takes and that no row shows
    share: float  # their probability under the target, the mean over all rows


class ActionEquations:
    """The sums of the targets known as a whole; `places` are their numbers among all targets."""

    def __init__(
        self,
        places: Sequence[int],
        actions: int,
        features: int,
        where: Where,
        rewards: int = 1,
    ) -> None:
        self.places, self.actions, self.features = tuple(places), actions, features
        self.every = where == "states"
        W, m, d = len(self.places), actions * features, features
        self.A = np.zeros((GROUPS, W, m, m))
        self.right = np.zeros((rewards, GROUPS, W, m))
        self.G = np.zeros((GROUPS, W, actions, d, d))
        self.start = np.zeros((GROUPS, W, m))  # sums of pi x over the starts
        self.counts = np.zeros((W, 1 + 2 * actions))  # rows used; by action; sums of pi by action
        self.rows, self.starts = np.zeros(GROUPS), np.zeros(GROUPS)

    def add(self, rows: RowTable) -> None:
        """Add the rows of a table."""
        assert rows.probs is not None and rows.action is not None
        n, A, d = len(rows), self.actions, self.features
        X = rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X
        taken = np.asarray(rows.action, dtype=np.int64)
        begins = np.ones(n, bool) if self.every else rows.first
        self.rows += np.bincount(rows.group, minlength=GROUPS)
        self.starts += np.bincount(rows.group[begins], rows.weight[begins], GROUPS)
        key = rows.group * A + taken
        order = np.argsort(key, kind="stable")
        ends = np.searchsorted(key[order], np.arange(GROUPS * A + 1))
        for w in range(len(self.places)):
            probs, usable = np.nan_to_num(rows.probs[:, w]), known(rows, w)
            self.counts[w, 0] += usable.sum()
            self.counts[w, 1 : 1 + A] += np.bincount(taken[usable], minlength=A)
            self.counts[w, 1 + A :] += probs[:n].sum(axis=0)
            for g in np.unique(rows.group[begins]).tolist():
                mine = begins & (rows.group == g)
                own = probs[:n][mine] * rows.weight[mine, None]
                self.start[g, w] += (own.T @ X[:n][mine]).ravel()
            for g, a in np.argwhere(np.diff(ends).reshape(GROUPS, A) > 0).tolist():
                mine = order[ends[g * A + a] : ends[g * A + a + 1]]
                mine = mine[usable[mine]]
                x, ahead = X[mine], rows.row_next[mine]
                by = -rows.discount[mine, None] * probs[ahead]
                V = by[:, :, None] * X[ahead][:, None, :]
                V[:, a] += x
                z, own = x * rows.weight[mine, None], slice(a * d, (a + 1) * d)
                self.A[g, w, own] += z.T @ V.reshape(len(mine), A * d)
                self.right[:, g, w, own] += rows.rewards[:, mine] @ z
                self.G[g, w, a] += z.T @ x

    def of_reward(self, r: int) -> ActionEquations:
        """The sums of one reward."""
        found = copy.copy(self)
        found.right = self.right[r : r + 1]
        return found

    def system(self, w: int, use: Floats, kept: Longs) -> tuple[Floats, Floats]:
        """A and b of the first reward from the groups of `use`, of some features."""
        A = np.tensordot(use, self.A[:, w], axes=1)
        return A[np.ix_(kept, kept)], (use @ self.right[0, :, w])[kept]

    def independent(self, w: int, use: Floats) -> Longs:
        """Linearly independent features of each action, in the groups of `use`."""
        G = np.tensordot(use, self.G[:, w], axes=1)
        d = self.features
        return np.concatenate([a * d + independent(G[a]) for a in range(self.actions)])

    def solve(self, w: int, use: Floats, phi: Floats | None = None) -> ActionSolution:
        """Theta and beta from the groups of `use`; 0 for features that these do not determine."""
        kept = self.independent(w, use)
        A, b = self.system(w, use, kept)
        p = (use @ self.start[:, w] if phi is None else phi)[kept]
        theta, beta = np.zeros((2, self.actions * self.features))
        theta[kept], beta[kept] = _solved(A, b), _solved(A.T, p)
        shape = self.actions, self.features
        return ActionSolution(theta.reshape(shape), beta.reshape(shape))

    def support(self, w: int) -> Support:
        """What the log shows of the actions of a target."""
        used, *rest = self.counts[w].tolist()
        seen, chance = np.array(rest).reshape(2, -1)
        missing = np.flatnonzero((seen == 0.0) & (chance > 0.0))
        rows = self.rows.sum()
        share = float(chance[missing].sum() / max(rows, 1.0))
        return Support(int(used), int(rows) - int(used), tuple(missing.tolist()), share)

    def merge(self, other: ActionEquations) -> None:
        """Add the sums of another part of the log."""
        for name in ("A", "right", "G", "start", "counts", "rows", "starts"):
            own = getattr(self, name)
            own += getattr(other, name)


def _solved(A: Floats, b: Floats) -> Floats:
    """The solution of A w = b, NaN where A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b))
    except np.linalg.LinAlgError:
        return np.full(len(b), np.nan)
