"""What a user states about the world: the range of rewards, and how long an episode can last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.numbers import whole
from steadytd.logs.log import Log
from steadytd.logs.values import LARGEST


class Stated(NamedTuple):
    """What is known of the world: the rewards' range, and how many steps an episode can have."""

    lo: float
    hi: float
    horizon: int | None = None

    def sums(self, discount: float) -> tuple[float, float]:
        """The least and the largest sum of rewards from a step on, of up to `horizon` steps.

        >>> Stated(-1.0, 2.0, 3).sums(0.5), Stated(1.0, 2.0).sums(0.5)
        ((-1.75, 3.5), (1.0, 2.0))
        """
        steps = _steps(self.horizon or 1, discount)
        return min(self.lo, self.lo * steps), max(self.hi, self.hi * steps)


def _steps(horizon: int, discount: float) -> float:
    """1 + discount + discount^2 + ..., so many of them."""
    if discount >= 1.0:
        return float(horizon)
    return float((1.0 - discount**horizon) / (1.0 - discount))


def stated_range(reward_range: object, horizon: object) -> Stated | None:
    """What is stated, checked.

    >>> stated_range((-1, 2.5), None)
    Stated(lo=-1.0, hi=2.5, horizon=None)
    """
    if reward_range is None:
        if horizon is not None:
            raise InputError(
                f"horizon={horizon!r} needs reward_range=(lo, hi): without it nobody knows how "
                "much an episode that lasts can change."
            )
        return None
    pair = list(reward_range) if isinstance(reward_range, Sequence | np.ndarray) else []
    numbers = [float(x) for x in pair if not isinstance(x, bool) and isinstance(x, Real)]
    if len(pair) != 2 or len(numbers) != 2 or not all(abs(x) <= LARGEST for x in numbers):
        raise InputError(
            f"reward_range must be two finite numbers (lo, hi), the least and the largest reward "
            f"of a step, between -{LARGEST:g} and {LARGEST:g}, got {reward_range!r}."
        )
    lo, hi = numbers
    if lo > hi:
        raise InputError(f"reward_range must be (lo, hi) with lo <= hi, got {reward_range!r}.")
    return Stated(lo, hi, None if horizon is None else whole("horizon", horizon, 1))


def check_stated(log: Log, extent: Floats, stated: Stated | None, episodes: bool) -> None:
    """Complain if the log contradicts it: `extent` has its extremes, see `Statistics`."""
    if stated is None:
        return
    least, most, _, longest = extent.tolist()
    if episodes and stated.horizon is not None and longest > stated.horizon:
        raise InputError(
            f"horizon={stated.horizon} is the most steps that an episode can have, but the log has "
            f"an episode of {longest:.0f} steps; give a larger one."
        )
    if stated.lo <= least and most <= stated.hi:
        return
    for batch in replace(log).batches(columns=()):
        out = np.flatnonzero((batch.reward < stated.lo) | (batch.reward > stated.hi))
        if len(out):
            i = int(out[0])
            raise InputError(
                f"{log.where(int(batch.rows[i]))} (counted from 0): reward "
                f"{batch.reward[i]:.10g} lies outside reward_range=({stated.lo:g}, {stated.hi:g}); "
                "give the range of all rewards that a step can give, or correct the log."
            )
