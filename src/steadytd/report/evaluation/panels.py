"""What the pictures of an evaluation share: one size, so that a page lays them out as it likes.

Every picture is a panel of the same width. A wide page shows two side by side, a narrow one shows
them one below the other, and their letters stay legible on both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from steadytd.report.figures import data_of, styled
from steadytd.report.palette import HUES, PALE, SOFT

DRAWN = 6  # targets that have panels of their own
WIDTH = 420
LOG, TARGET, BEHAVIOR = PALE, HUES[2], SOFT


def of_target(frame: Any, name: str) -> Any:
    """The rows of one target; a frame without rows may have no columns either."""
    return frame.filter(frame["target"] == name) if len(frame) else frame


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows inside the picture's description; numbers that are not finite are left out."""
    return data_of([{k: _clean(v) for k, v in row.items()} for row in rows])


def _clean(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def framed(layers: Sequence[Any], title: str, height: int, toggle: str = "") -> Any:
    """Layers as one panel; everything, names and legend included, fits into its width.

    The series of the field `toggle` can be switched off in a page.
    """
    import altair as alt

    heading = alt.TitleParams(title, anchor="start", frame="bounds", fontSize=13, limit=WIDTH - 30)
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    chart = alt.layer(*layers).properties(width=WIDTH, height=height, title=heading, autosize=fit)
    return styled(chart.properties(usermeta={"toggle": toggle}) if toggle else chart)


def says(*fields: str, **titles: str) -> list[Any]:
    """A tooltip: names as they are, and numbers by their titles."""
    import altair as alt

    numbers = (alt.Tooltip(f"{k}:Q", title=t, format=".4~g") for k, t in titles.items())
    return [*(alt.Tooltip(f"{name}:N") for name in fields), *numbers]
