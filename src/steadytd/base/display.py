"""Results that show themselves: in words, as a picture and as a page.

How a result looks is known by `report`, which draws and stands above the rooms that compute. So a
result does not know its words: when it is first to be shown it asks for that room by name. This is
the only place that asks so, and whoever computes and never looks loads nothing of it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

ROOM = "steadytd.report.objects"


class Shown:
    """What every result has: `print`, a notebook's view, `plot`, `report`, `to_csv`."""

    def __str__(self) -> str:
        """The words that the command line prints."""
        text: str = _room().text(self)
        return text

    def _repr_html_(self) -> str:
        """The same in a notebook, with a picture."""
        html: str = _room().html(self)
        return html

    def plot(self) -> Any:
        """An Altair chart, to be shown, changed or saved: `x.plot().properties(width=300)`."""
        return _room().chart(self)

    def report(self, path: str | Path) -> Path:
        """Write the page that the command line writes; `path` is the page's: "page.html"."""
        written: Path = _room().write_page(self, Path(path))
        return written

    def to_csv(self, path: str | Path) -> Path:
        """Write the main table as CSV, for a spreadsheet."""
        written: Path = _room().write_csv(self, Path(path))
        return written


def _room() -> Any:
    return importlib.import_module(ROOM)
