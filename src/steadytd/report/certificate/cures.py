"""All cures of a problem: the rows of their table, and the picture of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from steadytd.base.numbers import number
from steadytd.report.figures import alt, data_of, heading, styled
from steadytd.report.palette import GOOD, HUES, INK, PALE, SHADE
from steadytd.theory.certificate import Certificate
from steadytd.theory.cure import Cure

PANEL, COLUMNS = (250, 150), 3
PLAIN = HUES[2]
CLOSE_TO_ZERO = 1e-3  # of the largest error shown


def cure_rows(c: Certificate, treatments: Sequence[Cure] | None = None) -> list[dict[str, Any]]:
    """Each cure: what is unstable, the best amount, and its error, noise and largest step size."""
    rows, use = [], recommended(c)
    for t in treatments or c.treatments:
        row = t.row
        alpha = row["mean_square_alpha"]
        rows.append(
            {
                "name": t.title,
                "recommended": t is use,
                "short": _short(t),
                "unstable": unstable(t),
                "best": "none" if t.best is None else f"{row['amount']} {number(t.best)}",
                "error": "none" if t.best is None else number(row["error"]),
                "noise": _noise(row["noise"]) if t.best is not None else "none",
                "alpha": number(alpha),
            }
        )
    return rows


def _short(t: Cure) -> str:
    """The name with what is not a number in its settings: fits into a narrow column."""
    words = [value for value in t.settings.values() if isinstance(value, str)]
    return ", ".join([t.name, *words])


def _noise(noise: float | None) -> str:
    return "not known" if noise is None else "infinite" if noise == inf else number(noise, 3)


def unstable(t: Cure) -> str:
    """The amounts that are not stable, in words; with a star where a scan has found them."""
    end, parts = t.high, []
    for lo, hi in t.unstable:
        if hi >= end:
            parts.append("all" if lo == t.low else f"from {number(lo)}")
        elif lo == t.low:
            parts.append(f"below {number(hi + 1.0 if t.whole else hi)}")
        else:
            parts.append(f"{number(lo)}" if lo == hi else f"{number(lo)} to {number(hi)}")
    return (", ".join(parts) or "none") + ("" if t.exact else "*")


def recommended(c: Certificate) -> Cure | None:
    """The cure that is recommended; None if that is a learner without its amount of a cure."""
    use = c.recommended(cures=True)
    if use is None:
        return None
    params = {k: v for k, v in use.numbers["params"].items() if k != "lam" or v}
    asked = (use.numbers["learner"], params)
    return next(
        (t for t in c.treatments if asked == (t.name, {**t.settings, t.amount: t.best})),
        None,
    )


def ordered(c: Certificate) -> list[Cure]:
    """The cures as pages show them: the recommended one first."""
    use = recommended(c)
    return sorted(c.treatments, key=lambda t: t is not use)


def cures_chart(c: Certificate) -> Any:
    """Error of the fixed point over the amount of each cure, on one axis of error."""
    zero = c.error(np.zeros(c.problem.n_features))
    flat = zero < 1e-12
    use = recommended(c)
    lowest = min([t.best_error or 0.0 for t in c.treatments if t.best is not None] + [c.best_error])
    high = 5.0 * max(zero, c.best_error)
    low = max(0.7 * lowest, CLOSE_TO_ZERO * high)
    scale = alt.Scale(domain=[-0.1, 1.0]) if flat else alt.Scale(type="log", domain=[low, high])
    panels = [_panel(t, scale, 0.0 if flat else low, t is use) for t in ordered(c)]
    notes = [
        "grey: not stable; orange line: stable from here on; dot: the best amount; "
        "green: the one that is recommended",
        "the true value is zero, so every stable amount is right"
        if flat
        else "errors outside the range are cut off; no dot: no stable amount",
    ]
    title = heading("What each cure costs: error of the fixed point over its amount", notes)
    return styled(alt.concat(*panels, columns=COLUMNS).properties(title=title))


def _panel(t: Cure, scale: Any, low: float, recommended: bool) -> Any:
    """One cure. Where the verdict changes the line begins anew."""
    width, height = PANEL
    rows: list[dict[str, Any]] = []
    piece, before = 0, None
    for point in t.path:
        if point["error"] is None or (before is not None and point["stable"] is not before):
            piece += 1
        before = point["stable"]
        if point["error"] is not None:
            shown = {"amount": point["amount"], "error": max(point["error"], low)}
            verdict = "stable" if point["stable"] else "not stable"
            stable = int(point["stable"])
            rows.append({**shown, "stable": stable, "piece": piece, "verdict": verdict})
    nothing = {"amount": t.low, "error": low, "stable": 0, "piece": 0, "verdict": "none"}
    rows = rows or [nothing]
    amounts = [row["amount"] for row in rows]
    kind: Any = "linear" if t.high <= 1.0 else "symlog" if not t.whole else "log"
    if t.whole and t.low == 0.0:
        kind = "symlog"
    first, last = min(amounts), max(*amounts, t.low + 1e-9)
    if t.whole:  # room for the dots at the ends
        first, last = (first / 1.1, last * 1.1) if kind == "log" else (first - 0.1, last * 1.1)
    x = alt.X(
        "amount:Q",
        title=t.amount,
        scale=alt.Scale(type=kind, domain=[first, last], nice=False),
        axis=alt.Axis(grid=False, tickCount=4, format=".3~r", labelOverlap=True),
    )
    y = alt.Y("error:Q", title="error", scale=scale, axis=alt.Axis(format="~g", tickCount=4))
    lines = alt.Chart(data_of(rows)).encode(x=x, y=y, detail="piece:N")
    good = lines.transform_filter("datum.stable == 1")
    says = [
        alt.Tooltip("amount:Q", title=t.amount, format=".4~g"),
        alt.Tooltip("error:Q", format=".4~g"),
        alt.Tooltip("verdict:N", title="mean update"),
    ]
    mark: dict[str, Any] = {"clip": True, "strokeWidth": 2.2}
    dots: dict[str, Any] = {"clip": True, "size": 40 if t.whole else 14, "opacity": 1.0}
    colour = GOOD if recommended else PLAIN
    layers = [
        lines.transform_filter("datum.stable == 0").mark_line(color=PALE, **mark),
        lines.transform_filter("datum.stable == 0").mark_circle(color=PALE, **dots),
        good.mark_line(color=colour, **mark).encode(tooltip=says),
        good.mark_circle(color=colour, **dots),
    ]
    start = t.stable_from
    if start is not None and start > t.low:
        rule = alt.Chart(data_of([{"amount": start}])).encode(x=x)
        layers.append(rule.mark_rule(color=SHADE, strokeDash=[4, 3]))
    if t.best is not None:
        best = [{"amount": t.best, "error": max(t.best_error or 0.0, low)}]
        chosen = alt.Chart(data_of(best)).encode(x=x, y=y)
        layers.append(chosen.mark_point(size=110, filled=True, color=colour, opacity=1, clip=False))
    name = f"{t.title}: recommended" if recommended else t.title
    title = alt.TitleParams(name, fontSize=12, color=GOOD if recommended else INK)
    return alt.layer(*layers).properties(width=width, height=height, title=title)
