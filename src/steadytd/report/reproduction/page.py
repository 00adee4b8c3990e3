"""The page, and the files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steadytd.base.files import filling, write_frame, write_whole
from steadytd.report.figures import described, save_figures
from steadytd.report.live import live, untitled
from steadytd.report.pages import page
from steadytd.report.reproduction.figures import figure_chart
from steadytd.reproduction.reproduce import Reproduction, choose
from steadytd.reproduction.spread import RUNS as MANY
from steadytd.reproduction.statements import SHOWN_AS_ZERO, TEXT_TOLERANCE
from steadytd.reproduction.verdict import STANDARD_ERRORS, ZERO


def write_reproduction(done: Reproduction, out: str | Path, *, pictures: bool = True) -> Path:
    """Write figures (SVG, PNG, PDF), curves and table (Parquet) and `report.html`; return that.

    Without `pictures` the figures are in the page only.
    """
    with filling(out) as made:
        _write(done, made, pictures)
    return Path(out) / "report.html"


def _write(done: Reproduction, directory: Path, pictures: bool) -> None:
    import polars as pl
    from altair.utils.schemapi import debug_mode

    write_frame(directory / "curves.parquet", done.curves)
    table = pl.DataFrame([row.to_dict() for row in done.rows], infer_schema_length=None)
    write_frame(directory / "table.parquet", table)
    with debug_mode(False):  # Altair would check every part of every figure
        drawn = {f.file_name: described(figure_chart(f, done)) for f in done.figures}
    if pictures:
        save_figures(drawn, directory, keep=True)
    shown: list[dict[str, Any]] = [
        {
            "figure": f,
            "live": untitled(live(f.file_name, drawn[f.file_name], pictures)),
            "rows": [row for row in done.rows if row.name == f.name],
        }
        for f in done.figures
    ]
    html = page(
        "reproduce.html",
        figures=[one for one in shown if one["figure"].axis is None],
        panels=[one for one in shown if one["figure"].axis is not None],
        summary=done.summary,
        differing=[row for row in done.rows if not row.agrees],
        runs=done.rows[0].runs,
        many=MANY,
        standard_errors=f"{STANDARD_ERRORS:g}",
        zero=f"{ZERO:g}",
        shown_as_zero=f"{SHOWN_AS_ZERO:.0%}",
        paper_tolerance=f"{TEXT_TOLERANCE:.0%}",
        command=command(done),
    )
    write_whole(directory / "report.html", html)


def command(done: Reproduction) -> str:
    """What makes these figures again: those that are named, or everything."""
    numbers = [figure.number for figure in done.figures if figure.axis is None]
    panels = any(figure.axis is not None for figure in done.figures)
    parts = [f"--figure {number}" for number in numbers] + ["--supplement"] * panels
    if done.figures == choose((), supplement=False):
        parts = []
    return " ".join(
        ["steadytd reproduce", *parts, f"--runs {done.rows[0].runs} --seed {done.seed}"]
    )
