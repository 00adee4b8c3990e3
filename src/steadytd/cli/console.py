"""What the commands share: options, tables, JSON, pages, and names that users chose."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleDimensions
from rich.markup import escape

from steadytd.base.errors import InputError, visible
from steadytd.base.json import json_text
from steadytd.base.numbers import from_text
from steadytd.report import text


class Screen(Console):
    """As wide as the terminal, or as COLUMNS says; a pipe or a file has no width."""

    def __init__(self) -> None:
        super().__init__()
        self._width = None  # Rich has read COLUMNS; `size` reads it whenever it is asked

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        found = super().size
        if self.is_terminal or "COLUMNS" in os.environ:
            return found
        return ConsoleDimensions(text.NO_LIMIT, found.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        self._width, self._height = new


out = Screen()
err = Console(stderr=True)


def whole_number(given: str | int) -> int:
    """What a user writes for a whole number: 1000000, 1_000_000 or 1e6.

    >>> whole_number("1e6"), whole_number("1_000_000")
    (1000000, 1000000)
    """
    with suppress(ValueError, OverflowError):
        found = from_text(str(given))
        if found == int(found):
            return int(found)
    raise typer.BadParameter(
        f"{given!r} is not a whole number; write it as 1000000, 1_000_000 or 1e6."
    )


LOGS = (".parquet", ".pq", ".csv", ".csv.gz")
WHOLE: dict[str, Any] = {"parser": whole_number, "metavar": "N"}
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Threads = Annotated[
    int | None, typer.Option(**WHOLE, help="Number of threads; default: all processors.")
]
Full = Annotated[bool, typer.Option("--full", help="Print the rest, too, not only the answer.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
NoFigures = Annotated[
    bool, typer.Option("--no-figures", help="No SVG, PNG, PDF; the page draws its figures itself.")
]


def is_log(name: str) -> bool:
    """Whether an argument names a log, not a problem.

    >>> is_log("log.parquet"), is_log("logs/*.csv"), is_log("baird"), is_log("mine.npz")
    (True, True, False, False)
    """
    return name.lower().endswith(LOGS) or any(c in name for c in "*?[") or Path(name).is_dir()


def require_page(show: bool, directory: Path | None) -> None:
    """`--open` needs a page to open."""
    if show and directory is None:
        raise InputError("--open shows the page that --out writes; add --out DIR.")


def command_line() -> str:
    """What was called, to be called again."""
    import shlex

    return shlex.join(["steadytd", *sys.argv[1:]])


def print_page(page: Path | None, show: bool, as_json: bool) -> None:
    """Print where the page is, if there is one (not after JSON); open it with `--open`."""
    if page is None:
        return
    if not as_json:
        out.print(f"page: [bold]{plain(page)}[/]", highlight=False, soft_wrap=True)
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def plain(given: object, lines: bool = False) -> str:
    r"""Text as it is: not as Rich markup, and with nothing that a terminal would obey.

    With `lines`, ends of lines stay.

    >>> print(plain("[red]\x1b[31m"))
    \[red]\x1b[31m
    """
    return escape(visible(str(given), lines))


def say(remark: str) -> None:
    """A remark on standard error."""
    err.print(plain(remark), highlight=False, soft_wrap=True)


def print_parts(parts: Iterable[text.Line | text.Table | str]) -> None:
    """Sentences and tables, as wide as the terminal."""
    for part in parts:
        if isinstance(part, text.Table):
            out.print(text.drawn(part, out.width))
        else:
            line = part if isinstance(part, text.Line) else text.Line(part)
            out.print(text.styled(line), highlight=False)


def print_answer(
    parts: Iterable[text.Line | text.Table | str],
    rest: Iterable[text.Line | text.Table | str],
    full: bool,
) -> None:
    """What fits on the first screen; with `full` the rest, too, and else how to see it."""
    print_parts(parts)
    if full:
        out.print()
        print_parts(rest)
    elif out.is_terminal:
        out.print("[dim]More: the same command with --full.[/]", highlight=False)


def print_json(document: object) -> None:
    """One JSON document on standard output. Numbers that are not finite become null."""
    sys.stdout.write(json_text(document))
    sys.stdout.flush()


def print_prose(given: str) -> None:
    """A module's text: paragraphs as wide as the terminal, equations and examples as they are."""
    for i, block in enumerate(prose(given)):
        if i:
            out.print()
        seen = visible(block, lines=True)
        out.print(seen, highlight=False, markup=False, soft_wrap=block.startswith(" "))
    out.print()


def prose(given: str) -> list[str]:
    r"""The blocks of a text, each paragraph on one line; indented blocks keep their lines.

    >>> prose("A law: the\nfirst::\n\n    w += x\n    h += y\n")
    ['A law: the first:', '    w += x\n    h += y']
    """
    blocks = [block.rstrip() for block in given.strip("\n").split("\n\n") if block.strip()]
    return [
        block if any(line.startswith(" ") for line in block.splitlines())
        else re.sub(r"::$", ":", " ".join(block.split()))
        for block in blocks
    ]  # fmt: skip
