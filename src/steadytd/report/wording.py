"""Numbers and lists as words for reading."""

from __future__ import annotations

from collections.abc import Sequence

NO_BREAK = "\N{NO-BREAK SPACE}"


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


def large(number: int) -> str:
    """A large number for reading.

    >>> large(5_510_000_000), large(30_000_000), large(9_500)
    ('5.51 billion', '30 million', '9,500')
    """
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def percent(share: float) -> str:
    """A share for reading.

    >>> [percent(x).replace(NO_BREAK, " ") for x in (0.0157, 0.5, 0.0, 1.9, 0.99986)]
    ['1.6 %', '50 %', '0 %', '190 %', '99.99 %']
    """
    value = 100.0 * share
    if value == 0.0 or value >= 10.0:
        number = f"{value:.4g}" if 99.5 <= value < 100.0 else f"{value:,.0f}"
    else:
        number = f"{value:.2g}"
    return f"{number}{NO_BREAK}%"


def ordinal(place: int) -> str:
    """A place in a ranking.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    last = 0 if place // 10 % 10 == 1 else place % 10
    return str(place) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
