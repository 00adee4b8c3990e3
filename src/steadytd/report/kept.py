"""Charts that need not be put together again: description and figure of a page, kept.

Loading Altair and putting a dozen charts together takes more than a second. What a chart shows is
known before, though: a function of `report` and what it is given. So is what becomes of it.
"""

from __future__ import annotations

import json
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.files import cache_directory, kept_arrays
from steadytd.base.identity import digest, modules
from steadytd.report.figures import described
from steadytd.report.live import Live, live
from steadytd.report.pages import library

KEPT = "chart"


def kept_chart(drawing: partial[Any]) -> tuple[dict[str, Any], Live]:
    """The description of the chart that a call gives, and its figure in a page.

    Both are kept by all that decides them: the code of the function, what it is given, and the
    version of Altair.
    """
    draw = drawing.func
    call = draw.__module__, draw.__qualname__, drawing.args, drawing.keywords
    identity = digest(modules(__name__, draw.__module__), metadata.version("altair"), call)
    found = kept_arrays(KEPT, identity, partial(_made, drawing))
    whole, figure = (json.loads(found[part].tobytes()) for part in ("whole", "live"))
    return whole, Live(**figure)


def nothing_kept() -> bool:
    """Whether charts have to be put together, which takes long."""
    return next(cache_directory().glob(f"{KEPT}-*"), None) is None


def warm_up() -> None:
    """Load what pages are made with, beside other work; Altair if nothing is kept."""
    import polars  # noqa: F401

    if nothing_kept():
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    library()


def _made(drawing: partial[Any]) -> dict[str, NDArray[np.uint8]]:
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # Altair would check every part of every figure
        whole = described(drawing())
    parts = {"whole": whole, "live": live("", whole)._asdict()}
    return {name: np.frombuffer(json.dumps(x).encode(), np.uint8) for name, x in parts.items()}
