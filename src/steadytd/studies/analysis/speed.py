"""How many steps a learner needs to bring its error below a share of the error at w0.

The mean error over a run hides this: a learner that is done after the first recording points and
one that is done long before differ only in how the points lie. The error is known at the recording
points, so a step count is "by step N": at N it is below, at the recording point before N, `after`,
it was not yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs

LEVELS = {"a tenth": 0.1, "a hundredth": 0.01, "a millionth": 1e-6}


class Reach(NamedTuple):
    """The median of the first recording points with an error below `share` times that at w0.

    `reached` of the `seeds` were below it at some recording point. `step` is the first recording
    point by which at least half were, None if fewer ever were.
    """

    share: float
    after: int | None
    step: int | None
    reached: int
    seeds: int


def reaches(points: Longs, errors: Floats) -> list[Reach]:
    """One for each level; `errors` is [seeds, points], the first point is w0's."""
    found = []
    for share in LEVELS.values():
        below = errors < share * errors[:, :1]
        first = np.sort(np.where(below.any(axis=1), below.argmax(axis=1), len(points)))
        half = int(first[(len(first) + 1) // 2 - 1])
        step, after = (
            (None, None) if half == len(points) else (int(points[half]), int(points[half - 1]))
        )
        found.append(Reach(share, after, step, int((first < len(points)).sum()), len(first)))
    return found


def resolution(steps: int, every: int, per_decade: int) -> str:
    """Where the error is recorded, in words.

    >>> resolution(1000000, 5000, 20), resolution(20000, 100, 0)
    ('at 20 steps per decade and every 5,000 steps', 'every 100 steps')
    """
    text = f"every {every:,} steps" if every > 1 else "at every step"
    return f"at {per_decade} steps per decade and {text}" if per_decade else text


def reach_words(found: Reach, steps: int) -> str:
    """A step count for a table.

    >>> reach_words(Reach(0.1, 90, 100, 10, 10), 500)
    '100'
    >>> reach_words(Reach(0.1, None, None, 3, 9), 500)
    'not in 500 (3 of 9 seeds)'
    """
    if found.step is None:
        some = f" ({found.reached} of {found.seeds} seeds)" if found.reached else ""
        return f"not in {steps:,}{some}"
    some = f" ({found.reached} of {found.seeds} seeds)" if found.reached < found.seeds else ""
    return f"{found.step:,}{some}"


def fastest(by_learner: Sequence[tuple[str, Reach]]) -> list[tuple[str, Reach]]:
    """Those whose median seed reached the level, the fastest first."""
    reached = [(name, x) for name, x in by_learner if x.step is not None]
    return sorted(reached, key=lambda pair: pair[1].step or 0)
