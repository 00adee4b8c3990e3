"""The sums of the Q-form, where a target's probabilities of all actions are known.

With q(s, a) = x(s).theta_a and x_a the features in the place of action a, zeros elsewhere,

    v = x_a - gamma' sum_a' pi(a'|s') x'_a'

so that r - v.theta is the Bellman error of a row. Summed are x_a (v, r)' and, for each lam of the
plan, z (v, r)' and c (v, r)', with

    z = rho (lam gamma z_before + x),   c = rho lam (gamma c_before + e)

where e is 1 at the starts: first rows of episodes, or all rows if every state is a start. Rows go
through chunks of one size, counted from the beginning of a block, so that the bits do not depend on
how the log is cut into batches.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from steadytd.base.arrays import Bools, Floats, Ints, Longs
from steadytd.base.jit import compiled
from steadytd.evaluation.collect.plan import ActionPlan

CHUNK = 512  # rows that are multiplied at once
LARGEST = 1e100  # c stops here: its squares must stay finite


def shapes(plan: ActionPlan | None, features: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a block's sums; without a plan they are empty."""
    W, A, L = (len(plan.targets), plan.actions, len(plan.lams)) if plan else (0, 0, 0)
    d = features
    return {
        "q_counts": (W, 1 + 2 * A),  # rows used; rows by action; sums of pi by action
        "q_start": (W, 2, A * d),  # sums of pi x over first rows, and over all rows
        "q_G": (W, A, d, d),  # sums of x x' by action
        "q_systems": (W, A * d, A * d + 1),
        "q_traced": (W, L, d, A * d + 1),
        "q_weighted": (W, L, 2, A * d + 1),  # c with first rows as starts, and with all rows
    }


class ActionPiece(Protocol):
    """The sums of a block that rows are added to: arrays by the names of `shapes`."""

    q: dict[str, Floats]


class ActionRows(NamedTuple):
    """The rows of a batch, with features X and probabilities of all actions."""

    X: Floats  # [m, d]
    probs: Floats  # [m, policies, actions], NaN where not known
    row_next: Ints
    discount: Floats
    reward: Floats
    taken: Longs  # the logged actions
    first: Bools
    gamma: Floats  # of the row's state, 0 at the beginning of an episode
    rho: Floats  # [n, targets]


class _Chunk(NamedTuple):
    """Rows that wait to be multiplied, and the traces after the last one of the log."""

    x: Floats  # [CHUNK, d]
    taken: Longs  # [CHUNK]
    Z: Floats  # [CHUNK, L d]
    C: Floats  # [CHUNK, L 2]
    V: Floats  # [CHUNK, A d + 1]
    z: Floats  # [L, d]
    c: Floats  # [L, 2]


class ActionSums:
    """Adds up the sums, block by block."""

    def __init__(self, plan: ActionPlan, features: int) -> None:
        self.plan, self.d = plan, features
        L, wide = len(plan.lams), plan.actions * features + 1
        self.lams = np.array(plan.lams, dtype=np.float64)
        self.chunks = [
            _Chunk(
                np.zeros((CHUNK, features)), np.zeros(CHUNK, np.int64),
                np.zeros((CHUNK, L * features)), np.zeros((CHUNK, L * 2)),
                np.zeros((CHUNK, wide)), np.zeros((L, features)), np.zeros((L, 2)),
            )
            for _ in plan.targets
        ]  # fmt: skip
        self.filled = [0] * len(plan.targets)
        self.piece: ActionPiece | None = None

    def add(self, lo: int, hi: int, piece: ActionPiece, rows: ActionRows) -> None:
        """Add rows lo..hi, which belong to one block."""
        if piece is not self.piece:
            self.flush()
            self.piece = piece
        for w, target in enumerate(self.plan.targets):
            counts, start = piece.q["q_counts"][w], piece.q["q_start"][w]
            at = lo
            while at < hi:
                filled = self.filled[w]
                columns = w, target
                at, self.filled[w] = fill(
                    at, hi, rows, columns, self.lams, self.chunks[w], (filled, counts, start)
                )
                if self.filled[w] == CHUNK:
                    self._multiply(w)

    def flush(self) -> None:
        """Multiply what waits: the block, or the log, is over."""
        for w in range(len(self.chunks)):
            if self.filled[w]:
                self._multiply(w)

    def _multiply(self, w: int) -> None:
        assert self.piece is not None
        n, d, q, chunk = self.filled[w], self.d, self.piece.q, self.chunks[w]
        V, taken = chunk.V[:n], chunk.taken[:n]
        for a in np.unique(taken).tolist():
            mine = np.flatnonzero(taken == a)
            x = chunk.x[mine]
            q["q_G"][w, a] += x.T @ x
            q["q_systems"][w, a * d : (a + 1) * d] += x.T @ V[mine]
        if len(self.lams):
            q["q_traced"][w] += (chunk.Z[:n].T @ V).reshape(q["q_traced"][w].shape)
            q["q_weighted"][w] += (chunk.C[:n].T @ V).reshape(q["q_weighted"][w].shape)
        self.filled[w] = 0


@compiled
def fill(
    lo: int, hi: int, rows: ActionRows, columns: tuple[int, int], lams: Floats, chunk: _Chunk,
    into: tuple[int, Floats, Floats],
) -> tuple[int, int]:  # fmt: skip
    """Put rows from lo on into the chunk until it is full: the next row, and how many it holds.

    `columns` are the target's places among the whole policies and among all targets. A row whose
    next probabilities are not known moves the traces and counts as a start, but is not put in.
    """
    w, target = columns
    n, counts, start = into
    X, d, A = rows.X, rows.X.shape[1], rows.probs.shape[2]
    for i in range(lo, hi):
        if n == CHUNK:
            return i, n
        step(X[i], rows.rho[i, target], rows.gamma[i], rows.first[i], lams, chunk)
        for a in range(A):
            p = rows.probs[i, w, a]
            counts[1 + A + a] += p
            for k in range(d):
                start[1, a * d + k] += p * X[i, k]
                if rows.first[i]:
                    start[0, a * d + k] += p * X[i, k]
        by, j, own = rows.discount[i], rows.row_next[i], rows.taken[i]
        if by != 0.0 and np.isnan(rows.probs[j, w, 0]):
            continue
        counts[0] += 1.0
        counts[1 + own] += 1.0
        for a in range(A):
            weight = -by * rows.probs[j, w, a] if by != 0.0 else 0.0
            for k in range(d):
                chunk.V[n, a * d + k] = weight * X[j, k]
        for k in range(d):
            chunk.V[n, own * d + k] += X[i, k]
        chunk.V[n, A * d] = rows.reward[i]
        chunk.x[n], chunk.taken[n] = X[i], own
        chunk.Z[n], chunk.C[n] = chunk.z.reshape(-1), chunk.c.reshape(-1)
        n += 1
    return hi, n


@compiled
def step(x: Floats, rho: float, gamma: float, first: bool, lams: Floats, chunk: _Chunk) -> None:
    """Move the traces on by a row; a decay of 0 forgets them."""
    for m in range(len(lams)):
        decay = lams[m] * gamma
        for k in range(len(x)):
            before = decay * chunk.z[m, k] if decay != 0.0 else 0.0
            chunk.z[m, k] = rho * (before + x[k])
        for s in range(2):
            before = gamma * chunk.c[m, s] if gamma != 0.0 else 0.0
            starts = 1.0 if first or s == 1 else 0.0
            chunk.c[m, s] = min(rho * lams[m] * (before + starts), LARGEST)
