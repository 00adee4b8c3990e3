"""Gridworlds: four rooms, and wind."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.worlds.world import Dynamics

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


@cache
def rooms(side: int = 9, slip: float = 0.2) -> Dynamics:
    """Four rooms with doors; the goal pays 1, a step costs 0.01, a pit in the third room -1."""
    wall = np.zeros((side, side), dtype=bool)
    half = side // 2
    wall[half, :], wall[:, half] = True, True
    for door in ((half, 1), (half, side - 2), (1, half), (side - 2, half)):
        wall[door] = False
    cells = [tuple(map(int, x)) for x in np.argwhere(~wall)]
    at = {cell: i for i, cell in enumerate(cells)}
    S = len(cells)
    P, r = np.zeros((S, 4, S)), np.full((S, 4, S), -0.01)
    for (i, j), s in at.items():
        after = [at.get((i + di, j + dj), s) for di, dj in MOVES]
        for a in range(4):
            for b in range(4):
                P[s, a, after[b]] += (1.0 - slip if a == b else 0.0) + slip / 4
    goal, pit = at[side - 1, side - 1], at[side - 1, 0]
    r[:, :, goal], r[:, :, pit] = 1.0, -1.0
    ends = np.isin(np.arange(S), [goal, pit])
    start = np.array([i < half and j < half for i, j in cells], dtype=float)
    return Dynamics(P, r, ends, start / start.sum(), np.array(cells, dtype=float))


@cache
def windy(rows: int = 7, columns: int = 10) -> Dynamics:
    """Windy gridworld with gusts: columns blow upwards by 0, 1 or 2 cells; each step costs 1."""
    wind = np.array([0, 0, 0, 1, 1, 1, 2, 2, 1, 0])
    S = rows * columns
    P = np.zeros((S, 4, S))
    for s in range(S):
        i, j = divmod(s, columns)
        for a, (di, dj) in enumerate(MOVES):
            for gust, p in ((-1, 0.25), (0, 0.5), (1, 0.25)):
                blow = max(wind[j] + (gust if wind[j] else 0), 0)
                row = int(np.clip(i + di - blow, 0, rows - 1))
                column = int(np.clip(j + dj, 0, columns - 1))
                P[s, a, row * columns + column] += p
    goal = 3 * columns + 7
    start = np.zeros(S)
    start[3 * columns] = start[5 * columns + 1] = 0.5
    obs = np.array([divmod(s, columns) for s in range(S)], dtype=float)
    return Dynamics(P, np.full((S, 4, S), -1.0), np.arange(S) == goal, start, obs)
