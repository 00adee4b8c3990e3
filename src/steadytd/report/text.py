"""Tables as text: on the terminal, and in what `print` shows of a result.

A number is never cut or wrapped. Where there is little room names fold, between two settings of a
learner, and where even that is not enough every row becomes a short block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape, render
from rich.table import Table
from rich.text import Text

from steadytd.base.wording import visible

WIDTH = 80  # of what `print` shows
WIDE, NARROW = 3, 2  # columns between two cells; narrow where a text would fold otherwise
FOLD = 24  # letters of a long piece of a word that stay together where there is little room
SEVERAL = re.compile(r"(?<= to) |(?<=,) ")  # between numbers that may stand below each other
PIECE = re.compile(r"(?<=[,:;/])(?=\S)")  # a name folds behind these, between two settings


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], width: int = WIDTH
) -> RenderableType:
    """A table: texts to the left, numbers, the columns marked with >, to the right.

    Texts fold; in a column marked with = they stay whole, as numbers do. Title and cells are Rich
    markup: names that others chose are given escaped.
    """
    names = [column.lstrip(">=") for column in columns]
    numbers = [column.startswith((">", "=")) for column in columns]
    shown = [[visible(str(cell)) for cell in row] for row in rows]
    cells = [[render(row[i]).plain for row in shown] for i in range(len(names))]
    heading = visible(title, lines=True)
    for parts, gap in ((False, WIDE), (False, NARROW), (True, WIDE), (True, NARROW)):
        room = width - gap * (len(names) - 1) - 2
        found = widths(names, cells, numbers, room, parts=parts)
        if found is not None and (gap == NARROW or parts or not _folds(cells, found)):
            break
    else:
        return _blocks(heading, names, shown)
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, gap - 2), pad_edge=False)
    for column, name, wide in zip(columns, names, found, strict=True):
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        made.add_column(name, justify=justify, overflow="fold", width=wide)
    for row in shown:
        fitted = zip(row, numbers, found, strict=True)
        made.add_row(*((_parts if number else folded)(cell, wide) for cell, number, wide in fitted))
    return Group(_title(heading), made) if heading else made


def _folds(cells: Sequence[Sequence[str]], found: Sequence[int]) -> bool:
    """Whether a cell is longer than its column is wide."""
    return any(
        cell_len(x) > wide for column, wide in zip(cells, found, strict=True) for x in column
    )


def _title(heading: str) -> Text:
    return Text.from_markup(heading, style="bold")


def _parts(cell: str, width: int) -> str:
    """Several numbers on a line each, if they do not stand side by side."""
    return cell if cell_len(render(cell).plain) <= width else SEVERAL.sub("\n", cell)


def folded(cell: str, width: int) -> str:
    """Plain text with line ends inside words that are too long, where they may fold.

    >>> folded("perturbed_td:alpha=0.001,eta=0.5", 20).splitlines()
    ['perturbed_td:', 'alpha=0.001,eta=0.5']
    """
    if "[" in cell or all(cell_len(word) <= width for word in cell.split()):
        return cell
    lines = [""]
    for piece in (part for word in re.split(r"(?<= )", cell) for part in PIECE.split(word)):
        if cell_len(lines[-1] + piece.rstrip()) <= width:
            lines[-1] += piece
        else:
            lines.append(piece)
    return "\n".join(line.rstrip() for line in lines if line)


def widths(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    room: int,
    *,
    parts: bool = False,
) -> list[int] | None:
    """The columns' widths: numbers whole, texts as far as there is room; None if there is not.

    Texts are wrapped between words as long as that is enough, then long words fold. With `parts`
    the ends of an interval may stand below each other.

    >>> widths(["name", "what"], [["td"], ["a longer text"]], [False, False], 20)
    [4, 13]
    >>> widths(["name", "error"], [["perturbed_td:alpha=0.001"], ["1.5 ± 0.1"]], [False, True], 28)
    [19, 9]
    >>> widths(["name", "error"], [["perturbed_td:alpha=0.001"], ["1.5 ± 0.1"]], [False, True], 18)
    """
    heads = [max(map(cell_len, (*name.split(), ""))) for name in names]
    lines = [[x for c in column for x in (SEVERAL.split(c) if parts else [c])] for column in cells]
    longest = [max(map(cell_len, (*column, ""))) for column in lines]
    words = [[word for cell in column for word in (*cell.split(), "")] for column in cells]
    pieces = [[piece for word in some for piece in PIECE.split(word)] for some in words]
    found = [
        max(head, wide if number else min(max(map(cell_len, (*some, ""))), FOLD))
        for head, wide, some, number in zip(heads, longest, pieces, numbers, strict=True)
    ]
    left = room - sum(found)
    if left < 0:
        return None
    texts = [i for i, number in enumerate(numbers) if not number]
    unfolded = {i: max(heads[i], *map(cell_len, (*words[i], ""))) for i in texts}
    whole = [max(map(cell_len, (*column, ""))) for column in cells]
    wanted = {i: max(cell_len(names[i]), whole[i]) for i in range(len(names))}
    for goal, order in ((unfolded, texts), (wanted, range(len(names)))):
        for i in sorted(order, key=lambda i: goal[i] - found[i]):
            more = max(min(goal[i] - found[i], left), 0)
            found[i] += more
            left -= more
    return found


def _blocks(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Every row by itself: its first cell, then a line for every other that is not empty."""
    parts: list[RenderableType] = [_title(title)] if title else []
    for first, *others in rows:
        parts.append(Text.from_markup(first, overflow="fold"))
        for name, cell in zip(names[1:], others, strict=True):
            if cell:
                parts.append(Text.from_markup(f"  {escape(name)}: {cell}", overflow="fold"))
    return Group(*parts, Text())


def rendered(*parts: RenderableType, width: int = WIDTH) -> str:
    """Tables and sentences as plain text. Sentences are one line each, as the terminal has them."""
    screen = Console(
        file=StringIO(), width=width, color_system=None, legacy_windows=False,
        force_jupyter=False,  # in a notebook Rich would show it there, and the text be empty
    )  # fmt: skip
    for part in parts:
        screen.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))
    assert isinstance(screen.file, StringIO)
    lines = [line.rstrip() for line in screen.file.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")
