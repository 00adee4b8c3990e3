"""Numbers from users and for users: whole numbers and sizes are checked, results are formatted.

Library, command line and pages share both: one rule for what a number of steps is, and one for how
many digits of a result are shown.
"""

from __future__ import annotations

import math
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
        raise InputError(f"seeds must be one or more distinct whole numbers, got {found}.")
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


def machine_memory() -> float:
    """The memory of this machine in bytes; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return math.inf


def most_bytes() -> float:
    """What one thing may take of this machine's memory."""
    return min(MOST_BYTES, SHARE * machine_memory())


def require_room(what: str, size: float, remedy: str) -> None:
    """Refuse what would take more bytes than there are, with the number and the remedy.

    >>> require_room("a table of 10 numbers", 80, "leave some out")
    """
    most = most_bytes()
    if size > most:
        raise SizeError(
            f"{what} would take {memory(size)}, more than the {memory(most)} allowed on this "
            f"machine; {remedy}."
        )


# Numbers for reading. Every text, table and page shows its numbers through these functions.

TINY = 1e-10  # below this the digits of a number mean nothing to a reader
NO_BREAK = "\N{NO-BREAK SPACE}"
LARGEST_COUNT = 10**12  # beyond this nobody waits: "more than a trillion"
SCALES = ((LARGEST_COUNT, "trillion"), (10**9, "billion"), (10**6, "million"))


def number(value: float | None, digits: int = 4) -> str:
    """A number whose uncertainty is not known: to `digits` significant digits.

    >>> number(2.98633), number(72190.4), number(1.3997e12), number(0.5), number(2e-5)
    ('2.986', '72,190', '1.4e12', '0.5', '2e-5')
    >>> number(2.2e-40), number(-2.2e-40), number(0.0), number(float("inf")), number(None)
    ('< 1e-10', '0', '0', '∞', '')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0.0 else "-∞"
    if abs(value) < TINY:
        return f"< {_power(TINY, 1)}" if value > 0.0 else "0"
    if not 1e-3 <= abs(value) < 1e6:
        return _power(value, digits)
    return _plain(value, digits - 1 - _exponent(value), trim=True)


def with_error(value: float | None, stderr: float | None) -> str:
    """A number with its standard error, both to the digits that the error leaves.

    The error has two significant digits where it begins with 1 or 2, else one.

    >>> with_error(2.98021, 0.009), with_error(0.01356, 0.011), with_error(143.5, 134.9)
    ('2.980 ± 0.009', '0.014 ± 0.011', '140 ± 130')
    >>> with_error(8.2281e8, 2.479e8), with_error(2.5, 3e-12), with_error(2e-40, 1e-40)
    ('(8.2 ± 2.5)e8', '2.5 ± 3e-12', '< 1e-10')
    """
    if value is None or stderr is None or not math.isfinite(value):
        return number(value)
    if not math.isfinite(stderr) or stderr <= 0.0:
        return f"{number(value)} ± {number(abs(stderr))}"
    if max(abs(value), stderr) < TINY:
        return number(abs(value))
    if stderr < 1e-7 * abs(value):
        return f"{number(value, 6)} ± {_power(stderr, 2)}"
    power = _exponent(max(abs(value), stderr))
    if -3 <= power < 6:
        return f"{rounded(value, stderr)} ± {rounded(stderr, stderr)}"
    small = 10.0**-power
    return f"({with_error(small * value, small * stderr)})e{power}"


def interval(low: float, high: float) -> str:
    """Two ends to the digits that half their distance leaves; one number if they look the same.

    >>> interval(1.3555, 1.4542), interval(0.004, 2.0), interval(1.937, 5881.2), interval(3, 3)
    ('1.36 to 1.45', '0.004 to 2.0', '2 to 5,900', '3')
    >>> interval(0, 1e-94), interval(6.813, 5.37e7), interval(0.5, float("inf"))
    ('< 1e-10', '6.8 to 5.4e7', '0.5 to ∞')
    """
    if max(abs(low), abs(high)) < TINY:
        return number(max(abs(low), abs(high)))
    half = (high - low) / 2.0
    largest = max(abs(low), abs(high))
    if 1e-4 <= half < math.inf and largest < 1e6:
        ends = [rounded(low, half), rounded(high, half)]
    else:
        digits = 4 if not 0.0 < half < math.inf else _exponent(largest) - _exponent(half) + 1
        ends = [number(x, min(max(digits, 2), 4)) for x in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def rounded(value: float, uncertainty: float) -> str:
    """A number to the last digit of its uncertainty; what is not 0 does not look like 0.

    >>> rounded(0.61324, 0.035), rounded(12345.6, 210.0), rounded(0.004, 1.0), rounded(-1e-15, 1.0)
    ('0.61', '12,350', '0.004', '0.0')
    """
    if not (math.isfinite(value) and math.isfinite(uncertainty) and uncertainty > 0.0):
        return number(value)
    leading = float(f"{uncertainty:.1e}".partition("e")[0])
    text = _plain(value, (1 if leading < 3.0 else 0) - _exponent(uncertainty))
    if float(text.replace(",", "")) == 0.0 and abs(value) > 1e-9 * uncertainty:
        return number(value, 1)
    return text


def count(amount: float, noun: str = "", plural: str = "") -> str:
    """How many: in full below a million, then to three digits.

    >>> count(1, "seed"), count(5510, "configuration"), count(2, "policy", "policies")
    ('1 seed', '5,510 configurations', '2 policies')
    >>> count(2_947_799_935, "step"), count(30_000_000), count(9_500)
    ('2.95 billion steps', '30 million', '9,500')
    """
    text = f"{amount:,.0f}"
    if round(amount) >= SCALES[-1][0]:
        amount = float(f"{amount:.3g}")
        size, name = next((size, name) for size, name in SCALES if amount >= size)
        text = f"{number(amount / size, 3)} {name}"
    if not noun:
        return text
    return f"{text} {noun if text == '1' else plural or noun + 's'}"


def about(amount: float, noun: str = "") -> str:
    """How many, where two digits are known or are enough.

    >>> about(41_234.5, "step"), about(3_449_000), about(12.2), about(4e15)
    ('about 41,000 steps', 'about 3.4 million', 'about 12', 'more than a trillion')
    """
    if amount > LARGEST_COUNT:
        return "more than a trillion" + (f" {noun}s" if noun else "")
    return f"about {count(float(f'{amount:.2g}'), noun)}"


def percent(share: float) -> str:
    """A share.

    >>> [percent(x).replace(NO_BREAK, " ") for x in (0.0157, 0.5, 0.0, 1.9, 0.99986)]
    ['1.6 %', '50 %', '0 %', '190 %', '99.99 %']
    """
    value = 100.0 * share
    if value == 0.0 or value >= 10.0:
        text = f"{value:.4g}" if 99.5 <= value < 100.0 else f"{value:,.0f}"
    else:
        text = f"{value:.2g}"
    return f"{text}{NO_BREAK}%"


def ordinal(place: int) -> str:
    """A place in a ranking.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    last = 0 if place // 10 % 10 == 1 else place % 10
    return str(place) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")


def memory(size: float) -> str:
    """A number of bytes.

    >>> memory(3.2e9), memory(45_000), memory(12)
    ('3.2 GB', '45 kB', '12 bytes')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{number(size / unit, 3)} {name}"
    return count(size, "byte")


def duration(seconds: float) -> str:
    """A time.

    >>> duration(0.012), duration(4.26), duration(75), duration(7300)
    ('0.01 s', '4.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 9.95:
        return f"{number(seconds, 1 if seconds < 1.0 else 2)} s"
    whole_seconds = round(seconds)
    if whole_seconds < 60:
        return f"{whole_seconds} s"
    if whole_seconds < 3600:
        return f"{whole_seconds // 60} min {whole_seconds % 60} s"
    return f"{whole_seconds // 3600:,} h {whole_seconds % 3600 // 60} min"


def _exponent(value: float) -> int:
    """The power of ten of the first digit that is shown."""
    return int(f"{value:.1e}".partition("e")[2])


def _plain(value: float, decimals: int, trim: bool = False) -> str:
    """With so many decimals, or, if that is negative, rounded to tens, hundreds, ..."""
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removeprefix("-") if float(text.replace(",", "")) == 0.0 else text


def _power(value: float, digits: int) -> str:
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(power)}"
