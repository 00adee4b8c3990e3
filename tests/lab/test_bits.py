"""The lab's learners give the engine's bits: weights and errors, on every problem and law."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, names
from steadytd.streams.finite import FiniteStream
from tests.support.cases import is_quick
from tests.support.draws import thinned
from tests.support.javascript import Browser, problem_tables
from tests.support.scope import everything

STEPS, SEED = 20_000, 7
POINTS = [0, 5000, 10_000, 15_000, STEPS]  # the stream is drawn in chunks of 8192 steps
SMALL = ("theta2theta", "three_state", "baird", "baird8", "kolter", "nonmonotone", "collision")


def learners(lam: float) -> list[Learner]:
    """Every law that takes steps, with all its variants; those without lam only at lam = 0."""
    found = []
    for name in names():
        law = algorithm(name)
        if (
            law.block is not None
            or not law.of_discounted_states
            or (lam and "lam" not in law.all_params)
        ):
            continue
        given: dict[str, object] = {"alpha": 0.002, **({"lam": lam} if lam else {})}
        wanted = [n for n, p in law.params.items() if p.default is None and n not in given]
        given |= dict.fromkeys(wanted, 0.5)
        for variant in law.variants or [""]:
            chosen = {law.variant_param: variant} if variant else {}
            found.append(st.learner(name, **given, **chosen))
    return [learner for learner in found if is_quick(learner)]


@pytest.fixture(scope="module")
def browser() -> Browser:
    """V8, started once."""
    return Browser()


@pytest.mark.parametrize("name", thinned(SMALL, 4))
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_weights_and_errors_equal_the_engines(browser: Browser, name: str, lam: float) -> None:
    problem, several = st.problem(name), learners(lam)
    assert len(several) == ((37 if everything() else 25) if lam == 0.0 else 24)
    r = st.run(problem, several, steps=STEPS, seeds=[SEED], points=5)
    weights, errors = browser.run(problem, several, SEED, POINTS)
    for i, one in enumerate(several):
        own = np.array(weights[i])
        np.testing.assert_array_equal(own, r.weights(one)[0], err_msg=str(one))
        curve = r.curves.filter(learner=str(one))["error"].to_numpy()
        np.testing.assert_array_equal([row[i] for row in errors], curve, err_msg=str(one))


@pytest.mark.parametrize("seed", [0, 7, 2**31 + 5, 2**53 - 1])
def test_the_random_stream_is_the_engines(browser: Browser, seed: int) -> None:
    p, count = st.problem("baird"), 3000
    code = "(() => { const b = new Bench(tables); b.begin(seed); b.walk(count); return b; })()"
    found = browser.value(
        f"Array.from({code}.at.event.slice(0, count))",
        tables=problem_tables(p), seed=seed, count=count,
    )  # fmt: skip
    stream = FiniteStream(p)
    events, _ = stream.take(stream.begin(seed), count)
    assert found == events.tolist()


def test_averages_and_the_start_of_a_second_vector(browser: Browser) -> None:
    problem = st.problem("baird")
    several = [
        st.learner("td:alpha=0.001,average=1"),
        *map(st.learner, ["tdc:alpha=0.001,lam=0.5,average=1"] * everything()),
        st.learner("tdc_as_published:alpha=0.001,weight=pi,h0=1"),
    ]
    r = st.run(problem, several, steps=STEPS, seeds=[SEED], points=5)
    weights, _ = browser.run(problem, several, SEED, POINTS)
    for i, one in enumerate(several):
        np.testing.assert_array_equal(np.array(weights[i]), r.weights(one)[0], err_msg=str(one))


@njit()
def clipped(rho: float, most: float) -> float:
    return min(rho, most) if rho >= 0.0 else 0.0


@st.law(params={"most": st.Param("largest ratio", default=1.5, low=0.0)}, writes={"w": ("x",)})
def own(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float, rho: float,
    most: float,
) -> float:  # fmt: skip
    """A law of one's own that calls a function and has branches."""
    delta = reward + gamma_next * w_x_next - w_x
    if abs(delta) > 2.0 or not delta <= 2.0:
        return alpha * clipped(rho, most) * max(-2.0, min(delta, 2.0))
    return alpha * clipped(rho, most) * delta


def test_a_law_of_ones_own(browser: Browser) -> None:
    problem, learner = st.problem("three_state"), st.learner(own, alpha=0.01)
    r = st.run(problem, [learner], steps=STEPS, seeds=[SEED], points=5)
    weights, _ = browser.run(problem, [learner], SEED, POINTS)
    np.testing.assert_array_equal(np.array(weights[0]), r.weights(learner)[0])
