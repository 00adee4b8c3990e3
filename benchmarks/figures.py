"""A figure, its target, and how figures are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.table import Table


@dataclass(frozen=True)
class Target:
    """What a figure should be: at most (or at least) a bound."""

    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass(frozen=True)
class Figure:
    """One case: our number, the number beside it, and `value`, which the target is about."""

    case: str
    ours: float
    other: float | None
    value: float
    target: Target | None = None

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.value)


@dataclass
class Group:
    """Figures of one kind: a table."""

    title: str
    columns: tuple[str, str, str]  # what `ours`, `other` and `value` are
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self, judged: bool) -> Table:
        table = Table(title=self.title, title_justify="left", caption_justify="left")
        table.caption = "\n".join(self.notes)
        table.add_column("case")
        for name in (*self.columns, "target"):
            table.add_column(name, justify="right")
        table.add_column("met")
        for one in self.figures:
            numbers = [_short(number) for number in (one.ours, one.other, one.value)]
            met = {True: "[green]yes", False: "[red]no", None: ""}[one.met if judged else None]
            table.add_row(one.case, *numbers, str(one.target or ""), met)
        return table

    def document(self) -> dict[str, object]:
        rows = [{**asdict(one), "met": one.met} for one in self.figures]
        return {
            "title": self.title,
            "columns": self.columns,
            "figures": rows,
            "notes": self.notes,
        }


def verdict(groups: Sequence[Group]) -> str:
    """How many targets are met."""
    judged = [one.met for group in groups for one in group.figures if one.met is not None]
    return f"{sum(judged)} of {len(judged)} targets met."


def _short(number: float | None) -> str:
    """Three digits are all that a shared machine's clock can tell."""
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
