"""A Polars frame that shows, of all its columns, those that matter within 80 characters."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import polars as pl

from steadytd.base.display import Displayable


class Summary(pl.DataFrame):
    """The summary of a run. Only its look is its own: what is made of it is an ordinary frame."""

    shown: Displayable | None = None

    @classmethod
    def of(cls, frame: pl.DataFrame, result: Displayable) -> Summary:
        """The frame, which looks like the table that the command line prints of the result."""
        made = cls(frame)
        made.shown = result
        return made

    def __str__(self) -> str:
        if self.shown is None:  # a copy
            return super().__str__()
        return f"{self.shown}\n\n{fill('columns: ' + ', '.join(self.columns), 80)}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, **options: Any) -> str:
        return super()._repr_html_(**options) if self.shown is None else self.shown._repr_html_()
