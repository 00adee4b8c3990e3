"""What the commands share: tables, JSON, progress, and errors without tracebacks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleDimensions, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from steadytd.base import progress
from steadytd.base.errors import InputError, visible
from steadytd.base.json import json_text
from steadytd.base.numbers import from_text, number
from steadytd.report import text

if TYPE_CHECKING:
    from steadytd.mdp.problem import Problem


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


WHOLE: dict[str, Any] = {"parser": whole_number, "metavar": "N"}
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Threads = Annotated[
    int | None, typer.Option(**WHOLE, help="Number of threads; default: all processors.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
NoFigures = Annotated[
    bool, typer.Option("--no-figures", help="No SVG, PNG, PDF; the page draws its figures itself.")
]


def find_problem(text: str) -> Problem:
    """A registered problem, perhaps with options (`collision:seed=7`), or a saved one (.npz)."""
    from steadytd.engine.learner import parse_params
    from steadytd.mdp.problem import load_problem
    from steadytd.problems import problem

    if text.endswith(".npz"):
        return load_problem(text)
    name, _, rest = text.partition(":")
    options: dict[str, Any] = dict(parse_params(f"problem {name}", rest))
    for key, value in options.items():
        with suppress(ValueError):  # other options are texts
            options[key] = from_text(value)
    return problem(name.strip(), **options)


def require_page(show: bool, directory: Path | None) -> None:
    """`--open` needs a page to open."""
    if show and directory is None:
        raise InputError("--open shows the page that --out writes; add --out DIR.")


def command_line() -> str:
    """What was called, to be called again."""
    import shlex

    return shlex.join(["steadytd", *sys.argv[1:]])


def print_page(page: Path, show: bool) -> None:
    """Say where the page is, and open it if that is wanted."""
    out.print(f"page: [bold]{plain(page)}[/]", highlight=False, soft_wrap=True)
    open_page(page, show)


def open_page(page: Path, show: bool) -> None:
    """Open the page in a browser, if that is wanted."""
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def plain(given: object) -> str:
    r"""Text as it is: not as Rich markup, and with nothing that a terminal would obey.

    >>> print(plain("[red]\x1b[31m"))
    \[red]\x1b[31m
    """
    return escape(visible(str(given)))


def coloured(good: bool, text: str) -> str:
    """Our own text as markup, green or yellow."""
    return f"[{'green' if good else 'yellow'}]{text}[/]"


def say(remark: str) -> None:
    """A remark on standard error."""
    err.print(plain(remark), highlight=False, soft_wrap=True)


def finding_lines(head: str, given: str, remedy: str = "") -> Iterator[RenderableType]:
    """A finding below its head, which is markup; a remedy comes last."""
    yield f"{head}:"
    for line, style in ((given, ""), (remedy, "italic")):
        if line:
            yield Padding(Text(visible(line), style), (0, 0, 0, 2), expand=False)


def print_finding(head: str, given: str, remedy: str = "") -> None:
    """Print a finding."""
    for line in finding_lines(head, given, remedy):
        out.print(line, highlight=False)


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


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> RenderableType:
    """A table as wide as the terminal; see `report.text`. Names that others chose are `plain`."""
    return text.table(title, columns, rows, out.width)


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
    made = Progress(*columns, console=err, transient=True, disable=not shown)
    with progress.other_bar() if shown else nullcontext(), made as bar:
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
            return f"{number(per_second / size, 2)}{prefix} {unit}/s"
    return f"{per_second:.0f} {unit}/s"
