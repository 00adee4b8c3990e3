"""Tables as text: on the terminal, and in what `print` shows of a result.

Rich decides how wide the columns are. A number is never cut or wrapped, a name folds between two
settings, and where even that is not enough every row becomes a short block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steadytd.base.errors import visible

WIDTH = 80  # of what `print` shows
NO_LIMIT = 10_000  # columns of a pipe or a file: nothing is wrapped there
FOLD = 24  # letters of a long name that stay together where there is little room
GAP = 2  # blanks between two columns
WORDS = re.compile(r"[,:;/\s]+(?=[^,:;/\s])")  # a text folds behind these
ENDS = re.compile(r" to |, ")  # between numbers that may stand below each other
WHOLE = re.compile(r"$^")


class Cell:
    """A text that folds between words, and behind the commas and colons of a long name.

    Where it folds is given by a pattern; a single number does not fold.
    """

    def __init__(self, markup: str, folds: re.Pattern[str]) -> None:
        self.text = Text.from_markup(markup, overflow="fold")
        self.pieces = self.text.divide([m.end() for m in folds.finditer(self.text.plain)])
        longest = max(piece.cell_len - _blanks(piece) for piece in self.pieces)
        self.least = min(longest, FOLD) if folds is WORDS else longest

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """At least the longest piece, at most all of it."""
        return Measurement(self.least, self.text.cell_len)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines of as many pieces as fit."""
        line = Text(overflow="fold")
        for piece in self.pieces:
            if line and line.cell_len + piece.cell_len - _blanks(piece) > options.max_width:
                line.rstrip()
                yield line
                line = Text(overflow="fold")
            line.append_text(piece)
        line.rstrip()
        yield line


def _blanks(piece: Text) -> int:
    """How many blanks a piece ends with: at the end of a line they take no room."""
    return len(piece.plain) - len(piece.plain.rstrip())


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], width: int = WIDTH
) -> RenderableType:
    """A table: texts to the left, numbers, the columns marked with >, to the right.

    Texts fold; in a column marked with = they stay whole. The ends of an interval stand below each
    other if there is no other way. Title and cells are Rich markup: names that others chose are
    given escaped.
    """
    names = [column.lstrip(">=") for column in columns]
    shown = [[visible(str(cell)) for cell in row] for row in rows]
    heading = [Text.from_markup(visible(title, lines=True), style="bold")] if title else []
    texts = [i for i, column in enumerate(columns) if not column.startswith((">", "="))]
    longest = sorted(texts, key=lambda i: max((len(row[i]) for row in shown), default=0))[-1:]
    for folding in (longest, texts, range(len(columns))):
        cells = [
            [Cell(cell, WHOLE if i not in folding else WORDS if i in texts else ENDS)
             for i, cell in enumerate(row)]
            for row in shown
        ]  # fmt: skip
        if _fits(names, cells, folding, width):
            return Group(*heading, _table(columns, cells, folding))
    return Group(*heading, *_blocks(names, shown))


def _fits(
    names: Sequence[str], cells: Sequence[Sequence[Cell]], folding: Sequence[int], width: int
) -> bool:
    """Whether no word and no number is cut if Rich divides what is left among what folds."""
    heads = [max(len(word) for word in (*name.split(), "")) for name in names]
    most = [max([head, *(row[i].text.cell_len for row in cells)]) for i, head in enumerate(heads)]
    least = [max([head, *(row[i].least for row in cells)]) for i, head in enumerate(heads)]
    room = width - GAP * len(names) - sum(m for i, m in enumerate(most) if i not in folding)
    wide = [i for i in folding if most[i] > room / len(folding)]
    room -= sum(most[i] for i in folding if i not in wide)
    return room >= 0 and all(least[i] <= room // len(wide) for i in wide)


def _table(
    columns: Sequence[str], cells: Sequence[Sequence[Cell]], folding: Sequence[int]
) -> Table:
    made = Table(box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for i, column in enumerate(columns):
        name = column.lstrip(">=")
        widest = max((row[i].text.cell_len for row in cells), default=len(name))
        head = name if i in folding or len(name) <= widest else name.replace(" ", "\n")
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        made.add_column(head, justify=justify, no_wrap=i not in folding)
    for row in cells:
        made.add_row(*row)
    return made


def _blocks(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    """Every row by itself: its first cell, then a line for every other that is not empty."""
    for first, *others in rows:
        yield Text.from_markup(first, overflow="fold")
        for name, cell in zip(names[1:], others, strict=True):
            if cell:
                yield Text.from_markup(f"  {escape(name)}: {cell}", overflow="fold")
    yield Text()


def rendered(*parts: RenderableType, width: int = WIDTH) -> str:
    """Tables and sentences as plain text. Sentences are one line each, as the terminal has them."""
    text = StringIO()
    screen = Console(
        file=text, width=width, color_system=None, legacy_windows=False,
        force_jupyter=False,  # in a notebook Rich would show it there, and the text be empty
    )  # fmt: skip
    for part in parts:
        screen.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")
