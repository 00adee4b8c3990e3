"""What several problems share: checks of the options of `make`, and prescribed chains."""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, unknown


def number(name: str, value: object, low: float, high: float, *, open_at: str = "") -> float:
    """A number in [low, high]; `open_at` "both" or "high" leaves the ends out."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be a number, got {value!r}.")
    found = float(value)
    above = found > low if open_at == "both" else found >= low
    below = found < high if open_at else found <= high
    if not (above and below):
        left, right = "(" if open_at == "both" else "[", ")" if open_at else "]"
        raise InputError(f"{name} must lie in {left}{low:g}, {high:g}{right}, got {found:g}.")
    return found


def one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    if value not in known:
        raise unknown(name, value, known)
    return value


def realise(chain: Floats, d: Floats, share: float) -> tuple[Floats, Floats, Floats]:
    """P [s, a, s'], mu and pi [s, a] such that pi follows `chain` and mu has the distribution d.

    Action 0 follows the chain, action 1 jumps to a state drawn from q, whatever the state was. mu
    follows with probability `share`, so d is stationary if d = share d'chain + (1 - share) q, which
    gives q. It has no negative entry if share <= min_j d_j / (d'chain)_j.
    """
    n = len(d)
    q = (d - share * (d @ chain)) / (1.0 - share)
    P = np.stack([chain, np.tile(q, (n, 1))], axis=1)
    return P, np.tile([share, 1.0 - share], (n, 1)), np.tile([1.0, 0.0], (n, 1))
