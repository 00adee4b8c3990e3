"""The certificate's three pictures: eigenvalues, error over eta, values per state.

In a page they follow a dial over eta, whose parameter `at` is the number of its stop. What is known
at each stop is computed beforehand, so that the page computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.numbers import number
from steadytd.learners import algorithm
from steadytd.mdp.scales import Complexes
from steadytd.report.figures import alt, channels, dotted, edge_signs, heading, marks, says, styled
from steadytd.report.palette import GOOD, INK, PALE, RAMP, SHADE, SOFT, Look, look, looks
from steadytd.theory.analysis import compared
from steadytd.theory.certificate import Certificate

NAMED = 4  # learners that one entry of the legend names
MANY_STATES = 24  # beyond this, values are drawn as lines
EIGENVALUE_STEPS = 61
PATH_STEPS = 400
MOST_NUMBERS = 24_000  # values and eigenvalues of all stops of the dial together
STOPS = 120
ROW = 13  # pixels of a threshold's name
ERROR, BOUND, ZERO, BEST = "its error", "bound of it", "predicting zero", "best linear fit"
RATE = "rate of its slowest mode"  # drawn where every error is zero


def penalised() -> Look:
    """The look of the compared learner that has a penalty: these pictures are about it."""
    return look(next(law.name for law in compared() if "eta" in law.params))


def largest_eta(c: Certificate) -> float:
    """How far the pictures look: beyond every threshold and bound that needs no policies."""
    return 1.15 * max(1.0, c.bounds["paper"], c.best_eta)


class Stop(NamedTuple):
    """One stop of the dial: eta, eigenvalues of A(eta), values and error of the fixed point."""

    eta: float
    rates: Complexes
    values: Floats | None  # None where there is no fixed point
    error: float | None
    texts: dict[str, str]  # as on the terminal


def dial_etas(c: Certificate, etas: Sequence[float], top: float) -> list[float]:
    """The penalties at which the dial stops: round numbers, four times as dense near 0.

    The penalties that were asked about, and the one that eta=auto takes, are among them.
    """
    wanted = min(STOPS, max(12, MOST_NUMBERS // (c.problem.n_states + 2 * c.pencil.rank)))
    size = 10.0 ** np.floor(np.log10(top / wanted))
    step = next(k * size for k in (1.0, 2.0, 5.0, 10.0) if top / (k * size) <= wanted)
    coarse = np.arange(int(top / step) + 1) * step
    fine = np.arange(1, 40) * (step / 4.0)
    grid = [float(f"{eta:.6g}") for eta in (*coarse, *fine) if eta <= top]
    return sorted({*grid, c.best_eta, *(eta for eta in etas if eta <= top)})


def dial_stops(c: Certificate, etas: Sequence[float], top: float) -> list[Stop]:
    """What the dial shows at each stop."""
    c.moments.require_array("a page with the value of every state")
    stops = []
    for row in c.path(dial_etas(c, etas, top)).to_dicts():
        eta, error = row["eta"], row["error"]
        rates = c.pencil.rates(eta)
        values = np.array([row[f"value_{s}"] for s in range(c.problem.n_states)], dtype=float)
        texts = {
            "eta": number(eta),
            "stable": "stable" if row["stable"] else "unstable",
            "error": "none" if error is None else number(error),
            "slowest": number(float(rates.real.min())),
            "choice": " (eta=auto)" if eta == c.best_eta else "",
        }
        stops.append(Stop(eta, rates, None if error is None else values, error, texts))
    return stops


def first_stop(c: Certificate, stops: Sequence[Stop]) -> int:
    """Where the dial begins: at the penalty that eta=auto takes."""
    return [stop.eta for stop in stops].index(c.best_eta)


def _now(rows: Sequence[dict[str, Any]], places: dict[str, Any], **style: Any) -> Any:
    """Marks at the dial's stop, whose number is their `i`."""
    dot = {"filled": True, "size": 170, "stroke": "white", "opacity": 1, **style}
    return marks("point", rows, places, color=penalised().colour, **dot).transform_filter(
        "datum.i == at"
    )


def _finished(
    layers: Sequence[Any], c: Certificate, stops: Sequence[Stop], title: Any, **more: Any
) -> Any:
    """The layers as one chart, with the parameter that the page's dial moves."""
    chart = alt.layer(*layers).properties(title=title, **more)
    if stops:
        chart = chart.add_params(alt.param(name="at", value=first_stop(c, stops)))
    return styled(chart)


def eigenvalue_chart(c: Certificate, stops: Sequence[Stop] = ()) -> Any:
    """Eigenvalues of A(eta) in the complex plane, from eta = 0 to a little above eta_pd."""
    top = max(1.5 * c.eta_pd, 2.0 * c.best_eta, 0.5)
    rows = [
        {"eta": float(eta), "re": float(value.real), "im": float(value.imag)}
        for eta in np.linspace(0.0, top, EIGENVALUE_STEPS)
        for value in c.pencil.rates(float(eta))
    ]
    left = min(0.0, *(r["re"] for r in rows))
    right = max(1e-3, *(r["re"] for r in rows))
    tall = max(*(abs(r["im"]) for r in rows), 0.05 * (right - left), 1e-3)
    pad = 0.06 * (right - left)
    x_scale = alt.Scale(domain=[left - pad, right + pad], nice=False)
    y_scale = alt.Scale(domain=[-1.25 * tall, 1.25 * tall], nice=False)
    places = {
        "x": alt.X("re:Q", title="real part", scale=x_scale),
        "y": alt.Y("im:Q", title="imaginary part", scale=y_scale),
        "tooltip": says(eta="eta", re="real", im="imaginary"),
    }
    half = {"x": alt.X("x:Q", scale=x_scale, title="real part"), "x2": "x2:Q"}
    area = [{"x": left - 9.0 * (right - left), "x2": 0.0}]
    legend = alt.Legend(orient="bottom", gradientLength=180, gradientThickness=9, title="eta")
    ramp = alt.Color("eta:Q", scale=alt.Scale(scheme=RAMP), legend=legend)
    first = [row for row in rows if row["eta"] == 0.0]
    layers = [
        marks("rect", area, half, opacity=0.10, color=SHADE, clip=True),
        marks("rule", area, {"x": alt.datum(0.0, scale=x_scale)}, color=SOFT),
        marks("circle", rows, {**places, "color": ramp}, size=30, opacity=0.9),
        marks("point", first, places, size=90, color=INK, strokeWidth=1.6, filled=False),
    ]
    if stops:
        now = [
            {"i": i, "eta": stop.eta, "re": float(z.real), "im": float(z.imag)}
            for i, stop in enumerate(stops)
            for z in stop.rates
        ]
        layers.append(_now(now, places))
    title = "Eigenvalues of A(eta) as the penalty grows"
    notes = "circles: eta = 0, plain TD; stable where no eigenvalue lies in the shade"
    return _finished(layers, c, stops, heading(title, notes), width=560, height=320)


def path_grid(c: Certificate, top: float) -> Floats:
    """Penalties from 0 to `top`, dense near 0, with the places where something happens."""
    special = [c.best_eta, *(p + s for p in c.poles for s in (-2e-3, 2e-3) if p + s >= 0.0)]
    grid = np.concatenate([np.linspace(0.0, 1.0, PATH_STEPS) ** 2 * top, special])
    return np.unique(grid[grid <= top])


def path_chart(c: Certificate, stops: Sequence[Stop] = ()) -> Any:
    """Error of the fixed point over eta: the unstable set shaded, thresholds and bounds named.

    Where the true value is zero every error is zero, and the rate of the slowest mode is drawn.
    """
    top, zero = largest_eta(c), c.error(np.zeros(c.problem.n_features))
    x_scale = alt.Scale(type="sqrt", domain=[0.0, top], nice=False)
    axis = alt.Axis(grid=False, tickCount=8)
    x = alt.X("eta:Q", title="eta (square-root scale)", scale=x_scale, axis=axis)
    if zero < 1e-12:
        what, format_, levels = RATE, ".2~g", []
        rows: list[dict[str, Any]] = [
            {"what": RATE, "branch": "", "eta": float(eta), "error": _slowest(c, float(eta))}
            for eta in path_grid(c, top)
        ]
        least, most = min(r["error"] for r in rows), max(r["error"] for r in rows)
        low, high = min(1.1 * least, -0.05 * most), 1.1 * most
        y_scale = alt.Scale(domain=[low, high], nice=False)
        at_stops: list[float | None] = [_slowest(c, stop.eta) for stop in stops]
        levels = [{"error": 0.0}]
    else:
        what, format_ = "error of the fixed point", "~g"
        frame = c.path(path_grid(c, top)).select("eta", "stable", "error", "error_bound")
        scale = max(zero, c.best_error, 1e-12)
        low, high = max(c.best_error, 1e-3 * scale) / 2.0, 30.0 * scale
        y_scale = alt.Scale(type="log", domain=[low, high])
        rows = _path_rows(c, frame.to_dicts(), top, _levels(c, zero, low))
        at_stops, levels = [stop.error for stop in stops], []
    y = alt.Y("error:Q", title=what, scale=y_scale, axis=alt.Axis(format=format_, tickCount=6))
    shown = {ERROR: penalised(), BOUND: Look(SOFT, (5, 4)), ZERO: Look(INK, (2, 3)),
             BEST: Look(GOOD, (2, 3)), RATE: penalised()}  # fmt: skip
    present = {row["what"] for row in rows}
    colour, dash = channels("what", {k: v for k, v in shown.items() if k in present}, columns=4)
    spans = [{"lo": lo, "hi": min(hi, top)} for lo, hi in c.unstable_etas if lo < top]
    shaded = {"x": alt.X("lo:Q", scale=x_scale), "x2": "hi:Q",
              "tooltip": says(lo="unstable from", hi="to")}  # fmt: skip
    tooltip = says("what", eta="eta", error="error" if what != RATE else "rate")
    line = {"x": x, "y": y, "color": colour, "strokeDash": dash, "detail": "branch:N",
            "tooltip": tooltip}  # fmt: skip
    layers = [
        *([marks("rect", spans, shaded, opacity=0.13, color=SHADE)] if spans else []),
        *([marks("rule", levels, {"y": y}, color=SOFT)] if levels else []),
        *threshold_marks(c, top, x_scale),
        marks("line", rows, line, strokeWidth=2.2, clip=True),
        *edge_signs(rows, (low, high), ["what", "branch"], x=x, y=y, color=colour),
    ]
    best = _slowest(c, c.best_eta) if what == RATE else c.error(c.pencil.fixed_point(c.best_eta))
    dot = {"size": 110, "filled": True, "color": GOOD, "opacity": 1, "clip": False}
    chosen = {"x": x, "y": y, "tooltip": tooltip[1:]}
    layers.append(marks("point", [{"eta": c.best_eta, "error": best}], chosen, **dot))
    if stops:
        known = zip(stops, at_stops, strict=True)
        now = [
            {"i": i, "eta": stop.eta, "error": float(np.clip(error, low, high))}
            for i, (stop, error) in enumerate(known)
            if error is not None and stop.error is not None
        ]
        rule = marks("rule", now, {"x": x}, color=penalised().colour, strokeWidth=1.2)
        layers += [rule.transform_filter("datum.i == at"), _now(now, {"x": x, "y": y})]
    notes, title = (
        ["shaded: unstable; dot: what eta=auto takes"],
        "Error of perturbed TD's fixed point",
    )
    if what == RATE:
        title = "Rate of perturbed TD's slowest mode"
        notes.append("the true value is zero, so every stable eta has error 0; larger is faster")
    usermeta = {"toggle": "what"}
    return _finished(layers, c, stops, heading(f"{title} over the penalty", notes), width=620,
                     height=340, usermeta=usermeta)  # fmt: skip


def _slowest(c: Certificate, eta: float) -> float:
    """The rate of the slowest mode: negative where the mean update is unstable."""
    return float(c.pencil.rates(eta).real.min())


def thresholds(c: Certificate, top: float) -> list[tuple[str, float]]:
    """Name and place of the pole, the thresholds and the bounds, from left to right."""
    named = {
        "Hurwitz": c.eta_hurwitz,
        "positive definite": c.eta_pd,
        **{f"bound: {name.replace('_', ' ')}": value for name, value in c.bounds.items()},
    }
    if c.poles:
        named["pole"] = c.poles[-1]
    places = sorted((value, name) for name, value in named.items() if 0.0 < value <= top)
    return [(name, value) for value, name in places]


def threshold_marks(c: Certificate, top: float, x_scale: Any) -> list[Any]:
    """Vertical lines for the pole, thresholds and bounds, with their names above the frame.

    Each name has a row of its own, the leftmost the highest: none lies on a curve or a name.
    """
    known = thresholds(c, top)
    if not known:
        return []
    rows = [
        {"eta": value, "text": f"{name} {number(value)}", "row": row, "left": value < 0.45 * top}
        for row, (name, value) in enumerate(reversed(known))
    ]
    at = {"x": alt.X("eta:Q", scale=x_scale), "tooltip": alt.Tooltip("text:N", title=" ")}
    flag = {**at, "y": alt.value(0), "y2": alt.value(alt.expr(f"-4 - {ROW} * datum.row"))}
    named = {**at, "text": "text:N", "y": alt.value(0)}
    style = {"fontSize": 11, "color": SOFT, "baseline": "bottom"}
    sides = [[r for r in rows if r["left"]], [r for r in rows if not r["left"]]]
    lift = alt.expr(f"-3 - {ROW} * datum.row")
    return [
        marks("rule", rows, at, color=PALE, strokeWidth=1.5),
        marks("rule", rows, flag, color=PALE, strokeWidth=1.0, clip=False),
        *(
            marks("text", part, named, align=align, dx=dx, dy=lift, **style)
            for part, align, dx in zip(sides, ("left", "right"), (3, -3), strict=True)
            if part
        ),
    ]


def _levels(c: Certificate, zero: float, low: float) -> dict[str, float]:
    """Errors to compare with, as lines across."""
    return {ZERO: zero} | ({BEST: c.best_error} if c.best_error > low else {})


def _path_rows(
    c: Certificate, found: list[dict[str, Any]], top: float, levels: dict[str, float]
) -> list[dict[str, Any]]:
    """The curve, which begins anew beyond a pole and where stability changes; its bound; levels."""
    segments = np.searchsorted(c.poles, [row["eta"] for row in found])
    rows = [
        {
            "what": ERROR,
            "branch": f"{segment}{row['stable']}",
            "eta": row["eta"],
            "error": row["error"],
        }
        for row, segment in zip(found, segments, strict=True)
        if row["error"] is not None
    ]
    bounded = [(row["eta"], row["error_bound"]) for row in found if row["error_bound"] is not None]
    others = [(BOUND, *point) for point in bounded]
    others += [(name, eta, error) for name, error in levels.items() for eta in (0.0, top)]
    return rows + [{"what": n, "branch": "", "eta": eta, "error": e} for n, eta, e in others]


def _best_known_first(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: not algorithm(name.split()[0]).role.place)


def _shortened(names: list[str]) -> str:
    """The best known names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(_best_known_first(names)[:NAMED]) + more


def values_chart(c: Certificate, stops: Sequence[Stop] = ()) -> Any:
    """The learners' fixed points, state by state, beside the true values."""
    active = c.problem.active_in(c.policy)
    kinds: dict[tuple[float, ...], list[str]] = {}
    for row in c.learners:
        if row["values"] is not None and not algorithm(row["learner"]).role.exhibit:
            eta = row["params"].get("eta")
            name = f"{row['learner']} (eta {number(eta, 3)})" if eta is not None else row["learner"]
            shown = name if row["stable"] else f"{name} (unstable)"
            kinds.setdefault(tuple(np.round(row["values"], 9)), []).append(shown)
    true = "true value"
    series = {true: tuple(c.moments.v_pi)} | {_shortened(n): v for v, n in kinds.items()}
    own = looks({_shortened(n): _best_known_first(n)[0].split()[0] for n in kinds.values()})
    rows = [
        {"learner": name, "state": s, "value": float(v)}
        for name, values in series.items()
        for s, v in enumerate(values)
        if active[s]
    ]
    many = active.sum() > MANY_STATES
    colour, dash = channels("learner", {true: Look(SOFT)} | own, columns=2)
    zero = c.error(np.zeros(c.problem.n_features))
    useful = [x.values for x in stops if x.values is not None and (x.error or 0.0) <= zero]
    ends = [v for x in (*series.values(), *useful) for s, v in enumerate(x) if active[s]]
    pad = 0.08 * (max(ends) - min(ends)) or 1.0
    low, high = min(ends) - pad, max(ends) + pad
    places = {
        "x": alt.X("state:Q", title="state", scale=alt.Scale(nice=False)),
        "y": alt.Y("value:Q", title="value", scale=alt.Scale(domain=[low, high], nice=False)),
        "color": colour,
        "tooltip": ["learner:N", "state:Q", alt.Tooltip("value:Q", format=".4~g")],
    }
    if many:
        layers = [marks("line", rows, {**places, "strokeDash": dash}, strokeWidth=1.6, clip=True)]
    else:
        places["x"] = alt.X("state:O", title="state", axis=alt.Axis(labelAngle=0, grid=True))
        dotted(colour)
        beside = {**places, "xOffset": alt.XOffset("learner:N", sort=list(series)[1:])}
        others = [row for row in rows if row["learner"] != true]
        layers = [
            marks("tick", [r for r in rows if r["learner"] == true], places, thickness=3, size=46),
            marks("point", others, beside, filled=True, size=75, opacity=1),
        ]
    if stops:
        now = [
            {"i": i, "eta": stop.eta, "state": s, "value": float(v)}
            for i, stop in enumerate(stops)
            if stop.values is not None
            for s, v in enumerate(stop.values)
            if active[s] and low <= v <= high
        ]
        moved = {"x": places["x"], "y": places["y"], "tooltip": ["eta:Q", "state:Q", "value:Q"]}
        size = 40 if many else 170
        diamond = {"shape": "diamond", "filled": False, "strokeWidth": 2.4, "stroke": alt.Undefined}
        layers.append(_now(now, moved, size=size, **diamond))
    same = "learners with the same fixed point share a mark"
    notes = [same if many else f"{same}; bars: the true values"]
    if stops:
        notes.append("open diamond: perturbed TD with the eta of the dial")
    title = heading("Values at the fixed points, beside the true ones", notes)
    return _finished(layers, c, stops, title, width=620, height=280, usermeta={"toggle": "learner"})
