"""Numbers, lists and names that others chose as words for reading."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

JOINERS = "\u200c\u200d"  # invisible, but some scripts and emoji are not written without
TINY = 1e-10  # numbers below this are shown as such: their digits mean nothing to a reader


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


def count(number: int, what: str) -> str:
    """A number of things.

    >>> count(1, "learner"), count(5510, "configuration")
    ('1 learner', '5,510 configurations')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def without_sign_of_zero(number: str) -> str:
    """A number that is rounded to 0 has no sign.

    >>> without_sign_of_zero("-0.00"), without_sign_of_zero("-0.01")
    ('0.00', '-0.01')
    """
    return number.removeprefix("-") if float(number) == 0.0 else number


def decimals(value: float, digits: int, width: float) -> str:
    """With so many decimals; what is not 0 beside an interval of this width does not look like 0.

    >>> decimals(0.004, 1, 2.0), decimals(1e-12, 1, 2.0), decimals(-1.26, 1, 2.0)
    ('0.004', '0.0', '-1.3')
    """
    text = f"{value:.{max(digits, 0)}f}"
    if float(text) == 0.0 and abs(value) > 1e-9 * width:
        return f"{value:.1g}"
    return without_sign_of_zero(text)


def figures(value: float | None, stderr: float | None = None) -> str:
    """A number for reading, with its standard error if given.

    >>> figures(2.98633, 0.00051), figures(1.3997e12), figures(2.2e-40), figures(143.5, 134.9)
    ('2.986 ± 0.00051', '1.40e+12', '< 1e-10', '143.5 ± 130')
    """
    if value is None:
        return ""
    if value == float("inf"):
        return "overflowed"
    if value == 0.0:
        return "0"
    if abs(value) < TINY:
        return f"< {TINY:g}"
    text = f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"
    return text if stderr is None else f"{text} ± {_two_digits(stderr)}"


def beside(value: float, width: float) -> str:
    """As `figures`, but what is small is shown beside an interval that is as small.

    >>> beside(2.5e-13, 1e-12), beside(2.5e-13, 1.0), beside(-0.25, 1.0), beside(0.0, 0.0)
    ('2.50e-13', '0', '-0.25', '0')
    """
    if 0.0 < abs(value) < TINY:
        return "0" if abs(value) <= 1e-9 * width else f"{value:.2e}"
    return figures(value)


def _two_digits(value: float) -> str:
    if value == float("inf"):
        return "unbounded"
    if not 1e-4 <= value < 1e5:
        return f"{value:.1e}"
    return f"{float(f'{value:.2g}'):.6g}"
