"""How a run ended, in one of three words that mean the same for every learner.

    overflowed    a weight, or the error itself, left the finite range
    growing       not that, but the last error is more than 10 times the yardstick, or the mean
                  update is unstable and the error rises: its mean over the last tenth of the
                  recording points is above that over the tenth before
    settled       neither; the error may still be falling

The yardstick is the largest of three errors: at the start, of predicting zero everywhere, and of
the fixed point to which the mean update leads, where the law has a closed form and is stable. So
neither a good start nor a fixed point with a large error is held against a learner.
Stability is that of the certificate (`theory.dynamics`), asked of the law; without a closed form,
or on a stream of which no model is known, only the errors count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.learner import Learner
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.problem import Problem
from steadytd.theory.dynamics import fixed_point, is_stable

OVERFLOWED, GROWING, SETTLED = WORDS = ("overflowed", "growing", "settled")
FAR = 10.0  # times the yardstick
LAST = 10  # a tenth of the recording points


class Known(NamedTuple):
    """What theory knows of a learner on a problem: is it stable, and its fixed point's error."""

    stable: bool | None  # None: it has no closed form here
    error: float = 0.0


@lru_cache(maxsize=1024)
def known(problem: Task, learner: Learner) -> Known:
    """Stability for all target policies, and the mean error of their fixed points."""
    try:
        policies = range(problem.n_policies)
        if not all(is_stable(problem, learner, k) for k in policies):
            return Known(False)
        points = np.stack([fixed_point(problem, learner, k) for k in policies])
        return Known(True, float(problem.error(points if len(points) > 1 else points[0])))
    except (InputError, np.linalg.LinAlgError):
        return Known(None)


def zero_error(problem: object) -> float:
    """The error of predicting zero; 0 where no model is known: a stream's learners begin there."""
    if not isinstance(problem, Problem | ActionValues):
        return 0.0
    zeros = np.zeros((problem.n_policies, problem.n_features))
    return float(problem.error(zeros if len(zeros) > 1 else zeros[0]))


def outcome(errors: Floats, overflowed: bool, zero: float, theory: Callable[[], Known]) -> str:
    """The word for one run from its errors at the recording points; see the module's text.

    `zero` is the error of predicting zero. `theory` is asked only where its answer matters.

    >>> falls, rises = np.linspace(2.0, 1.0, 101), np.linspace(1.0, 2.0, 101)
    >>> [outcome(e, False, 1.0, lambda: Known(False)) for e in (falls, rises, 20.0 * rises**4)]
    ['settled', 'growing', 'growing']
    >>> outcome(rises, False, 1.0, lambda: Known(True))
    'settled'
    >>> outcome(rises, True, 1.0, lambda: Known(None))
    'overflowed'
    """
    last = float(errors[-1])
    if overflowed or not np.isfinite(last):
        return OVERFLOWED
    far, rising = last > FAR * max(float(errors[0]), zero), _rising(errors)
    if not far and not rising:
        return SETTLED
    found = theory()
    unstable = found.stable is False
    if (far and last > FAR * found.error) or (rising and unstable):
        return GROWING
    return SETTLED


def _rising(errors: Floats) -> bool:
    """Whether the mean over the last tenth of the points is above that over the tenth before."""
    few = max(len(errors) // LAST, 1)
    before, after = errors[-2 * few : -few], errors[-few:]
    with np.errstate(over="ignore"):
        return bool(after.mean() > before.mean())


def worst(words: Sequence[str]) -> str:
    """The word for several runs: overflowed if one of them is, else growing if one is.

    >>> worst(["settled", "growing", "settled"])
    'growing'
    """
    return min(words, key=WORDS.index)


def ended(words: Sequence[str]) -> str:
    """How several runs ended, for reading.

    >>> ended(["settled"] * 3), ended(["growing", "settled", "overflowed", "growing"])
    ('settled', 'overflowed 1, growing 2 of 4')
    """
    counts = Counter(words)
    if len(counts) == 1:
        return words[0]
    parts = ", ".join(f"{word} {counts[word]}" for word in WORDS[:-1] if counts[word])
    return f"{parts} of {len(words)}"
