"""A line that says how far a long computation is, where somebody looks: a terminal, a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

Progress = Callable[[int, int], None]
PATIENCE = 2.0  # seconds without a word
OFTEN = 0.2  # seconds between two words


_speaking: list[None] = []  # one entry per caller that speaks itself


def watched() -> bool:
    """Whether standard error is a terminal, or a notebook's, and nobody else speaks there."""
    return not _speaking and (sys.stderr.isatty() or "ipykernel" in sys.modules)


@contextmanager
def speaking() -> Iterator[None]:
    """While a caller has a bar of its own on standard error, nothing is written between."""
    _speaking.append(None)
    try:
        yield
    finally:
        _speaking.pop()


@contextmanager
def shown(given: Progress | None, what: str) -> Iterator[Progress | None]:
    """Yield the caller's own progress function, or one that writes a line on standard error.

    The line appears after two seconds and goes away at the end. Where nobody looks there is none.
    """
    if given is not None or not watched():
        yield given
        return
    line = _Line(what)
    try:
        yield line.update
    finally:
        line.clear()


class _Line:
    """The line, written over itself."""

    def __init__(self, what: str) -> None:
        self.what, self.start, self.last, self.wide = what, time.monotonic(), 0.0, 0
        self.first: tuple[float, int] | None = None
        self.lock = Lock()

    def update(self, done: int, total: int) -> None:
        """Say how much is done of how much, if it is time to."""
        now = time.monotonic()
        with self.lock:
            first, before = self.first = self.first or (now, done)  # what came before is compiling
            if now - self.start < PATIENCE or now - self.last < OFTEN or done <= before:
                return
            self.last = now
            left = (now - first) * (total - done) / (done - before)
            self._write(f"{self.what}: {100 * done // total} %, {left:.0f} s left")

    def clear(self) -> None:
        """Take the line away."""
        if self.wide:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self.wide))
        sys.stderr.flush()
        self.wide = max(self.wide, len(text))
