"""Treatment: sepsis-like signs with two drugs, and chemotherapy by dose."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats


def _move(level: int, levels: int, up: float, down: float) -> Floats:
    p = np.zeros(levels)
    p[min(level + 1, levels - 1)] += up
    p[max(level - 1, 0)] += down
    p[level] += 1.0 - up - down
    return p


@cache
def sepsis() -> Dynamics:
    """Pressure (3), infection (4), oxygen (2), frailty (2, fixed) and four treatments.

    Antibiotics (a & 1) fight the infection but may lower the oxygen; vasopressors (a & 2) raise the
    pressure. Death (-1) comes with bad signs, discharge (1) with good ones.
    """
    states = list(product(range(3), range(4), range(2), range(2)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 2
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (pressure, germs, oxygen, frail), s in at.items():
        bad = (2 - pressure) + germs + 2 * (1 - oxygen) + frail
        die = 0.002 + 0.012 * max(bad - 1, 0) ** 1.5
        well = 0.25 if germs == 0 and oxygen and pressure else 0.0
        for a in range(4):
            cure, press = a & 1, a >> 1
            next_p = _move(pressure, 3, 0.35 if press else 0.1, 0.05 + 0.1 * (germs > 1))
            next_g = _move(germs, 4, 0.05 if cure else 0.2, 0.4 - 0.1 * frail if cure else 0.08)
            next_o = _move(oxygen, 2, 0.3, 0.05 + 0.08 * cure + 0.05 * (germs > 2))
            for p, g, o in product(range(3), range(4), range(2)):
                share = next_p[p] * next_g[g] * next_o[o]
                P[s, a, at[p, g, o, frail]] += (1.0 - die - well) * share
            P[s, a, -2], P[s, a, -1] = die, well
    r[:, :, -2], r[:, :, -1] = -1.0, 1.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    start = np.zeros(S)
    for frail in (0, 1):
        start[at[1, 2, 1, frail]] = start[at[0, 3, 1, frail]] = 0.25
    obs = np.array([*states, (-1, -1, -1, -1), (-2, -2, -2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)


@cache
def chemotherapy(sizes: int = 10, harms: int = 8) -> Dynamics:
    """Tumour size x harm by the drug; four doses. Ends cured (1), dead (-1)."""
    states = list(product(range(sizes), range(harms)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 2
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4, S))
    for (size, harm), s in at.items():
        for dose in range(4):
            shrink, grow = 0.18 * dose, 0.3 - 0.07 * dose
            hurt, heal = 0.17 * dose, 0.35 - 0.1 * dose
            die = 0.001 + 0.02 * (size / sizes) ** 2 + 0.08 * (harm / harms) ** 3
            for x, p in enumerate(_move(size, sizes, grow, shrink)):
                for y, q in enumerate(_move(harm, harms, hurt, heal)):
                    P[s, dose, at[x, y]] += (1 - die) * p * q
            P[s, dose, -2] = die
            r[s, dose] = -0.02 * harm / harms
    cured = [at[0, y] for y in range(harms)]
    P[:, :, -1] += P[:, :, cured].sum(axis=2)
    P[:, :, cured] = 0.0
    r[:, :, -2], r[:, :, -1] = -1.0, 1.0
    P[[-2, -1], :, [-2, -1]] = 1.0
    P[cured] = 0.0
    P[cured, :, -1] = 1.0
    start = np.zeros(S)
    for x in (4, 5, 6):
        start[at[x, 0]] = 1 / 3
    obs = np.array([*states, (-1, -1), (-2, -2)], dtype=float)
    return Dynamics(P, r, np.arange(S) >= S - 2, start, obs)
