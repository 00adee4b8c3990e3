from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from steadytd import InputError
from steadytd.base.arrays import Floats
from steadytd.mdp.stationary import stationary_distribution


def chain(*rows: list[float]) -> Floats:
    return np.array(rows, dtype=np.float64)


def birth_death(up: float, n: int) -> Floats:
    """A walk on 0..n-1: up with probability `up`, else down; it stays where it cannot go."""
    P = np.zeros((n, n))
    for s in range(n):
        P[s, min(s + 1, n - 1)] += up
        P[s, max(s - 1, 0)] += 1.0 - up
    return P


def exact_stationary(P: Floats) -> list[Fraction]:
    """d (P - I) = 0 with sum d = 1 by Gauss elimination in rational numbers.

    Row sums of floats are not exactly 1, so the diagonal is taken as 1 minus the rest of the row:
    that is the chain which GTH solves, since it never reads the diagonal.
    """
    n = len(P)
    Q = [[Fraction(float(P[i, j])) for j in range(n)] for i in range(n)]
    for i in range(n):
        Q[i][i] = -sum((Q[i][j] for j in range(n) if j != i), Fraction(0))
    rows = [[Q[i][j] for i in range(n)] + [Fraction(0)] for j in range(n)]
    rows[-1] = [Fraction(1)] * (n + 1)
    for c in range(n):
        pivot = next(r for r in range(c, n) if rows[r][c] != 0)
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(n):
            if r != c and rows[r][c] != 0:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def test_two_states() -> None:
    a, b = 0.3, 0.2
    d = stationary_distribution(chain([1 - a, a], [b, 1 - b]))
    np.testing.assert_allclose(d, [b / (a + b), a / (a + b)], rtol=1e-15)


@pytest.mark.parametrize("n", [2, 3, 7, 50])
def test_periodic_cycle(n: int) -> None:
    """A matrix power never converges here."""
    d = stationary_distribution(np.roll(np.eye(n), 1, axis=1))
    assert d.tolist() == [1.0 / n] * n


def test_transient_states_have_weight_zero() -> None:
    P = chain(
        [0.5, 0.5, 0.0, 0.0],  # transient
        [0.0, 0.0, 1.0, 0.0],  # class {1, 2}
        [0.0, 1.0, 0.0, 0.0],
        [0.1, 0.2, 0.3, 0.4],  # transient
    )
    assert stationary_distribution(P).tolist() == [0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("epsilon", [1e-14, 1e-100, 1e-300])
def test_nearly_decomposable(epsilon: float) -> None:
    """Two blocks joined by epsilon one way and 3 epsilon the other: weights 3/4 and 1/4.

    At 1e-14 a linear solver loses all but two digits; GTH keeps the last ones.
    """
    P = chain(
        [0.4 - epsilon, 0.6, epsilon, 0.0],
        [0.6, 0.4, 0.0, 0.0],
        [3 * epsilon, 0.0, 0.5, 0.5 - 3 * epsilon],
        [0.0, 0.0, 0.5, 0.5],
    )
    np.testing.assert_allclose(
        stationary_distribution(P), [3 / 8, 3 / 8, 1 / 8, 1 / 8], rtol=max(1e-13, 10 * epsilon)
    )


def test_nearly_decomposable_in_every_digit() -> None:
    """A chain of rare moves of very different sizes against rational arithmetic."""
    rng = np.random.default_rng(5)
    P = 10.0 ** rng.uniform(-14, -1, size=(6, 6))
    np.fill_diagonal(P, 0.0)
    np.fill_diagonal(P, 1.0 - P.sum(axis=1))
    exact = np.array([float(x) for x in exact_stationary(P)])
    assert exact.min() < 1e-5  # the chain is as lopsided as intended
    np.testing.assert_allclose(stationary_distribution(P), exact, rtol=1e-14)


@pytest.mark.parametrize("up", [0.1, 0.9])
def test_long_drift_does_not_overflow(up: float) -> None:
    """400 states, neighbouring weights 9 apart: relative to an end they reach 9^399 = 1e380."""
    d = stationary_distribution(birth_death(up, 400))
    geometric = (8 / 9) * (1 / 9) ** np.arange(400)
    if up > 0.5:
        geometric = geometric[::-1]
    np.testing.assert_allclose(d, geometric, rtol=1e-12, atol=1e-300)


def test_two_closed_classes_are_an_error() -> None:
    P = chain([1, 0, 0, 0], [0.2, 0.2, 0.3, 0.3], [0, 0, 0, 1], [0, 0, 1, 0])
    with pytest.raises(
        InputError,
        match=(
            r"^the behaviour policy's chain has 2 closed classes of states \(\[0\], \[2, 3\]\), "
            r"so its stationary distribution is not unique; connect them, or leave out the "
            r"states that the start does not reach\.$"
        ),
    ):
        stationary_distribution(P)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=some.integers(0, 2**32 - 1), n=some.integers(1, 30), full=some.booleans())
def test_random_chains(seed: int, n: int, full: bool) -> None:
    """d P = d, sum 1, no negative entry; a sparse chain gets a ring so that it has one class."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(n, 0.3), size=n)
    if not full:
        P = np.where(rng.random((n, n)) < 2 / n, P, 0.0) + 0.01 * np.roll(np.eye(n), 1, axis=1)
        P /= P.sum(axis=1, keepdims=True)
    d = stationary_distribution(P)
    np.testing.assert_allclose(d @ P, d, rtol=0, atol=1e-12)
    assert abs(d.sum() - 1.0) < 1e-12
    assert (d >= 0.0).all()
