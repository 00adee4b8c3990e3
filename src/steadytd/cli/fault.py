"""A mistake of our own: one sentence and a file with the details, never a bare traceback."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

OUR_FAULT = "this is a mistake in steadytd, not in your input"  # tests look for it

interruptions: list[int] = []  # signals so far


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """What Ctrl-C does; noted, since a library that is being loaded makes an ImportError of it."""
    interruptions.append(number)
    raise KeyboardInterrupt


def unhandled(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception, as such libraries do; but not an interruption."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def sentence(error: BaseException) -> str:
    """What to tell a user of an exception that nobody foresaw."""
    kind = type(error).__name__
    where = _written(error)
    kept = "no report could be written" if where is None else f"a report is in '{where}'"
    return f"{OUR_FAULT} ({kind}); {kept}. Please send it with the command."


def _written(error: BaseException) -> Path | None:
    """The traceback in a file of its own that only this user may read."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="steadytd-report-", suffix=".txt", delete=False, encoding="utf-8",
            errors="backslashreplace",
        ) as file:  # fmt: skip
            file.write(f"command: {sys.argv}\npython: {platform.python_version()}\n")
            file.write(f"system: {platform.platform()}\n\n")
            file.writelines(traceback.format_exception(error))
            return Path(file.name)
    except OSError:
        return None
