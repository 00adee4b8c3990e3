"""All cures of a problem: the rows of their table, and the picture of their errors."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from steadytd.base.numbers import number
from steadytd.report.figures import alt, heading, marks, says, styled
from steadytd.report.palette import GOOD, HUES, INK, PALE, SHADE
from steadytd.report.text import Table, table_of
from steadytd.theory.cure import Cure
from steadytd.theory.verdicts import Verdicts

PANEL, COLUMNS = (250, 150), 3
PLAIN = HUES[2]
CLOSE_TO_ZERO = 1e-3  # of the largest error shown


def cures_table(c: Verdicts) -> Table:
    """The recommended cure first."""
    heads = {
        "name": "cure", "unstable": "not stable", "best": ">best", "error": ">error",
        "noise": ">noise", "alpha": ">alpha",
    }  # fmt: skip
    title = (
        "Cures: amounts that are not stable (*: found by a scan), the best amount, error of its "
        "fixed point, noise of its updates, largest step size for bounded second moments (empty: "
        "not known)"
    )
    return table_of(title, heads, cure_rows(c))


def cure_rows(c: Verdicts) -> list[dict[str, Any]]:
    """Each cure: what is unstable, the best amount, and its error, noise and largest step size."""
    rows, use = [], recommended(c)
    for t in ordered(c):
        row, known = t.row, t.best is not None
        rows.append(
            {
                "name": t.title,
                "recommended": t is use,
                "unstable": unstable(t),
                "best": f"{row['amount']} {number(t.best)}" if known else "none",
                "error": number(row["error"]) if known else "none",
                "noise": _noise(row["noise"]) if known else "none",
                "alpha": number(row["mean_square_alpha"]),
            }
        )
    return rows


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


def recommended(c: Verdicts) -> Cure | None:
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


def ordered(c: Verdicts) -> list[Cure]:
    """The cures as pages show them: the recommended one first."""
    use = recommended(c)
    return sorted(c.treatments, key=lambda t: t is not use)


def cures_chart(c: Verdicts) -> Any:
    """Error of the fixed point over the amount of each cure, on one axis of error.

    Where the true value is zero every error is zero, and the rate of the slowest mode is drawn.
    """
    zero = c.error(np.zeros(c.problem.n_features))
    flat, high = zero < 1e-12, np.inf
    use = recommended(c)
    notes = ["grey: not stable; orange line: stable from here on; dot: the best amount; "
             "green: the one that is recommended"]  # fmt: skip
    if flat:
        y = alt.Y("y:Q", title="rate", axis=alt.Axis(format=".2~g", tickCount=4))
        low, title = 0.0, "How fast each cure is: the rate of its slowest mode over its amount"
        notes += ["the true value is zero, so every stable amount has error 0; the rate is that of "
                  "the slowest mode times the largest stable step size"]  # fmt: skip
    else:
        best = [t.best_error or 0.0 for t in c.treatments if t.best is not None]
        high = 5.0 * max(zero, c.best_error)
        low = max(0.7 * min([*best, c.best_error]), CLOSE_TO_ZERO * high)
        scale = alt.Scale(type="log", domain=[low, high])
        y = alt.Y("y:Q", title="error", scale=scale, axis=alt.Axis(format="~g", tickCount=4))
        title = "What each cure costs: error of the fixed point over its amount"
        notes += ["errors outside the range are cut off; no dot: no stable amount, or none in it"]
    panels = [_panel(t, y, (low, high), t is use, flat) for t in ordered(c)]
    return styled(alt.concat(*panels, columns=COLUMNS).properties(title=heading(title, notes)))


def _panel(t: Cure, y: Any, span: tuple[float, float], recommended: bool, flat: bool) -> Any:
    """One cure. Where the verdict changes the line begins anew."""
    low, high = span
    rows: list[dict[str, Any]] = []
    piece, before = 0, None
    for point in t.path:
        amount, error, stable = point["amount"], point["error"], point["stable"]
        if error is None or (before is not None and stable is not before):
            piece += 1
        before = stable
        if error is not None:
            shown = {"amount": amount, "y": t.rate(amount) if flat else max(error, low)}
            verdict = "stable" if stable else "not stable"
            rows.append({**shown, "error": error, "piece": piece, "verdict": verdict})
    rows = rows or [{"amount": t.low, "y": low, "error": None, "piece": 0, "verdict": "none"}]
    kind: Any = "log" if t.whole and t.low > 0.0 else "linear" if t.high <= 1.0 else "symlog"
    first, last = rows[0]["amount"], max(rows[-1]["amount"], t.low + 1e-9)
    if t.whole:  # room for the dots at the ends
        first, last = (first / 1.1, last * 1.1) if kind == "log" else (first - 0.1, last * 1.1)
    axis = alt.Axis(grid=False, tickCount=4, format=".3~r", labelOverlap=True)
    scale = alt.Scale(type=kind, domain=[first, last], nice=False)
    x = alt.X("amount:Q", title=t.amount, scale=scale, axis=axis)
    tooltip = [
        *says("verdict", amount=t.amount, error="error"),
        *([alt.Tooltip("y:Q", title="rate", format=".3~g")] if flat else []),
    ]
    colour = GOOD if recommended else PLAIN
    layers = []
    for verdict, shade in (("not stable", PALE), ("stable", colour)):
        part = [row for row in rows if row["verdict"] == verdict]
        line = {"x": x, "y": y, "detail": "piece:N"}
        told = {**line, "tooltip": tooltip} if verdict == "stable" else line
        layers += [
            marks("line", part, told, clip=True, strokeWidth=2.2, color=shade),
            marks(
                "circle", part, line, clip=True, size=40 if t.whole else 14, opacity=1, color=shade
            ),
        ]
    start = t.stable_from
    if start is not None and start > t.low:
        layers.append(marks("rule", [{"amount": start}], {"x": x}, color=SHADE, strokeDash=[4, 3]))
    if t.best is not None and (flat or (t.best_error or 0.0) <= high):
        best = {"amount": t.best, "y": t.rate(t.best) if flat else max(t.best_error or 0.0, low)}
        dot = {"size": 110, "filled": True, "color": colour, "opacity": 1, "clip": False}
        layers.append(marks("point", [best], {"x": x, "y": y}, **dot))
    name = f"{t.title}: recommended" if recommended else t.title
    title = alt.TitleParams(name, fontSize=12, color=GOOD if recommended else INK)
    return alt.layer(*layers).properties(width=PANEL[0], height=PANEL[1], title=title)
