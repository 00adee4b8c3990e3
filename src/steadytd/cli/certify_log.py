"""`steadytd certify` for a log: is plain TD stable on these data, and which penalty is enough?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.cli.console import out, plain, print_json, progress_bar, table

if TYPE_CHECKING:
    from steadytd.evaluation.result import Evaluation

SUFFIXES = (".parquet", ".pq", ".csv", ".csv.gz")


def is_log(name: str) -> bool:
    """Whether the argument of `certify` names a log, not a problem.

    >>> is_log("log.parquet"), is_log("logs/*.csv"), is_log("baird"), is_log("mine.npz")
    (True, True, False, False)
    """
    return name.lower().endswith(SUFFIXES) or any(c in name for c in "*?[") or Path(name).is_dir()


def certify_log(
    name: str,
    *,
    discount: float | None,
    features: str,
    targets: list[str] | None,
    columns: list[str] | None,
    estimate: bool,
    etas: list[float],
    as_json: bool,
) -> None:
    """Print the stability of every target on the log."""
    from steadytd.cli.evaluate import opened
    from steadytd.cli.evaluate_page import print_findings, print_stability, print_verdicts
    from steadytd.evaluation.evaluate import evaluate
    from steadytd.report.evaluation.text import (
        estimate_text,
        findings_by_level,
        interval_text,
        stability_verdicts,
    )

    for eta in etas:
        if not 0.0 <= eta < float("inf"):
            raise InputError(f"eta must be a finite number >= 0, got {eta:g}.")
    log = opened([name], discount, targets, columns, estimate)
    learners = ["lstd", *(f"perturbed_td:eta={eta!r}" for eta in dict.fromkeys(etas))]
    with progress_bar("reading", unit="rows", then="solving") as update:
        e = evaluate(
            log, discount=discount, features=features, learners=learners,
            behavior="estimate" if estimate else None, progress=update,
        )  # fmt: skip
    asked = penalties(e, etas)
    if as_json:
        print_json(document(e, asked))
        return
    print_verdicts(stability_verdicts(e))
    print_stability(e, f"Stability from {e.log.rows:,} rows, {e.settings['features']}")
    if asked:
        shown = [
            (
                plain(row["target"]),
                f"{row['eta']:g}",
                {True: "stable", False: "not stable", None: "not known"}[row["stable"]],
                estimate_text(row["value"], row["lo"], row["hi"]),
                interval_text(row["lo"], row["hi"]),
            )
            for row in asked
        ]
        names = ("target", ">eta", "mean update", ">value", ">95 % interval")
        out.print(table("Penalties asked about", names, shown))
    warnings, _ = findings_by_level(e)
    print_findings("Warnings", "yellow", [w for w in warnings if w.code in ABOUT_RATIOS])
    out.print(
        "The interval is that of the threshold, for the chance of which episodes were logged. "
        "Above the threshold the mean update is stable, also with the same features combined or "
        "scaled otherwise; below it, it may be stable, but not with all of those.",
        highlight=False,
    )


ABOUT_RATIOS = {
    "no_support", "ratios_off", "probabilities_off", "low_overlap", "few_episodes", "rows_left_out",
    "behavior_estimated",
}  # fmt: skip


def penalties(e: Evaluation, etas: list[float]) -> list[dict[str, Any]]:
    """The penalties asked about: target, eta, stable, value of the fixed point, lo, hi.

    With many features eigenvalues are not looked at; above the threshold stability is known anyway.
    """
    rows = []
    for result in e.results:
        for v in result.values:
            if v.eta is None or v.kind != "online":
                continue
            stable = True if v.eta > result.stability.eta_pd else v.stable
            rows.append(
                {"target": v.target, "eta": v.eta, "stable": stable, "value": v.fixed_point,
                 "lo": v.lo, "hi": v.hi}
            )  # fmt: skip
    return rows


def document(e: Evaluation, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """The JSON of a certified log."""
    whole = e.to_dict()
    kept = ("stability", "overlap", "path", "warnings", "notes", "log", "settings")
    return {"stability": whole["stability"], "penalties": asked, **{k: whole[k] for k in kept[1:]}}
