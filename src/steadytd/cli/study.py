"""`steadytd study` and `steadytd report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytd.cli.console import (
    Full,
    Json,
    NoFigures,
    Open,
    Threads,
    err,
    out,
    plain,
    print_answer,
    print_json,
    print_page,
    print_parts,
    say,
)

FIRST = 12  # rows of the table without --full


def study_names(incomplete: str) -> list[str]:
    """The studies of the package, for the shell's completion."""
    from steadytd.studies.spec import studies

    return [name for name in studies() if name.startswith(incomplete)]


def study(
    file: Annotated[
        Path,
        typer.Argument(
            help="The study: a TOML file, or the name of one that comes with the package.",
            autocompletion=study_names,
        ),
    ],
    directory: Annotated[
        Path | None, typer.Option("--out", help="Where the results go; default: results/NAME.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local (threads) or dask.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler; default: a local cluster.")
    ] = None,
    threads: Threads = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard earlier results in the directory.")
    ] = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Run a study, or continue one: finished blocks are not run again.

    A Python file that the study names for a law of yours is run.

    Examples:
      steadytd study quick

      steadytd study studies/collision.toml --out results/collision

      steadytd study studies/rooms.toml --engine dask --address tcp://head:8786
    """
    from steadytd.base.numbers import count
    from steadytd.base.progress import reporting
    from steadytd.report.study.text import best_table
    from steadytd.studies.results import best_rows
    from steadytd.studies.study import study as load

    made = load(file)
    spec = made.spec
    say(f"{made.name}: {count(spec.runs, 'configuration')}, {count(spec.file.seeds, 'seed')}, "
        f"{count(spec.updates, 'update')}")  # fmt: skip
    with reporting(None, "running") as update:
        results = made.run(
            out=directory,
            engine=engine,  # type: ignore[arg-type]
            address=address,
            threads=threads,
            fresh=fresh,
            progress=update,
            say=say,
        )
    if as_json:
        print_json(best_rows(results))
        return
    best = best_table(results)
    left = 0 if full else max(0, len(best.rows) - FIRST)
    print_parts([best._replace(rows=best.rows[: len(best.rows) - left])])
    if left:
        out.print(f"{left} more rows: --full.", highlight=False)
    out.print(f"results: [bold]{plain(results.directory)}[/]", highlight=False)
    files = dict.fromkeys(spec.own.files.values())
    law = "".join(f" --law {plain(path)}" for path in files)
    out.print(f"next: steadytd report {plain(results.directory)}{law}", highlight=False)


def report(
    directory: Annotated[Path, typer.Argument(help="The directory that `steadytd study` wrote.")],
    law: Annotated[
        list[Path] | None,
        typer.Option(
            "--law",
            help="A Python file that defines laws of the study; it is run. Repeatable.",
        ),
    ] = None,
    full: Full = False,
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

      steadytd report results/mine --law my_laws.py
    """
    from steadytd.learners import laws_in
    from steadytd.report.study.page import write_study_report
    from steadytd.studies.results import StudyResults

    laws = tuple(found for path in law or () for found in laws_in(path))
    with err.status("reading") as status:
        page, document = write_study_report(
            StudyResults(directory, laws),
            lambda text: status.update(plain(text)),
            pictures=not no_figures,
        )
    if as_json:
        print_json(document)
    else:
        from steadytd.report.study.text import answer, rest

        print_answer(answer(document, full=full), rest(document), full)
    print_page(page, show, as_json)
