"""Checks of the options of `make`: what, rule, value received."""

from __future__ import annotations

import numpy as np

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
