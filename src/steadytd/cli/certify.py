"""`steadytd certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytd.cli.console import err, out, print_json, table
from steadytd.cli.experiments import Json, find_problem


def certify(
    problem: Annotated[str, typer.Argument(help="A problem's name, or a saved problem (.npz).")],
    eta: Annotated[
        list[float] | None, typer.Option("--eta", help="Look at this penalty too; repeatable.")
    ] = None,
    policy: Annotated[int, typer.Option(help="Which target policy, if there are several.")] = 0,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Write certificate.html and its pictures here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Will it converge, to what, and how good is that? Exact, before anything is run.

    Examples:
      steadytd certify three_state

      steadytd certify baird --eta 0.1 --eta 1 --out results/baird

      steadytd certify mine.npz --json
    """
    from rich.markup import escape

    from steadytd.core.files import output_directory
    from steadytd.report.certify import (
        findings,
        learner_rows,
        threshold_rows,
        verdict,
        write_certificate,
    )
    from steadytd.report.pages import figures
    from steadytd.theory.certificate import certify as do

    etas = eta or []
    c = do(find_problem(problem), policy)
    asked = c.path(etas).to_dicts() if etas else []
    if directory is not None:
        output_directory(directory)
        with err.status("drawing"):
            page = write_certificate(c, directory, etas)
    if as_json:
        print_json(c.to_dict(etas))
        return
    colour = "green" if c.td_stable else "yellow"
    out.print(f"[bold {colour}]{escape(verdict(c))}[/]\n", highlight=False)
    for finding in findings(c, etas):
        out.print(f"[bold]{finding.code}[/]  {escape(finding.text)}", highlight=False)
    rows = [(r["name"], r["value"], r["text"]) for r in threshold_rows(c)]
    out.print(table("\nPenalties", ("threshold", ">eta", "meaning"), rows))
    lines = [
        (r["name"], "stable" if r["stable"] else "unstable", r["error"], r["alpha"])
        for r in learner_rows(c)
    ]
    columns = ("learner", "mean update", ">error", ">largest alpha")
    out.print(
        table("Learners: error of the fixed point, largest constant step size", columns, lines)
    )
    if asked:
        shown = [
            (
                f"{r['eta']:g}",
                "stable" if r["stable"] else "unstable",
                figures(r["error"]),
                figures(r["error_bound"]) or "none",
            )
            for r in asked
        ]
        columns = ("eta", "mean update", ">error", ">error bound")
        out.print(table("Penalties asked about", columns, shown))
    if directory is not None:
        out.print(f"page: [bold]{page}[/]", highlight=False, soft_wrap=True)
