"""A progress bar for long computations, where a person watches: in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
PATIENCE = 2.0  # seconds before a bar appears


def watched() -> bool:
    """Whether a person watches standard error."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def reporting(progress: Progress | None, description: str) -> Iterator[Progress | None]:
    """Yield the caller's own progress function, or one that draws a bar on standard error.

    The bar appears after two seconds and is removed at the end. Where nobody watches there is none.
    """
    if progress is not None or not watched():
        yield progress
        return
    from rich import progress as rich
    from rich.console import Console

    # Rich's own output for notebooks needs ipywidgets; they also render what a terminal gets.
    console = Console(stderr=True, force_terminal=True, force_jupyter=False)
    bar = rich.Progress(console=console, transient=True)
    task, begin = bar.add_task(description, total=None), time.monotonic()

    def update(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not bar.live.is_started and time.monotonic() - begin > PATIENCE:
            bar.start()

    try:
        yield update
    finally:
        bar.stop()
