"""The documentation page of a learner: a generated frame around the text in the learner's file."""

from __future__ import annotations

import inspect
import re

from steadytd.engine.law import Law
from steadytd.engine.learner import plain
from steadytd.learners import algorithm
from steadytd.learners import built_in as names

SECTIONS = {
    "Background": "Background",
    "Update": "Update",
    "Fixed point": "Fixed point and guarantee",
    "Parameters": "Hyper-parameters",
    "Example": "At work",
    "Reference": "Reference",
    "Differs from the paper": "Deviations from the paper",
    "Reduces to": "Reductions",
}
HEADING = re.compile(rf"^({'|'.join(SECTIONS)})\b(?:(?!\n\n)[^:])*?(?=:)", re.MULTILINE)


def learner_pages() -> dict[str, str]:
    """File name to text, for every registered learner and an index."""
    pages = {f"{name}.md": learner_page(name) for name in names()}
    rows = [f"| [{name}]({name}.md) | {algorithm(name).summary} |" for name in names()]
    index = ["# Learners", "", "| name | what it is |", "|---|---|", *rows, ""]
    return {**pages, "index.md": "\n".join(index)}


def learner_page(name: str) -> str:
    """One learner: summary, background, quick facts, equations, deviations, command."""
    law = algorithm(name)
    parts = sections(law.doc)
    lines = [f"# {name}", "", law.summary, ""]
    for key, title in SECTIONS.items():
        if key == "Update":
            lines += ["## Quick facts", "", *_facts(law), ""]
        if key == "Parameters":
            lines += [f"## {title}", "", *_params(law), ""]
        elif key in parts:
            lines += [f"## {title}", "", parts[key], ""]
    source = f"src/steadytd/learners/{name}.py"
    lines += [f"The law and its closed form: `{source}`. The compiled loop: "
              f"`steadytd show learner {name} --kernel`.", ""]  # fmt: skip
    return "\n".join(lines)


def sections(doc: str) -> dict[str, str]:
    """The named paragraphs of a learner's text; code blocks become fenced."""
    text = inspect.cleandoc(doc)
    found = list(HEADING.finditer(text))
    result = {}
    for i, match in enumerate(found):
        end = found[i + 1].start() if i + 1 < len(found) else len(text)
        body = text[match.end() :][: end - match.end()]
        remark = match.group(0)[len(match.group(1)) :].strip()
        result[match.group(1)] = _fenced(remark, body)
    return result


def _fenced(remark: str, body: str) -> str:
    """`Update (beta = ...)::` and an indented block, as a remark and a fenced block."""
    code = re.match(r"::\n\n((?:    [^\n]*\n|\n)+)(.*)", body + "\n", re.DOTALL)
    if code is None:
        return (f"{remark} " if remark else "") + body.lstrip(":").strip()
    block = inspect.cleandoc(code.group(1))
    rest = code.group(2).strip()
    note = [remark.lstrip(", ").strip("()") + ":", ""] if remark else []
    return "\n".join([*note, "```", block, "```", *(["", rest] if rest else [])])


def _facts(law: Law) -> list[str]:
    traced = f" with {law.trace_param} > 0" if law.traces else ""
    memory = f"; numbers: {', '.join(law.memory)}" if law.memory else ""
    whole = any(part in law.vectors for parts in law.writes.values() for part in parts)
    cost = "O(d)" if whole or law.maps else "O(active features)"
    closed = "up to terms that vanish with alpha" if law.first_order else "exact"
    if law.settled:
        closed = f"exact once {', '.join(law.settled)} has settled"
    vectors = ", ".join(law.vectors)
    by_step = f"{cost}; O(d){traced}" if law.traces and cost != "O(d)" else cost
    if law.block is not None:
        vectors += ", solved from sums of d^2 numbers"
        by_step = f"O(active features^2); O(d active features){traced}; a solution O(d^3)"
    rows = {
        "vectors": vectors + memory,
        "traces": f"{', '.join(law.traces)}{traced}" if law.traces else "none",
        "cost per step": by_step,
        "steps with rho = 0": "skipped without traces" if law.idle_at_rho_zero else "count",
        "closed form": closed if law.expectation else "none",
        "needs pi and mu, not only rho": "yes" if law.needs_policies else "no",
    }
    return ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())]


def _params(law: Law) -> list[str]:
    rows = []
    for name, p in law.all_params.items():
        default = "required" if p.default is None else plain(p.default)
        rows.append(f"| `{name}` | {p.doc} | {p.rule} | {default} |")
    if law.variant_param:
        choices = list(law.variants)
        rows.append(
            f"| `{law.variant_param}` | form of the law | {' or '.join(choices)} | {choices[0]} |"
        )
    return ["| name | meaning | range | default |", "|---|---|---|---|", *rows]
