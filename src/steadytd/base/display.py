"""Results that display themselves: as text, as a chart and as a page.

How a result looks is decided in `report`, above the rooms that compute. A result finds that module
by name when it is first displayed, so a program that only computes never loads it. This is the one
place that imports upward.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RENDERER = "steadytd.report.objects"


class InNotebooks:
    """What a notebook shows in place of `repr`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Sentences, tables and a small chart."""
        html: str = _renderer().html(self)
        return html


class Displayable(InNotebooks):
    """What every result has: `print`, a notebook's view, `plot`, `report`, `to_csv`."""

    def __str__(self) -> str:
        """The text that the command line prints."""
        text: str = _renderer().text(self)
        return text

    def plot(
        self,
        *,
        learners: Sequence[Any] | Mapping[Any, str] | str | None = None,
        problems: Sequence[str] | Mapping[str, str] | str | None = None,
        columns: int | None = None,
        expected: bool | None = None,
        font_size: float | None = None,
        width: float | None = None,
    ) -> Any:
        """An Altair chart, to display, change or save: `x.plot().save("figure.pdf")`.

        Of a run or a study, `learners` says which are drawn, in this order; a dictionary gives them
        other names: `{"td": "TD", "tdc": "TDC"}`. Of a study, `problems` does the same for its
        panels, of which `columns` stand side by side. With `expected`, a run is drawn with the
        learning curves that theory expects, where these are exact and quickly found. For print,
        `width` is that of each panel and `font_size` that of all texts, in points; notes below
        titles are then left to the caption.
        """
        given = {"learners": learners, "problems": problems, "columns": columns}
        given["expected"] = expected
        return _renderer().chart(self, width, font_size, given)

    def report(self, path: str | Path) -> Path:
        """Write the page that the command line writes to `path`, such as "page.html"."""
        written: Path = _renderer().write_page(self, Path(path))
        return written

    def to_csv(self, path: str | Path) -> Path:
        """Write the main table as CSV, for a spreadsheet."""
        written: Path = _renderer().write_csv(self, Path(path))
        return written


def _renderer() -> Any:
    return importlib.import_module(RENDERER)
