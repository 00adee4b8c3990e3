"""An evaluation on the terminal: the decision first, then what it rests on."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from steadytd.base.finding import Finding
from steadytd.base.wording import count
from steadytd.cli.console import out, plain, print_finding, table
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.chosen import NAMED, chosen_words, telling
from steadytd.report.evaluation.tables import (
    LOGGED,
    POLICY_COLUMNS,
    calibration_rows,
    overlap_rows,
    policy_rows,
    recommended_first,
    spread_names,
    spread_rows,
    stability_rows,
    turns,
    value_rows,
)
from steadytd.report.evaluation.words import (
    MOST_UNSEEN,
    Verdict,
    by_level,
    conditions,
    decision_lines,
    decision_texts,
    grouped,
    unseen_texts,
)

COLOURS = {"good": "green", "worse": "dark_orange3", "care": "yellow", "bad": "red"}
MANY_TARGETS = 6  # beyond this only the recommended learner of each is shown


def show(e: Evaluation) -> None:
    """The whole page: the decision, what it rests on, and what else is known."""
    print_decisions(e)
    print_policies(e)
    warnings, notes = by_level(e)
    print_findings("Warnings", "yellow", warnings)
    print_values(e)
    print_overlap(e)
    print_sensitivity(e)
    print_spread(e)
    print_stability(e, "Stability")
    if e.log.behavior_estimated:
        print_calibration(e)
    print_findings("Notes", "dim", notes, most=1)
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
    if said := chosen_words(e, NAMED, "Lines"):
        out.print(f"{said} All targets: --json or --out.", highlight=False)
    out.print()


def print_policies(e: Evaluation) -> None:
    """What each policy is worth, and the conditions under which that can be used."""
    rows = [
        [plain(row[key]) for key in POLICY_COLUMNS] for row in _named(e, policy_rows(e), "policy")
    ]
    out.print(table("Policies", tuple(POLICY_COLUMNS.values()), rows))
    for text in conditions(e)[:NAMED]:
        out.print(f"[yellow]{plain(text)}[/]", highlight=False)
    for text in unseen_texts(e)[:MOST_UNSEEN]:
        out.print(f"{plain(text)}\n", highlight=False)


def print_verdicts(lines: list[Verdict]) -> None:
    """One line per target, coloured by how far it can be trusted."""
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


def print_overlap(e: Evaluation) -> None:
    """How much of the log is like the targets' own."""
    keys = {
        "target": "target", "rows": ">rows count for", "episodes": ">episodes for",
        "largest": ">largest ratio", "zeros": ">zeros", "mean": ">mean ratio",
    }  # fmt: skip
    found = _named(e, overlap_rows(e))
    if any(row["violations"] != "none" for row in found):
        keys["violations"] = ">no support"
    rows = [[plain(row[key]) for key in keys] for row in found]
    title = f"Overlap: {count(e.log.rows, 'row')}, {count(e.log.episodes, 'episode')}"
    out.print(table(title, tuple(keys.values()), rows))


def print_stability(e: Evaluation, title: str) -> None:
    """What the data say about plain TD, and which penalty is enough."""
    columns = (
        "target", "plain TD", ">resamples", ">safe from eta", ">95 % interval", ">chosen eta",
    )  # fmt: skip
    rows: list[list[Any]] = []
    for s in _named(e, stability_rows(e)):
        word = f"[{'green' if s['stable'] else 'red'}]{s['word']}[/]"
        numbers = [s[key] for key in ("share", "threshold", "interval", "eta")]
        rows.append([plain(s["target"]), word, *numbers])
    out.print(table(title, columns, rows))


def print_sensitivity(e: Evaluation) -> None:
    """How wrong the logged probabilities would have to be before a decision turns."""
    known = ((name, e.sensitivity(name)) for name in telling(e, MANY_TARGETS))
    factors = ", ".join(f"{name} {turns(s)}" for name, s in known if not s.alike)
    if not factors:
        return
    first = (
        "To change places with the policy that made the log, ratios have to be off by a factor of"
    )
    out.print(f"{first}: {plain(factors)}.", highlight=False)
    if said := chosen_words(e, MANY_TARGETS, "Factors"):
        out.print(said, highlight=False)
    out.print()


def print_spread(e: Evaluation) -> None:
    """How a single episode may end, where enough episodes are like the target's."""
    names = spread_names(e)
    if names:
        rows = [
            [plain(row["target"]), *(value for value, _ in row["levels"])]
            for row in _named(e, spread_rows(e))
            if row["levels"]
        ]
        columns = ("target", *(f">{name}" for name in names))
        out.print(table("Quantiles of the return of one episode", columns, rows))


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
