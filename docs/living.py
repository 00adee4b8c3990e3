"""Figures of the documentation that live in its pages, and tutorials as notebooks.

`run_snippets.py` keeps the description of every chart (Vega-Lite) beside its picture; the site
shows it as the reports do, and a notebook has it as an output. `conf.py` uses both at build time.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
from run_snippets import SNIPPET

from steadytd.learners import built_in
from steadytd.report.figures import COLOURS, described
from steadytd.report.live import as_json, live, untitled
from steadytd.report.pages import figure_html
from steadytd.report.palette import Look, looks

DOCS = Path(__file__).parent
IMAGE = re.compile(r"!\[([^\]]*)\]\(((?:\.\./)*images/)?(\w+)\.svg\)")
NOTEBOOKS = ("ten_minutes", "own_law", "study", "policy_from_log", "deadly_triad")
HIDE = "<style>figure.live { display: none; }</style>"
VEGA = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"
MANY = 400  # rows of a table that is kept as one text


def described_for_pages(chart: Any) -> dict[str, Any]:
    """The description of a chart, with the project's colours and a legend that switches series.

    A learner has the colour that it has everywhere.
    """
    spec = described(chart)
    text = as_json(spec)
    for i, name in enumerate(spec.get("datasets", {})):  # Altair's names depend on every last bit
        text = text.replace(f'"{name}"', f'"data-{i}"')
    spec = json.loads(text)
    fields = set()
    layers = _layers(spec)
    silent = not any("tooltip" in layer.get("encoding", {}) for layer in layers)
    for layer in layers:
        encoding = layer.get("encoding", {})
        colour = encoding.get("color", {})
        if silent:
            encoding["tooltip"] = _tips(encoding)
        if colour.get("type") == "nominal" and colour.get("legend", {}) is not None:
            fields.add(colour["field"])
            if "range" not in colour.get("scale", {}):
                rows = _rows(spec, layer)
                labels = list(dict.fromkeys(row[colour["field"]] for row in rows))
                if colour.get("sort", "ascending") == "ascending":
                    labels.sort(key=str)
                found = _looks(list(map(str, labels)))
                colour["scale"] = {"domain": labels, "range": [one.colour for one in found]}
                dashes = [list(one.dash) for one in found]
                if any(dash != dashes[0] for dash in dashes):
                    scale = {"domain": labels, "range": dashes}
                    encoding["strokeDash"] = {**colour, "scale": scale, "legend": None}
    _prune(spec)
    if len(fields) == 1 and "usermeta" not in spec:
        spec["usermeta"] = {"toggle": fields.pop()}
    return dict(spec)


def _layers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Every layer with a mark: of the chart, or of each of its panels."""
    parts = spec.get("layer") or spec.get("hconcat") or spec.get("concat")
    return [spec] if parts is None else [layer for part in parts for layer in _layers(part)]


def _prune(spec: dict[str, Any]) -> None:
    """Leave out columns that nothing shows."""
    drawn = json.dumps({key: part for key, part in spec.items() if key != "datasets"})
    used = set(re.findall(r'"field": "(.*?)"|\bdatum\.(\w+)', drawn))
    used = {field or named for field, named in used}  # also those of an expression
    if '"transform": ' in drawn:
        return
    for name, rows in spec.get("datasets", {}).items():
        if isinstance(rows, list):
            spec["datasets"][name] = [{k: v for k, v in r.items() if k in used} for r in rows]


def compact(spec: dict[str, Any]) -> dict[str, Any]:
    """The description with long tables as CSV texts, which do not repeat the names of columns."""
    tables = dict(spec.get("datasets", {}))
    for name, rows in tables.items():
        if isinstance(rows, list) and len(rows) > MANY:
            text = io.StringIO()
            names = dict.fromkeys(key for row in rows for key in row)
            writer = csv.DictWriter(text, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            tables[name] = text.getvalue()
    return {**spec, "datasets": tables}


def _tips(encoding: dict[str, Any]) -> list[dict[str, str]]:
    """What a mark says: all fields that it shows."""
    shown = {
        one["field"]: one for one in encoding.values() if isinstance(one, dict) and "type" in one
    }
    return [
        {"field": field, "type": one["type"], "title": one.get("title") or field}
        | ({"format": ".4~g"} if one["type"] == "quantitative" else {})
        for field, one in shown.items()
    ]


def _rows(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    found = spec["datasets"][(layer.get("data") or spec["data"])["name"]]
    return list(found)


def _looks(labels: list[str]) -> list[Look]:
    """A look for each label: that of the learner, if they all begin with the name of one."""
    names = {label: re.split(r"[: ]", label)[0] for label in labels}
    if all(name in built_in() for name in names.values()):
        return list(looks(names).values())
    return [Look(COLOURS[i % len(COLOURS)]) for i in range(len(labels))]


def _description(match: re.Match[str], page: str) -> Path:
    """Where the description of a picture is kept, if it is."""
    return DOCS / ("images" if match[2] else Path(page).parent) / f"{match[3]}.json"


def described_in(text: str, page: str) -> list[Path]:
    """The files that the living figures of a page are made from: it is made again with them."""
    return [path for x in IMAGE.finditer(text) if (path := _description(x, page)).exists()]


def with_figures(text: str, page: str) -> str:
    """A page with the charts of its snippets alive; what is said of a picture stands above it."""

    def shown(match: re.Match[str]) -> str:
        path = _description(match, page)
        if not path.exists():
            return match[0]
        figure = live(match[3], json.loads(path.read_text(encoding="utf-8")), files=False)
        words = " ".join(match[1].split())
        html = figure_html(untitled(figure)._replace(notes=[words, *figure.notes]))
        picture = f"{'../' * page.count('/')}_static/{match[3]}.svg"
        plain = f'{HIDE}<img src="{picture}" alt="{escape(words)}">'
        return f"```{{raw}} html\n{html}\n<noscript>{plain}</noscript>\n```\n"

    text = IMAGE.sub(shown, text)
    name = Path(page).name
    if name in NOTEBOOKS:
        link = f'<a href="../notebooks/{name}.ipynb" download>this page as a notebook</a>'
        head, _, rest = text.partition("\n")
        text = f'{head}\n\n<p class="notebook">{link}</p>\n{rest}'
    return text


def pictures() -> dict[str, str]:
    """The pictures of figures that live, for readers without a script."""
    found = sorted(DOCS.glob("images/*.json")) + sorted(DOCS.glob("results/*.json"))
    paths = [path.with_suffix(".svg") for path in found]
    return {path.name: path.read_text(encoding="utf-8") for path in paths if path.exists()}


def notebook(page: Path) -> dict[str, Any]:
    """A tutorial as a notebook (nbformat 4.5): every snippet a cell, with what it printed and drew.

    The outputs are those of the page, which the tests run again and compare.
    """
    text = page.read_text(encoding="utf-8")
    cells: list[dict[str, Any]] = []
    last = 0
    for number, match in enumerate(SNIPPET.finditer(text), 1):
        cells += _words(text[last : match.start()])
        cells.append(_code(page, number, match))
        last = match.end()
    cells += _words(text[last:])
    for i, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{i}".replace("_", "-")
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _words(text: str) -> list[dict[str, Any]]:
    """Text between snippets. What only the site has is left out: pictures, small labs, links."""
    text = IMAGE.sub("", text)
    text = re.sub(r"<iframe.*?</iframe>", "*(the page has a figure to drag here)*", text)
    text = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text).strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": _lines(text)}] if text else []


def _code(page: Path, number: int, match: re.Match[str]) -> dict[str, Any]:
    code = match[1].removeprefix("# runs\n").rstrip("\n")
    outputs: list[dict[str, Any]] = []
    if match[2]:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(match[2])})
    picture = DOCS / "images" / f"{page.stem}_{number}.json"
    if picture.exists():
        code += "\nchart"
        drawn = {
            VEGA: json.loads(picture.read_text(encoding="utf-8")),
            "image/svg+xml": _lines(picture.with_suffix(".svg").read_text(encoding="utf-8")),
            "text/plain": ["alt.Chart(...)"],
        }
        outputs.append({"output_type": "execute_result", "execution_count": number,
                        "metadata": {}, "data": drawn})  # fmt: skip
    return {"cell_type": "code", "execution_count": number, "metadata": {},
            "source": _lines(code), "outputs": outputs}  # fmt: skip


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebooks() -> Iterator[tuple[str, str]]:
    """The name and the content of every notebook."""
    for name in NOTEBOOKS:
        made = notebook(DOCS / "tutorials" / f"{name}.md")
        yield f"{name}.ipynb", json.dumps(made, indent=1, ensure_ascii=False) + "\n"
