"""Names that nobody chooses by accident, and a disk that stops at a chosen moment; all seeded."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

NASTY = (
    "../../escape", "/x", ".hidden", "..", "", " ", "x" * 300, "a/b", "a\\b", "C:\\x",
    "nul", "CON.txt", "com1", "-rf", "~root", "a\0b", "\x1b[31mred", "\x1b]0;title\x07",
    "a\nb", "a\r\nb", "\x9b31m", "\ufffe", "\uffff", "\ud800", "\udfff\ud800",
    "\u202egnp.exe", "\u2066a\u2069", "\u2028", "\ufeff", "[red]", "[/x]", "[/]", "\\[",
    "a\\", "<script>alert(1)</script>", "&amp;", "\"'", "]]>", "-->", "{{ x }}", "{% x %}",
    "größe", "gro\u0308ße", "💡\u200d🔬", "目标", "td", "Td", "TD", "soft5", "a.b", "trailing.",
    "trailing ", "random walk, 5 states", "1e5", "NaN", "null", "a,b\"c", "%s%n", "$HOME",
)  # fmt: skip


def drawn_names(count: int, seed: int = 14) -> list[str]:
    """Different names: the nasty ones, and pieces of them strung together."""
    draw = Random(seed)
    found = dict.fromkeys(NASTY)
    while len(found) < count:
        pieces = [draw.choice(NASTY) for _ in range(draw.randint(1, 3))]
        pieces += [chr(draw.choice((draw.randrange(160), draw.randrange(0x110000))))]
        draw.shuffle(pieces)
        name = "".join(pieces)[: draw.randint(1, 90)]
        found.setdefault(draw.choice((name, name.upper(), name.lower())))
    return list(found)[:count]


class Killed(BaseException):
    """The process is gone: nothing is tidied up."""


OPERATIONS = ("open", "replace", "rename", "unlink", "mkdir", "rmdir", "chmod", "link")


@contextmanager
def stopping_disk(
    monkeypatch: pytest.MonkeyPatch, at: int, *, dead: bool
) -> Iterator[Callable[[], int]]:
    """From the `at`-th change of the file system on, none is made; yields how many were asked for.

    `dead`: the process is killed there. Else the disk is full at that one moment.
    """
    count = 0

    def stop(name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def changed(*args: Any, **options: Any) -> Any:
            nonlocal count
            if name == "open" and not (args[1] if len(args) > 1 else 0) & os.O_CREAT:
                return original(*args, **options)
            count += 1
            if dead and count >= at:
                raise Killed
            if count == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*args, **options)

        return changed

    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, stop(name))
        yield lambda: count
