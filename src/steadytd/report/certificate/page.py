"""The certificate as a page with pictures, and the words that page and terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.files import filling, write_whole
from steadytd.base.finding import Finding
from steadytd.base.numbers import number
from steadytd.report.certificate.cures import cure_rows, cures_chart, ordered
from steadytd.report.certificate.figures import (
    dial_stops,
    eigenvalue_chart,
    first_stop,
    largest_eta,
    path_chart,
    values_chart,
)
from steadytd.report.figures import described, save_figures
from steadytd.report.live import as_json, live
from steadytd.report.pages import page
from steadytd.theory.advice import advise_on, threshold
from steadytd.theory.certificate import Certificate
from steadytd.theory.recommend import CODE, adaptive

CHARTS = {"path": path_chart, "eigenvalues": eigenvalue_chart, "states": values_chart}
BOUNDS = {
    "numerical_range": "bound: λ_max(sym T) - 1; does not use the features",
    "operator_norm": "bound: ‖T‖ - 1",
    "sqrt_kappa": "bound: γ √κ - 1; above it there is an error bound",
    "gershgorin": "bound: γ (1 + κ)/2 - 1",
    "paper": "bound: γ κ - 1, the paper's theorem",
    "policies": "bound: γ √ρ_max - 1; uses the policies only",
}


def subject(c: Certificate) -> str:
    """The problem's name; where there are several, the target policy; where it is active."""
    p = c.problem
    active = int(p.active_in(c.policy).sum())
    policy = f", policy {c.policy}" if p.n_policies > 1 else ""
    where = f" (active in {active} of {p.n_states} states)" if active < p.n_states else ""
    return f"{p.name}{policy}{where}"


def verdict(c: Certificate, *, cures: bool = False) -> str:
    """What comes first: which learner to use, and whether TD is stable."""
    found = c.recommended(cures=cures)
    use = "" if found is None else f" {found.text.partition(':')[0]}."
    first = f"{subject(c)}:{use} {'Off' if use else 'off'}-policy"
    if c.td_stable:
        return f"{first} TD's mean update is stable."
    if c.moments.v_pi.any():
        choice = f"eta=auto takes {number(c.best_eta)}."
    else:
        choice = "the true value is zero, so all of them have the right fixed point."
    return (
        f"{first} TD's mean update is unstable. Perturbed TD's is stable for "
        f"eta > {threshold(c.eta_hurwitz)}; {choice}"
    )


def findings(c: Certificate, etas: Sequence[float] = (), *, cures: bool = False) -> list[Finding]:
    """What to do first, then the other general findings, then those about given penalties."""
    found = [*c.findings(cures=cures), *(f for eta in etas for f in advise_on(c, eta))]
    return sorted(found, key=lambda finding: finding.code != CODE)


def threshold_rows(c: Certificate) -> list[dict[str, str]]:
    """Thresholds and bounds with their meaning."""
    unstable = ", ".join(f"{number(lo)} to {number(hi)}" for lo, hi in c.unstable_etas) or "none"
    found = "" if c.pencil.exact else " (found by a scan: very short intervals may be missing)"
    rows = [
        ("unstable", unstable, f"penalties with an unstable mean update{found}"),
        ("Hurwitz", number(c.eta_hurwitz), f"stable for every larger eta{found}"),
        ("positive definite", number(c.eta_pd), "exact: the theorem's condition holds above"),
    ]
    rows += [(n.replace("_", " "), number(c.bounds[n]), text) for n, text in BOUNDS.items()]
    best = "eta=auto: least error away from poles, crossings, knife edges"
    rows.append(("best", number(c.best_eta), best))
    return [{"name": name, "value": value, "text": text} for name, value, text in rows]


SINGLE_RUNS = {None: "", True: "settle", False: "grow"}


def learner_rows(c: Certificate, *, cures: bool = False) -> list[dict[str, Any]]:
    """Each learner with its parameters, stability, variance, error and largest step size.

    The recommended one stands first. One of the cures, with other parameters, is not among them.
    """
    use = c.recommended(cures=cures)
    choice = None if use is None else (use.numbers["learner"], use.numbers["params"])
    size = 1e-9 * (1.0 + c.error(0.0 * c.problem.w0))
    rows = []
    for row in c.learners:
        numbers = {k: v for k, v in row["params"].items() if not isinstance(v, str)}
        shown = ", ".join(f"{k} {number(v)}" for k, v in numbers.items() if k != "lam" or v)
        error = row["error"] if row["error"] is None or row["error"] > size else 0.0
        rows.append(
            {
                "learner": row["learner"],
                "recommended": (row["learner"], row["params"]) == choice,
                "name": f"{row['learner']}{f' ({shown})' if shown else ''}",
                "stable": row["stable"],
                "variance": "finite" if row["finite_variance"] else "infinite",
                "runs": SINGLE_RUNS[row["almost_sure"]],
                "runs_alpha": number(row["exponent_alpha"]),
                "error": "none" if error is None else number(error),
                "alpha": number(row["largest_alpha"]) if row["stable"] else "none",
            }
        )
    return sorted(rows, key=lambda row: not row["recommended"])


def write_certificate(
    c: Certificate,
    out: str | Path,
    etas: Sequence[float] = (),
    *,
    cures: bool = False,
    pictures: bool = True,
    command: str = "",
) -> Path:
    """Write `certificate.html` and its pictures (SVG, PNG, PDF); return the page's path."""
    from altair.utils.schemapi import debug_mode

    with filling(out) as made, debug_mode(False):
        charts = {name: draw(c) for name, draw in CHARTS.items()} if pictures else {}
        ways = described(cures_chart(c)) if cures else None
        save_figures(charts | ({"cures": ways} if pictures and ways else {}), made)
        html = certificate_page(c, etas, ways, files=pictures, command=command)
        write_whole(made / "certificate.html", html)
    return Path(out) / "certificate.html"


def certificate_page(
    c: Certificate,
    etas: Sequence[float] = (),
    ways: dict[str, Any] | None = None,
    *,
    files: bool = False,
    command: str = "",
) -> str:
    """The page alone, with the cures if their figure is given.

    With `files` it has links to the pictures' files beside it. `command` is what made it.
    """
    from altair.utils.schemapi import debug_mode

    cures, stops = ways is not None, dial_stops(c, etas, largest_eta(c))
    with debug_mode(False):  # Altair would check every dot
        shown = {name: live(name, draw(c, stops), files) for name, draw in CHARTS.items()}
        if cures:
            shown["cures"] = live("cures", ways, files)
    path = [
        {**row, "move": None if row["sensitivity"] is None else 0.01 * row["sensitivity"]}
        for row in (c.path(etas).to_dicts() if etas else [])
    ]
    said = findings(c, etas, cures=cures)
    return page(
        "certify.html",
        c=c,
        name=c.problem.name,
        summary=c.problem.summary,
        verdict=verdict(c, cures=cures),
        findings=said,
        first=CODE,
        thresholds=threshold_rows(c),
        learners=learner_rows(c, cures=cures),
        adaptive=adaptive(),
        path=path,
        cures=cure_rows(c, ordered(c)) if cures else [],
        figures=shown,
        moves=as_json([stop.texts for stop in stops]),
        start=first_stop(c, stops),
        last=len(stops) - 1,
        rank=c.pencil.rank,
        features=c.problem.n_features,
        command=command,
    )
