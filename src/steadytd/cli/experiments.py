"""`steadytd reproduce` and `steadytd run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytd.cli.console import (
    WHOLE,
    Full,
    Json,
    NoFigures,
    Open,
    Threads,
    command_line,
    err,
    print_answer,
    print_json,
    print_page,
    print_parts,
    require_page,
)


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
    full: Full = False,
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
    from steadytd.report.reproduction import answer, rest, write_reproduction

    with err.status("drawing figures"):
        report = write_reproduction(done, directory, pictures=not no_figures)
    if as_json:
        print_json([row.to_dict() for row in done.rows])
    else:
        print_answer(answer(done), rest(done), full)
    print_page(report, show, as_json)


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
    full: Full = False,
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
        from steadytd.report.run import answer

        print_parts(answer(result, full=full))
    print_page(page, show, as_json)
