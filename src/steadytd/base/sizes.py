"""Sizes are counted before anything is built: too large a wish gets a sentence."""

from __future__ import annotations

import os

from steadytd.base.errors import InputError

MOST_BYTES = 4e9  # that one array, table or archive may take, whatever the machine has
SHARE = 0.5  # of this machine's memory that it may take


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
