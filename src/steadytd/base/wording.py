"""Lists, and names that others chose, for reading."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

JOINERS = "\u200c\u200d"  # invisible, but some scripts and emoji are not written without


def visible(text: str, lines: bool = False) -> str:
    r"""The text with everything that cannot be seen, or that changes what is seen, written out.

    Such are control characters (a terminal obeys them), marks that turn the direction of writing,
    halves of characters, and what is no character at all. With `lines`, ends of lines and tabs
    stay.

    >>> print(visible("a\x1b[31mb"), visible("\u202eabc"), visible("\ud800\ufffe größe"))
    a\x1b[31mb \u202eabc \ud800\ufffe größe
    """
    if text.isprintable():
        return text
    stays = JOINERS + ("\n\t" if lines else "")
    return "".join(
        c if c.isprintable() or c in stays or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )  # fmt: skip


def listed(words: Sequence[str]) -> str:
    """Words as a list for reading.

    >>> listed(["td"]), listed(["td", "etd", "tdc"])
    ('td', 'td, etd and tdc')
    """
    return ", ".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"
