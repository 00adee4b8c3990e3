"""The certificate as a page with pictures, and the words that page and terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.files import filling, write_whole
from steadytd.base.finding import Finding
from steadytd.base.numbers import number
from steadytd.report.certificate.cures import cures_chart, cures_table
from steadytd.report.certificate.figures import (
    dial_stops,
    eigenvalue_chart,
    first_stop,
    largest_eta,
    path_chart,
    values_chart,
)
from steadytd.report.figures import described, save_figures, styled
from steadytd.report.learning_curve import learning_curve_chart, parts
from steadytd.report.live import as_json, live
from steadytd.report.pages import page
from steadytd.report.text import Line, Table, table_of
from steadytd.theory.advice import advise_on, threshold
from steadytd.theory.analysis import compared
from steadytd.theory.certificate import Certificate
from steadytd.theory.recommend import CODE, adaptive
from steadytd.theory.verdicts import Verdicts

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


def answer(
    c: Certificate, etas: Sequence[float] = (), *, cures: bool = False
) -> list[Line | Table]:
    """The verdict, what to use, and the learners that are compared."""
    good = "good" if c.td_stable else "care"
    lines = [Line(verdict(c, cures=cures), good)]
    lines += [Line(f.text, head=f.code) for f in findings(c, cures=cures)[:1] if f.code == CODE]
    if etas or cures:
        lines += [Line(f.text, head=f.code) for eta in etas for f in advise_on(c, eta)]
        asked = [asked_table(c, etas)] if etas else []
        return [*lines, *asked, *([cures_table(c)] if cures else [])]
    learners = learners_table(c, cures=cures)
    names = {law.name for law in compared()}
    rows = [
        i
        for i, row in enumerate(learners.rows)
        if i in learners.best or str(row[0]).split()[0] in names
    ]
    some = learners._replace(
        title="Some learners (all: --full)", rows=[learners.rows[i] for i in rows]
    )
    return [*lines, some]


def rest(c: Certificate, *, cures: bool = False) -> list[Line | Table | str]:
    """The other findings, thresholds and all learners."""
    lines = finding_lines(c, cures=cures)
    learners = learners_table(c, cures=cures)
    return [*lines, "", thresholds_table(c), learners, adaptive()]


def finding_lines(c: Certificate, *, cures: bool = False) -> list[Line]:
    """The findings but the first, which is a part of the answer."""
    found = findings(c, cures=cures)
    return [Line(f.text, head=f.code) for f in found if f.code != CODE]


def findings(c: Certificate, etas: Sequence[float] = (), *, cures: bool = False) -> list[Finding]:
    """What to do first, then the other general findings, then those about given penalties."""
    found = [*c.findings(cures=cures), *(f for eta in etas for f in advise_on(c, eta))]
    return sorted(found, key=lambda finding: finding.code != CODE)


def thresholds_table(c: Certificate) -> Table:
    """Thresholds and bounds with their meaning."""
    unstable = ", ".join(f"{number(lo)} to {number(hi)}" for lo, hi in c.unstable_etas) or "none"
    found = "" if c.pencil.exact else " (found by a scan: very short intervals may be missing)"
    rows = [
        ("unstable", unstable, f"penalties with an unstable mean update{found}"),
        ("Hurwitz", number(c.eta_hurwitz), f"stable for every larger eta{found}"),
        ("positive definite", number(c.eta_pd), "exact: the theorem's condition holds above"),
        *((n.replace("_", " "), number(c.bounds[n]), text) for n, text in BOUNDS.items()),
        (
            "best",
            number(c.best_eta),
            "eta=auto: least error away from poles, crossings, knife edges",
        ),
    ]
    return Table("Penalties", ("threshold", ">eta", "meaning"), rows)


def learners_table(c: Certificate, *, cures: bool = False) -> Table:
    """Each learner with its parameters, stability, variance, error and largest step size."""
    heads = {
        "name": "learner", "stable": "!mean update", "variance": "!variance", "runs": "runs",
        "error": ">error", "alpha": ">largest alpha",
    }  # fmt: skip
    title = (
        "Learners: is the mean update stable, is the variance of the traces finite, and if not, "
        "do single runs settle at a tenth of the largest step size or less; error of the fixed "
        "point, largest constant step size (none: unstable; empty: not known, or there is none)"
    )
    return table_of(title, heads, learner_rows(c, cures=cures))


def asked_table(c: Certificate, etas: Sequence[float]) -> Table:
    """The penalties that were asked about."""
    rows = [
        {
            "eta": number(row["eta"]),
            "stable": "stable" if row["stable"] else "unstable",
            "error": number(row["error"]),
            "bound": number(row["error_bound"]) or "none",
            "move": "" if row["sensitivity"] is None else number(0.01 * row["sensitivity"]),
        }
        for row in (c.path(etas).to_dicts() if etas else [])
    ]
    heads = {"eta": ">eta", "stable": "!mean update", "error": ">error", "bound": ">error bound",
             "move": ">values move per 0.01 of eta"}  # fmt: skip
    return table_of("Penalties asked about", heads, rows)


SINGLE_RUNS = {None: "", True: "settle", False: "grow"}


def learner_rows(c: Verdicts, *, cures: bool = False) -> list[dict[str, Any]]:
    """The rows of the table of learners.

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
                "stable": "stable" if row["stable"] else "unstable",
                "variance": "finite" if row["finite_variance"] else "infinite",
                "runs": SINGLE_RUNS[row["almost_sure"]],
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
        ways, curve = described(cures_chart(c)) if cures else None, c.expected(cures=cures)
        if pictures and curve is not None:
            charts["curve"] = styled(learning_curve_chart(curve))
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
    curve = c.expected(cures=cures)
    with debug_mode(False):  # Altair would check every dot
        shown = {name: live(name, draw(c, stops), files) for name, draw in CHARTS.items()}
        if cures:
            shown["cures"] = live("cures", ways, files)
        if curve is not None:
            shown["curve"] = live("curve", styled(learning_curve_chart(curve)), files)
    return page(
        "certify.html",
        c=c,
        verdict=verdict(c, cures=cures),
        findings=findings(c, etas, cures=cures),
        first=CODE,
        thresholds=thresholds_table(c),
        learners=learners_table(c, cures=cures),
        adaptive=adaptive(),
        path=asked_table(c, etas),
        cures=cures_table(c) if cures else None,
        curve=curve and parts(curve),
        figures=shown,
        moves=as_json([stop.texts for stop in stops]),
        start=first_stop(c, stops),
        last=len(stops) - 1,
        command=command,
    )
