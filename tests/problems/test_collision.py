"""Collision: the chain by hand, the published numbers, and the family of feature maps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import null_space

from steadytd import InputError, Problem, problem
from steadytd.base.arrays import Floats
from steadytd.problems import is_family, names
from tests.support.splitmix import problem_uniform

MAPS = 600
PUBLISHED_MAPS = 50
OTHERS = ("P", "r", "gamma", "mu", "pi", "w0", "start", "interest", "active", "d_mu", "v_pi")


def test_chain_by_hand() -> None:
    """Every transition, followed with plain rules: (s, a) -> what may come, with which discount."""
    p = problem("collision")
    assert isinstance(p.gamma, np.ndarray)
    forward, retreat = 0, 1
    for s, a in product(range(8), range(2)):
        if a == forward and s < 7:
            assert p.P[s, a].tolist() == [float(t == s + 1) for t in range(8)]
            assert p.gamma[s, a, s + 1] == 0.9
            assert p.r[s, a, s + 1] == 0.0
        else:
            assert p.P[s, a].tolist() == [0.25] * 4 + [0.0] * 4
            assert (p.gamma[s, a] == 0.0).all()
            assert (p.r[s, a, :4] == float(a == forward)).all()
    assert p.mu[:, forward].tolist() == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]
    assert p.pi[:, retreat].tolist() == [0.0] * 8
    assert p.start.tolist() == [0.25] * 4 + [0.0] * 4
    assert p.w0.tolist() == [0.0] * 6
    assert p.active.all()


def test_stationary_distribution_and_values() -> None:
    p = problem("collision")
    np.testing.assert_allclose(p.d_mu, np.array([2, 4, 6, 8, 8, 4, 2, 1]) / 35, rtol=1e-13)
    np.testing.assert_allclose(p.v_pi, 0.9 ** (7.0 - np.arange(8)), rtol=1e-14)


@pytest.mark.parametrize("seed", [0, 1, 49])
def test_error_of_the_start_weights(seed: int) -> None:
    assert problem("collision", seed=seed).error(np.zeros(6)) == pytest.approx(0.68908, abs=5e-6)


# The feature maps


def test_instance_zero_is_pinned() -> None:
    rows = ["".join(str(int(x)) for x in row) for row in problem("collision").Phi]
    assert rows == [
        "101010", "100101", "011100", "101010", "110010", "100011", "101100", "000111",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_features_as_specified(seed: int) -> None:
    """The 20 patterns with three ones, largest binary number first, and number s for state s."""
    patterns = [bits for bits in product((1.0, 0.0), repeat=6) if sum(bits) == 3]
    expected = [list(patterns[int(20 * problem_uniform(seed, s))]) for s in range(8)]
    assert problem("collision", seed=seed).Phi.tolist() == expected


def test_only_the_features_differ() -> None:
    a, b = problem("collision"), problem("collision", seed=1)
    assert (a.name, a.doc) == (b.name, b.doc)
    for name in OTHERS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert not np.array_equal(a.Phi, b.Phi)


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed must be a whole number >= 0 and < 2^63, got -1."),
        (2**63, "seed must be a whole number >= 0 and < 2^63, got 9223372036854775808."),
        (1.0, "seed must be a whole number >= 0 and < 2^63, got 1.0."),
        (True, "seed must be a whole number >= 0 and < 2^63, got True."),
        ("7", "seed must be a whole number >= 0 and < 2^63, got '7'."),
    ],
)
def test_bad_seeds(seed: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        problem("collision", seed=seed)
    assert str(caught.value) == message


def test_families() -> None:
    assert [name for name in names() if is_family(name)] == [
        "collision",
        "unstable_mdp",
    ]
    with pytest.raises(InputError, match="unknown problem 'colision'; did you mean 'collision'"):
        is_family("colision")


# The published means over maps


def predictors(p: Problem) -> tuple[float, float, float]:
    """The errors of the best fit, of TD(0)'s and of ETD(0)'s fixed point, with NumPy alone."""
    assert isinstance(p.gamma, np.ndarray)
    P_mu = np.einsum("sa,sat->st", p.mu, p.P)
    P = np.einsum("sa,sat,sat->st", p.pi, p.P, p.gamma)
    d = null_space((P_mu - np.eye(8)).T)[:, 0]
    d /= d.sum()
    r = np.einsum("sa,sat,sat->s", p.pi, p.P, p.r)
    v = np.linalg.solve(np.eye(8) - P, r)

    def error(w: Floats) -> float:
        return float(np.sqrt(d @ (p.Phi @ w - v) ** 2))

    def fixed_point(weight: Floats) -> Floats:
        left = (p.Phi * weight[:, None]).T
        return np.asarray(np.linalg.lstsq(left @ (np.eye(8) - P) @ p.Phi, left @ r, rcond=None)[0])

    root = np.sqrt(d)
    best = np.linalg.lstsq(root[:, None] * p.Phi, root * v, rcond=None)[0]
    emphasis = np.linalg.solve(np.eye(8) - P.T, d)
    return error(np.asarray(best)), error(fixed_point(d)), error(fixed_point(emphasis))


def test_means_over_maps() -> None:
    """Our 600 maps against the published mean over 50 others: both are samples of all maps.

    The difference of the two means has the standard error sd sqrt(1/50 + 1/600), sd being the
    spread between maps; allowed are two of them and the rounding of the published number. (The
    seeds are fixed, so the test does not fail by chance.)
    """
    errors = np.array([predictors(problem("collision", seed=seed)) for seed in range(MAPS)])
    published = np.array([0.071, 0.306, 0.111])
    allowed = errors.std(axis=0) * np.sqrt(1 / PUBLISHED_MAPS + 1 / MAPS)
    assert (np.abs(errors.mean(axis=0) - published) < 2.0 * allowed + 0.0005).all()
    assert (allowed < [0.004, 0.025, 0.008]).all()  # so it is a narrow test
    np.testing.assert_allclose(errors.mean(axis=0), [0.073, 0.326, 0.114], atol=5e-4)
    np.testing.assert_allclose(errors.std(axis=0), [0.023, 0.155, 0.044], atol=5e-4)
