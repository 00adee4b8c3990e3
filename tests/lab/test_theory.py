"""The theory in the page says what `certify` says, to 1e-9."""

from __future__ import annotations

import math

import numpy as np
import pytest

import steadytd as st
from steadytd.lab.page import model_of
from steadytd.theory.exact import exact_error
from tests.support.draws import thinned
from tests.support.javascript import Browser, problem_tables

ETAS = [0.0, 0.05, 0.3, 0.7, 1.0, 2.5]
DRAWN = range(6)
NAMES = ("theta2theta", "three_state", "baird", "baird8", "kolter", "nonmonotone", "naive_trace")


def problem(name: str) -> st.Problem:
    """A registered problem, or a drawn one of 4 to 9 states."""
    if not name.isdigit():
        return st.problem(name)
    n = int(name)
    return st.problem("random_mdp", seed=n, states=4 + n, actions=2 + n % 2, features=2 + n % 3)


@pytest.fixture(scope="module")
def browser() -> Browser:
    return Browser()


@pytest.mark.parametrize("name", thinned([*NAMES, *map(str, DRAWN)], 2))
def test_thresholds_fixed_points_and_errors(browser: Browser, name: str) -> None:
    p = problem(name)
    c = st.certify(p)
    found = browser.value(
        """(() => { const a = analyse(model); return {
            wrong: faults(model), pd: a.eta_pd, hurwitz: a.eta_hurwitz, poles: a.poles,
            unstable: a.unstable, paper: a.paper, td: a.td_stable, v: a.v, d: a.d, rank: a.rank,
            zero: a.error_of_zero, errors: etas.map((e) => a.error(a.fixedPoint(e))),
            stable: etas.map(a.stable),
            slowest: etas.map(a.slowest) }; })()""",
        model=model_of(p), etas=ETAS,
    )  # fmt: skip
    path = c.path(ETAS)
    assert found["wrong"] == []
    assert found["td"] == c.td_stable and found["rank"] == c.pencil.rank
    assert found["stable"] == path["stable"].to_list()
    np.testing.assert_allclose(found["v"], p.v_pi, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["d"], p.d_mu, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["pd"], c.eta_pd, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["hurwitz"], c.eta_hurwitz, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["poles"], c.poles, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["unstable"], c.unstable_etas, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["paper"], c.bounds["paper"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["zero"], c.error(np.zeros(p.n_features)), rtol=1e-9, atol=1e-9)
    errors = [math.inf if e is None else e for e in path["error"]]
    np.testing.assert_allclose(
        [math.inf if e is None else e for e in found["errors"]], errors, rtol=1e-9, atol=1e-9
    )
    slowest = [c.pencil.slowest(eta) for eta in ETAS]
    np.testing.assert_allclose(found["slowest"], slowest, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*NAMES, *map(str, DRAWN)])
def test_the_editors_tables_are_pythons(browser: Browser, name: str) -> None:
    p = problem(name)
    tables = problem_tables(p)
    found = browser.value("tablesOf(model)", model=model_of(p))
    assert found.keys() == tables.keys()
    for key in tables.keys() - {"weight", "target", "start"}:
        assert found[key] == tables[key], key
    for key in ("weight", "target", "start"):  # through d_mu and v_pi, which are solved for
        np.testing.assert_allclose(found[key], tables[key], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mu": [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]}, "which mu never takes"),
        ({"mu": [[0.5, 0.4], [0.5, 0.5], [0.5, 0.5]]}, "mu: state 0 sums to 0.9, not 1."),
        ({"gamma": [[[1.5] * 3] * 2] * 3}, "Discounts lie between 0 and 1."),
        ({"gamma": [[[1.0] * 3] * 2] * 3}, "The values of pi are not finite"),
        ({"Phi": [[None, 1.0]] * 3}, "Every entry must be a number."),
    ],
)  # fmt: skip
def test_a_wrong_model_is_refused(browser: Browser, change: dict[str, object], said: str) -> None:
    model = {**model_of(st.problem("three_state")), "pi": [[0.5, 0.5]] * 3, **change}
    assert said in " ".join(browser.value("faults(model)", model=model))


@pytest.mark.parametrize("on_policy", [False, True])
@pytest.mark.parametrize("name", ["three_state", "baird", "nonmonotone"])
def test_the_sentences_say_what_certify_says(browser: Browser, name: str, on_policy: bool) -> None:
    p, eta = problem(name), 0.3
    if on_policy:
        p = st.Problem(name="on", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi)
    c = st.certify(p)
    said = browser.value("sentences(model, analyse(model), eta)", model=model_of(p), eta=eta)

    def number(x: float) -> str:
        return str(browser.value("shortNumber(x)", x=x))

    td = "On-policy TD" if on_policy else "Off-policy TD"
    zero, errors = (
        c.error(np.zeros(p.n_features)),
        [c.error(c.pencil.fixed_point(e)) for e in (0.0, eta)],
    )
    wanted = [
        f"{td} is stable in the mean, with small enough steps. Its fixed point has error "
        f"{number(errors[0])}; predicting 0 everywhere has {number(zero)}."
        if c.td_stable
        else f"{td}'s mean update is unstable: a mode grows at rate "
        f"{number(-c.pencil.slowest(0.0))} per unit of α."
    ]
    if c.pencil.rank < p.n_features:
        rank = f"rank {c.pencil.rank} of {p.n_features}"
        known = "all statements are about the values."
        wanted.insert(0, f"The features of the visited states have {rank}: {known}")
    if c.unstable_etas:
        ((low, high),) = c.unstable_etas
        wanted.append(
            f"Perturbed TD is unstable for η from {number(low)} to {number(high)}, "
            f"and stable in the mean for every η above {number(c.eta_hurwitz)}."
        )
    else:
        wanted.append("Perturbed TD is stable in the mean for every η >= 0.")
    if c.eta_pd > 0.0:
        wanted.append(
            f"A(η) is positive definite, as the theorem asks, above {number(c.eta_pd)}; "
            f"the paper's bound asks for {number(c.bounds['paper'])}."
        )
    wanted += [
        f"At η = {number(x)} the matrix is singular and the fixed point has a pole."
        for x in c.poles
    ]
    stable = "stable" if c.is_stable("perturbed_td", eta=eta) else "unstable"
    wanted.append(
        f"At η = 0.3 the mean update is {stable}, and its fixed point has error "
        f"{number(errors[1])}."
    )
    assert said == wanted


@pytest.mark.parametrize(
    ("name", "text", "second"),
    [
        *((name, text, True)
          for name in ("three_state", "theta2theta", "nonmonotone")
          for text in ("td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.7", "tdc:alpha=0.01")),
        ("baird", "perturbed_td:alpha=0.01,eta=1", True),
        ("baird", "tdc:alpha=0.01", False),  # too many moments: the mean alone
    ],
)  # fmt: skip
def test_what_to_expect_is_exact(browser: Browser, name: str, text: str, second: bool) -> None:
    p, points = st.problem(name), [0, 1, 10, 333]
    found = browser.expected(p, st.learner(text), points)
    assert found is not None
    wanted = [e for n in points if (e := exact_error(p, st.learner(text), n))]
    assert len(wanted) == len(points)
    assert found["bias"] == pytest.approx([e.of_mean for e in wanted], rel=1e-9, abs=1e-12)
    if second:
        errors = [e.root_mean_square for e in wanted]
        assert found["error"] == pytest.approx(errors, rel=1e-9, abs=1e-12)
    else:
        assert found["error"] is None


@pytest.mark.parametrize("text", ["etd:alpha=0.01", "td:alpha=0.01,lam=0.5", "rotd:alpha=0.01"])
def test_where_there_are_no_exact_means_nothing_is_shown(browser: Browser, text: str) -> None:
    p = st.problem("three_state")
    assert exact_error(p, st.learner(text), 1) is None
    assert browser.expected(p, st.learner(text), [0, 1]) is None
