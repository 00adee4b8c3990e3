"""The three switches and step sizes: the page says what `certify` says."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.lab.page import asset, model_of
from tests.support.javascript import Browser, problem_tables, spec

PARTS = ("approximation", "bootstrapping", "off_policy")


@pytest.fixture(scope="module")
def browser() -> Browser:
    found = Browser()
    found.v8.eval(asset("triad.js"))
    return found


def switched(on: dict[str, bool]) -> st.Problem:
    """Baird's problem with some of the three parts, independently of the page."""
    p = st.problem("baird")
    m = p.moments()
    given: dict[str, Any] = {"P": p.P, "r": m.r, "gamma": m.gamma, "mu": p.mu, "pi": p.pi}
    given |= {"Phi": p.Phi, "w0": p.w0}
    if not on["off_policy"]:
        given["pi"] = p.mu
    if not on["approximation"]:
        given |= {"Phi": np.eye(p.n_states), "w0": p.Phi @ p.w0}
    if not on["bootstrapping"]:
        v = st.Problem(name="whole", **given).v_pi
        given |= {"r": m.r + m.gamma * v, "gamma": np.zeros_like(m.gamma)}
    return st.Problem(name="switched", **given)


@pytest.mark.parametrize("values", list(product([True, False], repeat=3)))
def test_only_all_three_together_are_unstable(browser: Browser, values: tuple[bool, ...]) -> None:
    on = dict(zip(PARTS, values, strict=True))
    p = switched(on)
    found = browser.value(
        "(() => { const m = triadModel(base, on); const a = analyse(m);"
        " return { verdict: triadVerdict(a, on, 0), model: m, alpha: TRIAD.alpha }; })()",
        base=model_of(st.problem("baird")), on=on,
    )  # fmt: skip
    verdict, alpha = found["verdict"], found["alpha"]
    for name, array in model_of(p).items():
        if name not in ("start", "interest"):
            np.testing.assert_allclose(found["model"][name], array, atol=1e-12, err_msg=name)
    c = st.certify(p)
    assert verdict["stable"] == c.td_stable == (not all(values))
    rate = abs(c.pencil.slowest(0.0))
    assert f"{float(f'{np.log(10) / (alpha * rate):.2g}'):,.0f} steps" in verdict["text"]
    r = st.run(p, [f"td:alpha={alpha}"], steps=4000, seeds=3, points=5)
    start, last = r.errors[0][:, 0], r.errors[0][:, -1]
    assert (last > 1e3 * start).all() if all(values) else (last < 3 * start).all()


@pytest.mark.parametrize("eta", [0.05, 0.1, 0.2, 0.5, 1.0])
def test_the_penalty_makes_it_stable_from_the_threshold_on(browser: Browser, eta: float) -> None:
    verdict = browser.value(
        "(() => { const on = {approximation: true, bootstrapping: true, off_policy: true};"
        " return triadVerdict(analyse(triadModel(base, on)), on, eta); })()",
        base=model_of(st.problem("baird")), eta=eta,
    )  # fmt: skip
    threshold = st.certify("baird").eta_hurwitz
    assert verdict["stable"] == (eta > threshold)
    assert verdict["stable"] or f"above η = {threshold:.4g}" in verdict["text"]


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        ("baird", "perturbed_td:alpha=0.1,eta=0.2"),
        ("three_state", "perturbed_td:alpha=0.1,eta=0.6"),
        ("three_state", "tdc:alpha=0.1,ratio=10"),
        ("theta2theta", "tdrc:alpha=0.1"),
        ("nonmonotone", "td:alpha=0.1"),
        ("three_state", "td:alpha=0.1"),
    ],
)
def test_the_largest_step_size_is_that_of_the_certificate(
    browser: Browser, name: str, learner: str
) -> None:
    p = st.problem(name)
    moments = st.certify(p).mean_square(learner)
    assert moments is not None
    edge = moments.largest_alpha
    alphas = [0.98 * edge, 1.02 * edge] if edge else [1e-6, 1e-3]
    found = browser.value(
        "(() => { const stable = meanSquare(tables, one, analyse(model).Q);"
        " return alphas.map(stable); })()".replace("one,", f"{spec(st.learner(learner))},"),
        tables=problem_tables(p), model=model_of(p), alphas=alphas,
    )  # fmt: skip
    assert found == ([True, False] if edge else [False, False])


def test_a_learner_with_memory_has_no_such_bound(browser: Browser) -> None:
    p = st.problem("three_state")
    code = f"meanSquare(tables, {spec(st.learner('etd:alpha=0.1'))}, analyse(model).Q)"
    assert browser.value(code, tables=problem_tables(p), model=model_of(p)) is None
