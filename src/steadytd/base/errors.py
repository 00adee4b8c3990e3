"""Errors that a user can act on, and names that users chose as text that is safe to print."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

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


class InputError(ValueError):
    r"""Bad input. The message names the thing, the rule, the value received and the remedy.

    A name in it may hold anything: what a terminal would obey is written out.

    >>> print(InputError("there is no file '\x1b[31m'."))
    there is no file '\x1b[31m'.
    """

    def __str__(self) -> str:
        return visible(str(self.args[0]) if self.args else "", lines=True)


class Faults(InputError):  # noqa: N818 (what it holds are errors)
    """Several faults of one input, said at once. Each is caught, and then all are raised.

    >>> faults = Faults("a.csv")
    >>> for text in ("a.csv: no reward", "a.csv: no action."):
    ...     with faults.caught():
    ...         raise InputError(text)
    >>> faults.remedy = "Name them."
    >>> faults.check()
    Traceback (most recent call last):
    steadytd.base.errors.Faults: a.csv: 2 things are missing or wrong:
      1. no reward.
      2. no action.
    Name them.
    """

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.found: list[InputError] = []
        self.remedy = ""  # of them together

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep an `InputError`, and go on."""
        try:
            yield
        except InputError as error:
            self.keep(error)

    def keep(self, error: InputError) -> None:
        """Keep an error, or the several that it is; none twice."""
        if isinstance(error, Faults):
            self.remedy = error.remedy
        for one in error.found if isinstance(error, Faults) else [error]:
            if str(one) not in map(str, self.found):
                self.found.append(one)

    def add(self, text: str) -> None:
        """Keep a fault of the input as a whole."""
        self.found.append(InputError(f"{self.args[0]}: {text.removesuffix('.')}."))

    def check(self) -> None:
        """Raise what was found, if anything was."""
        if len(self.found) == 1 and not self.remedy:
            raise self.found[0]
        if self.found:
            raise self

    def __str__(self) -> str:
        where = f"{self.args[0]}: "
        if len(self.found) == 1:
            return f"{str(self.found[0]).removesuffix('.')}. {self.remedy}"
        texts = [str(error).removeprefix(where).removesuffix(".") for error in self.found]
        lines = "".join(f"\n  {i}. {text}." for i, text in enumerate(texts, 1))
        end = f"\n{self.remedy}" if self.remedy else ""
        return visible(f"{where}{len(texts)} things are missing or wrong:{lines}{end}", lines=True)


def unknown(kind: str, name: object, known: Iterable[str], remedy: str = "") -> InputError:
    """An `InputError` for a name that is not in `known`, with the closest match if there is one.

    `remedy` is a sentence on another way to what may have been meant.

    >>> str(unknown("problem", "biard", ["baird", "three_state"]))
    "unknown problem 'biard'; did you mean 'baird'? Known: baird, three_state."
    """
    names = sorted(map(str, known))
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    other_way = f" {remedy}" if remedy else ""
    return InputError(f"unknown {kind} '{name}'{hint} Known: {', '.join(names)}.{other_way}")


@contextmanager
def users_own(what: str) -> Iterator[None]:
    """Run code of the user's: an `InputError` that names it if it fails, with the cause behind.

    >>> with users_own("the target 'new'"):
    ...     1 / 0
    Traceback (most recent call last):
    steadytd.base.errors.InputError: the target 'new' failed: ZeroDivisionError (division by zero).
    """
    try:
        yield
    except InputError:  # from a call of ours: a sentence already
        raise
    except Exception as error:
        cause = f"{type(error).__name__}{f' ({error})' if str(error) else ''}."
        raise InputError(f"{what} failed: {cause}") from error
