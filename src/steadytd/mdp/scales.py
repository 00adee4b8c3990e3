"""Features of very different sizes, and features that nearly depend on each other.

A feature in millimetres instead of kilometres spans the same values, so rank, fixed points and
errors must not depend on its size. In floating point they do, unless the rank is decided on columns
of length 1 and no product mixes large with small numbers before they are scaled. `RowSpace.of`
finds a basis of the row space in which every matrix Phi' X Phi is *graded*: entry (i, j) has the
size s_i s_j, and errors of that size too. Dividing by the sizes loses nothing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Floats, Longs

Complexes = NDArray[np.complex128]

PLAIN = 1e-3  # relative singular value above which features need no scaling
SCALINGS = 12  # of rows and columns of a matrix, to bring them to about 1
JUMP = 32.0  # ratio of sizes at which fast modes are split from slow ones
ITERATIONS = 60  # of the equation that splits them
CLOSE = 1e-15  # relative change at which it is solved
MODERATE = 1e3  # size above which, or below its inverse, features need scaling
EPS = 64.0 * float(np.finfo(float).eps)  # of sums of products: what rounding may do
ROUNDING = 1e-12  # relative size below which a real part counts as zero
SAME = 1e-9  # relative difference below which two errors or two matrices are the same


def zeroed(value: float, scale: float, share: float = SAME) -> float:
    """The value, or 0 where it is rounding next to `scale`.

    >>> zeroed(1e-11, 1.0), zeroed(1e-11, 1e-6), zeroed(-1e-11, 1.0, ROUNDING)
    (0.0, 1e-11, -1e-11)
    """
    return value if abs(value) > share * scale else 0.0


def same(one: Floats, other: Floats) -> bool:
    """Whether two arrays are of the same shape and differ by rounding only."""
    return one.shape == other.shape and bool(
        np.abs(one - other).max(initial=0.0) <= SAME * np.abs(other).max(initial=0.0)
    )


class RowSpace(NamedTuple):
    """An orthonormal basis Q of the row space of some features, and those features Phi Q in it."""

    Q: Floats  # [d, rank]
    sizes: Floats  # of the columns of Phi Q, powers of two; all 1 where nothing needs scaling
    values: Floats | None  # Phi Q, found without cancellation; None where the product will do
    condition: float  # of the features with columns of length 1

    @staticmethod
    def of(Phi: Floats) -> RowSpace:
        """Of the features [s, k] of the visited states.

        Plain features: their singular vectors. Others: with unit columns, Phi = Phi_1 S and the
        pivoted decomposition Phi_1 = Q_1 R, cut at the rank, leave (R S)' = Q T to be decomposed,
        with rows sorted by size, and Phi Q = Q_1 T'.
        """
        import scipy.linalg

        small = tall_triangle(Phi)  # has the same singular values and row space
        lengths = column_lengths(small)
        nonzero = lengths > 0.0
        if not nonzero.any():
            return RowSpace(np.zeros((Phi.shape[1], 0)), np.ones(0), None, 1.0)
        spread = scipy.linalg.svdvals(small[:, nonzero] / lengths[nonzero])
        rank = int((spread > spread[0] * np.finfo(float).eps * max(Phi.shape)).sum())
        condition = float(spread[0] / spread[rank - 1])
        left, s, _ = scipy.linalg.svd(small.T, full_matrices=False)
        if s[rank - 1] >= PLAIN * s[0] and 1.0 / MODERATE <= s[0] <= MODERATE:
            return RowSpace(np.asarray(left[:, :rank]), np.ones(rank), None, condition)
        unit = Phi[:, nonzero] / lengths[nonzero]
        Q_1, R, order = scipy.linalg.qr(unit, mode="economic", pivoting=True)
        rows = np.zeros((Phi.shape[1], rank))
        rows[np.flatnonzero(nonzero)[order]] = R[:rank].T * lengths[nonzero][order, None]
        by_size = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
        basis, T, pivots = scipy.linalg.qr(rows[by_size], mode="economic", pivoting=True)
        Q = np.zeros_like(rows)
        Q[by_size] = basis
        values = Q_1[:, :rank][:, pivots] @ T.T
        return RowSpace(Q, power_of_two(column_lengths(values)), values, condition)


def tall_triangle(matrix: Floats, rows: int = 4096) -> Floats:
    """R with R'R = matrix' matrix, without squaring: for every w, |R w| = |matrix w|.

    A matrix of no more than so many rows is its own; of others blocks of rows are decomposed one
    after the other.
    """
    if len(matrix) <= max(rows, matrix.shape[1]):
        return matrix
    R = matrix[:0]
    for begin in range(0, len(matrix), rows):
        R = np.asarray(np.linalg.qr(np.vstack([R, matrix[begin : begin + rows]]), mode="r"))
    return R


def column_lengths(matrix: Floats) -> Floats:
    """The Euclidean length of every column, without overflow or underflow."""
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    scale = power_of_two(largest)
    return np.asarray(np.sqrt(((matrix / scale) ** 2).sum(axis=0)) * scale)


def power_of_two(sizes: Floats) -> Floats:
    """The power of two at or below each size (1 for 0): scaling by it is exact."""
    return np.asarray(np.where(sizes > 0.0, 2.0 ** (np.frexp(sizes)[1] - 1.0), 1.0))


def scaled_solution(M: Floats, g: Floats, *, singular: bool) -> tuple[Floats, float]:
    """A solution of M y = g for rows and columns of any size, and what it leaves.

    Rows and columns are first scaled to about 1; what is left over is relative to the scaled rows.
    """
    rows, columns, scaled = np.ones(len(M)), np.ones(len(M)), M
    for _ in range(SCALINGS):  # Ruiz (2001): halves the logarithms of rows and columns each time
        r, c = (power_of_two(np.sqrt(np.abs(scaled).max(axis=axis))) for axis in (1, 0))
        rows, columns, scaled = rows * r, columns * c, scaled / r[:, None] / c
    solve = partial(_shortest, scaled) if singular else partial(np.linalg.solve, scaled)
    y = solve(g / rows)
    if not singular:
        y = y + solve(g / rows - scaled @ y)
    left = np.abs(scaled @ y - g / rows).max()
    size = max(np.abs(g / rows).max(), np.abs(y).max())
    return np.asarray(y / columns), float(left / size) if size > 0.0 else 0.0


def _shortest(M: Floats, g: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(M, g, rcond=1e-12)[0])


class Rates(NamedTuple):
    """The eigenvalues of a mean update, and next to which numbers they were rounded."""

    values: Complexes
    next_to: Floats

    @property
    def real(self) -> Floats:
        """The real parts, 0 where they are 0 up to rounding: what every verdict on stability asks.

        Processors round differently, so the sign of such a part is no answer.
        """
        found = self.values.real
        return np.where(np.abs(found) <= ROUNDING * self.next_to, 0.0, found)


def rates_of(M: Floats, sizes: Floats | None = None, size: float = 0.0) -> Rates:
    """The eigenvalues of sizes M sizes, or of each of many M: the learner's own steps.

    M may be what is left of larger numbers that cancel, of this `size`.
    """
    if sizes is not None:
        return graded_rates(sizes[:, None] * M * sizes, sizes)
    next_to = np.abs(M).max(axis=(-2, -1), initial=size)[..., None]
    return Rates(np.asarray(np.linalg.eigvals(M)), np.asarray(next_to))


def slowest(M: Floats, sizes: Floats | None = None, size: float = 0.0) -> float:
    """The least real part of an eigenvalue of sizes M sizes, 0 up to rounding: stable if above 0.

    Features of very different sizes can make a mode so slow that rounding hides its sign. Then it
    is that for features of equal size.
    """
    found = rates_of(M, sizes, size).real
    if sizes is not None and not found.all():
        found = rates_of(M, size=size).real
    return float(found.min())


def graded_rates(M: Floats, sizes: Floats) -> Rates:
    """The eigenvalues of a matrix whose entries (i, j) have the size s_i s_j, small ones too.

    Rows and columns are split where the sizes make a jump. With X = (C + E X - X B X) A^-1 the
    matrix [[A, B], [C, E]] has the eigenvalues of A + B X, the fast modes, and of E - X B, the
    slow ones, which are split again.
    """
    own = np.maximum(sizes, np.sqrt(np.abs(np.diag(M))))
    order: Longs = np.argsort(-own, kind="stable")
    rest, sizes = M[np.ix_(order, order)], own[order]
    rounded = np.abs(rest)
    values, next_to = [], []
    while len(sizes):
        jumps = np.flatnonzero(sizes[:-1] > JUMP * sizes[1:]) + 1
        split = next((p for k in jumps if (p := _split(rest, rounded, int(k))) is not None), None)
        if split is None:
            split = rest, rest[:0, :0], rounded[:0, :0]
        fast, rest, below = split
        k = len(fast)
        values.append(np.linalg.eigvals(fast))
        next_to.append(np.full(k, rounded[:k, :k].max()))
        sizes, rounded = sizes[k:], below
    return Rates(np.concatenate(values).astype(np.complex128), np.concatenate(next_to))


def _split(M: Floats, rounded: Floats, k: int) -> tuple[Floats, Floats, Floats] | None:
    """A + B X and E - X B with A the first k rows and columns, and what E - X B was rounded at."""
    A, B, C, E = M[:k, :k], M[:k, k:], M[k:, :k], M[k:, k:]
    X: Floats = np.zeros_like(C)
    for _ in range(ITERATIONS):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                after: Floats = np.asarray(np.linalg.solve(A.T, (C + E @ X - X @ B @ X).T).T)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(after).all():
            return None
        if (np.abs(after - X) <= CLOSE * np.abs(after).max(axis=1, keepdims=True)).all():
            lost = np.outer(np.abs(after).max(axis=1), rounded[:k, k:].max(axis=0))
            return A + B @ after, E - after @ B, rounded[k:, k:] + lost
        X = after
    return None
