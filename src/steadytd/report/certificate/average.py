"""The certificate of average reward in words: its answer, its tables, its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.files import filling, write_whole
from steadytd.base.numbers import number
from steadytd.report.certificate.cures import cures_chart, cures_table
from steadytd.report.certificate.page import learner_rows
from steadytd.report.figures import described, save_figures
from steadytd.report.live import live
from steadytd.report.pages import page
from steadytd.report.text import Line, Table, table_of
from steadytd.theory.average import AverageCertificate
from steadytd.theory.recommend import CODE


def verdict(c: AverageCertificate, *, cures: bool = False) -> str:
    """What comes first: the rate, which learner to use, and whether differential TD is stable."""
    found = c.recommended(cures=cures)
    use = "" if found is None else f" U{found.text.partition(':')[0][1:]}."
    stable = "stable" if c.td_stable else "unstable"
    return (
        f"{c.problem.name}: the target policy earns {number(c.rate)} a step.{use} Differential "
        f"TD's mean update is {stable} with ratio = {number(c.ratio)}."
    )


def answer(
    c: AverageCertificate, etas: Sequence[float] = (), *, cures: bool = False
) -> list[Line | Table]:
    """The verdict, what to use, and the learners."""
    lines = [Line(verdict(c, cures=cures), "good" if c.td_stable else "care")]
    lines += [Line(f.text, head=f.code) for f in c.findings(cures=cures) if f.code == CODE]
    lines += [Line(f.text, head=f.code) for eta in etas for f in c.about(eta)]
    asked = [asked_table(c, etas)] if etas else []
    return [*lines, *asked, *([cures_table(c)] if cures else [learners_table(c, cures=cures)])]


def rest(c: AverageCertificate, *, cures: bool = False) -> list[Line]:
    """The findings but the first, which is a part of the answer."""
    return [Line(f.text, head=f.code) for f in c.findings(cures=cures) if f.code != CODE]


def learners_table(c: AverageCertificate, *, cures: bool = False) -> Table:
    """Each learner with its parameters, stability, variance, error, rate, largest step size."""
    heads = {
        "name": "learner", "stable": "!mean update", "variance": "!variance", "error": ">error",
        "rate": ">rate", "alpha": ">largest alpha",
    }  # fmt: skip
    title = (
        "Learners: is the mean update stable, is the variance of the traces finite; error of the "
        f"fixed point up to a constant, its reward rate (true: {number(c.rate)}), largest constant "
        "step size (none: unstable; empty: not known)"
    )
    rates = {row["learner"]: number(row.get("rate")) for row in c.learners}
    rows = [row | {"rate": rates[row["learner"]]} for row in learner_rows(c, cures=cures)]
    return table_of(title, heads, rows)


def asked_table(c: AverageCertificate, etas: Sequence[float]) -> Table:
    """The penalties that were asked about."""
    rows = [
        (number(row["eta"]), "stable" if row["stable"] else "unstable", number(row["error"]),
         number(row["rate"]))
        for row in c.path(etas).to_dicts()
    ]  # fmt: skip
    title = f"Penalties asked about (true rate: {number(c.rate)})"
    return Table(title, (">eta", "!mean update", ">error", ">rate"), rows)


def write_certificate(
    c: AverageCertificate,
    out: str | Path,
    etas: Sequence[float] = (),
    *,
    cures: bool = False,
    pictures: bool = True,
    command: str = "",
) -> Path:
    """Write `certificate.html` and its picture (SVG, PNG, PDF); return the page's path."""
    from altair.utils.schemapi import debug_mode

    with filling(out) as made, debug_mode(False):
        chart: dict[str, Any] = described(cures_chart(c))
        save_figures({"cures": chart} if pictures else {}, made)
        parts = [*answer(c, etas, cures=cures), *rest(c, cures=cures)]
        html = page(
            "object.html",
            title=f"Certificate: {c.problem.name}",
            words=[f"{one.head}: {one.text}".removeprefix(": ")
                   for one in parts if isinstance(one, Line)],
            tables=[one for one in parts if isinstance(one, Table)],
            picture=live("cures", chart, pictures),
            command=command,
        )  # fmt: skip
        write_whole(made / "certificate.html", html)
    return Path(out) / "certificate.html"
