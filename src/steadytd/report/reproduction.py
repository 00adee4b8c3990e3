"""The reproduction as a page: the paper's figures, the supplement's panels, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.files import filling, write_frame, write_whole
from steadytd.base.numbers import interval, number, with_error
from steadytd.learners import learner as make_learner
from steadytd.report.figures import (
    Axis,
    alt,
    chosen_points,
    curves_chart,
    data_of,
    described,
    heading,
    save_figures,
    styled,
)
from steadytd.report.live import live, untitled
from steadytd.report.pages import page
from steadytd.report.palette import DOTTED, SOFT, Look, looks
from steadytd.report.text import Line, Table, without
from steadytd.reproduction.paper import Figure
from steadytd.reproduction.reproduce import Reproduction, choose
from steadytd.reproduction.spread import RUNS as MANY
from steadytd.reproduction.statements import LIKELY, SHOWN_AS_ZERO, TEXT_TOLERANCE
from steadytd.reproduction.verdict import STANDARD_ERRORS, ZERO, Row
from steadytd.theory.dynamics import best_error

LOWEST = 1e-14  # the lower end of a logarithmic axis: rounding errors of the weights lie below
FLOOR = 1e-16  # smaller errors are drawn as this, below the axis
HIGHEST = 1e8  # the upper end in a panel: higher up nothing is left but what diverges


def figure_chart(figure: Figure, done: Reproduction) -> Any:
    """A figure of the paper, or a panel of its supplement."""
    title = f"{figure.name}: {figure.title}"
    if figure.axis is not None:
        return _panel(figure, done, title, figure.axis)
    result = done.results[figure.problem]
    errors = _errors(figure, done)
    finite = np.concatenate([found[np.isfinite(found)] for found in errors.values()])
    best = best_error(result.task)
    log = any(row.name == figure.name and not row.stable for row in done.rows)
    low, high = max(LOWEST, float(finite.min())), 2.0 * float(finite.max())
    if best > ZERO:
        low = min(low, best)
    axis = Axis(True, low / (high / low) ** 0.05, high) if log else Axis(False, 0.0, 0.55 * high)
    layers = _likely(figure, done, axis)
    notes = [f"mean and range of {len(result.seeds)} runs"]
    if best <= ZERO:
        notes.append("the best possible error is 0")
    if layers:
        share = f"{100 * (LIKELY[1] - LIKELY[0]):.0f} of 100"
        notes.append(f"thin lines: {share} such means lie between them")
    rows, found = _rows(figure, done, FLOOR if log else 0.0), _looks(figure)
    if best > ZERO:
        name = f"best possible: {number(best)}"
        found[name] = Look(SOFT, DOTTED)
        level = dict.fromkeys(("mean", "low", "high"), best)
        rows += [{"learner": name, "step": step, **level} for step in (0, figure.steps)]
    return styled(
        curves_chart(
            rows,
            found,
            axis,
            heading(title, "; ".join(notes)),
            band=("least", "largest"),
            layers=layers,
        )
    )


def _panel(figure: Figure, done: Reproduction, title: str, axis: tuple[float, float]) -> Any:
    """Error over steps on the authors' linear axis, and on a logarithmic one."""
    rows = _rows(figure, done, LOWEST, every=2)
    means = [row["mean"] for row in rows]
    wide = Axis(True, max(LOWEST, min(means)) / 1.5, min(HIGHEST, 2.0 * max(means)))
    cut = [{**row, "mean": min(row["mean"], 5.0 * axis[1])} for row in rows]  # still above it
    halves = (
        (cut, "as in the supplement", Axis(False, *axis)),
        (rows, "on a logarithmic axis", wide),
    )
    return styled(
        alt.hconcat(
            *(
                curves_chart(
                    drawn, _looks(figure), ends, alt.TitleParams(name, fontSize=12), size=(360, 240)
                )
                for drawn, name, ends in halves
            ),
            title=alt.TitleParams(title, anchor="start", offset=8),
            usermeta={"toggle": "learner"},
        )
    )


def _looks(figure: Figure) -> dict[str, Look]:
    return looks({claim.label: claim.learner.partition(":")[0] for claim in figure.claims})


def _errors(figure: Figure, done: Reproduction) -> dict[str, Floats]:
    """The errors [run, point] behind each label."""
    result = done.results[figure.problem]
    texts = [str(x) for x in result.learners]
    return {
        claim.label: result.errors[texts.index(str(make_learner(claim.learner)))]
        for claim in figure.claims
    }


def _rows(figure: Figure, done: Reproduction, floor: float, every: int = 1) -> list[dict[str, Any]]:
    """Mean and range over the runs at a few hundred points; points that diverged are left out.

    A panel half as wide takes every second one.
    """
    steps = done.results[figure.problem].steps
    chosen = chosen_points(steps)[::-every][::-1]
    rows: list[dict[str, Any]] = []
    for label, errors in _errors(figure, done).items():
        found = errors[:, chosen]
        ends = np.maximum([found.mean(axis=0), found.min(axis=0), found.max(axis=0)], floor)
        finite = np.isfinite(found).all(axis=0)
        for step, values in zip(steps[chosen][finite], ends.T[finite].tolist(), strict=True):
            named = dict(zip(("mean", "low", "high"), values, strict=True))
            rows.append({"learner": label, "step": int(step), **named})
    return rows


def _likely(figure: Figure, done: Reproduction, axis: Axis) -> list[Any]:
    """Thin lines between which the mean of as many runs likely lies, where theory gives them."""
    rows = []
    for claim in figure.claims:
        spread = done.theories[figure.problem][str(make_learner(claim.learner))].spread
        if spread is not None:
            ends = np.quantile(spread.means, LIKELY, axis=0, method="nearest")
            rows += [
                {"learner": claim.label, "step": int(step), "end": max(end, FLOOR), "side": i}
                for i, values in enumerate(ends.tolist())
                for step, end in zip(spread.steps, values, strict=True)
                if np.isfinite(end)
            ]
    if not rows:
        return []
    thin = alt.Chart(data_of(rows)).mark_line(strokeWidth=0.8, strokeDash=[3, 2], clip=True)
    return [thin.encode(y=alt.Y("end:Q", scale=axis.scale()), detail="side:N")]


def answer(done: Reproduction) -> list[Line | Table]:
    """The verdict, the rows of the figures, and why some do not agree."""
    good = all(row.agrees for row in done.rows)
    rows = [row for row in done.rows if row.figure]
    reasons = [Line(row.because, head=f"{row.name}, {row.label}") for row in rows if row.because]
    left = "" if len(rows) == len(done.rows) else " The supplement is in the page, and with --full."
    verdict = Line(f"{done.summary}{left}", "good" if good else "care")
    return [verdict, *([rows_table(rows, "Figures of the paper")] if rows else []), *reasons]


def rest(done: Reproduction) -> list[Line | Table]:
    """The rows of the supplement, and why some do not agree."""
    rows = [row for row in done.rows if not row.figure]
    reasons = [Line(row.because, head=f"{row.name}, {row.label}") for row in rows if row.because]
    title = "Supplement (a: alpha 1e-3, b: 1e-4, c: 1e-5, d: 1e-6)"
    return [rows_table(rows, title), *reasons] if rows else []


def rows_table(rows: Sequence[Row], title: str) -> Table:
    """What the paper says, what theory expects and what was measured, at the last step."""
    cells = [
        [row.name.split()[-1], f"{row.label}\n{row.learner}", row.paper_says or "-",
         f"{number(row.fixed_point_error)}\n{'stable' if row.stable else 'unstable'}",
         f"{interval(row.theory_low, row.theory_high)}\n{row.theory_kind}",
         with_error(row.measured, row.stderr), _verdict(row)]
        for row in rows
    ]  # fmt: skip
    heads = ("figure", "learner", "paper", "+>fixed point", ">theory", ">measured", "=!agrees with")
    return Table(f"{title}: error at the last step", heads, cells)


def _verdict(row: Row) -> str:
    off = [what for what, agreed in (("theory", row.agrees_theory), ("paper", row.agrees_paper))
           if agreed is False]  # fmt: skip
    agreed = "theory" if row.agrees_paper is None else "theory and paper"
    return f"not {' or '.join(off)}" if off else agreed


def write_reproduction(done: Reproduction, out: str | Path, *, pictures: bool = True) -> Path:
    """Write figures (SVG, PNG, PDF), curves and table (Parquet) and `report.html`; return that.

    Without `pictures` the figures are in the page only.
    """
    import polars as pl
    from altair.utils.schemapi import debug_mode

    with filling(out) as made:
        write_frame(made / "curves.parquet", done.curves)
        table = pl.DataFrame([row.to_dict() for row in done.rows], infer_schema_length=None)
        write_frame(made / "table.parquet", table)
        with debug_mode(False):  # Altair would check every part of every figure
            drawn = {f.file_name: described(figure_chart(f, done)) for f in done.figures}
        if pictures:
            save_figures(drawn, made, keep=True)
        write_whole(made / "report.html", _page(done, drawn, pictures))
    return Path(out) / "report.html"


def _page(done: Reproduction, drawn: dict[str, dict[str, Any]], pictures: bool) -> str:
    shown: list[dict[str, Any]] = [
        {
            "figure": f,
            "live": untitled(live(f.file_name, drawn[f.file_name], pictures)),
            "rows": [row for row in done.rows if row.name == f.name],
            "table": without(rows_table([r for r in done.rows if r.name == f.name], f.name), 0),
        }
        for f in done.figures
    ]
    return page(
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


def command(done: Reproduction) -> str:
    """The command that makes these figures again: those that are named, or everything."""
    parts = [f"--figure {figure.number}" for figure in done.figures if figure.number]
    parts += ["--supplement"] * any(figure.axis is not None for figure in done.figures)
    if done.figures == choose((), supplement=False):
        parts = []
    return " ".join(
        ["steadytd reproduce", *parts, f"--runs {done.rows[0].runs} --seed {done.seed}"]
    )
