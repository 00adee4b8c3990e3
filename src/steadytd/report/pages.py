"""HTML pages that stand alone: styles, scripts and data inside, nothing fetched from a network."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import visible
from steadytd.base.files import cached_arrays
from steadytd.base.identity import digest
from steadytd.base.numbers import count, interval, number, with_error
from steadytd.report.text import Line, Table, grade

if TYPE_CHECKING:
    import jinja2


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steadytd.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "with_error": with_error, "visible": _seen}
    environment.globals |= {"interval": interval, "count": count, "grade": grade}
    return environment


def _seen(value: object) -> object:
    """What a template prints: pieces of pages and numbers as they are, nothing hidden in texts."""
    return visible(value, lines=True) if type(value) is str else value


def page(template: str, **content: object) -> str:
    """A page from a template of this package. Text is escaped; what is marked safe is our own."""
    rendered = _environment().get_template(template)
    return rendered.render(versions=versions(), library=library(), **content)


def figure_html(figure: object, words: str = "") -> str:
    """A figure of `report.live` by itself, for a page with what `figure_files` has."""
    text = '{% from "parts.html" import figure %}{{ figure(f, words) }}'
    return _environment().from_string(text).render(f=figure, words=words)


def notebook(parts: Sequence[Line | Table | str], picture: str) -> str:
    """Sentences, tables and a picture for a notebook; nothing in it is run or fetched."""
    return (
        _environment()
        .get_template("notebook.html")
        .render(parts=[(type(part).__name__, part) for part in parts], picture=picture)
    )


def figure_files() -> dict[str, str]:
    """Style and scripts of figures, for pages that others make: the documentation's."""
    own = {name: _environment().get_template(name).render() for name in ("figure.css", "page.js")}
    drawing = f"(() => {{{library()}\n}})();"  # its names are its own: other scripts have a `_`
    return {"figure.css": own["figure.css"], "live.js": f"{drawing}\n{own['page.js']}"}


@cache
def library() -> str:
    """The script that draws Vega-Lite in a page, from the drawing library that is installed.

    It is put together once per version and kept.
    """
    identity = digest("vegaEmbed of Vega-Lite", version("vl-convert-python"))
    script = cached_arrays("script", identity, _script)["script"].tobytes().decode()
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _script() -> dict[str, NDArray[np.uint8]]:
    import vl_convert

    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return {"script": np.frombuffer(text.encode(), np.uint8)}


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    packages = ("steadytd", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
