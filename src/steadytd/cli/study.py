"""`steadytd study` and `steadytd report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytd.cli.console import (
    Json,
    NoFigures,
    Open,
    Threads,
    err,
    out,
    plain,
    print_json,
    print_page,
    say,
    table,
)

FIRST = 2  # sentences that the terminal shows too; the page has all


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
    """Run a study, or continue one: finished blocks are not run again.

    A Python file that the study names for a law of yours is run.

    Examples:
      steadytd study quick

      steadytd study studies/collision.toml --out results/collision

      steadytd study studies/rooms.toml --engine dask --address tcp://head:8786
    """
    from steadytd.base.numbers import count
    from steadytd.base.progress import reporting
    from steadytd.report.study.page import best_table
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
    out.print(table(*best_table(results)))
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
        _print_study(document)
    print_page(page, show, as_json)


def _print_study(document: dict[str, Any]) -> None:
    if len(document["problems"]) > 1:  # of one problem it comes below
        out.print(f"[bold]{plain(document['headline'])}[/]", highlight=False)
    out.print(plain(document["size"]), highlight=False)
    for problem in document["problems"]:
        _print_problem(problem, document["criterion"])
    out.print()


def _print_problem(problem: dict[str, Any], criterion: str) -> None:
    """The learners of one problem at their best, and the first findings."""
    from steadytd.base.numbers import number
    from steadytd.studies.analysis.tables import LEVELS, short

    found = [{name: b["steps_to"][name]["step"] for name in LEVELS} for b in problem["best"]]
    reached = [name for name in LEVELS if any(steps[name] is not None for steps in found)]
    rows = []
    for b, steps in zip(problem["best"], found, strict=True):
        seen, stable = b["predicted_asymptote"], b["predicted_stable_share"]
        theory = "" if stable is None else "unstable" if seen is None else number(seen)
        settings = ", ".join(f"{k} {short(v)}" for k, v in b["settings"].items())
        speed = ["-" if steps[name] is None else f"{steps[name]:,}" for name in reached]
        head = (b["rank"], plain(b["algorithm"]), plain(settings), f"{b['configurations']:,}")
        rows.append((*head, _mean(b["measured"]), _mean(b["final"]), theory, *speed))
    stage = "fresh seeds" if problem["fresh_seeds"] else "the grid's seeds"
    title = f"\n{plain(problem['problem'])}: {criterion}, {stage} (mean ± standard error)"
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


def _mean(mean: dict[str, Any]) -> str:
    from steadytd.base.numbers import with_error

    if mean["diverged"]:
        return f"overflowed on {mean['diverged']} of {mean['seeds']}"
    return with_error(mean["value"], mean["stderr"])
