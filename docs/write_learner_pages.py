"""Write docs/learners/ from the learners' own files. `make docs` runs it; a test compares.

The examples of learners that the lab cannot run are drawn to docs/images, unless they are there.
"""

import ast
import re
from pathlib import Path
from typing import Any

from run_snippets import draw

import steadytd as st
from steadytd.learners import algorithm, built_in
from steadytd.report.learner_pages import RUN, learner_pages, sections

DOCS = Path(__file__).parent


def picture(name: str) -> Path:
    """Where the drawn example of a learner is."""
    return DOCS / "images" / f"learner_{name}.svg"


def drawn_names(pages: dict[str, str]) -> list[str]:
    """The learners whose pages show such a picture."""
    names = [page.removesuffix(".md") for page in pages]
    return [n for n in names if f"../images/{picture(n).name}" in pages[f"{n}.md"]]


def example(name: str) -> Any:
    """The result of the example in a learner's text: a command, or a line of Python."""
    text = sections(algorithm(name).doc)["Example"]
    command = RUN.search(text)
    if command:
        problem, learners, steps = command.groups()
        return st.run(problem, learners.split(), steps=int(steps), seeds=10, points=50)
    code = text.split("```")[1].strip()
    ast.parse(code, mode="eval")
    return eval(code, {"st": st})


def groups() -> dict[str, list[str]]:
    """Kinds of learners and their names, as the README's table has them."""
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    rows = text.partition("| kind | learners |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    found = {}
    for row in rows:
        kind, names = (cell.strip() for cell in row.strip("|").split("|", 1))
        found[kind] = [n for n in re.findall(r"`(\w+)`", names) if n in built_in()]
    return found


def index() -> str:
    """The list of all learners, kind by kind."""
    lines = [
        "# Learners",
        "",
        "Not sure? [Which learner?](../which_learner.md) asks five questions.",
        "",
    ]
    for kind, names in groups().items():
        rows = [f"| [{name}]({name}.md) | {algorithm(name).summary} |" for name in names]
        lines += [
            f"## {kind[0].upper()}{kind[1:]}",
            "",
            "| name | what it is |",
            "|---|---|",
            *rows,
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Write pages and missing pictures."""
    directory = DOCS / "learners"
    directory.mkdir(exist_ok=True)
    pages = {**learner_pages(), "index.md": index()}
    for stale in {p.name for p in directory.glob("*.md")} - set(pages):
        (directory / stale).unlink()
    for name, text in pages.items():
        (directory / name).write_text(text, encoding="utf-8")
    for name in drawn_names(pages):
        if not picture(name).with_suffix(".json").exists():
            draw(example(name).plot(), picture(name))
    print(f"{len(pages)} pages in docs/learners")


if __name__ == "__main__":
    main()
