"""An evaluation on the terminal: the answer on one screen; everything with `--full`."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from steadytd.base.finding import Finding
from steadytd.base.numbers import count
from steadytd.cli.console import out, plain, print_finding, table
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.several import answers, segment_table
from steadytd.report.evaluation.text import (
    LOGGED,
    NAMED,
    POLICY_COLUMNS,
    Verdict,
    calibration_rows,
    closing_lines,
    decision_lines,
    decision_texts,
    findings_by_level,
    grouped,
    overlap_rows,
    policy_rows,
    recommended_first,
    selection_text,
    sensitivity_rows,
    spread_names,
    spread_rows,
    stability_rows,
    telling,
    value_rows,
)

COLOURS = {"good": "green", "worse": "dark_orange3", "care": "yellow", "bad": "red"}
MANY_TARGETS = 6  # beyond this only the recommended learner of each is shown


def show(e: Evaluation, full: bool) -> None:
    """The answer: decisions, policies, assumptions, the most serious finding, what to log next."""
    for one in answers(e):
        print_decisions(one)
    for one in answers(e):
        _print_table(one.reward_name, POLICY_COLUMNS, _named(one, policy_rows(one), "policy"))
        if one.segments is not None:
            _print_table(*segment_table(one))
            out.print(plain(one.segments.text), highlight=False)
    for name, text in closing_lines(e):
        out.print(f"[bold]{plain(name)}[/]: {plain(text)}", highlight=False)
    if full:
        out.print()
        print_rest(e)


def _print_table(title: str, columns: dict[str, str], rows: list[dict[str, Any]]) -> None:
    cells = [[plain(row[key]) for key in columns] for row in rows]
    out.print(table(plain(title), tuple(columns.values()), cells))


def print_rest(e: Evaluation) -> None:
    """All findings, learners, and what the answer rests on."""
    warnings, notes = findings_by_level(e)
    print_findings("Warnings", "yellow", warnings)
    print_findings("Notes", "dim", notes, most=1)
    print_values(e)
    print_overlap(e)
    columns = {"target": "target", "turns": ">factor"}
    print_rows(e, "Wrong ratios that would turn the decision", columns, sensitivity_rows(e))
    if names := spread_names(e):
        rows = [
            [plain(row["target"]), *(value for value, _ in row["levels"])]
            for row in _named(e, spread_rows(e))
            if row["levels"]
        ]
        heads = ("target", *(f">{name}" for name in names))
        out.print(table("Quantiles of the return of one episode", heads, rows))
    print_stability(e, "Stability")
    if e.log.behavior_estimated:
        print_calibration(e)
    out.print("[bold]What the numbers mean[/]", highlight=False)
    for text in e.notes:
        out.print(plain(text), highlight=False)


def _named(e: Evaluation, rows: list[dict[str, Any]], key: str = "target") -> list[dict[str, Any]]:
    """The rows of the targets that have a line of their own, and of the policy as it was logged."""
    named = {LOGGED, *telling(e)}
    return [row for row in rows if row[key] in named]


def print_decisions(e: Evaluation) -> None:
    """Is a target better than the policy that made the log? And which is best?"""
    named = set(telling(e))
    lines = [line for line in decision_lines(e) if line.target in named]
    texts = [line.text for line in lines] + decision_texts(e)[len(e.targets) :]
    for text, grade in zip_longest(texts, [line.grade for line in lines]):  # the last: about all
        style = f"bold {COLOURS[grade]}" if grade else "none"
        out.print(f"[{style}]{plain(text)}[/]", highlight=False)
    if text := selection_text(e, NAMED, "Lines"):
        out.print(f"{text} All targets: --json or --out.", highlight=False)


def print_verdicts(lines: list[Verdict]) -> None:
    """One line per target, coloured by its grade."""
    for line in lines:
        colour = COLOURS[line.grade]
        out.print(f"[bold {colour}]{plain(line.target)}: {plain(line.text)}[/]", highlight=False)
    out.print()


def print_values(e: Evaluation) -> None:
    """Every learner's value; with many targets only the recommended ones."""
    many = len(e.targets) > MANY_TARGETS
    lines = []
    before = None
    for row in recommended_first(_named(e, value_rows(e, recommended_only=many))):
        name = "" if row["target"] == before else plain(row["target"])
        before = row["target"]
        mark = " [bold green]*[/]" if row["recommended"] else ""
        how = ", ".join(text for text in (row["penalty"], row["remark"]) if text)
        texts = [plain(row[key]) for key in ("value", "interval", "reached")]
        lines.append((name, plain(row["learner"]) + mark, *texts, plain(how)))
    title = "Values (* recommended)"
    if many:
        title = "Values of the recommended learners (all learners: --json or --out)"
    names = ("target", "learner", ">value", ">95 % interval", ">reached", "how")
    out.print(table(title, names, lines))


def print_rows(
    e: Evaluation, title: str, columns: dict[str, str], rows: list[dict[str, Any]]
) -> None:
    """Some columns of rows as a table; a heading that begins with > is that of numbers."""
    cells = [[plain(row[key]) for key in columns] for row in _named(e, rows)]
    out.print(table(title, tuple(columns.values()), cells))


def print_overlap(e: Evaluation) -> None:
    """How much of the log is like the targets' own."""
    keys = {
        "target": "target", "rows": ">effective rows", "episodes": ">effective episodes",
        "largest": ">largest ratio", "zeros": ">zeros", "mean": ">mean ratio",
    }  # fmt: skip
    found = overlap_rows(e)
    if any(row["violations"] != "none" for row in found):
        keys["violations"] = ">no support"
    size = f"{count(e.log.rows, 'row')}, {count(e.log.episodes, 'episode')}"
    print_rows(e, f"Overlap: {size}", keys, found)


def print_stability(e: Evaluation, title: str) -> None:
    """Whether plain TD is stable on this log, and which penalty is enough."""
    columns = {
        "target": "target", "word": "plain TD", "share": ">resamples",
        "threshold": ">stable from eta", "interval": ">95 % interval", "eta": ">chosen eta",
    }  # fmt: skip
    print_rows(e, title, columns, stability_rows(e))


def print_calibration(e: Evaluation) -> None:
    """Whether the estimated behaviour policy's probabilities come true."""
    columns = (">predicted chance", ">mean", ">happened", ">rows and actions", "")
    rows = [
        [c["range"], c["predicted"], c["happened"], c["pairs"], "" if c["fine"] else "off"]
        for c in calibration_rows(e)
    ]
    out.print(table("Calibration of the estimated behaviour policy", columns, rows))


def print_findings(title: str, colour: str, found: list[Finding], most: int = MANY_TARGETS) -> None:
    """Findings of one code together: the first `most` in full, and how many more there are."""
    if not found:
        return
    out.print(f"[bold]{title}[/]", highlight=False)
    for group in grouped(found):
        items = group["items"]
        for one in items[:most]:
            about = f" [bold]{plain(one['target'])}[/]" if one["target"] else ""
            last = one is items[:most][-1]
            more = f"(And {len(items) - most} more of this kind.) " if len(items) > most else ""
            remedy = f"{more}{group['remedy']}".strip() if last else ""
            print_finding(f"[{colour}]{group['code']}[/]{about}", one["text"], remedy)
    out.print()
