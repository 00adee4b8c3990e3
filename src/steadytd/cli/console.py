"""What the commands share: tables, JSON, progress, and errors without tracebacks."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from steadytd.base.json import json_text
from steadytd.base.numbers import from_text
from steadytd.base.wording import visible

out = Console()
err = Console(stderr=True)


def whole_number(text: str | int) -> int:
    """What a user writes for a whole number: 1000000, 1_000_000 or 1e6.

    >>> whole_number("1e6"), whole_number("1_000_000")
    (1000000, 1000000)
    """
    try:
        number = from_text(str(text))
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(
        f"{text!r} is not a whole number; write it as 1000000, 1_000_000 or 1e6."
    )


NAME = 32  # characters of a name that are kept on one line
WHOLE: dict[str, Any] = {"parser": whole_number, "metavar": "N"}


def plain(text: object) -> str:
    r"""Text as it is: not as Rich markup, and with nothing that a terminal would obey.

    >>> print(plain("[red]\x1b[31m"))
    \[red]\x1b[31m
    """
    return escape(visible(str(text)))


def say(text: str) -> None:
    """A remark on standard error."""
    err.print(plain(text), highlight=False, soft_wrap=True)


def print_json(document: object) -> None:
    """One JSON document on standard output. Numbers that are not finite become null."""
    sys.stdout.write(json_text(document))
    sys.stdout.flush()


def print_prose(text: str) -> None:
    """A module's text: paragraphs as wide as the terminal, equations and examples as they are."""
    for i, block in enumerate(prose(text)):
        if i:
            out.print()
        seen = visible(block, lines=True)
        out.print(seen, highlight=False, markup=False, soft_wrap=block.startswith(" "))
    out.print()


def prose(text: str) -> list[str]:
    r"""The blocks of a text, each paragraph on one line; indented blocks keep their lines.

    >>> prose("A law: the\nfirst::\n\n    w += x\n    h += y\n")
    ['A law: the first:', '    w += x\n    h += y']
    """
    blocks = [block.rstrip() for block in text.strip("\n").split("\n\n") if block.strip()]
    return [
        block if any(line.startswith(" ") for line in block.splitlines())
        else re.sub(r"::$", ":", " ".join(block.split()))
        for block in blocks
    ]  # fmt: skip


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table; the first column and texts to the left, the columns marked with > to the right.

    Title and cells are Rich markup: names that others chose are given as `plain`.
    """
    made = Table(
        title=visible(title, lines=True), title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    made.pad_edge = False
    names = [column.removeprefix(">") for column in columns]
    numbers = [column.startswith(">") for column in columns]
    shown = [[visible(str(cell)) for cell in row] for row in rows]
    cells = [[name, *(render(row[i]).plain for row in shown)] for i, name in enumerate(names)]
    room = out.width - 3 * len(columns) + 1  # three characters stand between cells
    for name, number, width in zip(names, numbers, _widths(cells, numbers, room), strict=True):
        justify: Literal["left", "right"] = "right" if number else "left"
        made.add_column(name, justify=justify, overflow="fold", width=width)
    for row in shown:
        made.add_row(*row)
    return made


def _widths(cells: list[list[str]], numbers: list[bool], room: int) -> list[int]:
    """As wide as the longest cells; if there is no room for that, some cells are wrapped.

    Long texts are wrapped first, and all between words; only names in the first column that are
    longer than `NAME` are cut where the line ends.

    >>> _widths([["a name"], ["a longer text"], ["1.5 ± 0.1"]], [False, False, True], 20)
    [5, 6, 9]
    """
    wanted = [max(map(cell_len, column)) for column in cells]
    widths = [
        max(cell_len(word) for cell in column for word in (*cell.split(), "")) for column in cells
    ]
    widths[0] = min(widths[0], NAME)
    left = room - sum(widths)
    for i in sorted(range(len(cells)), key=lambda i: (not numbers[i], i > 0, wanted[i])):
        more = min(wanted[i] - widths[i], max(left, 0))
        widths[i] += more
        left -= more
    widths[0] = max(widths[0] + min(left, 0), 1)
    return widths


@contextmanager
def progress_bar(
    what: str, unit: str = "updates", then: str | None = None
) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error with units per second and the time left.

    `then` takes the place of `what` when everything is counted but work goes on.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    shown = err.is_terminal  # in a file a bar is only noise
    with Progress(*columns, console=err, transient=True, disable=not shown) as bar:
        task = bar.add_task(what, total=None, rate="compiling on first use")

        def update(done: int, total: int) -> None:
            elapsed: Any = bar.tasks[0].elapsed
            rate = speed(done / elapsed, unit) if elapsed else ""
            now = then if then is not None and done >= total else what
            bar.update(task, completed=done, total=total, rate=rate, description=now)

        yield update


def speed(per_second: float, unit: str) -> str:
    """A rate for reading.

    >>> speed(61_234_567, "updates"), speed(1_234_567, "rows"), speed(45_678, "rows")
    ('61 M updates/s', '1.2 M rows/s', '46 k rows/s')
    """
    for size, prefix in ((1e6, " M"), (1e3, " k")):
        if per_second >= size:
            scaled = per_second / size
            return (
                f"{scaled:.0f}{prefix} {unit}/s"
                if scaled >= 10
                else f"{scaled:.1f}{prefix} {unit}/s"
            )
    return f"{per_second:.0f} {unit}/s"
