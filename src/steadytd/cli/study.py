"""`steadytd study`."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from steadytd.cli.console import err, out, plain, print_json, progress_bar, say, table
from steadytd.cli.experiments import Json, Threads

LONG = 10_000_000  # learner-updates that take longer than a person likes to wait without a word


def study(
    file: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
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
      steadytd study studies/quick.toml

      steadytd study studies/collision.toml --out results/collision

      steadytd study studies/rooms.toml --engine dask --address tcp://head:8786
    """
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
    rows = best_rows(results)
    if as_json:
        print_json(rows)
        return
    from steadytd.base.wording import figures

    lines = [
        (
            plain(row["problem"]),
            plain(row["run"]),
            f"{row['configurations']:,}",
            figures(row["auc"], row["auc_stderr"]),
            figures(row["final"], row["final_stderr"]),
        )
        for row in rows
    ]
    where = "on fresh seeds" if results.confirmation is not None else "on the grid"
    measure = spec.file.confirm.measure
    title = f"Best configuration of each learner, {where} ({measure}); of: number tried"
    out.print(table(title, ("problem", "run", ">of", ">mean", ">final"), lines))
    out.print(f"results: [bold]{plain(results.directory)}[/]", highlight=False)
    out.print(f"next: steadytd report {plain(results.directory)}", highlight=False)


def best_rows(results: Any) -> list[dict[str, Any]]:
    """The best configurations, best first, with their errors on fresh seeds (or in the grid)."""
    confirm = results.spec.file.confirm
    stage = "grid" if results.confirmation is None else "confirm"
    found = results.summary if results.confirmation is None else results.confirmation
    tasks = results.spec.tasks
    best = {(tasks[i].label, str(learner)) for i, learner in results.best}
    tried = Counter((task.label, learner.name) for task in tasks for learner in task.learners)
    rows = [
        {
            "problem": row["problem"],
            "run": row["run"],
            "configurations": tried[row["problem"], row["algorithm"]],
            "stage": stage,
            "seeds": row["seeds"],
            "auc": row[f"auc_{confirm.measure}"],
            "auc_stderr": row[f"auc_{confirm.measure}_stderr"],
            "final": row[f"final_{confirm.measure}"],
            "final_stderr": row[f"final_{confirm.measure}_stderr"],
        }
        for row in found.iter_rows(named=True)
        if (row["problem"], row["run"]) in best
    ]
    order = [task.label for task in results.spec.tasks]
    return sorted(rows, key=lambda row: (order.index(row["problem"]), row[confirm.by]))
