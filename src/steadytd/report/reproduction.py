"""The reproduction as a page: the paper's figures, the table, and why a row differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steadytd.base.files import output_directory, write_whole
from steadytd.learners import learner as make_learner
from steadytd.report.figures import Curve, learning_curves, save_figure
from steadytd.report.pages import page
from steadytd.reproduction.paper import Figure
from steadytd.reproduction.reproduce import Reproduction
from steadytd.reproduction.verdict import PAPER_TOLERANCE, STANDARD_ERRORS, ZERO
from steadytd.theory.dynamics import best_error

LOWEST = 1e-14  # the lower end of a logarithmic axis: rounding errors of the weights lie below


def write_reproduction(done: Reproduction, out: str | Path) -> Path:
    """Write figures (SVG, PNG, PDF), curves and table (Parquet) and `report.html`; return that."""
    import polars as pl

    directory = output_directory(out)
    write_whole(directory / "curves.parquet", done.curves.write_parquet)
    table = pl.DataFrame([row.to_dict() for row in done.rows], infer_schema_length=None)
    write_whole(directory / "table.parquet", table.write_parquet)
    shown = []
    for figure in done.figures:
        svg = save_figure(figure_chart(figure, done), directory, f"figure_{figure.number}")
        rows = [row for row in done.rows if row.figure == figure.number]
        shown.append({"number": figure.number, "title": figure.title, "svg": svg, "rows": rows})
    runs = done.rows[0].runs
    html = page(
        "reproduce.html",
        figures=shown,
        rows=done.rows,
        differing=[row for row in done.rows if not row.agrees],
        runs=runs,
        standard_errors=f"{STANDARD_ERRORS:g}",
        zero=f"{ZERO:g}",
        paper_tolerance=f"{PAPER_TOLERANCE:.0%}",
        command=f"steadytd reproduce --runs {runs} --seed {done.seed}",
    )
    return write_whole(directory / "report.html", html)


def figure_chart(figure: Figure, done: Reproduction) -> object:
    """One figure of the paper."""
    result = done.results[figure.problem]
    texts = [str(x) for x in result.learners]
    curves = [
        Curve(c.label, result.errors[texts.index(str(make_learner(c.learner)))])
        for c in figure.claims
    ]
    unstable = [row for row in done.rows if row.figure == figure.number and not row.stable]
    finite = np.concatenate([c.errors[np.isfinite(c.errors)] for c in curves])
    best = best_error(result.task)
    high = 2.0 * float(finite.max())
    low = max(LOWEST, min(float(finite.min()), best if best > ZERO else np.inf))
    low /= (high / low) ** 0.05  # room below the lowest curve
    runs = f"mean and range of {len(result.seeds)} runs"
    return learning_curves(
        f"Figure {figure.number}: {figure.title}",
        runs if best > ZERO else f"{runs}; the best possible error is 0",
        result.steps,
        curves,
        log=bool(unstable),
        best=best if best > ZERO else None,
        domain=(low, high) if unstable else None,
    )
