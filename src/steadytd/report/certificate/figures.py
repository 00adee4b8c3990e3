"""The certificate's three pictures: eigenvalues, error over eta, values per state.

In a page they follow a dial over eta, whose parameter `at` is the number of its stop. What is known
at each stop is computed beforehand, so that the page computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.numbers import number
from steadytd.learners import algorithm
from steadytd.mdp.scales import Complexes
from steadytd.report.figures import alt, channels, data_of, dotted, edge_signs, heading, styled
from steadytd.report.palette import GOOD, INK, PALE, RAMP, SHADE, SOFT, Look, look, looks
from steadytd.theory.certificate import Certificate
from steadytd.theory.recommend import compared

NAMED = 4  # learners that one entry of the legend names
MANY_STATES = 24  # beyond this, values are drawn as lines
EIGENVALUE_STEPS = 61
PATH_STEPS = 400
MOST_NUMBERS = 24_000  # values and eigenvalues of all stops of the dial together
STOPS = 120
NEAR = 0.028  # of the axis: marks of thresholds that are closer share a place
ERROR, BOUND, ZERO, BEST = "its error", "bound of it", "predicting zero", "best linear fit"


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


def _at_the_stop(rows: Sequence[dict[str, Any]]) -> Any:
    """The rows of the dial's stop, whose number is their `i`."""
    return alt.Chart(data_of(rows)).transform_filter("datum.i == at")


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
    rows = []
    for eta in np.linspace(0.0, top, EIGENVALUE_STEPS):
        for value in c.pencil.rates(float(eta)):
            rows.append({"eta": float(eta), "re": float(value.real), "im": float(value.imag)})
    left = min(0.0, *(r["re"] for r in rows))
    right = max(1e-3, *(r["re"] for r in rows))
    tall = max(*(abs(r["im"]) for r in rows), 0.05 * (right - left), 1e-3)
    pad = 0.06 * (right - left)
    x = alt.Scale(domain=[left - pad, right + pad], nice=False)
    y = alt.Scale(domain=[-1.25 * tall, 1.25 * tall], nice=False)
    area = data_of([{"x": left - 9.0 * (right - left), "x2": 0.0}])
    unstable = alt.Chart(area).mark_rect(opacity=0.10, color=SHADE, clip=True)
    axis = alt.Chart(area).mark_rule(color=SOFT).encode(x=alt.datum(0.0, scale=x))
    position = {
        "x": alt.X("re:Q", title="real part", scale=x),
        "y": alt.Y("im:Q", title="imaginary part", scale=y),
    }
    says = [alt.Tooltip(f"{n}:Q", title=t, format=".4~g")
            for n, t in (("eta", "eta"), ("re", "real"), ("im", "imaginary"))]  # fmt: skip
    legend = alt.Legend(orient="bottom", gradientLength=180, gradientThickness=9, title="eta")
    ramp = alt.Color("eta:Q", scale=alt.Scale(scheme=RAMP), legend=legend)
    points = alt.Chart(data_of(rows))
    moving = points.mark_circle(size=30, opacity=0.9).encode(**position, color=ramp, tooltip=says)
    first = points.transform_filter("datum.eta == 0")
    start = first.mark_point(size=90, color=INK, strokeWidth=1.6, filled=False)
    layers = [unstable.encode(x=alt.X("x:Q", scale=x, title="real part"), x2="x2:Q"), axis, moving]
    layers.append(start.encode(**position, tooltip=says))
    if stops:
        now = [
            {"i": i, "eta": stop.eta, "re": float(z.real), "im": float(z.imag)}
            for i, stop in enumerate(stops)
            for z in stop.rates
        ]
        dots = _at_the_stop(now).mark_point(
            size=170, filled=True, opacity=1, stroke="white", color=penalised().colour
        )
        layers.append(dots.encode(**position, tooltip=says))
    title = "Eigenvalues of A(eta) as the penalty grows"
    notes = "circles: eta = 0, plain TD; stable where no eigenvalue lies in the shade"
    return _finished(layers, c, stops, heading(title, notes), width=560, height=320)


def path_grid(c: Certificate, top: float) -> Floats:
    """Penalties from 0 to `top`, dense near 0, with the places where something happens."""
    special = [c.best_eta, *(p + s for p in c.poles for s in (-2e-3, 2e-3) if p + s >= 0.0)]
    grid = np.concatenate([np.linspace(0.0, 1.0, PATH_STEPS) ** 2 * top, special])
    return np.unique(grid[grid <= top])


def path_chart(c: Certificate, stops: Sequence[Stop] = ()) -> Any:
    """Error of the fixed point over eta: the unstable set shaded, thresholds and bounds marked.

    Thresholds have letters above the frame, explained below the title: names would lie on curves.
    """
    top = largest_eta(c)
    frame = c.path(path_grid(c, top)).select("eta", "stable", "error", "error_bound")
    zero = c.error(np.zeros(c.problem.n_features))
    scale = max(zero, c.best_error, 1e-12)
    low, high = max(c.best_error, 1e-3 * scale) / 2.0, 30.0 * scale
    flat = zero < 1e-12
    y_scale = alt.Scale(domain=[-0.1, 1.0]) if flat else alt.Scale(type="log", domain=[low, high])
    x_scale = alt.Scale(type="sqrt", domain=[0.0, top], nice=False)
    x = alt.X("eta:Q", title="eta", scale=x_scale, axis=alt.Axis(grid=False, tickCount=8))
    y = alt.Y(
        "error:Q",
        title="error of the fixed point",
        scale=y_scale,
        axis=alt.Axis(format="~g", tickCount=6),
    )
    rows = _path_rows(c, frame.to_dicts(), top, {} if flat else _levels(c, zero, low))
    shown = {ERROR: penalised(), BOUND: Look(SOFT, (5, 4)),
             ZERO: Look(INK, (2, 3)), BEST: Look(GOOD, (2, 3))}  # fmt: skip
    present = {row["what"] for row in rows}
    colour, dash = channels("what", {k: v for k, v in shown.items() if k in present}, columns=4)
    layers = []
    if c.unstable_etas:
        spans = data_of([{"lo": lo, "hi": min(hi, top)} for lo, hi in c.unstable_etas if lo < top])
        shade = alt.Chart(spans).mark_rect(opacity=0.13, color=SHADE, clip=True)
        says = [alt.Tooltip("lo:Q", title="unstable from", format=".4~g"),
                alt.Tooltip("hi:Q", title="to", format=".4~g")]  # fmt: skip
        layers.append(shade.encode(x=alt.X("lo:Q", scale=x_scale), x2="hi:Q", tooltip=says))
    line = alt.Chart(data_of(rows)).mark_line(clip=True, strokeWidth=2.2)
    layers.append(
        line.encode(
            x=x, y=y, color=colour, strokeDash=dash, detail="branch:N",
            tooltip=[
                alt.Tooltip("what:N", title=" "),
                alt.Tooltip("eta:Q", format=".4~g"),
                alt.Tooltip("error:Q", format=".4~g"),
            ],
        )
    )  # fmt: skip
    if not flat:
        layers += edge_signs(rows, (low, high), ["what", "branch"], x=x, y=y, color=colour)
    layers += threshold_marks(c, top, x_scale)
    best = {"eta": c.best_eta, "error": 0.0 if flat else c.error(c.pencil.fixed_point(c.best_eta))}
    chosen = alt.Chart(data_of([best])).encode(x=x, y=y, tooltip=["eta:Q", "error:Q"])
    layers.append(chosen.mark_point(size=110, filled=True, color=GOOD, opacity=1, clip=False))
    if stops:
        now = [
            {"i": i, "eta": stop.eta, "error": min(max(stop.error, low), high)}
            for i, stop in enumerate(stops)
            if stop.error is not None
        ]
        here = _at_the_stop(now).encode(x=x)
        dot = here.mark_point(
            size=190, filled=True, opacity=1, stroke="white", color=penalised().colour
        )
        layers += [here.mark_rule(color=penalised().colour, strokeWidth=1.2), dot.encode(y=y)]
    note = "shaded: unstable; dot: what eta=auto takes"
    notes = [f"{note}; the value is zero, so every stable eta is right" if flat else note]
    title = "Error of perturbed TD's fixed point over the penalty"
    found = [f"{letter}: {name} {number(eta)}" for letter, name, eta in thresholds(c, top)]
    notes += ["; ".join(found[i : i + 4]) for i in range(0, len(found), 4)]
    usermeta = {"toggle": "what", "above": 34}
    return _finished(
        layers, c, stops, heading(title, notes), width=620, height=340, usermeta=usermeta
    )


def thresholds(c: Certificate, top: float) -> list[tuple[str, str, float]]:
    """Letter, name and place of the pole, the thresholds and the bounds, from left to right."""
    named = {
        "Hurwitz": c.eta_hurwitz,
        "positive definite": c.eta_pd,
        **{name.replace("_", " "): value for name, value in c.bounds.items()},
    }
    if c.poles:
        named["pole"] = c.poles[-1]
    places = sorted((value, name) for name, value in named.items() if 0.0 < value <= top)
    return [(letter, name, v) for letter, (v, name) in zip(ascii_lowercase, places, strict=False)]


def threshold_marks(c: Certificate, top: float, x_scale: Any) -> list[Any]:
    """Vertical lines for the pole, thresholds and bounds, with their letters above the frame.

    Letters of neighbours stand in two rows, so that they do not touch in a narrow page.
    """
    groups: list[dict[str, Any]] = []
    for letter, name, value in thresholds(c, top):
        if groups and np.sqrt(value / top) - np.sqrt(groups[-1]["eta"] / top) < NEAR:
            groups[-1]["text"] += letter
            groups[-1]["names"] += f", {name}"
        else:
            groups.append({"eta": value, "text": letter, "names": name})
    if not groups:
        return []
    at = alt.X("eta:Q", scale=x_scale)
    says = [alt.Tooltip("names:N", title=" "), alt.Tooltip("eta:Q", format=".4~g")]
    rule = alt.Chart(data_of(groups)).mark_rule(color=PALE, strokeWidth=1.5)
    layers = [rule.encode(x=at, tooltip=says)]
    for row, part in enumerate((groups[::2], groups[1::2])):
        text = alt.Chart(data_of(part or [{}])).mark_text(
            dy=-8 - 13 * row, fontSize=12, color=SOFT, fontWeight="bold"
        )
        layers.append(text.encode(x=at, text="text:N", y=alt.value(0), tooltip=says))
    return layers


def _levels(c: Certificate, zero: float, low: float) -> dict[str, float]:
    """Errors to compare with, as lines across."""
    return {ZERO: zero} | ({BEST: c.best_error} if c.best_error > low else {})


def _path_rows(
    c: Certificate, found: list[dict[str, Any]], top: float, levels: dict[str, float]
) -> list[dict[str, Any]]:
    """The curve, which begins anew beyond a pole and where stability changes; its bound; levels."""
    segments = np.searchsorted(c.poles, [row["eta"] for row in found])
    rows = []
    for row, segment in zip(found, segments, strict=True):
        if row["error"] is not None:
            branch = f"{segment}{row['stable']}"
            rows.append({"what": ERROR, "branch": branch, "eta": row["eta"], "error": row["error"]})
    bounded = [(row["eta"], row["error_bound"]) for row in found if row["error_bound"] is not None]
    rows += [{"what": BOUND, "branch": "", "eta": eta, "error": error} for eta, error in bounded]
    ends = [(name, eta, error) for name, error in levels.items() for eta in (0.0, top)]
    return rows + [{"what": n, "branch": "", "eta": eta, "error": e} for n, eta, e in ends]


def _best_known_first(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: not algorithm(name.split()[0]).role.place)


def _shortened(names: list[str]) -> str:
    """The best known names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(_best_known_first(names)[:NAMED]) + more


def values_chart(c: Certificate, stops: Sequence[Stop] = ()) -> Any:
    """The learners' fixed points, state by state, beside the true values."""
    m, active = c.moments, c.problem.active_in(c.policy)
    kinds: dict[tuple[float, ...], list[str]] = {}
    for row in c.learners:
        if row["values"] is not None and not algorithm(row["learner"]).role.exhibit:
            eta = row["params"].get("eta")
            name = f"{row['learner']} (eta {number(eta, 3)})" if eta is not None else row["learner"]
            shown = name if row["stable"] else f"{name} (unstable)"
            kinds.setdefault(tuple(np.round(row["values"], 9)), []).append(shown)
    series = {"true value": tuple(m.v_pi)} | {_shortened(n): v for v, n in kinds.items()}
    own = looks({_shortened(n): _best_known_first(n)[0].split()[0] for n in kinds.values()})
    rows = [
        {"learner": name, "state": s, "value": float(v)}
        for name, values in series.items()
        for s, v in enumerate(values)
        if active[s]
    ]
    names = list(series)
    many = active.sum() > MANY_STATES
    colour, dash = channels("learner", {"true value": Look(SOFT)} | own, columns=2)
    zero = c.error(np.zeros(c.problem.n_features))
    useful = [x.values for x in stops if x.values is not None and (x.error or 0.0) <= zero]
    ends = [v for x in (*series.values(), *useful) for s, v in enumerate(x) if active[s]]
    pad = 0.08 * (max(ends) - min(ends)) or 1.0
    scale = alt.Scale(domain=[min(ends) - pad, max(ends) + pad], nice=False)
    y = alt.Y("value:Q", title="value", scale=scale)
    says = ["learner:N", "state:Q", alt.Tooltip("value:Q", format=".4~g")]
    base = alt.Chart(data_of(rows))
    x: Any = alt.X("state:Q", title="state", scale=alt.Scale(nice=False))
    if many:
        lines = base.mark_line(strokeWidth=1.6, clip=True)
        layers = [lines.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=says)]
    else:
        x = alt.X("state:O", title="state", axis=alt.Axis(labelAngle=0, grid=True))
        dotted(colour)
        true = base.transform_filter("datum.learner == 'true value'")
        others = base.transform_filter("datum.learner != 'true value'")
        offset = alt.XOffset("learner:N", sort=names[1:])
        tick = true.mark_tick(thickness=3, size=46)
        dots = others.mark_point(filled=True, size=75, opacity=1)
        layers = [
            tick.encode(x=x, y=y, color=colour, tooltip=says),
            dots.encode(x=x, y=y, color=colour, xOffset=offset, tooltip=says),
        ]
    if stops:
        now = [
            {"i": i, "eta": stop.eta, "state": s, "value": float(v)}
            for i, stop in enumerate(stops)
            if stop.values is not None
            for s, v in enumerate(stop.values)
            if active[s] and scale.domain[0] <= v <= scale.domain[1]
        ]
        mark = _at_the_stop(now).mark_point(
            shape="diamond", size=40 if many else 170, filled=False, strokeWidth=2.4, opacity=1,
            color=penalised().colour,
        )  # fmt: skip
        layers.append(mark.encode(x=x, y=y, tooltip=["eta:Q", "state:Q", "value:Q"]))
    same = "learners with the same fixed point share a mark"
    notes = [same if many else f"{same}; bars: the true values"]
    if stops:
        notes.append("open diamond: perturbed TD with the eta of the dial")
    title = heading("Values at the fixed points, beside the true ones", notes)
    return _finished(layers, c, stops, title, width=620, height=280, usermeta={"toggle": "learner"})
