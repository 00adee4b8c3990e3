"""The facts of a step: what it tells a law, and what it hands to the next step.

A step that *ends* an episode has discount 0, and needs no rule of its own: traces decay by the
discount that the step before carried over, so the next episode starts with none. A step after
which an episode is *cut off* (truncated) bootstraps, so its discount is not 0; but it carries 0.
That is the one rule for cut-off episodes: the next step sees what it would see after a termination
(`gamma` = 0; `rho_prev`, `pi_prev` and `mu_prev` are those of the last step, as after any other).
The update of the last step itself is not touched, nor are the count of steps, the step sizes or
the averages. Where the cut is known only after the step, `Block.cut` does the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError

STEP_FACTS = (
    "reward", "gamma_next", "gamma_carried", "rho", "pi", "mu", "interest", "peak_min", "peak_max",
)  # fmt: skip
CARRIED = {"gamma": "gamma_carried", "rho_prev": "rho", "pi_prev": "pi", "mu_prev": "mu"}
GAMMA = list(CARRIED).index("gamma")


def fact_table(**known: ArrayLike) -> Floats:
    """Facts [steps, len(STEP_FACTS)] from columns by name; a number stands for all steps.

    `gamma_carried` is `gamma_next` and `interest` is 1 unless they are given.

    >>> table = fact_table(reward=[1.0, 2.0], gamma_next=0.9, rho=1.0, pi=0.5, mu=0.5,
    ...                    peak_min=0.5, peak_max=0.5)
    >>> columns(table, "reward", "gamma_carried").tolist()
    [[1.0, 0.9], [2.0, 0.9]]
    """
    given = {"gamma_carried": known["gamma_next"], "interest": 1.0, **known}
    wrong = sorted(set(given) ^ set(STEP_FACTS))
    if wrong:
        raise TypeError(f"missing or unknown facts: {', '.join(wrong)}")
    table = np.empty((np.size(given["reward"]), len(STEP_FACTS)))
    for i, name in enumerate(STEP_FACTS):
        table[:, i] = given[name]
    return table


def columns(table: Floats, *names: str) -> Floats:
    """Some columns of a table of facts, contiguous."""
    return np.ascontiguousarray(table[:, [STEP_FACTS.index(name) for name in names]])


def named(facts: Floats) -> dict[str, float]:
    """One row of a table of facts by name."""
    return dict(zip(STEP_FACTS, facts.tolist(), strict=True))


# ---- What users give


def number(name: str, value: float, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number within bounds."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {value!r}.") from None
    if not (low <= found <= high and math.isfinite(found)):
        raise InputError(f"{name} must be {_rule('a finite number', low, high)}, got {found:g}.")
    return found


def numbers(name: str, values: ArrayLike, low: float = -math.inf, high: float = math.inf) -> Floats:
    """An array of finite numbers within bounds, as doubles."""
    if getattr(getattr(values, "dtype", None), "kind", "") in ("c", "m", "M"):
        raise InputError(f"{name} must be numbers, got {values.dtype}.")  # type: ignore[union-attr]
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers ({error}).") from None
    if array.size and not (-np.inf < array.min() >= low and np.inf > array.max() <= high):
        wrong = ~(np.isfinite(array) & (array >= low) & (array <= high))
        at, rule = np.argwhere(wrong)[0].tolist(), _rule("finite numbers", low, high)
        raise InputError(f"{name} must be {rule}, got {array[wrong][0]:g} at {at}.")
    return array


def _rule(finite: str, low: float, high: float) -> str:
    if math.isfinite(high):
        return f"from {low:g} to {high:g}"
    return f"{finite} >= {low:g}" if math.isfinite(low) else finite
