"""`steadytd certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from steadytd.base.errors import InputError
from steadytd.cli.console import (
    WHOLE,
    NoFigures,
    Open,
    command_line,
    err,
    open_page,
    out,
    plain,
    print_finding,
    print_json,
    print_page,
    require_page,
    table,
)
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
    cures: Annotated[
        bool, typer.Option("--cures", help="Compare every way to a stable mean update.")
    ] = False,
    alpha: Annotated[
        float | None,
        typer.Option(help="Also report on single runs of every learner at this step size."),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(help="Write a proof here: is A(eta) positive definite, at the one --eta?"),
    ] = None,
    show: Open = False,
    no_figures: NoFigures = False,
    as_json: Json = False,
) -> None:
    """Before any run: is the mean update stable, and how good is its fixed point?

    For a log: is plain TD stable on these data, and which penalty is enough?

    Examples:
      steadytd certify three_state

      steadytd certify baird --eta 0.1 --eta 1 --out results/baird

      steadytd certify three_state --cures

      steadytd certify three_state --alpha 1e-4

      steadytd certify three_state --eta 0.5 --proof proof.json

      steadytd certify collision:seed=7

      steadytd certify mine.npz --json

      steadytd certify log.parquet --discount 0.99 --features rbf:100
    """
    from steadytd.cli.certify_log import certify_log, is_log

    require_page(show, directory)
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
        for option, used in {
            "--cures": cures,
            "--alpha": alpha is not None,
            "--proof": proof is not None,
        }.items():
            if used:
                raise InputError(
                    f"{option} works with problems only, and '{problem}' is a log; leave it out."
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
    if proof is not None:
        _write_proof(problem, eta or [], policy or 0, proof)
    _certify_problem(
        Wanted(problem, eta or [], policy or 0, directory, cures, alpha, show, no_figures, as_json)
    )


class Wanted(NamedTuple):
    """What is asked of a problem's certificate."""

    problem: str
    etas: list[float]
    policy: int
    directory: Path | None
    cures: bool
    alpha: float | None
    show: bool
    no_figures: bool
    as_json: bool


def _write_proof(problem: str, etas: list[float], policy: int, path: Path) -> None:
    from steadytd.base.files import write_whole
    from steadytd.base.json import json_text
    from steadytd.theory.certificate import Certificate

    if len(etas) != 1:
        got = f"{len(etas)} of them" if etas else "none"
        raise InputError(
            f"--proof is about one penalty: give one --eta, for instance --eta 0.5; got {got}."
        )
    made = Certificate(find_problem(problem), policy).proof("positive_definite", eta=etas[0])
    write_whole(path, json_text(made))
    shown = f"proof: [bold]{plain(str(path))}[/] ({plain(made['claim'])})"
    err.print(shown, highlight=False, soft_wrap=True)


def _certify_problem(asked_for: Wanted) -> None:
    from steadytd.base.files import require_writable
    from steadytd.base.wording import figures
    from steadytd.report.certificate.cures import cure_rows
    from steadytd.report.certificate.page import (
        findings,
        learner_rows,
        threshold_rows,
        verdict,
        write_certificate,
    )
    from steadytd.theory.certificate import certify as do

    problem, etas, policy, directory, cures, alpha, show, no_figures, as_json = asked_for
    if directory is not None:
        require_writable(directory)
    with err.status(f"certifying {plain(problem)}") as status:
        c = do(find_problem(problem), policy)
        asked = c.path(etas).to_dicts() if etas else []
        runs = [] if alpha is None else c.at_alpha(alpha).to_dicts()
        document = c.to_dict(etas, cures=cures) if as_json else {}
        told = [] if as_json else findings(c, etas, cures=cures)
        learned = [] if as_json else learner_rows(c, cures=cures)
        ways = cure_rows(c) if cures and not as_json else []
        if directory is not None:
            status.update("drawing")
            page = write_certificate(
                c, directory, etas, cures=cures, pictures=not no_figures, command=command_line()
            )
    if as_json:
        at = {} if alpha is None else {"at_alpha": {"alpha": alpha, "learners": runs}}
        print_json(document | at)
        if directory is not None:
            open_page(page, show)
        return
    colour = "green" if c.td_stable else "yellow"
    out.print(f"[bold {colour}]{plain(verdict(c, cures=cures))}[/]\n", highlight=False)
    for finding in told:
        print_finding(f"[bold]{finding.code}[/]", finding.text)
    rows = [(r["name"], r["value"], r["text"]) for r in threshold_rows(c)]
    out.print(table("\nPenalties", ("threshold", ">eta", "meaning"), rows))
    lines = [
        (
            plain(r["name"]) + (" [bold green]*[/]" if r["recommended"] else ""),
            "stable" if r["stable"] else "unstable",
            r["variance"],
            r["error"],
            r["alpha"],
        )
        for r in learned
    ]
    verdicts = ("learner", "mean", "variance", ">error", ">alpha <")
    title = (
        "Learners (* recommended): is the mean update stable, is the variance of the\n"
        "traces finite, error of the fixed point, largest constant step size\n"
        "(none: unstable; empty: not known, or there is none)"
    )
    out.print(table(title, verdicts, lines))
    if cures:
        parts = ("short", "unstable", "best", "error", "noise", "alpha")
        found = [tuple(r[name] for name in parts) for r in ways]
        title = (
            "Cures: amounts that are not stable (*: found by a scan), the amount to take,\n"
            "error of its fixed point, noise of its updates, largest step size for bounded\n"
            "second moments where known (scaled, outside: penalties with traces, lam 0.5)"
        )
        heads = ("cure", "unstable", ">take", ">error", ">noise", ">alpha <")
        out.print(table(title, heads, found))
    if runs:
        at_alpha = [
            (
                plain(r["learner"]),
                "" if r["bounded"] is None else "bounded" if r["bounded"] else "unbounded",
                _limit(r["mean_square_alpha"]),
                figures(r["error"]),
                "" if r["spread"] is None else figures(r["spread"]),
            )
            for r in runs
        ]
        title = (
            f"Single runs at alpha = {alpha:g}: are second moments bounded,\n"
            "up to which alpha (none: not at small ones); error of the\n"
            "fixed point; how far a long run is from it (empty: not known)"
        )
        names = ("learner", "mean square", ">alpha <", ">error", ">spread")
        out.print(table(title, names, at_alpha))
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
        print_page(page, show)


def _limit(alpha: float | None) -> str:
    """Up to which step size second moments are bounded."""
    return "" if alpha is None else f"{alpha:.3g}" if alpha > 0.0 else "none"


def verify(
    file: Annotated[Path, typer.Argument(help="A proof, written by certify --proof.")],
    as_json: Json = False,
) -> None:
    """Check a proof with exact fractions, from the problem in the file.

    The same check without this library: python verify.py proof.json.
    There verify.py is steadytd/theory/proof/verify.py, of under 100 lines.

    Examples:
      steadytd certify three_state --eta 0.5 --proof proof.json

      steadytd verify proof.json
    """
    from steadytd.theory.proof.verify import verify as check

    try:
        proved = check(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{file} proves nothing: {error}.") from None
    if as_json:
        print_json({"file": str(file), "proved": proved})
        return
    out.print(f"proved: {proved}.", highlight=False, markup=False)
