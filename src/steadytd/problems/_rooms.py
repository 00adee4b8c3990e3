"""Four rooms and eight target policies on one stream: what both Rooms problems share.

Cells are (x, y). The states are the 104 free cells, in the order of 11 y + x.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.mdp.problem import Problem

SIZE, DISCOUNT = 11, 0.9
UP, DOWN, RIGHT, LEFT = range(4)
MOVES = {UP: (0, 1), DOWN: (0, -1), RIGHT: (1, 0), LEFT: (-1, 0)}
SPLITS = (9, 6, 3)  # each tiling cuts both axes after this coordinate

Cell = tuple[int, int]


@dataclass(frozen=True)
class Option:
    """A target policy: walk through a room, or into it from its other hallway, to the goal."""

    room: tuple[range, range]
    goal: Cell
    other: Cell


SOUTH_WEST = (range(5), range(5))
NORTH_WEST = (range(5), range(6, 11))
NORTH_EAST = (range(6, 11), range(5, 11))
SOUTH_EAST = (range(6, 11), range(4))
OPTIONS = (
    Option(SOUTH_WEST, goal=(5, 1), other=(1, 5)),
    Option(SOUTH_WEST, goal=(1, 5), other=(5, 1)),
    Option(NORTH_WEST, goal=(1, 5), other=(5, 8)),
    Option(NORTH_WEST, goal=(5, 8), other=(1, 5)),
    Option(NORTH_EAST, goal=(5, 8), other=(8, 4)),
    Option(NORTH_EAST, goal=(8, 4), other=(5, 8)),
    Option(SOUTH_EAST, goal=(8, 4), other=(5, 1)),
    Option(SOUTH_EAST, goal=(5, 1), other=(8, 4)),
)


def is_wall(x: int, y: int) -> bool:
    """x = 5 but for two hallways; y = 5 on its left and y = 4 on its right, but for one each."""
    return (
        (x == 5 and y not in (1, 8))
        or (y == 5 and x in (0, 2, 3, 4))
        or (y == 4 and x in (6, 7, 9, 10))
    )


@cache
def cells() -> dict[Cell, int]:
    """The number of the state at every free cell."""
    free = [(x, y) for y in range(SIZE) for x in range(SIZE) if not is_wall(x, y)]
    return {cell: s for s, cell in enumerate(free)}


def after(cell: Cell, action: int) -> Cell:
    """Where a move leads; a blocked one stays."""
    dx, dy = MOVES[action]
    moved = cell[0] + dx, cell[1] + dy
    return moved if moved in cells() else cell


def is_active(option: Option, cell: Cell) -> bool:
    """Whether a cell lies in the option's room or is the room's other hallway."""
    x, y = cell
    return cell == option.other or (x in option.room[0] and y in option.room[1])


def distances(option: Option) -> dict[Cell, int]:
    """Steps to the goal, from the goal and all active cells, without leaving them."""
    found = {option.goal: 0}
    queue = deque(found)
    while queue:
        cell = queue.popleft()
        for action in MOVES:
            near = after(cell, action)  # moves can be undone, so this is also where one comes from
            if near not in found and is_active(option, near):
                found[near] = found[cell] + 1
                queue.append(near)
    return found


def target_policy(option: Option, mu: Floats) -> Floats:
    """Evenly over the actions that bring the goal closer; mu where the option is not active."""
    pi = mu.copy()
    D = distances(option)
    for cell, s in cells().items():
        if is_active(option, cell):
            closer = [a for a in MOVES if D.get(after(cell, a), SIZE**2) < D[cell]]
            pi[s] = 0.0
            pi[s, closer] = 1.0 / len(closer)
    return pi


def features() -> Floats:
    """Three tilings of 2 x 2 tiles: (low x, low y), (high, low), (low, high), (high, high)."""
    Phi = np.zeros((len(cells()), 4 * len(SPLITS)))
    for (x, y), s in cells().items():
        for tiling, split in enumerate(SPLITS):
            Phi[s, 4 * tiling + (x > split) + 2 * (y > split)] = 1.0
    return Phi


def build(name: str, doc: str, mu: Floats) -> Problem:
    """The problem of the eight options for a behaviour policy [s, a]."""
    S = len(cells())
    P = np.zeros((S, 4, S))
    for cell, s in cells().items():
        for action in MOVES:
            P[s, action, cells()[after(cell, action)]] = 1.0
    active: Bools = np.array([[is_active(o, cell) for cell in cells()] for o in OPTIONS])
    r = np.zeros((len(OPTIONS), S, 4, S))
    for k, option in enumerate(OPTIONS):
        r[k, active[k], :, cells()[option.goal]] = 1.0
    start = np.zeros(S)
    start[cells()[0, 0]] = 1.0
    return Problem(
        name=name,
        doc=doc,
        P=P,
        r=r,
        gamma=np.where(active, DISCOUNT, 0.0),
        mu=mu,
        pi=np.stack([target_policy(option, mu) for option in OPTIONS]),
        Phi=features(),
        w0=np.zeros(4 * len(SPLITS)),
        start=start,
        active=active,
    )
