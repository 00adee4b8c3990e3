"""Tables as data, and as text: on the terminal, and in what `print` shows of a result.

The same table is a part of a page (`parts.html`) and of a notebook. On the terminal Rich decides
how wide the columns are. A number is never cut or wrapped, a name folds between two settings, and
where even that is not enough every row becomes a short block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from steadytd.base.errors import visible

WIDTH = 80  # of what `print` shows
NO_LIMIT = 10_000  # columns of a pipe or a file: nothing is wrapped there
FOLD = 24  # letters of a long name that stay together where there is little room
ROOM = 120  # letters from which on a terminal has the columns of wide pages, too
GAP = 2  # blanks between two columns
WORDS = re.compile(r"[,:;/\s]+(?=[^,:;/\s])")  # a text folds behind these
ENDS = re.compile(r" to |, ")  # between numbers that may stand below each other
WHOLE = re.compile(r"$^")
GOOD = ("stable", "finite", "bounded", "settled", "better", "yes", "theory", "theory and paper")
OPEN = ("", "none", "not known", "cannot be told apart", "the same update here")
STYLES = {"good": "green", "worse": "dark_orange3", "care": "yellow", "bad": "red", "": ""}


class Line(NamedTuple):
    """A sentence: its colour, a word before it, and which of its letters are a policy's name."""

    text: str
    grade: str = ""
    head: str = ""
    name: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.head, self.text) if part)


class Column(NamedTuple):
    """A column: its head, and how its cells are shown."""

    head: str
    number: bool  # right-aligned, never folded
    whole: bool  # never folded
    verdict: bool  # coloured by what it says
    roomy: bool  # left out where there is little room

    @classmethod
    def of(cls, marked: str) -> Column:
        """From a head with signs: > a number, = whole, ! a verdict, + where there is room."""
        head = marked.lstrip(">=!+")
        signs = marked[: len(marked) - len(head)]
        return cls(head, *(sign in signs for sign in ">=!+"))

    @property
    def style(self) -> str:
        """Its class in a page."""
        known = (("number", self.number), ("whole", self.whole), ("wide", self.roomy))
        names = " ".join(name for name, so in known if so)
        return f' class="{names}"' if names else ""


class Table(NamedTuple):
    """Rows of texts under heads; what stands behind a line end is a smaller second line of a page.

    `best` are the numbers of the rows that are recommended, `named` the column that has their mark.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    best: tuple[int, ...] = ()
    named: int = 0
    mark: str = "recommended"

    @property
    def columns(self) -> list[Column]:
        """The columns."""
        return [Column.of(head) for head in self.heads]


def table_of(
    title: str, heads: Mapping[str, str], rows: Iterable[Mapping[str, Any]], named: int = 0
) -> Table:
    """A table from rows with names; those that say so are recommended."""
    found = list(rows)
    best = tuple(i for i, row in enumerate(found) if row.get("recommended"))
    cells = [[row[key] for key in heads] for row in found]
    return Table(title, tuple(heads.values()), cells, best, named)


def without(t: Table, i: int) -> Table:
    """The table without a column."""
    rows = [[*row[:i], *row[i + 1 :]] for row in t.rows]
    return t._replace(heads=(*t.heads[:i], *t.heads[i + 1 :]), rows=rows)


def grade(verdict: object) -> str:
    """How a verdict is coloured.

    >>> grade("stable"), grade("flat; no model to compare with"), grade("growing"), grade("none")
    ('good', 'care', 'bad', '')
    """
    if verdict in OPEN:
        return ""
    return "good" if verdict in GOOD else "care" if str(verdict).startswith("flat") else "bad"


class Cell:
    """A text that folds between words, and behind the commas and colons of a long name.

    Where it folds is given by a pattern; a single number does not fold.
    """

    def __init__(self, text: Text, folds: re.Pattern[str]) -> None:
        self.text = text
        self.pieces = text.divide([m.end() for m in folds.finditer(text.plain)])
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


def drawn(t: Table, width: int = WIDTH) -> RenderableType:
    """The table for a terminal.

    Texts fold. The ends of an interval stand below each other if there is no other way.
    """
    shown = [(i, column) for i, column in enumerate(t.columns) if width >= ROOM or not column.roomy]
    columns = [column for _, column in shown]
    texts = [[_text(t, r, i, column) for i, column in shown] for r in range(len(t.rows))]
    title = f"{t.title} (*: {t.mark})" if t.best and t.title else t.title
    heading = [Text(visible(title, lines=True), style="bold")] if title else []
    folds = [i for i, column in enumerate(columns) if not (column.number or column.whole)]
    longest = sorted(folds, key=lambda i: max((len(row[i]) for row in texts), default=0))[-1:]
    for folding in (longest, folds, range(len(columns))):
        cells = [
            [Cell(text, WHOLE if i not in folding else WORDS if i in folds else ENDS)
             for i, text in enumerate(row)]
            for row in texts
        ]  # fmt: skip
        if _fits(columns, cells, folding, width):
            return Group(*heading, _table(columns, cells, folding))
    return Group(*heading, *_blocks(columns, texts))


def _text(t: Table, row: int, i: int, column: Column) -> Text:
    first = str(t.rows[row][i]).partition("\n")[0]
    text = Text(visible(first), STYLES[grade(first)] if column.verdict else "", overflow="fold")
    return text.append(" *", "bold green") if row in t.best and i == t.named else text


def _fits(
    columns: Sequence[Column], cells: Sequence[Sequence[Cell]], folding: Sequence[int], width: int
) -> bool:
    """Whether no word and no number is cut if Rich divides what is left among what folds."""
    heads = [max(len(word) for word in (*column.head.split(), "")) for column in columns]
    most = [max([head, *(row[i].text.cell_len for row in cells)]) for i, head in enumerate(heads)]
    least = [max([head, *(row[i].least for row in cells)]) for i, head in enumerate(heads)]
    room = width - GAP * len(heads) - sum(m for i, m in enumerate(most) if i not in folding)
    wide = [i for i in folding if most[i] > room / len(folding)]
    room -= sum(most[i] for i in folding if i not in wide)
    return room >= 0 and all(least[i] <= room // len(wide) for i in wide)


def _table(
    columns: Sequence[Column], cells: Sequence[Sequence[Cell]], folding: Sequence[int]
) -> RichTable:
    made = RichTable(box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for i, (head, number, *_) in enumerate(columns):
        widest = max((row[i].text.cell_len for row in cells), default=len(head))
        shown = head if i in folding or len(head) <= widest else head.replace(" ", "\n")
        made.add_column(
            Text(shown), justify="right" if number else "left", no_wrap=i not in folding
        )
    for row in cells:
        made.add_row(*row)
    return made


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    """Every row by itself: its first cell, then a line for every other that is not empty."""
    for first, *others in rows:
        yield first
        for column, cell in zip(columns[1:], others, strict=True):
            if cell:
                yield Text(f"  {column.head}: ", overflow="fold").append_text(cell)
    yield Text()


def styled(line: Line) -> Text:
    """A sentence for a terminal: its name is underlined."""
    head = Text(visible(f"{line.head}: " if line.head and line.text else line.head), "bold")
    before, name, after = (
        line.text[: line.name[0]],
        line.text[slice(*line.name)],
        line.text[line.name[1] :],
    )
    colour = f"bold {STYLES[line.grade]}" if line.grade else ""
    for part, style in ((before, colour), (name, f"{colour} underline"), (after, colour)):
        head.append(visible(part), style)
    return head


def rendered(*parts: Table | Line | str, width: int = WIDTH) -> str:
    """Tables and sentences as plain text. Sentences are one line each, as the terminal has them."""
    text = StringIO()
    screen = Console(
        file=text, width=width, color_system=None, legacy_windows=False,
        force_jupyter=False,  # in a notebook Rich would show it there, and the text be empty
    )  # fmt: skip
    for part in parts:
        table = isinstance(part, Table)
        shown = drawn(part, width) if isinstance(part, Table) else str(part)
        screen.print(shown, highlight=False, markup=False, soft_wrap=not table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")
