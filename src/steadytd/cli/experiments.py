"""`steadytd reproduce` and `steadytd run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadytd.cli.console import (
    WHOLE,
    Json,
    NoFigures,
    Open,
    Threads,
    coloured,
    command_line,
    err,
    out,
    plain,
    print_json,
    print_page,
    require_page,
    table,
)

if TYPE_CHECKING:
    from steadytd.reproduction.verdict import Row
    from steadytd.runs.result import Result


def reproduce(
    figure: Annotated[
        list[int] | None,
        typer.Option("--figure", **WHOLE, help="Only this figure (1 to 4); repeatable."),
    ] = None,
    supplement: Annotated[
        bool, typer.Option("--supplement", help="Only the supplement, and the figures given.")
    ] = False,
    runs: Annotated[int, typer.Option(**WHOLE, help="Runs per learner; the paper has 10.")] = 10,
    seed: Annotated[int, typer.Option(**WHOLE, help="Seed of the first run.")] = 0,
    directory: Annotated[
        Path, typer.Option("--out", help="Where figures, curves and report go.")
    ] = Path("results/reproduce"),
    show: Open = False,
    no_figures: NoFigures = False,
    as_json: Json = False,
) -> None:
    """Run the paper's Figures 1 to 4 and its supplement; compare with theory and paper.

    Writes each figure as SVG, PNG and PDF, all curves as Parquet, and
    report.html.

    Examples:
      steadytd reproduce

      steadytd reproduce --figure 3 --figure 4 --runs 50 --out results/three_state

      steadytd reproduce --supplement --out results/supplement
    """
    from steadytd.base.files import require_writable
    from steadytd.reproduction.reproduce import check_request
    from steadytd.reproduction.reproduce import reproduce as do

    check_request(figure or (), runs, seed)
    require_writable(directory)
    done = do(figure or (), runs=runs, seed=seed, supplement=supplement)
    from steadytd.report.reproduction import write_reproduction

    with err.status("drawing figures"):
        report = write_reproduction(done, directory, pictures=not no_figures)
    if as_json:
        print_json([row.to_dict() for row in done.rows])
    else:
        _print_rows([row for row in done.rows if row.figure], "Figures of the paper")
        _print_rows(
            [row for row in done.rows if not row.figure],
            "Supplement (a: alpha 1e-3, b: 1e-4, c: 1e-5, d: 1e-6)",
        )
        out.print(f"\n{done.summary}", highlight=False)
    print_page(report, show, as_json)


def _print_rows(rows: list[Row], title: str) -> None:
    from steadytd.base.numbers import interval, with_error

    if not rows:
        return
    lines = []
    notes = []
    for row in rows:
        theory = interval(row.theory_low, row.theory_high)
        if row.because:
            notes.append(f"{row.name}, {row.label}: {row.because}")
        measured = with_error(row.measured, row.stderr)
        shown = row.name.split()[-1], row.label, row.paper_says or "-", theory, measured
        lines.append((*shown, _verdicts(row, len(notes))))
    columns = ("", "learner", "paper", ">theory", ">measured", "=agrees with")
    out.print(table(f"{title}: error at the last step", columns, lines))
    for number, note in enumerate(notes, 1):
        out.print(f"({number}) {plain(note)}", highlight=False)


def _verdicts(row: Row, note: int) -> str:
    """With what the row agrees, or the number of the note that says why it does not."""
    off = [what for what, agreed in (("theory", row.agrees_theory), ("paper", row.agrees_paper))
           if agreed is False]  # fmt: skip
    agreed = "theory" if row.agrees_paper is None else "both"
    return coloured(not off, f"not {' or '.join(off)} ({note})" if off else agreed)


def run(
    problem: Annotated[
        str, typer.Argument(help="A problem: name, name:key=value,..., or a file (.npz).")
    ],
    learners: Annotated[
        list[str],
        typer.Argument(
            help="Learners: name:key=value,key=value. A law of your own is FILE.py:LAW:key=value; "
            "the file is run."
        ),
    ],
    steps: Annotated[int, typer.Option(**WHOLE, help="Steps of each run.")] = 100_000,
    seeds: Annotated[int, typer.Option(**WHOLE, help="Number of runs, with seeds 0, 1, ...")] = 10,
    points: Annotated[
        int, typer.Option(**WHOLE, help="Number of points recorded per curve.")
    ] = 1000,
    threads: Threads = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Write run.html, its picture and all numbers here.")
    ] = None,
    show: Open = False,
    no_figures: NoFigures = False,
    as_json: Json = False,
) -> None:
    """Run learners on a problem and print their errors.

    Examples:
      steadytd run baird td:alpha=0.0001 perturbed_td:alpha=0.0001,eta=1

      steadytd run random_mdp:states=50,seed=3 td:alpha=0.01 tdc:alpha=0.01,ratio=1

      steadytd run three_state perturbed_td:alpha=0.001,eta=0.5 --out results

      steadytd run mine.npz my_laws.py:my_law:alpha=0.001
    """
    from steadytd.base.files import require_writable
    from steadytd.runs.run import run as do

    require_page(show, directory)
    if directory is not None:
        require_writable(directory)
    result = do(problem, learners, steps=steps, seeds=seeds, points=points, threads=threads)
    page = None
    if directory is not None:
        from steadytd.report.run import write_run

        with err.status("drawing"):
            page = write_run(result, directory, command=command_line(), pictures=not no_figures)
    if as_json:
        print_json(result.summary.to_dicts())
    else:
        _print_run(result)
    print_page(page, show, as_json)


def _print_run(result: Result) -> None:
    from steadytd.report import run as report

    rows = [
        (
            plain(row["learner"]),
            row["mean"],
            row["final"],
            coloured(row["ended"] == "settled", row["ended"]),
        )
        for row in report.rows(result)
    ]
    out.print(table(plain(report.title(result)), report.COLUMNS, rows))
    for text in report.sentences(result):
        out.print(plain(text), highlight=False)
