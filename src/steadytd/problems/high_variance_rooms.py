"""High-Variance Rooms: Rooms with four cells in which the behaviour policy errs; ratios up to 100.

As `rooms`, but in one cell of each room the behaviour policy nearly always takes the same
direction: left at (1, 1) and (1, 8), right at (8, 1) and (8, 8), with probability 0.97, and each
other direction with 0.01. Where a target policy needs one of those, the importance ratio is large.

Named fact: the largest importance ratio is 100.

Source: Ghiassian & Sutton (2021), An empirical comparison of off-policy prediction learning
algorithms in the Four Rooms environment.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem
from steadytd.problems import _rooms

STUBBORN = {
    (1, 1): _rooms.LEFT,
    (1, 8): _rooms.LEFT,
    (8, 1): _rooms.RIGHT,
    (8, 8): _rooms.RIGHT,
}


def make() -> Problem:
    """The problem with the published values."""
    mu = np.full((len(_rooms.cells()), 4), 0.25)
    for cell, action in STUBBORN.items():
        mu[_rooms.cells()[cell]] = 0.01
        mu[_rooms.cells()[cell], action] = 0.97
    return _rooms.build("high_variance_rooms", __doc__ or "", mu)
