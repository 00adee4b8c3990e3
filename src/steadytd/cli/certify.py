"""`steadytd certify`, for problems and for logs, and `steadytd verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytd.base.errors import Faults, InputError
from steadytd.base.numbers import number
from steadytd.cli.console import (
    WHOLE,
    Full,
    Json,
    NoFigures,
    Open,
    command_line,
    err,
    is_log,
    out,
    plain,
    print_answer,
    print_json,
    print_page,
    print_parts,
    require_page,
)
from steadytd.cli.evaluate import FEATURES, Discount, Estimate, Map, Target, opened

if TYPE_CHECKING:
    from steadytd.evaluation.result import Evaluation
    from steadytd.logs.log import Log
    from steadytd.report.text import Table
    from steadytd.theory.verdicts import Verdicts

LEAVE = "leave it out"


def certify(
    problem: Annotated[
        str,
        typer.Argument(help="A problem (name, name:key=value,..., .npz), or a log (.parquet)."),
    ],
    eta: Annotated[
        list[float] | None, typer.Option("--eta", help="Also report on this penalty; repeatable.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            help="Also report on this learner; repeatable. A law of yours is "
            "FILE.py:LAW:key=value; the file is run.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            **WHOLE,
            help="Also say what error the learners asked about have after so many steps; "
            "one without alpha gets the best for them.",
        ),
    ] = None,
    policy: Annotated[
        int | None,
        typer.Option(**WHOLE, help="Which target policy of a problem, if there are several."),
    ] = None,
    discount: Discount = None,
    features: Annotated[str | None, FEATURES] = None,
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
    full: Full = False,
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

      steadytd certify baird --learner tdc:ratio=4 --steps 10000

      steadytd certify collision:seed=7

      steadytd certify mine.npz --learner my_laws.py:my_law --json

      steadytd certify log.parquet --discount 0.99 --features rbf:100
    """
    from steadytd.base.files import require_writable

    require_page(show, directory)
    if is_log(problem):
        _refuse(
            f"works with problems only, and '{problem}' is a log",
            {
                "--out": (directory is not None, "for its pictures use steadytd evaluate --out"),
                "--policy": (policy is not None, "use --target"),
                "--learner": (bool(learner), "use steadytd evaluate --learner"),
                "--steps": (steps is not None, LEAVE),
                "--cures": (cures, LEAVE),
                "--alpha": (alpha is not None, LEAVE),
                "--proof": (proof is not None, LEAVE),
            },
        )
        for one in eta or ():
            if not 0.0 <= one < float("inf"):
                raise InputError(f"eta must be a finite number >= 0, got {one:g}.")
        log = opened([problem], discount, target, columns, estimate, Faults(problem))
        _certify_log(
            log, eta or [], as_json, discount=discount, features=features or "raw",
            behavior="estimate" if estimate else None,
        )  # fmt: skip
        return
    _refuse(
        f"works with logs only, and '{problem}' is a problem",
        {
            "--discount": (discount is not None, LEAVE),
            "--features": (features is not None, LEAVE),
            "--target": (bool(target), LEAVE),
            "--map": (bool(columns), LEAVE),
            "--estimate-behavior": (estimate, LEAVE),
        },
    )
    if steps is not None and not learner:
        raise InputError("--steps is about learners: name one with --learner, or leave it out.")
    if proof is not None:
        _write_proof(problem, eta or [], policy or 0, proof)
    if directory is not None:
        require_writable(directory)
    from steadytd.report.certificate import average
    from steadytd.report.certificate import page as discounted
    from steadytd.report.learning_curve import parts as sentence
    from steadytd.theory.certificate import certify as do

    etas, page = eta or [], None
    with err.status(f"certifying {plain(problem)}") as status:
        c = do(problem, policy or 0)
        words: Any = average if c.problem.average_reward else discounted
        runs = [] if alpha is None else c.at_alpha(alpha).to_dicts()
        asked = [_asked(c, text) for text in learner or ()]
        curves = [c.learning_curve(x, steps=steps) for x in learner or () if steps is not None]
        document = c.to_dict(etas, cures=cures) if as_json else {}
        parts = [] if as_json else words.answer(c, etas, cures=cures)
        parts += [] if as_json or alpha is None else [_single_runs(runs, alpha)]
        parts += [_asked_table(asked)] if asked and not as_json else []
        parts += [] if as_json else [line for curve in curves for line in sentence(curve)]
        others = words.rest(c, cures=cures) if full and not as_json else []
        if directory is not None:
            status.update("drawing")
            page = words.write_certificate(
                c, directory, etas, cures=cures, pictures=not no_figures, command=command_line()
            )
    if as_json:
        at = {} if alpha is None else {"at_alpha": {"alpha": alpha, "learners": runs}}
        for row, curve in zip(asked, curves, strict=False):
            row["curve"] = curve.to_dict()
        print_json(document | at | ({"asked": asked} if asked else {}))
    else:
        print_answer(parts, others, full)
    print_page(page, show, as_json)


def _refuse(why: str, options: dict[str, tuple[bool, str]]) -> None:
    """An option that is used where it means nothing gets a sentence with its remedy."""
    for option, (used, remedy) in options.items():
        if used:
            raise InputError(f"{option} {why}; {remedy}.")


def _write_proof(problem: str, etas: list[float], policy: int, path: Path) -> None:
    from steadytd.base.files import write_whole
    from steadytd.base.json import json_text
    from steadytd.problems import problem as find_problem
    from steadytd.theory.certificate import Certificate

    if len(etas) != 1:
        got = f"{len(etas)} of them" if etas else "none"
        raise InputError(
            f"--proof is about one penalty: give one --eta, for instance --eta 0.5; got {got}."
        )
    made = Certificate(find_problem(problem), policy).proof("positive_definite", eta=etas[0])
    write_whole(path, json_text(made))
    text = f"proof: [bold]{plain(str(path))}[/] ({plain(made['claim'])})"
    err.print(text, highlight=False, soft_wrap=True)


def _asked(c: Verdicts, text: str) -> dict[str, Any]:
    """One learner that was asked about: its mean update, and the error of its fixed point."""
    learner = c.resolved(text)
    stable = c.is_stable(learner)
    return {
        "learner": text,
        "stable": stable,
        "error": c.error(c.fixed_point(learner)),
        "largest_alpha": c.largest_alpha(learner) if stable and "alpha" in learner.values else None,
    }


def _asked_table(asked: list[dict[str, Any]]) -> Table:
    from steadytd.report.text import Table

    rows = [
        (row["learner"], "stable" if row["stable"] else "unstable", number(row["error"]),
         number(row["largest_alpha"], 3))
        for row in asked
    ]  # fmt: skip
    title = (
        "Learners asked about: is the mean update stable, error of its fixed point, largest "
        "constant step size at which the mean converges"
    )
    return Table(title, ("learner", "!mean", ">error", ">alpha"), rows)


def _single_runs(rows: list[dict[str, Any]], alpha: float) -> Table:
    from steadytd.report.certificate.page import SINGLE_RUNS
    from steadytd.report.text import Table

    bounded = {None: "", True: "bounded", False: "unbounded"}
    lines = [
        (r["learner"], bounded[r["bounded"]],
         "none" if r["mean_square_alpha"] == 0.0 else number(r["mean_square_alpha"], 3),
         number(r["error"]), number(r["spread"]), SINGLE_RUNS[r["almost_sure"]])
        for r in rows
    ]  # fmt: skip
    title = (
        f"Single runs at alpha = {number(alpha)}: are second moments bounded, up to which alpha "
        "(none: not at small ones); error of the fixed point; how far a long run is from it; "
        "do almost all runs settle or grow (empty: not known)"
    )
    return Table(title, ("learner", "!mean square", ">alpha", ">error", ">spread", "runs"), lines)


ABOUT_RATIOS = {
    "ratios_off", "probabilities_off", "low_overlap", "few_episodes", "rows_left_out",
    "behavior_estimated",
}  # fmt: skip


def _certify_log(log: Log, etas: list[float], as_json: bool, **settings: Any) -> None:
    """Print whether plain TD is stable on the log for every target, and which penalty is enough.

    `settings` are those of `evaluate`.
    """
    from steadytd.base.progress import reporting
    from steadytd.evaluation.evaluate import evaluate
    from steadytd.report.evaluation.text import (
        estimate_text,
        finding_lines,
        findings_by_level,
        interval_text,
        stability_lines,
        stability_table,
    )
    from steadytd.report.text import Table

    learners = ["lstd", *(f"perturbed_td:eta={eta!r}" for eta in dict.fromkeys(etas))]
    with reporting(None, "reading") as update:
        e = evaluate(log, learners=learners, progress=update, **settings)
    asked = _penalties(e)
    if as_json:
        names = ("overlap", "path", "warnings", "notes", "log", "settings")
        document = e.to_dict()
        rest = {name: document[name] for name in names}
        print_json({"stability": document["stability"], "penalties": asked, **rest})
        return
    print_parts(stability_lines(e))
    title = f"Stability from {e.log.rows:,} rows, {e.settings['features']}"
    print_parts([stability_table(e)._replace(title=title)])
    if asked:
        stable = {True: "stable", False: "not stable", None: "not known"}
        rows = [
            (row["target"], number(row["eta"]), stable[row["stable"]],
             estimate_text(row["value"], row["lo"], row["hi"]), interval_text(row["lo"], row["hi"]))
            for row in asked
        ]  # fmt: skip
        heads = ("target", ">eta", "!mean update", ">value", ">95 % interval")
        print_parts([Table("Penalties asked about", heads, rows)])
    warnings, _ = findings_by_level(e)
    print_parts(finding_lines("Warnings", [w for w in warnings if w.code in ABOUT_RATIOS]))
    out.print(
        "The interval is that of the threshold, for the chance of which episodes were logged. "
        "Above the threshold the mean update is stable, also with the same features combined or "
        "scaled otherwise; below it, it may be stable, but not with all of those.",
        highlight=False,
    )


def _penalties(e: Evaluation) -> list[dict[str, Any]]:
    """The penalties asked about: target, eta, stable, value of the fixed point, lo, hi.

    With many features no eigenvalues are computed; above the threshold stability is known anyway.
    """
    return [
        {
            "target": v.target,
            "eta": v.eta,
            "stable": True if v.eta > result.stability.eta_pd else v.stable,
            "value": v.fixed_point,
            "lo": v.lo,
            "hi": v.hi,
        }
        for result in e.results
        for v in result.values
        if v.eta is not None and v.kind == "online"
    ]


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
