"""A study in tables: terminal, notebook and page have the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steadytd.base.numbers import interval, number, percent, with_error
from steadytd.report.run import error_text
from steadytd.report.text import Line, Table, table_of
from steadytd.studies.analysis import summary as words
from steadytd.studies.analysis.penalty import Penalty
from steadytd.studies.analysis.tables import LEVELS, short
from steadytd.studies.results import StudyResults, best_rows

FEW = 4  # learners of a problem on the first screen of a terminal
FIRST = 2  # findings that the terminal shows, too; the page has all
VERDICTS = {"same": "cannot be told apart", "identical": "the same update here",
            "unknown": "not known"}  # fmt: skip
Document = Mapping[str, Any]


def answer(document: Document, *, full: bool = True) -> list[Line | Table | str]:
    """Who is best, and on every problem the best learners."""
    parts: list[Line | Table | str] = [
        Line(document["headline"], "good" if document["complete"] else "care"), document["size"]
    ]  # fmt: skip
    for problem in document["problems"]:
        table = best_of(problem, document["criterion"])
        parts.append(table if full else table._replace(rows=table.rows[:FEW]))
        if not full and len(table.rows) > FEW:
            parts.append(f"{len(table.rows) - FEW} more learners: --full.")
    return parts


def rest(document: Document) -> list[Line | Table | str]:
    """How fast, the first findings and all caveats."""
    parts: list[Line | Table | str] = []
    for problem in document["problems"]:
        lines = [Line(x["text"], head=x["topic"]) for x in problem["summary"]]
        caveats = [Line(text, head="Caveat") for text in problem["caveats"]]
        more = ", ".join(x.head[0].lower() + x.head[1:] for x in lines[FIRST:])
        parts += [reach_of(problem), *lines[:FIRST], *caveats]
        parts += [f"More in the page: {more}."] * bool(more)
    return parts


def best_table(results: StudyResults) -> Table:
    """The best configurations, for the terminal and `print`; the best come first."""
    rows = [
        {
            **row,
            "run": configuration(row["run"]),
            "of": f"{row['configurations']:,}",
            "mean": error_text(row["auc"], row["auc_stderr"]),
            "final": error_text(row["final"], row["final_stderr"]),
        }
        for row in best_rows(results)
    ]
    where = "on fresh seeds" if results.stage == "confirm" else "on the grid"
    measure = results.spec.file.confirm.measure
    title = f"Best configuration of each learner, {where} ({measure}); of: number tried"
    heads = {"problem": "problem", "run": "run", "of": ">of", "mean": ">mean", "final": ">final",
             "ended": "!ended"}  # fmt: skip
    return table_of(title, heads, rows)


def configuration(run: str) -> str:
    """A configuration for reading: powers of two as such.

    >>> configuration("perturbed_td:alpha=0.00048828125,eta=0.5,penalty=outside")
    'perturbed_td:alpha=2⁻¹¹,eta=0.5,penalty=outside'
    """
    name, colon, rest = run.partition(":")
    parts = [part.partition("=") for part in rest.split(",") if part]
    return name + colon + ",".join(f"{key}={short(value)}" for key, _, value in parts)


def mean_text(mean: Document) -> str:
    """A mean over seeds, or how many of them overflowed."""
    if mean["diverged"]:
        return f"overflowed on {mean['diverged']} of {mean['seeds']}"
    return with_error(mean["value"], mean["stderr"])


def best_of(problem: Document, criterion: str) -> Table:
    """The best configuration of every learner on a problem."""
    fresh = problem["fresh_seeds"]
    rows = []
    for b in problem["best"]:
        seen, stable = b["predicted_asymptote"], b["predicted_stable_share"]
        theory = "" if stable is None else "unstable" if seen is None else number(seen)
        shown = ", ".join(f"{k} {short(v)}" for k, v in b["settings"].items())
        rows.append(
            {
                "place": b["rank"],
                "learner": b["algorithm"],
                "settings": shown or "no grid",
                "of": f"{b['configurations']:,}",
                "grid": mean_text(b["grid"]),
                "measured": mean_text(b["measured"]),
                "bias": with_error(b["fresh_minus_grid"], b["fresh_minus_grid_stderr"]),
                "final": mean_text(b["final"]),
                "theory": theory,
                "ended": b["ended"],
                "recommended": b["rank"] == 1,
            }
        )
    nothing = dict.fromkeys(rows[0] if rows else ("place", "grid"), "")
    lost = {"settings": "every configuration overflowed in some run", "recommended": False}
    rows += [{**nothing, "learner": name, **lost} for name in problem["failed"]]
    again = {"grid": "+>grid", "measured": ">fresh", "bias": "+>fresh \N{MINUS SIGN} grid"}
    heads = {
        "place": ">#", "learner": "learner", "settings": "settings", "of": "+>of",
        **(again if fresh else {"measured": ">error"}), "final": ">final", "theory": "+>theory",
        "ended": "!ended",
    }  # fmt: skip
    stage = "fresh seeds" if fresh else "the grid's seeds"
    title = f"{problem['problem']}: {criterion}, {stage} (mean \N{PLUS-MINUS SIGN} standard error)"
    tied = sum(b["rank"] == 1 for b in problem["best"]) > 1
    made = table_of(title, heads, [{**dict.fromkeys(heads, ""), **row} for row in rows], named=1)
    return made._replace(mark="tied for best" if tied else "best")


def reach_of(problem: Document) -> Table:
    """How fast every learner was, and how its grid fared."""
    rows = [
        [b["algorithm"], *(b["steps_to"][name]["shown"] for name in LEVELS),
         f"{b['configurations']:,}", f"{b['better_than_w0']:,}", b["diverges_from"]]
        for b in problem["best"]
    ]  # fmt: skip
    others = ("+>configurations", "+>better than w0", "+>overflows from")
    heads = (*(f">below {name} by step" for name in LEVELS), *others)
    title = (
        f"{problem['problem']}: the median step by which the error was below a share of that at w0"
    )
    return Table(title, ("learner", *heads), rows)


def paired_table(reference: str, pairs: Sequence[Any]) -> Table:
    """The differences of all learners' errors to one learner's."""
    rows = [
        [p.learner, number(p.difference) or "a run overflowed",
         "" if p.low is None else interval(p.low, p.high), p.seeds,
         "" if p.p is None else words.p_value(p.p), VERDICTS.get(p.verdict, p.verdict)]
        for p in pairs
    ]  # fmt: skip
    heads = (
        "learner",
        ">difference",
        ">95 % interval",
        ">seeds",
        ">adjusted p",
        f"!beside {reference}",
    )
    return Table(f"Paired differences to {reference}", heads, rows)


def theory_table(problem: Document, theory: Mapping[str, Any]) -> Table:
    """What the certificate predicts of the best configurations, and what was measured."""
    rows = []
    for b in problem["best"]:
        t = theory[b["algorithm"]]
        found = ["no closed form here", "", ""]
        if t:
            share = {1.0: "stable", 0.0: "unstable"}.get(
                t.stable, f"stable in {t.stable:.0%} of cases"
            )
            found = [share, number(t.asymptote) or "none", number(t.last) or "none"]
        shown = ", ".join(f"{k} {short(v)}" for k, v in b["settings"].items())
        rows.append([f"{b['algorithm']}\n{shown}", *found, mean_text(b["final"])])
    heads = ("learner", "mean update", ">predicted: error of the fixed point",
             ">predicted: mean dynamics at the last step", ">measured final error")  # fmt: skip
    return Table("What the certificate predicts, and what came out", heads, rows)


def penalty_table(found: Penalty) -> Table:
    """By eta, what a penalty adds and costs."""
    rows = []
    for row in found.rows:
        seen = row.prediction
        theory = (
            "" if seen is None else "unstable" if seen.asymptote is None else number(seen.asymptote)
        )
        if seen is not None and seen.asymptote is not None and seen.stable < 1:
            theory += f"\nstable in {seen.stable:.0%}"
        eta = f"none ({found.plain})" if row.eta is None else short(row.eta)
        shares = (percent(x / row.configurations) for x in (row.never_diverged, row.useful))
        rows.append([eta, row.configurations, *shares, number(row.error), row.settings, theory])
    heads = ("eta", ">configurations", ">free of overflow", ">better than w0", ">least grid error",
             "at", ">predicted asymptote there")  # fmt: skip
    title = f"What the penalty of {found.penalised} adds and costs beside {found.plain}"
    return Table(title, heads, rows)


def lam_table(lams: Sequence[float], rows: Sequence[tuple[str, Sequence[float | None]]]) -> Table:
    """The least error of every learner by its trace decay."""
    heads = ("learner", *(f">{short(lam) if lam else '0'}" for lam in lams))
    cells = [[name, *(number(v) for v in values)] for name, values in rows]
    return Table("Least grid error by trace decay lam", heads, cells)
