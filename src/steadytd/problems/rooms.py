"""Rooms: eight policies, two per room of a grid with four rooms, learned from one random walk.

The grid is 11 x 11 with 17 walls; a move into a wall stays. The behaviour policy moves evenly in
the four directions, for ever, from the corner (0, 0). Each target policy walks to one hallway of
its room by shortest paths, from anywhere in the room and from the room's other hallway. Only there
is it active: its learner updates there and its error counts those cells. Entering its goal pays 1.
The discount is 0.9 into active cells and 0 elsewhere. The features are three tilings of 2 x 2
tiles, twelve bits with three ones.

Named fact: v = 0.9^(D-1) at distance D from the goal, d is 1/104 everywhere, and the features have
rank 10 of 12.

Source: Ghiassian & Sutton (2021), An empirical comparison of off-policy prediction learning
algorithms in the Four Rooms environment.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.problem import Problem
from steadytd.problems import _rooms


def make() -> Problem:
    """The problem with the published values."""
    return _rooms.build("rooms", __doc__ or "", np.full((len(_rooms.cells()), 4), 0.25))
