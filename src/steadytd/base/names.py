"""Names that others chose: as names of files, and as text that a reader sees as it is.

A name (of a target, a problem, a law, a column) may be any text. Nothing else in the library makes
the name of a file from one, and nothing else decides which characters may reach a terminal, a page
or a drawing.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

PLAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ ,.=+()-]{0,78}[A-Za-z0-9_=+()-])?")
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])( *\..*)?", re.IGNORECASE)  # Windows
KEPT = 40  # characters of a name that is not plain
JOINERS = "\u200c\u200d"  # invisible, but some scripts and emoji are not written without


def file_name(name: str, among: Iterable[str] = ()) -> str:
    """A part of a file's name for `name`, never a path, for every file system.

    A plain name is its own file name: letters, digits and common signs, not hidden, not reserved.
    Of any other the plain characters are kept, with a hash of the whole behind a ~, which no plain
    name has: different names have different files. So do the names of `among` that differ in
    capital letters only, which some file systems do not tell apart.

    >>> file_name("collision"), file_name("random walk, 5 states"), file_name("../../escape")
    ('collision', 'random walk, 5 states', 'escape~efbf103bcec5')
    >>> file_name("Soft", ["Soft", "soft"]), file_name("nul"), file_name("größe")
    ('Soft~5964d4672956', 'nul~99e624275901', 'gr_e~d353a2671b67')
    """
    alike = any(other != name and other.lower() == name.lower() for other in among)
    if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name) and not alike:
        return name
    start = re.sub("[^A-Za-z0-9_-]+", "_", name).strip("_-")[:KEPT] or "name"
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{start}~{mark}"


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
