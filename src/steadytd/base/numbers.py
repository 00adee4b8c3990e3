"""Whole numbers, seeds and sizes as users ask for them: one rule for library and command line.

Sizes are counted before anything is built: too large a wish gets a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from numbers import Integral, Real

from steadytd.base.errors import InputError

LARGEST = 2**63 - 1
MOST_SEEDS = 1_000_000  # beyond that it is a slip of the pen
MOST_BYTES = 4e9  # that one array, table or archive may take, whatever the machine has
SHARE = 0.5  # of this machine's memory that it may take


def whole(name: str, value: object, least: int, most: int = LARGEST) -> int:
    """A whole number in [least, most]; 1e6 is one, but 1.5, "7" and True are not.

    >>> whole("steps", 1e6, 1)
    1000000
    """
    found = _integer(value)
    if found is None or not least <= found <= most:
        limited = most < LARGEST or (found is not None and found > most)
        rule = f">= {least} and <= {most}" if limited else f">= {least}"
        raise InputError(f"{name} must be a whole number {rule}, got {value!r}.")
    return found


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return int(number) if number.is_integer() else None


def one_seed(value: object, name: str = "seed") -> int:
    """A seed: an integer >= 0 and < 2^63; a float may have lost the digits that matter."""
    found = _integer(value) if isinstance(value, Integral) else None
    if found is None or not 0 <= found <= LARGEST:
        raise InputError(f"{name} must be a whole number >= 0 and < 2^63, got {value!r}.")
    return found


def all_seeds(given: object) -> list[int]:
    """The seeds 0, 1, ... from their number, or the different seeds that are given.

    >>> all_seeds(3), all_seeds(range(5, 7)), all_seeds([9, 1])
    ([0, 1, 2], [5, 6], [9, 1])
    """
    if isinstance(given, Real | str) or not isinstance(given, Iterable):
        return list(range(whole("seeds", given, 1, MOST_SEEDS)))
    some = list(islice(given, MOST_SEEDS + 1))
    if len(some) > MOST_SEEDS:
        raise InputError(f"seeds must be at most {MOST_SEEDS:,} numbers, got more; give fewer.")
    found = [one_seed(seed, "each of seeds") for seed in some]
    if not found or len(set(found)) < len(found):
        raise InputError(f"seeds must be different whole numbers, at least one, got {found}.")
    return found


def from_text(text: str) -> int | float:
    """A number as it is written: an integer where it is whole and has no point.

    >>> from_text("1_000_000"), from_text("1e6"), from_text("0.5"), from_text("2.0")
    (1000000, 1000000, 0.5, 2.0)
    """
    try:
        return int(text)
    except ValueError:
        number = float(text)
    return int(number) if number.is_integer() and "." not in text else number


class SizeError(InputError):
    """Something that would not fit into memory."""


def most_bytes() -> float:
    """What one thing may take of this machine's memory."""
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system says it
        return MOST_BYTES
    return min(MOST_BYTES, SHARE * memory)


def require_room(what: str, size: float, remedy: str) -> None:
    """Refuse what would take more bytes than there are, with the number and the remedy.

    >>> require_room("a table of 10 numbers", 80, "leave some out")
    """
    most = most_bytes()
    if size > most:
        raise SizeError(
            f"{what} would take {size / 1e9:,.3g} GB, more than the {most / 1e9:,.3g} GB that it "
            f"may take on this machine; {remedy}."
        )
