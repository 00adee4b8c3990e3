"""Figures that live in a page: the same descriptions, made to answer to pointer, legend and width.

A figure's description in Vega-Lite becomes one or more views (one per panel) that fill their
column. The nearest point of a line says its numbers, and so does any other mark. A wheel with the
control key, or two fingers, zoom; dragging moves; a double click brings everything back. The
series of the field that the description names in `usermeta: {"toggle": field}` have a legend of
buttons in the page, which switch them on and off; `above` are the pixels that marks need above the
frame.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from steadytd.report.figures import described

ZOOM = "wheel![event.ctrlKey || event.metaKey]"
DRAG = "[pointerdown[event.pointerType == 'mouse'], window:pointerup] > window:pointermove!"
HIDDEN = "hidden"  # the parameter that holds the names of the series that are switched off
MANY = 800  # dots beyond which a view is drawn as pixels
DOTS = ("point", "circle", "square", "rect", "tick")
DROPPED = ("$schema", "config", "title", "usermeta", "background", "padding", "datasets")


class Live(NamedTuple):
    """A figure of a page."""

    name: str  # of its files
    title: str
    notes: list[str]
    legend: list[dict[str, str]]
    views: list[dict[str, str]]  # each with a title
    data: str  # JSON for the page's script
    files: bool  # whether its files stand beside the page


def live(name: str, chart: Any, files: bool = True) -> Live:
    """A chart of Altair, or its description, as a figure of a page."""
    whole = described(chart)
    toggle = whole.get("usermeta", {}).get("toggle")
    parts = whole.get("hconcat") or whole.get("concat") or [whole]
    inner = [] if parts == [whole] else [part.get("title") for part in parts]
    datasets = whole.get("datasets", {})
    kept = ("data", "params", "usermeta")
    shared: dict[str, Any] = {key: whole[key] for key in kept if key in whole}
    views = [_view({**shared, **part}, datasets, toggle) for part in parts]
    legend = next((found for part in parts if (found := _legend(part, toggle))), [])
    title, notes = _titles(whole.get("title"))
    shown = [{"title": _titles(text)[0]} for text in inner] or [{"title": ""}]
    content = {"views": views, "toggle": toggle}
    return Live(name, title, notes, legend, shown, as_json(content), files)


def untitled(figure: Live) -> Live:
    """The figure under a heading of the page that says what it is."""
    return figure._replace(title="")


def as_json(content: Any) -> str:
    r"""JSON for a page: nothing in it can end the script that holds it.

    >>> as_json({"name": "</script>", "error": float("inf"), "x": 1 / 3})
    '{"name":"\\u003c/script>","error":null,"x":0.33333}'
    """
    text = json.dumps(_rounded(content), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _rounded(part: Any) -> Any:
    """Five digits are more than a picture shows; what is not finite is not drawn."""
    if isinstance(part, float):  # NumPy's, too
        return _short(part)
    if isinstance(part, Mapping):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_rounded(value) for value in part]
    return part


def _short(number: float) -> float | int | None:
    short = float(f"{number:.5g}") if math.isfinite(number) else None
    return int(number) if short == number and abs(number) < 1e9 and number % 1 == 0 else short


def _titles(title: Any) -> tuple[str, list[str]]:
    """A title and its smaller lines."""
    if isinstance(title, dict):
        notes = title.get("subtitle", [])
        return title.get("text", ""), [notes] if isinstance(notes, str) else list(notes)
    return title or "", []


def _view(part: dict[str, Any], datasets: dict[str, Any], toggle: str | None) -> Any:
    rest = {key: value for key, value in part.items() if key not in DROPPED}
    above = part.get("usermeta", {}).get("above", 8)
    layers, params = rest.pop("layer", None), rest.pop("params", [])
    shared = {"data": rest.pop("data")} if "data" in rest and layers else {}
    if layers is None:
        layers = [{k: rest.pop(k) for k in ("mark", "encoding", "transform", "data") if k in rest}]
    drawn = [_layer(shared | layer, toggle) for layer in layers]
    _zoom(drawn)
    nearest = _nearest(drawn)
    tables = {x["data"]["name"]: _table(datasets[x["data"]["name"]]) for x in drawn}
    marks = sum(len(tables[x["data"]["name"]]["rows"]) for x in drawn if x["mark"]["type"] in DOTS)
    return {
        "spec": {
            **rest,
            "width": "container",
            "padding": {"left": 4, "right": 12, "bottom": 4, "top": above},
            "autosize": {"type": "fit-x", "contains": "padding"},
            "params": [*params, {"name": HIDDEN, "value": []}],
            "layer": drawn,
        },
        "tables": tables,
        "renderer": "canvas" if marks > MANY else "svg",
        "near": nearest,
    }


def _layer(layer: dict[str, Any], toggle: str | None) -> dict[str, Any]:
    """A layer without the legend that the page has, and with its series switched by it."""
    mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
    mark = {"clip": mark["type"] != "text", **mark}
    mark.pop("tooltip", None)
    encoding = dict(layer.get("encoding", {}))
    switched = False
    for channel, what in encoding.items():
        if toggle is not None and isinstance(what, dict) and what.get("field") == toggle:
            switched = True
            if channel in ("color", "strokeDash", "shape", "opacity"):
                encoding[channel] = {**what, "legend": None}
    transform = list(layer.get("transform", []))
    if switched:
        transform.append({"filter": f"indexof({HIDDEN}, datum[{json.dumps(toggle)}]) < 0"})
    rest = {k: v for k, v in layer.items() if k != "params"}
    data = {"name": layer["data"]["name"]}  # the page has rows, not CSV
    return {**rest, "data": data, "mark": mark, "encoding": encoding, "transform": transform}


def _zoom(layers: list[dict[str, Any]]) -> None:
    """Let the first layer with axes of numbers zoom and move."""
    for layer in layers:
        places = {k: v for k, v in layer["encoding"].items() if k in ("x", "y")}
        ends = [k for k, v in places.items() if v.get("type") == "quantitative" and "field" in v]
        if len(places) == 2 and ends:
            select = {"type": "interval", "encodings": ends, "zoom": ZOOM, "translate": DRAG}
            layer["params"] = [{"name": "zoom", "select": select, "bind": "scales"}]
            return


def _nearest(layers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Where the page's script finds the nearest point of a line, and what it says of it."""
    found = None
    for layer in layers:
        if layer["mark"]["type"] == "line" and "tooltip" in layer["encoding"]:
            encoding = layer["encoding"]
            tips = [
                [one["field"], one.get("title", one["field"]), one.get("format", "")]
                for one in encoding.pop("tooltip")
            ]
            places = {"x": encoding["x"]["field"], "y": encoding["y"]["field"]}
            found = found or {"table": layer["data"]["name"], **places, "tips": tips}
    return found


def _table(rows: Any) -> dict[str, Any]:
    """A data set as one list of names and one of values per row: names are not repeated."""
    if isinstance(rows, str):  # CSV, which the page's script could only read by `eval`
        names, *lines = csv.reader(io.StringIO(rows))
        return {"names": names, "rows": [[_number(text) for text in line] for line in lines]}
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    return {"names": names, "rows": [[row.get(name) for name in names] for row in rows]}


def _number(text: str) -> float | str | None:
    """A field of a CSV text: labels are texts and stay so, unless they are finite numbers."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _legend(part: dict[str, Any], toggle: str | None) -> list[dict[str, str]]:
    """Label, colour, dash and shape of each series; a band has its colour, its line the dash."""
    found = [layer.get("encoding", {}) for layer in part.get("layer", [part])]
    found = [one for one in found if toggle and one.get("color", {}).get("field") == toggle]
    if not found:
        return []
    scale = found[0]["color"]["scale"]
    dashes = next(
        (one["strokeDash"]["scale"]["range"] for one in found if "strokeDash" in one),
        [[1, 0]] * len(scale["domain"]),
    )
    shapes = next((one["shape"]["scale"]["range"] for one in found if "shape" in one), None)
    return [
        {"label": str(a), "colour": b, "dash": " ".join(map(str, c)), "shape": d}
        for a, b, c, d in zip(
            scale["domain"], scale["range"], dashes, shapes or [""] * len(dashes), strict=False
        )
    ]
