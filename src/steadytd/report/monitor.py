"""A monitor's picture: the interval of every target over the looks, and where it was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, write_whole
from steadytd.base.numbers import percent
from steadytd.evaluation.monitor import Monitor
from steadytd.report.figures import alt, channels, heading, marks, says, styled
from steadytd.report.live import live
from steadytd.report.pages import page
from steadytd.report.palette import DASHES, HUES, SOFT, Look

HEIGHT, WIDTH = 300, 620


def monitor_chart(m: Monitor) -> Any:
    """Difference and interval over episodes; a dot where the interval first excludes 0.

    The axis has the intervals of the later half of the looks; the first ones are far wider.
    """
    rows = m.past
    if not rows:
        raise InputError("the monitor has no look yet: add a batch, then draw it.")
    later = [row for row in rows if 2 * row["batch"] >= rows[-1]["batch"]]
    low, high = min([0.0, *(r["lo"] for r in later)]), max([0.0, *(r["hi"] for r in later)])
    room = 0.06 * (high - low)
    ends = alt.Scale(domain=[low - room, high + room], nice=False)
    looks = {n: Look(HUES[i % 9], DASHES[i // 9 % 5]) for i, n in enumerate(m.targets)}
    colour, dash = channels("target", looks)
    x = alt.X("episodes:Q", title="episodes", axis=alt.Axis(grid=False, format=",.0f"))
    y = alt.Y("difference:Q", title="difference to the policy that makes the data", scale=ends)
    bottom = alt.Y("lo:Q", title=y["title"], scale=ends)
    about = says("target", "decision", episodes="episodes", difference="difference",
                 lo="lo", hi="hi")  # fmt: skip
    own = {"x": x, "y": y, "color": colour, "tooltip": about}
    area = {"x": x, "y": bottom, "y2": "hi:Q", "color": colour}
    first = {r["target"]: r for r in reversed(rows) if r["decision"] != "undecided"}
    zero = {"y": alt.Y("at:Q", scale=ends, title=y["title"])}
    return alt.layer(
        marks("area", rows, area, opacity=0.17, clip=True),
        marks("rule", [{"at": 0.0}], zero, strokeDash=[4, 3], color=SOFT),
        marks("line", rows, {**own, "strokeDash": dash}, strokeWidth=2, clip=True),
        marks("point", list(first.values()), own, filled=True, size=110, opacity=1.0),
    ).properties(
        width=WIDTH, height=HEIGHT, usermeta={"toggle": "target"},
        title=heading("Decided while data arrive",
                      f"{percent(m.level)} interval, valid at every look; a dot: first decided"),
    )  # fmt: skip


def monitor_parts(m: Monitor) -> list[str]:
    """All that is known, a sentence each."""
    return [*m.sentences, m.assumed]


def write_monitor(m: Monitor, place: Path) -> Path:
    """The page."""
    words, picture = monitor_parts(m), live("looks", styled(monitor_chart(m)), False)
    content = page("object.html", title="Decided while data arrive", words=words, picture=picture)
    return write_whole(output_directory(place) / "monitor.html", content)
