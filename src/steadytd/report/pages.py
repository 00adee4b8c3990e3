"""HTML pages that stand alone: styles and pictures inside, nothing fetched from a network."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from steadytd.base.wording import figures, interval, visible

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
    environment.filters["figures"] = figures
    environment.globals["interval"] = interval
    return environment


def _seen(value: object) -> object:
    """What a template prints: pieces of pages and numbers as they are, nothing hidden in texts."""
    return visible(value, lines=True) if type(value) is str else value


def page(template: str, **content: object) -> str:
    """A page from a template of this package. Text is escaped; SVG is marked safe in templates."""
    return _environment().get_template(template).render(versions=versions(), **content)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    packages = ("steadytd", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
