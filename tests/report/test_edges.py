"""What lies outside a picture has a sign at its edge, or a word in its caption."""

from __future__ import annotations

from typing import Any

import numpy as np

import steadytd as st
from steadytd.report.figures import described, edge_signs
from steadytd.report.run import run_chart


def signs(chart: Any) -> list[dict[str, Any]]:
    """The rows of a chart's signs."""
    found = [rows for rows in described(chart)["datasets"].values() if isinstance(rows, list)]
    return [row for rows in found for row in rows if "on" in row]


def placed(*errors: float) -> list[tuple[int, float, str]]:
    """Where the signs of one line lie on an axis from 1 to 10."""
    import altair as alt

    rows = [{"name": "a", "x": i, "y": e} for i, e in enumerate(errors)]
    channels = {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "color": alt.Color("name:N")}
    layers = edge_signs(rows, (1.0, 10.0), ["name"], **channels)
    return [(r["x"], r["y"], r["on"]) for one in layers for r in signs(one)]


def test_a_sign_stands_where_a_line_leaves_and_where_it_comes_back() -> None:
    above, below = (10.0, "above the picture"), (1.0, "below the picture")
    assert placed(2.0, 10.0, 1.0) == []
    assert placed(2.0, 20.0, 30.0, 40.0) == [(1, *above)]
    assert placed(2.0, 20.0, 30.0, 40.0, 3.0) == [(1, *above), (3, *above)]
    assert placed(2.0, 20.0, 3.0, 20.0, 3.0, np.inf) == [(1, *above), (5, *above)]
    assert placed(20.0, 30.0) == [(0, *above)]  # never inside
    assert placed(20.0, 0.5, 5.0, 0.0) == [(0, *above), (1, *below), (3, *below)]


def test_a_run_that_grows_overflows_or_falls_below_the_least_error_says_so() -> None:
    learners = ["td:alpha=0.005", "td:alpha=0.5", "perturbed_td:alpha=0.005,eta=0.2"]
    r = st.run("baird", learners, steps=100_000, seeds=2)
    assert np.isinf(r.errors[1][:, -1]).all() and r.errors[2][:, -1].max() < 1e-12
    chart = run_chart(r)
    found = {(row["learner"], row["on"]) for row in signs(chart)}
    assert found == {
        *((name, "above the picture") for name in learners[:2]),
        (learners[2], "below the picture"),
    }
    assert described(chart)["title"]["subtitle"].endswith("errors below 1e-12 are drawn as 1e-12")
    calm = run_chart(st.run("baird", learners[2:], steps=1_000, seeds=2))
    assert signs(calm) == []
    assert "drawn as" not in described(calm)["title"]["subtitle"]
