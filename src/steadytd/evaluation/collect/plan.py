"""What one pass over a log collects: targets, systems of equations, and how rows form blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.wording import count

MOST_BLOCKS, FEWEST_BLOCKS = 200, 16
STATISTICS_BYTES = 300e6  # what the sums of all blocks may take
COPIES = 2.1  # of the sums while they are added up and solved, as measured
TOO_MUCH = 4e9  # bytes at the least number of blocks from which on the pass is refused
HORIZON = 1000  # steps of an episode that have a normaliser of their own in snpdis

Where = Literal["start", "states"]  # values are asked for: at first states, or at all of them


class System(NamedTuple):
    """A linear system for w: sums of z (x - gamma' x')' and of r z, with one of two traces.

    z = rho (gamma lam z + M x); M = 1, or with `emphatic` M = lam + (1 - lam) F, where
    F = beta rho_prev F + 1 (beta = gamma unless given) restarts with every episode.
    """

    lam: float = 0.0
    emphatic: bool = False
    beta: float | None = None


class ActionPlan(NamedTuple):
    """What the sums of the Q-form are for: see `action_sums`."""

    targets: tuple[int, ...]  # those that are known as a whole, by their places among all
    actions: int
    lams: tuple[float, ...] = ()


TD = System()
ETD = System(emphatic=True)


@dataclass(frozen=True)
class Plan:
    """Everything that decides the sums of a pass, but the log itself.

    `lams` are the decays of the products of ratios, c = rho (gamma lam c + 1 at a start); a start
    is the first row of an episode, or every row (`where`).
    """

    targets: tuple[str, ...]
    features: int
    rows: int
    systems: tuple[System, ...] = (TD, ETD)
    blocks: int = MOST_BLOCKS
    horizon: int = HORIZON
    lams: tuple[float, ...] = (1.0,)
    where: Where = "start"
    seed: int = 0  # of the sample of episodes
    by_action: ActionPlan | None = None
    behavior_whole: bool = False  # the behaviour's probabilities of all actions are logged
    constant: int | None = None  # a feature that is 1 everywhere
    keeps_rows: bool = False  # few features are active: rows are kept, see `collect.rows`

    @property
    def columns(self) -> int:
        """Weighted copies of x, one per target and system, and x itself: the behaviour's."""
        return len(self.targets) * len(self.systems) + 1

    @property
    def ratios(self) -> int:
        """The ratios of a row: one per target, and the behaviour's own, which is 1."""
        return len(self.targets) + 1

    @property
    def summed(self) -> int:
        """The features over which sums of pairs are made: none where rows are kept."""
        return 0 if self.keeps_rows else self.features

    def block_of(self, row: int) -> int:
        """The block in which an episode that begins at `row` is counted."""
        return row * self.blocks // max(self.rows, 1)


def numbers_per_block(targets: int, systems: int, features: int, lams: int = 1) -> int:
    """How many numbers the sums of one block hold."""
    d = features
    matrices = d * d + (targets * systems + 1) * d * (d + 2)
    return matrices + (2 * targets + 1) * lams * (d + 2) + targets * 3 * HORIZON


def blocks_for(targets: int, systems: int, features: int, lams: int = 1, further: int = 0) -> int:
    """As many blocks as fit into 300 MB, between 16 and 200; `further` numbers are in each.

    `features` are those over which sums of pairs are made.
    """
    size = 8 * (numbers_per_block(targets, systems, features, lams) + further)
    if COPIES * FEWEST_BLOCKS * size > TOO_MUCH:
        needed = COPIES * FEWEST_BLOCKS * size / 1e9
        raise InputError(
            f"{count(features, 'feature')} and {count(targets, 'target')} need {needed:.0f} GB "
            "for sums; use fewer features, or evaluate fewer targets at a time."
        )
    return int(np.clip(STATISTICS_BYTES / size, FEWEST_BLOCKS, MOST_BLOCKS))
