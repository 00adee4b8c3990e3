"""The certificate's three pictures: eigenvalues, error over eta, values per state."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.learners import algorithm
from steadytd.report.figures import COLOURS, styled
from steadytd.theory.certificate import Certificate

SHADE = "#d9480f"
SHAPES = ("square", "circle", "triangle", "diamond", "cross", "triangle-down", "arrow", "wedge")
NAMED = 4  # learners that one entry of the legend names
MANY_STATES = 24  # beyond this, values are drawn as lines
EIGENVALUE_STEPS = 61
PATH_STEPS = 400


def largest_eta(c: Certificate) -> float:
    """How far the pictures look: beyond every threshold and bound that needs no policies."""
    return 1.15 * max(1.0, c.bounds["paper"], c.best_eta)


def eigenvalue_chart(c: Certificate) -> Any:
    """Eigenvalues of A(eta) in the complex plane, from eta = 0 to a little above eta_pd."""
    import altair as alt

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
    area = alt.InlineData(
        values=[{"x": left - pad, "x2": 0.0, "y": -1.25 * tall, "y2": 1.25 * tall}]
    )
    unstable = (
        alt.Chart(area)
        .mark_rect(opacity=0.10, color=SHADE)
        .encode(x=alt.X("x:Q", scale=x), x2="x2:Q", y=alt.Y("y:Q", scale=y), y2="y2:Q")
    )
    axis = alt.Chart(area).mark_rule(color="#555555").encode(x=alt.datum(0.0, scale=x))
    points = alt.Chart(alt.InlineData(values=rows))
    position = {
        "x": alt.X("re:Q", title="real part", scale=x),
        "y": alt.Y("im:Q", title="imaginary part", scale=y),
    }
    moving = points.mark_circle(size=26, opacity=0.9).encode(
        **position,
        color=alt.Color("eta:Q", title="eta", scale=alt.Scale(scheme="viridis")),
        tooltip=["eta:Q", "re:Q", "im:Q"],
    )
    first = points.transform_filter("datum.eta == 0")
    start = first.mark_point(size=90, color="#111111", strokeWidth=1.6).encode(**position)
    heading = alt.TitleParams(
        "Eigenvalues of A(eta) as the penalty grows",
        subtitle="circles: eta = 0, plain TD; stable where no eigenvalue lies in the shade",
        anchor="start",
        offset=12,
    )
    layers = alt.layer(unstable, axis, moving, start)
    return styled(layers.properties(width=560, height=320, title=heading))


def path_grid(c: Certificate, top: float) -> Floats:
    """Penalties from 0 to `top`, dense near 0, with the places where something happens."""
    special = [c.best_eta, *(p + s for p in c.poles for s in (-2e-3, 2e-3) if p + s >= 0.0)]
    grid = np.concatenate([np.linspace(0.0, 1.0, PATH_STEPS) ** 2 * top, special])
    return np.unique(grid[grid <= top])


def path_chart(c: Certificate) -> Any:
    """Error of the fixed point over eta: the unstable set shaded, thresholds and bounds marked."""
    import altair as alt

    top = largest_eta(c)
    frame = c.path(path_grid(c, top)).select("eta", "stable", "error", "error_bound")
    zero = c.error(np.zeros(c.problem.n_features))
    scale = max(zero, c.best_error, 1e-12)
    low, high = max(c.best_error, 1e-3 * scale) / 2.0, 30.0 * scale
    flat = zero < 1e-12
    y_scale = alt.Scale(domain=[-0.1, 1.0]) if flat else alt.Scale(type="log", domain=[low, high])
    x_scale = alt.Scale(type="sqrt", domain=[0.0, top], nice=False)
    x = alt.X("eta:Q", title="eta", scale=x_scale, axis=alt.Axis(grid=False, tickCount=10))
    y = alt.Y(
        "error:Q", title="error of the fixed point", scale=y_scale, axis=alt.Axis(format="~g")
    )
    segments = np.searchsorted(c.poles, frame["eta"].to_numpy())
    rows = [
        {**row, "branch": f"{segment}{row['stable']}"}
        for row, segment in zip(frame.to_dicts(), segments, strict=True)
    ]
    data = alt.InlineData(values=[r for r in rows if r["error"] is not None])
    layers = []
    if c.unstable_etas:
        spans = [{"lo": lo, "hi": hi} for lo, hi in c.unstable_etas]
        layers.append(
            alt.Chart(alt.InlineData(values=spans))
            .mark_rect(opacity=0.13, color=SHADE)
            .encode(x=alt.X("lo:Q", scale=x_scale), x2="hi:Q")
        )
    line = alt.Chart(data).mark_line(clip=True, strokeWidth=2.2, color=COLOURS[1])
    bounded = alt.InlineData(values=[r for r in rows if r["error_bound"] is not None])
    dashed = alt.Chart(bounded).mark_line(clip=True, strokeDash=[5, 4], color="#777777")
    layers += [
        line.encode(x=x, y=y, detail="branch:N"),
        dashed.encode(x=x, y=alt.Y("error_bound:Q", scale=y_scale)),
    ]
    layers += _marks(c, top, x_scale)
    best = {"eta": c.best_eta, "error": 0.0 if flat else c.error(c.pencil.fixed_point(c.best_eta))}
    chosen = alt.Chart(alt.InlineData(values=[best])).encode(x=x, y=y)
    layers.append(chosen.mark_point(size=110, filled=True, color=COLOURS[2], opacity=1))
    if not flat:
        levels = [{"error": zero, "text": f"predicting zero: {zero:.4g}"}]
        if c.best_error > low:
            levels.append({"error": c.best_error, "text": f"best linear fit: {c.best_error:.4g}"})
        rule = alt.Chart(alt.InlineData(values=levels)).encode(y=y)
        layers += [
            rule.mark_rule(strokeDash=[2, 3], color="#444444"),
            rule.mark_text(align="right", dx=-4, dy=-6, color="#444444").encode(
                x=alt.value(620), text="text:N"
            ),
        ]
    note = "shaded: unstable; dot: best eta; dashed grey: the error bound"
    heading = alt.TitleParams(
        "Error of perturbed TD's fixed point over the penalty",
        subtitle=f"{note}; the value is zero, so every stable eta is right" if flat else note,
        anchor="start",
        offset=12,
    )
    return styled(alt.layer(*layers).properties(width=620, height=340, title=heading))


def _marks(c: Certificate, top: float, x_scale: Any) -> list[Any]:
    """Vertical lines for the pole, thresholds and bounds, each with its name along it."""
    import altair as alt

    named = {
        "Hurwitz": c.eta_hurwitz,
        "positive definite": c.eta_pd,
        **{name.replace("_", " "): value for name, value in c.bounds.items()},
    }
    if c.poles:
        named["pole"] = c.poles[-1]
    together: dict[float, list[str]] = {}
    for name, value in named.items():
        if 0.0 < value <= top:
            near = next((v for v in together if abs(np.sqrt(v) - np.sqrt(value)) < 0.02), value)
            together.setdefault(near, []).append(name)
    rows = [{"eta": v, "text": ", ".join(names)} for v, names in together.items()]
    marks = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("eta:Q", scale=x_scale))
    return [
        marks.mark_rule(color="#999999", strokeWidth=1),
        marks.mark_text(
            angle=270, align="right", dy=-6, dx=-4, fontSize=10, color="#555555"
        ).encode(text="text:N", y=alt.value(0)),
    ]


def _shortened(names: list[str]) -> str:
    """The best known names first, and how many more there are."""
    known = sorted(
        names, key=lambda name: (not algorithm(name.split()[0]).standing.place, names.index(name))
    )
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(known[:NAMED]) + more


def values_chart(c: Certificate) -> Any:
    """The learners' fixed points, state by state, beside the true values."""
    import altair as alt

    m, active = c.moments, c.problem.active_in(c.policy)
    kinds: dict[tuple[float, ...], list[str]] = {}
    for row in c.learners:
        if row["values"] is not None and not algorithm(row["learner"]).standing.exhibit:
            eta = row["params"].get("eta")
            name = f"{row['learner']} (eta {eta:.3g})" if eta is not None else row["learner"]
            shown = name if row["stable"] else f"{name} (unstable)"
            kinds.setdefault(tuple(np.round(row["values"], 9)), []).append(shown)
    series = {"true value": tuple(m.v_pi)} | {_shortened(n): v for v, n in kinds.items()}
    rows = [
        {"learner": name, "state": s, "value": float(v)}
        for name, values in series.items()
        for s, v in enumerate(values)
        if active[s]
    ]
    names = list(series)
    colours = ["#111111", *COLOURS][: len(names)]
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=420)
    colour = alt.Color(
        "learner:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend
    )
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    base = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("value:Q", title="value")
    if active.sum() > MANY_STATES:
        x = alt.X("state:Q", title="state", scale=alt.Scale(nice=False))
        picture = base.mark_line(strokeWidth=1.6).encode(x=x, y=y, color=colour)
    else:
        picture = base.mark_point(filled=True, size=95, opacity=1).encode(
            x=alt.X("state:O", title="state", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("learner:N", sort=names),
            y=y,
            color=colour,
            shape=alt.Shape("learner:N", sort=names, scale=shapes, legend=legend),
        )
    heading = alt.TitleParams(
        "Values at the fixed points, beside the true ones",
        subtitle="learners with the same fixed point share a mark",
        anchor="start",
        offset=12,
    )
    return styled(picture.properties(width=620, height=280, title=heading))
