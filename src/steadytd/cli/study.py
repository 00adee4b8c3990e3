"""`steadytd study`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from steadytd.cli.console import err, out, plain, print_json, progress_bar, say, table
from steadytd.cli.experiments import Json, Threads

LONG = 10_000_000  # learner-updates that take longer than a person likes to wait without a word


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
    as_json: Json = False,
) -> None:
    """Run a study, or continue one: finished blocks are kept.

    Examples:
      steadytd study quick

      steadytd study studies/collision.toml --out results/collision

      steadytd study studies/rooms.toml --engine dask --address tcp://head:8786
    """
    from steadytd.report.study.words import best_table
    from steadytd.studies.results import best_rows
    from steadytd.studies.study import study as load

    made = load(file)
    spec = made.spec
    size = f"{spec.runs:,} configurations, {spec.file.seeds} seeds, {spec.updates:,} updates"
    err.print(f"{plain(made.name)}: {size}", highlight=False)

    with progress_bar("running") if spec.updates > LONG else nullcontext() as update:
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
    out.print(table(*best_table(results)))
    out.print(f"results: [bold]{plain(results.directory)}[/]", highlight=False)
    out.print(f"next: steadytd report {plain(results.directory)}", highlight=False)
