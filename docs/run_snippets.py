"""Run the snippets of the documentation, and write below each what it printed.

    python docs/run_snippets.py                      # all pages
    python docs/run_snippets.py docs/gallery.md      # one page

A snippet is a fenced Python block that begins with `# runs`. The snippets of a page share their
names. What one prints stands below it in a block called `output`; a chart that it leaves in `chart`
is drawn to docs/images, under the name of the page and the number of the snippet. Its description
is kept beside it and makes it live in the site (`living.py`). The tests run the snippets again and
compare.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
WIDTH = 88
SNIPPET = re.compile(
    r"^```python\n(# runs\n.*?)^```\n(?:\n```output\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


class Snippet(NamedTuple):
    """A block of a page: the line in which its code begins, the code, and what stands below it."""

    line: int
    code: str
    shown: str


def snippets(page: Path) -> list[Snippet]:
    """The snippets of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(text.count("\n", 0, m.start(1)) + 1, m[1], m[2] or "")
        for m in SNIPPET.finditer(text)
    ]


def run(page: Path) -> list[tuple[str, Any]]:
    """What each snippet prints, and its chart if it makes one."""
    names: dict[str, Any] = {}
    found = []
    for snippet in snippets(page):
        padded = "\n" * (snippet.line - 1) + snippet.code  # so that a failure names the page's line
        names.pop("chart", None)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(padded, str(page), "exec"), names)
        found.append((wrapped(out.getvalue()), names.get("chart")))
    return found


def wrapped(text: str) -> str:
    """Long lines of words, as a terminal would break them; tables stay as they are."""
    lines = [
        textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
        if len(line) > WIDTH and "│" not in line
        else [line.rstrip()]
        for line in text.splitlines()
    ]
    return "".join(f"{line}\n" for part in lines for line in part)


def picture(page: Path, number: int) -> Path:
    """Where the chart of a snippet is kept; snippets count from 1."""
    return DOCS / "images" / f"{page.stem}_{number}.svg"


def rewrite(page: Path) -> None:
    """Run a page's snippets and write what they print and draw."""
    results = run(page)
    printed = iter([text for text, _ in results])

    def below(match: re.Match[str]) -> str:
        output = next(printed)
        shown = f"\n```output\n{output}```\n" if output else ""
        return f"```python\n{match[1]}```\n{shown}"

    text = SNIPPET.sub(below, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    for number, (_, chart) in enumerate(results, 1):
        if chart is not None:
            draw(chart, picture(page, number))


def draw(chart: Any, path: Path) -> None:
    """Write a chart as a picture, and its description beside it."""
    import vl_convert
    from living import described_for_pages

    spec = json.dumps(described_for_pages(chart), separators=(",", ":"))
    path.with_suffix(".json").write_text(spec + "\n", encoding="utf-8")
    path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


def style() -> Any:
    """Colours and fonts of the project's figures, for charts that ask for none."""
    from steadytd.report.figures import COLOURS, FONT

    text = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 11, "titleFontSize": 12}
    return {
        "config": {
            "range": {"category": list(COLOURS)},
            "axis": {**text, "gridColor": "#e6e6e6", "titleFontWeight": "normal"},
            "legend": text,
            "view": {"stroke": "#d0d0d0"},
            "line": {"strokeWidth": 1.8},
        }
    }


def main(names: list[str]) -> None:
    """Rewrite the named pages, or all of them."""
    import altair as alt

    os.chdir(DOCS.parent)
    alt.theme.register("steadytd", enable=False)(style)
    given = [Path(name).resolve() for name in names]
    with alt.theme.enable("steadytd"):
        for path in given or sorted(p for p in DOCS.rglob("*.md") if snippets(p)):
            rewrite(path)
            print(path.relative_to(DOCS))


if __name__ == "__main__":
    main(sys.argv[1:])
