"""`steadytd certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytd.base.errors import InputError
from steadytd.cli.console import WHOLE, err, out, plain, print_json, table
from steadytd.cli.evaluate import Discount, Estimate, Features, Map, Target
from steadytd.cli.experiments import Json, find_problem


def certify(
    problem: Annotated[
        str,
        typer.Argument(help="A problem (name, name:key=value,..., .npz), or a log (.parquet)."),
    ],
    eta: Annotated[
        list[float] | None, typer.Option("--eta", help="Also report on this penalty; repeatable.")
    ] = None,
    policy: Annotated[
        int | None,
        typer.Option(**WHOLE, help="Which target policy of a problem, if there are several."),
    ] = None,
    discount: Discount = None,
    features: Features = None,
    target: Target = None,
    columns: Map = None,
    estimate: Estimate = False,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Write certificate.html and its pictures here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Before any run: is the mean update stable, and how good is its fixed point?

    For a log: is plain TD stable on these data, and which penalty is enough?

    Examples:
      steadytd certify three_state

      steadytd certify baird --eta 0.1 --eta 1 --out results/baird

      steadytd certify collision:seed=7

      steadytd certify mine.npz --json

      steadytd certify log.parquet --discount 0.99 --features rbf:100
    """
    from steadytd.cli.certify_log import certify_log, is_log

    given = {
        "--discount": discount is not None,
        "--features": features is not None,
        "--target": bool(target),
        "--map": bool(columns),
        "--estimate-behavior": estimate,
    }
    if is_log(problem):
        if directory is not None:
            raise InputError(
                f"--out works with problems only, and '{problem}' is a log; for pictures of a log "
                "use steadytd evaluate --out."
            )
        if policy is not None:
            raise InputError(
                f"--policy works with problems only, and '{problem}' is a log; use --target."
            )
        certify_log(
            problem, discount=discount, features=features or "raw", targets=target,
            columns=columns, estimate=estimate, etas=eta or [], as_json=as_json,
        )  # fmt: skip
        return
    for option, used in given.items():
        if used:
            raise InputError(
                f"{option} works with logs only, and '{problem}' is a problem; leave it out."
            )
    _certify_problem(problem, eta or [], policy or 0, directory, as_json)


def _certify_problem(
    problem: str, etas: list[float], policy: int, directory: Path | None, as_json: bool
) -> None:
    from steadytd.base.files import require_writable
    from steadytd.base.wording import figures
    from steadytd.report.certificate.page import (
        findings,
        learner_rows,
        threshold_rows,
        verdict,
        write_certificate,
    )
    from steadytd.theory.certificate import certify as do

    if directory is not None:
        require_writable(directory)
    c = do(find_problem(problem), policy)
    asked = c.path(etas).to_dicts() if etas else []
    if directory is not None:
        with err.status("drawing"):
            page = write_certificate(c, directory, etas)
    if as_json:
        print_json(c.to_dict(etas))
        return
    colour = "green" if c.td_stable else "yellow"
    out.print(f"[bold {colour}]{plain(verdict(c))}[/]\n", highlight=False)
    for finding in findings(c, etas):
        out.print(f"[bold]{finding.code}[/]  {plain(finding.text)}", highlight=False)
    rows = [(r["name"], r["value"], r["text"]) for r in threshold_rows(c)]
    out.print(table("\nPenalties", ("threshold", ">eta", "meaning"), rows))
    lines = [
        (
            plain(r["name"]),
            "stable" if r["stable"] else "unstable",
            r["variance"],
            r["error"],
            r["alpha"],
        )
        for r in learner_rows(c)
    ]
    verdicts = ("learner", "mean", "variance", ">error", ">alpha <")
    title = (
        "Learners: is the mean update stable, is the variance of the traces finite,\n"
        "error of the fixed point, largest constant step size"
    )
    out.print(table(title, verdicts, lines))
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
        out.print(f"page: [bold]{plain(page)}[/]", highlight=False, soft_wrap=True)
