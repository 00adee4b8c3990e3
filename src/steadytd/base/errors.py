"""Errors that a user can act on, and the "did you mean" that goes with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input. The message names the thing, the rule, the value received and the remedy."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """An `InputError` for a name that is not in `known`, with the closest match if there is one.

    >>> str(unknown("problem", "biard", ["baird", "three_state"]))
    "unknown problem 'biard'; did you mean 'baird'? Known: baird, three_state."
    """
    names = sorted(map(str, known))
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    return InputError(f"unknown {kind} '{name}'{hint} Known: {', '.join(names)}.")
