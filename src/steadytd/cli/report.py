"""`steadytd report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytd.cli.console import (
    NoFigures,
    Open,
    err,
    open_page,
    out,
    plain,
    print_json,
    print_page,
    table,
)
from steadytd.cli.experiments import Json

FIRST = 2  # sentences that the terminal shows too; the page has all


def report(
    directory: Annotated[Path, typer.Argument(help="The directory that `steadytd study` wrote.")],
    show: Open = False,
    no_figures: NoFigures = False,
    as_json: Json = False,
) -> None:
    """Write tables, figures and a page with the findings of a study, finished or not.

    Writes DIR/report: report.html (one file, no network needed), every
    figure as SVG, PNG and PDF, and tables as JSON and Parquet.

    Examples:
      steadytd report results/collision

      steadytd report results/quick --open

      steadytd report results/quick --json
    """
    from steadytd.report.study.page import write_study_report

    with err.status("reading") as status:
        page, document = write_study_report(
            directory, lambda text: status.update(plain(text)), pictures=not no_figures
        )
    if as_json:
        print_json(document)
        open_page(page, show)
    else:
        _print(document)
        print_page(page, show)


def _print(document: dict[str, Any]) -> None:
    from steadytd.base.wording import figures
    from steadytd.studies.analysis.speed import LEVELS
    from steadytd.studies.analysis.tables import short

    if len(document["problems"]) > 1:  # of one problem it comes below
        out.print(f"[bold]{plain(document['headline'])}[/]", highlight=False)
    out.print(plain(document["size"]), highlight=False)
    for problem in document["problems"]:
        found = [{name: b["steps_to"][name]["step"] for name in LEVELS} for b in problem["best"]]
        reached = [name for name in LEVELS if any(steps[name] is not None for steps in found)]
        rows = []
        for b, steps in zip(problem["best"], found, strict=True):
            measured, final = (_mean(b[key]) for key in ("measured", "final"))
            seen = b["predicted_asymptote"]
            stable = b["predicted_stable_share"]
            theory = "" if stable is None else "unstable" if seen is None else figures(seen)
            settings = ", ".join(f"{k} {short(v)}" for k, v in b["settings"].items())
            speed = ["-" if steps[name] is None else f"{steps[name]:,}" for name in reached]
            head = (b["rank"], plain(b["algorithm"]), plain(settings), f"{b['configurations']:,}")
            rows.append((*head, measured, final, theory, *speed))
        stage = "fresh seeds" if problem["fresh_seeds"] else "the grid's seeds"
        what = f"{document['criterion']}, {stage} (mean ± standard error)"
        title = f"\n{plain(problem['problem'])}: {what}"
        columns = ("#", "learner", "at its best", ">of", ">error", ">final", ">theory")
        out.print(table(title, (*columns, *(f">{name}" for name in reached)), rows))
        note = "of: number of configurations tried."
        if reached:
            note += (
                f" {', '.join(reached)}: the median step by which the error had been below that "
                "share of the error at w0 (-: never)."
            )
        out.print(note, highlight=False)
        lines = [(line["topic"], line["text"]) for line in problem["summary"]]
        caveats = [("Caveat", caveat) for caveat in problem["caveats"]]
        for topic, text in (*lines[:FIRST], *caveats):
            out.print(f"[bold]{topic}.[/] {plain(text)}", highlight=False)
        if more := ", ".join(topic[0].lower() + topic[1:] for topic, _ in lines[FIRST:]):
            out.print(f"More in the page: {plain(more)}.", highlight=False)
    out.print()


def _mean(mean: dict[str, Any]) -> str:
    from steadytd.base.wording import figures

    if mean["diverged"]:
        return f"overflowed on {mean['diverged']} of {mean['seeds']}"
    return figures(mean["value"], mean["stderr"])
