"""The documentation page of a learner: a generated frame around the text in the learner's file.

That text has its equations in Unicode (δ = r + γ' wᵀx' - wᵀx), so the terminal and the page show it
as it is; here it gets headings, links and fences around indented blocks.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from steadytd.engine.active import MANY
from steadytd.engine.law import GENERAL, Law
from steadytd.engine.settings import plain
from steadytd.engine.step.program import at_active_features
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


NAME = re.compile(r"(?<![\w`/.:\[])([a-z][a-z0-9_]*)(?![\w`/(\]]|:\w)")
RUN = re.compile(r"steadytd run (\w+) ([^-]+) --steps (\d+)")


def learner_pages() -> dict[str, str]:
    """File name to text, for every learner that comes with the project."""
    return {f"{name}.md": learner_page(name) for name in names()}


def learner_page(name: str) -> str:
    """One learner: background, quick facts, equations, a small lab, deviations, command."""
    law = algorithm(name)
    parts = sections(law.doc)
    lines = [f"# {name}", "", law.summary, ""]
    for key, title in SECTIONS.items():
        if key == "Update":
            lines += ["## Quick facts", "", *_facts(law), ""]
        if key == "Fixed point":
            lines += ["## Live", "", *_live(law, parts["Example"]), ""]
        if key == "Parameters":
            lines += [f"## {title}", "", *_params(law), ""]
        elif key in parts:
            text = parts[key] if key == "Example" else _linked(parts[key], name)
            lines += [f"## {title}", "", text, ""]
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
        remark = re.sub(r"(?s)^[ ,]*\((.*)\)", r"\1", match.group(0)[len(match.group(1)) :])
        result[match.group(1)] = _fenced(remark + text[match.end() : end].rstrip()).lstrip(":, ")
    return result


def _fenced(text: str) -> str:
    """Each `words::` with an indented block, as words and a fenced block."""
    indented = re.compile(r"(?:^|(?<=[^:]))::\n\n((?:    [^\n]*(?:\n|$)|\n)+)", re.MULTILINE)

    def fence(match: re.Match[str]) -> str:
        block = inspect.cleandoc(match.group(1))
        return (":\n\n" if match.start() else "") + f"```\n{block}\n```\n\n"

    return indented.sub(fence, text).strip()


def _linked(text: str, own: str) -> str:
    """A section with links to what it names, one line per point, and a capital to begin with."""
    text = re.sub(r"(?<=\.)\s(?=\d\. \D)", "\n", text)
    text = re.sub(r"\bdocs/(\w+)\.md", r"[\1](../\1.md)", text)
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    parts[::2] = [NAME.sub(lambda m: _link(m.group(), own), part) for part in parts[::2]]
    return re.sub(r"^[a-z](?=[a-z]+[- .:])", lambda m: m.group().upper(), "".join(parts))


def _link(word: str, own: str) -> str:
    return f"[{word}]({word}.md)" if word in names() and word != own else word


def _live(law: Law, example: str) -> list[str]:
    """The lab with the example of the learner's text, or that example drawn where the lab cannot.

    `docs/write_learner_pages.py` draws those.
    """
    run = RUN.search(example)
    if law.block is not None or not law.of_discounted_states or run is None:
        return ["The example [below](#at-work), run and drawn; point at a line to read it. ([The "
                "lab](../lab.md) runs learners of state values that take steps.)", "",
                f"![Error of {law.name} over steps](../images/learner_{law.name}.svg)"]  # fmt: skip
    problem, learners, steps = run.groups()
    shown = ";".join(_without_general(text) for text in learners.split())
    state = f"p={problem}&l={shown}&n={steps}&k=3"
    return [
        "The command [below](#at-work) in your browser, with the same bits, for three seeds. Drag "
        "a parameter. [The lab](../lab.md) has the rest.",
        "",
        f'<iframe class="small-lab" loading="lazy" title="{law.name} at work: error over steps" '
        f'src="../lab/live.html#small=1&amp;{state.replace("&", "&amp;")}"></iframe>',
    ]


def _without_general(text: str) -> str:
    """A learner as text, without settings that the lab does not have."""
    name, _, settings = text.partition(":")
    kept = [one for one in settings.split(",") if one.partition("=")[0] not in GENERAL]
    return f"{name}:{','.join(kept)}"


def _facts(law: Law) -> list[str]:
    traced = f" with {law.trace_param} > 0" if law.traces else ""
    memory = f"; numbers: {', '.join(law.memory)}" if law.memory else ""
    whole = any(part in law.vectors for parts in law.writes.values() for part in parts)
    cost = "O(d)" if whole or law.maps else "O(active features)"
    if law.each:
        cost = "O(features whose trace is not 0)" if at_active_features(law) else "O(d)"
    closed = "up to terms that vanish with alpha" if law.first_order else "exact"
    if law.settled:
        closed = f"exact once {', '.join(law.settled)} has settled"
    vectors = ", ".join(law.vectors)
    active = law.traces and at_active_features(law)
    few = f" and fewer than {MANY} features" if active else ""
    by_step = f"{cost}; O(d){traced}{few}" if law.traces and cost != "O(d)" else cost
    if few and cost == "O(d)":
        by_step += f"; O(active features){traced} from {MANY} features on"
    if law.block is not None:
        vectors += ", solved from sums of d^2 numbers"
        by_step = f"O(active features^2); O(d active features){traced}; a solution O(d^3)"
    rows = {
        "vectors": vectors + memory,
        "traces": f"{', '.join(law.traces)}{traced}" if law.traces else law.listed or "none",
        "cost per step": by_step,
        "steps with ρ = 0": "skipped without traces" if law.idle_at_rho_zero else "count",
        "closed form": closed
        if law.expectation
        else f"none{'; it adapts ' * bool(law.adapts)}" + law.adapts,
        "needs π and μ, not only ρ": "yes" if law.needs_policies else "no",
    }
    return [
        "| | |",
        "|---|---|",
        *(f"| {key} | {value} |" for key, value in rows.items()),
    ]


def param_rows(law: Law) -> list[dict[str, Any]]:
    """Name, meaning, range and default of every hyper-parameter; the form of the law comes last."""
    rows = [
        {"name": name, "meaning": p.doc, "range": p.rule, "default": p.default}
        for name, p in law.all_params.items()
    ]
    if law.variant_param:
        choices = list(law.variants)
        form = {"name": law.variant_param, "meaning": "form of the law"}
        rows.append({**form, "range": " or ".join(choices), "default": choices[0]})
    return rows


def _params(law: Law) -> list[str]:
    lines = ["| name | meaning | range | default |", "|---|---|---|---|"]
    for row in param_rows(law):
        default = row["default"]
        text = (
            default if isinstance(default, str) else plain(default) if default is not None else ""
        )
        rule = row["range"].replace(">=", "≥").replace("<=", "≤")
        lines.append(f"| `{row['name']}` | {row['meaning']} | {rule} | {text} |")
    return lines
