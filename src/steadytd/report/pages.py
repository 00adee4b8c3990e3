"""HTML pages that stand alone: styles and pictures inside, nothing fetched from a network."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


TINY = 1e-10  # numbers below this are shown as such: their digits mean nothing to a reader


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steadytd.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figures"] = figures
    environment.globals["interval"] = interval
    return environment


def page(template: str, **content: object) -> str:
    """A page from a template of this package. Text is escaped; SVG is marked safe in templates."""
    return _environment().get_template(template).render(versions=versions(), **content)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    packages = ("steadytd", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def figures(value: float | None, stderr: float | None = None) -> str:
    """A number for reading, with its standard error if given.

    >>> figures(2.98633, 0.00051), figures(1.3997e12), figures(2.2e-40), figures(143.5, 134.9)
    ('2.986 ± 0.00051', '1.40e+12', '< 1e-10', '143.5 ± 130')
    """
    if value is None:
        return ""
    if value == float("inf"):
        return "diverged"
    if value == 0.0:
        return "0"
    if abs(value) < TINY:
        return f"< {TINY:g}"
    text = f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"
    return text if stderr is None else f"{text} ± {_two_digits(stderr)}"


def interval(low: float, high: float) -> str:
    """Two numbers for reading, one if they look the same.

    >>> interval(1.3555, 1.4542), interval(2.98568, 2.98608), interval(1e-99, 1e-94)
    ('1.355 to 1.454', '2.986', '< 1e-10')
    """
    ends = figures(low), figures(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _two_digits(value: float) -> str:
    if value == float("inf"):
        return "unbounded"
    if not 1e-4 <= value < 1e5:
        return f"{value:.1e}"
    return f"{float(f'{value:.2g}'):.6g}"
