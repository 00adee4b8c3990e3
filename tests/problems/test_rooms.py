"""Rooms and High-Variance Rooms: the published grid, policies, values and features."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd import Problem, problem
from steadytd.base.arrays import Floats

UP, DOWN, RIGHT, LEFT = range(4)
BOTH = ("rooms", "high_variance_rooms")

# The grid as a picture, row y = 10 first; # is a wall. Written down from the publication's figure.
PICTURE = """
.....#.....
.....#.....
...........
.....#.....
.....#.....
#.####.....
.....###.##
.....#.....
.....#.....
...........
.....#.....
"""
# x from, x to, y from, y to; goal; other hallway; the cell of the room next to each of them
OPTIONS = [
    ((0, 4, 0, 4), (5, 1), (1, 5), (4, 1), (1, 4)),
    ((0, 4, 0, 4), (1, 5), (5, 1), (1, 4), (4, 1)),
    ((0, 4, 6, 10), (1, 5), (5, 8), (1, 6), (4, 8)),
    ((0, 4, 6, 10), (5, 8), (1, 5), (4, 8), (1, 6)),
    ((6, 10, 5, 10), (5, 8), (8, 4), (6, 8), (8, 5)),
    ((6, 10, 5, 10), (8, 4), (5, 8), (8, 5), (6, 8)),
    ((6, 10, 0, 3), (8, 4), (5, 1), (8, 3), (6, 1)),
    ((6, 10, 0, 3), (5, 1), (8, 4), (6, 1), (8, 3)),
]


def free_cells() -> list[tuple[int, int]]:
    rows = PICTURE.split()[::-1]
    return [(x, y) for y in range(11) for x in range(11) if rows[y][x] == "."]


CELLS = free_cells()
STATE = {cell: s for s, cell in enumerate(CELLS)}


def steps(a: tuple[int, int], b: tuple[int, int]) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def distance(k: int, cell: tuple[int, int]) -> int | None:
    """Rooms are empty rectangles: to the cell at the goal, then into the goal. None: not active."""
    (x0, x1, y0, y1), _, other, at_goal, at_other = OPTIONS[k]
    if x0 <= cell[0] <= x1 and y0 <= cell[1] <= y1:
        return steps(cell, at_goal) + 1
    return steps(at_other, at_goal) + 2 if cell == other else None


def moved(cell: tuple[int, int], action: int) -> tuple[int, int]:
    x, y = cell
    there = {UP: (x, y + 1), DOWN: (x, y - 1), RIGHT: (x + 1, y), LEFT: (x - 1, y)}[action]
    return there if there in STATE else cell


def test_cells_and_walls() -> None:
    assert len(CELLS) == 104
    assert 121 - len(CELLS) == 17
    for name in BOTH:
        p = problem(name)
        assert (p.n_states, p.n_actions, p.n_policies, p.n_features) == (104, 4, 8, 12)


@pytest.mark.parametrize("name", BOTH)
def test_active_cells(name: str) -> None:
    p = problem(name)
    assert p.active.dtype == np.bool_
    assert p.active.sum(axis=1).tolist() == [26, 26, 26, 26, 31, 31, 21, 21]
    for k in range(8):
        for cell, s in STATE.items():
            assert p.active[k, s] == (distance(k, cell) is not None)
        assert not p.active[k, STATE[OPTIONS[k][1]]]


@pytest.mark.parametrize("name", BOTH)
def test_values_by_distance(name: str) -> None:
    p = problem(name)
    for k in range(8):
        for cell, s in STATE.items():
            D = distance(k, cell)
            if D is not None:
                assert p.v_pi[k, s] == pytest.approx(0.9 ** (D - 1), rel=1e-13)


@pytest.mark.parametrize("name", BOTH)
def test_rewards_and_discounts(name: str) -> None:
    """From active cells: 1 on entering the goal and nowhere else; 0.9 into active cells, else 0."""
    p = problem(name)
    for k in range(8):
        m = p.moments(k)
        goal = STATE[OPTIONS[k][1]]
        for s in np.flatnonzero(p.active[k]):
            for action in range(4):
                after = STATE[moved(CELLS[s], action)]
                assert m.r[s, action, after] == float(after == goal)
                assert m.gamma[s, action, after] == (0.9 if p.active[k, after] else 0.0)


@pytest.mark.parametrize("name", BOTH)
def test_target_policies(name: str) -> None:
    """Evenly over the moves that shorten the way to the goal; mu where it is not active."""
    p = problem(name)
    for k in range(8):
        goal = OPTIONS[k][1]
        for cell, s in STATE.items():
            D = distance(k, cell)
            if D is None:
                assert p.pi[k, s].tolist() == p.mu[s].tolist()
                continue
            ahead = [0 if moved(cell, a) == goal else distance(k, moved(cell, a)) for a in range(4)]
            good = [a for a, n in enumerate(ahead) if n is not None and n < D]
            assert p.pi[k, s].tolist() == [1 / len(good) if a in good else 0.0 for a in range(4)]


def test_policies_at_some_cells_as_published() -> None:
    """Rules of the publication's program, a few of each kind: policy, cell, actions."""
    pi = problem("rooms").pi
    for k, cell, actions in [
        (0, (0, 2), [DOWN, RIGHT]), (0, (2, 0), [UP, RIGHT]), (0, (3, 1), [RIGHT]),
        (0, (1, 5), [DOWN]), (0, (4, 4), [DOWN]), (0, (4, 0), [UP]),
        (1, (5, 1), [LEFT]), (1, (0, 4), [RIGHT]), (1, (0, 0), [UP, RIGHT]),
        (3, (0, 10), [DOWN, RIGHT]), (4, (8, 4), [UP]), (4, (6, 10), [DOWN]),
        (5, (5, 8), [RIGHT]), (5, (9, 5), [LEFT]), (6, (10, 0), [UP, LEFT]),
        (7, (8, 4), [DOWN]), (7, (10, 0), [UP, LEFT]), (7, (6, 3), [DOWN]),
    ]:  # fmt: skip
        assert np.flatnonzero(pi[k, STATE[cell]]).tolist() == sorted(actions)


def test_stationary_distribution() -> None:
    np.testing.assert_allclose(problem("rooms").d_mu, 1 / 104, rtol=1e-13)
    p = problem("high_variance_rooms")
    P_mu = np.einsum("sa,sat->st", p.mu, p.P)
    np.testing.assert_allclose(p.d_mu @ P_mu, p.d_mu, rtol=1e-13)
    assert p.d_mu.max() > 2 / 104 > 1 / 104 > p.d_mu.min()


def test_largest_ratios() -> None:
    for name, largest in (("rooms", 4.0), ("high_variance_rooms", 100.0)):
        p = problem(name)
        for k in range(8):
            assert p.moments(k).max_ratio == pytest.approx(largest, rel=1e-14)


@pytest.mark.parametrize("name", BOTH)
def test_features(name: str) -> None:
    p = problem(name)
    bits = {cell: "".join(str(int(x)) for x in p.Phi[s]) for cell, s in STATE.items()}
    assert bits[0, 0] == "100010001000"
    assert bits[10, 10] == "000100010001"
    assert bits[9, 9] == "100000010001"  # the first tiling is cut after 9
    assert bits[10, 0] == "010001000100"
    assert bits[3, 10] == "001000100010"
    assert bits[4, 3] == "100010000100"
    assert (p.Phi.sum(axis=1) == 3.0).all()
    assert np.linalg.matrix_rank(p.Phi) == 10


# What a learner of one policy sees: the chain watched in its active cells


def watched(p: Problem, k: int) -> tuple[Floats, Floats, Floats]:
    """A and b of TD(0) and the error's weights, summed over the active cells one by one."""
    A, b = np.zeros((12, 12)), np.zeros(12)
    weights = np.zeros(104)
    goal = OPTIONS[k][1]
    for cell, s in STATE.items():
        if distance(k, cell) is None:
            continue
        weights[s] = p.d_mu[s]
        x = p.Phi[s]
        for a in range(4):
            there = moved(cell, a)
            x_next = p.Phi[STATE[there]] * (0.9 if distance(k, there) is not None else 0.0)
            A += p.d_mu[s] * p.pi[k, s, a] * np.outer(x, x - x_next)
            b += p.d_mu[s] * p.pi[k, s, a] * float(there == goal) * x
    return A, b, weights / weights.sum()


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("policy", range(8))
def test_moments_count_active_cells_only(name: str, policy: int) -> None:
    p = problem(name)
    m = p.moments(policy)
    A, b, weights = watched(p, policy)
    np.testing.assert_allclose(m.A(), A, atol=1e-15)
    np.testing.assert_allclose(m.b(), b, atol=1e-15)
    np.testing.assert_allclose(p.error_weights(policy), weights, rtol=1e-13)
    assert m.row_space.shape[1] == np.linalg.matrix_rank(p.Phi[p.active[policy]])


@pytest.mark.parametrize("policy", [0, 4, 7])
def test_certificate(policy: int) -> None:
    p = problem("rooms")
    c = st.certify(p, policy=policy)
    A, b, weights = watched(p, policy)
    w = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    error = np.sqrt(weights @ (p.Phi @ w - p.v_pi[policy]) ** 2)
    assert c.td_stable
    assert c.error(c.fixed_point("td")) == pytest.approx(error, rel=1e-9)
    assert "no_coverage" not in {finding.code for finding in c.advice}


def test_error_is_the_mean_over_the_policies() -> None:
    p = problem("rooms")
    expected = []
    for k in range(8):
        squares = [0.81 ** (D - 1) for c in CELLS if (D := distance(k, c)) is not None]
        expected.append(np.sqrt(np.mean(squares)))
    assert p.error(np.zeros((8, 12))) == pytest.approx(np.mean(expected), rel=1e-13)
    assert p.error(np.zeros((8, 12))) == pytest.approx(0.7229, abs=5e-5)
