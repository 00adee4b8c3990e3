"""TDC's curves in the paper had no ratio: the evidence, and the supplement's data."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.reproduction.paper import NO_RATIO, Figure
from steadytd.reproduction.supplement import PANELS, STEPS
from steadytd.theory.dynamics import fixed_point, mean_weights

# Errors of the mean dynamics without weight, with pi and with rho: worked out by another program.
TABLE = {
    ("theta2theta", 0.01): ("0.0002", "0.712", "0.32"),
    ("baird", 1e-3): ("1.591", "1.929", "1.890"),
    ("baird", 1e-4): ("1.842", "1.935", "1.931"),
    ("baird", 1e-5): ("1.972", "2.034", "1.935"),
    ("baird", 1e-6): ("4.445", "5.212", "2.290"),
    ("three_state", 1e-3): ("4.562", "4.809", "12.27"),
    ("three_state", 1e-4): ("5.479", "9.028", "12.27"),
    ("three_state", 1e-5): ("9.051", "9.838", "11.51"),
    ("three_state", 1e-6): ("9.828", "9.942", "10.12"),
}
FORMS = ("tdc_as_published:alpha={}", "tdc_as_published:alpha={},weight=pi", "tdc:alpha={}")


def mean_error(name: str, text: str, steps: int) -> float:
    problem = st.problem(name)
    return float(problem.error(mean_weights(problem, st.learner(text), steps)))


@pytest.mark.parametrize(("name", "alpha"), TABLE)
def test_mean_dynamics_of_the_three_forms(name: str, alpha: float) -> None:
    steps = 10_000 if name == "theta2theta" else STEPS
    for form, known in zip(FORMS, TABLE[name, alpha], strict=True):
        digit = 10.0 ** -len(known.partition(".")[2])
        found = mean_error(name, form.format(alpha), steps)
        # the table rounds its last digit, sometimes up where this is a tie
        assert found == pytest.approx(float(known), abs=0.51 * digit)


def test_the_last_notebook_on_baird_started_h_at_w0() -> None:
    """Its saved weights, to the digits that the mean dynamics share with ten runs."""
    problem = st.problem("baird")
    text = "tdc_as_published:alpha=1e-6,weight=pi"
    from_w0 = mean_weights(problem, st.learner(f"{text},h0=1"), STEPS)
    np.testing.assert_allclose(from_w0[[0, 6, 7]], [1.32, 9.217, 0.401], atol=0.005)
    from_zero = mean_weights(problem, st.learner(text), STEPS)
    np.testing.assert_allclose(from_zero[[6, 7]], [9.375, 0.767], atol=5e-4)
    for alpha, known in ((1e-3, 1.742), (1e-4, 1.747), (1e-5, 1.849), (1e-6, 4.718)):
        form = f"tdc_as_published:alpha={alpha},weight=pi,h0=1"
        assert mean_error("baird", form, STEPS) == pytest.approx(known, abs=5e-4)


def reading(panel: Figure) -> float:
    (claim,) = [c for c in panel.claims if c.label == NO_RATIO]
    assert claim.says is not None
    assert claim.says.number is not None
    return claim.says.number


def test_only_tdc_without_a_ratio_ends_where_the_papers_curves_end() -> None:
    """Within the panel's pixel in all eight panels; with pi or rho in some it is far away."""
    far: dict[str, list[float]] = {form: [] for form in FORMS}
    for panel in PANELS:
        assert panel.axis is not None
        pixel = (panel.axis[1] - panel.axis[0]) / 218
        alpha = float(panel.title.rpartition("=")[2])
        for form in FORMS:
            error = mean_error(panel.problem, form.format(alpha), STEPS)
            far[form].append(abs(error - reading(panel)) / pixel)
    none, pi, rho = far.values()
    assert max(none) < 1.0
    assert max(pi) > 10.0
    assert max(rho) > 50.0


@pytest.mark.parametrize("name", ["theta2theta", "baird", "three_state"])
def test_without_a_ratio_it_learns_what_the_behaviour_policy_is_worth(name: str) -> None:
    p = st.problem(name)
    on_policy = st.Problem(
        name="mu", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi, w0=p.w0
    )
    published = fixed_point(p, st.learner("tdc_as_published:alpha=1"))
    np.testing.assert_allclose(
        p.Phi @ published, p.Phi @ fixed_point(on_policy, st.learner("tdc:alpha=1")), atol=1e-9
    )
    # and what both policies are worth is the same here: 0, or 10
    np.testing.assert_allclose(on_policy.v_pi, p.v_pi, atol=1e-9)


def test_panels_are_the_authors() -> None:
    tops = [panel.axis[1] for panel in PANELS if panel.axis]
    assert tops == [100, 100, 100, 50, 20, 20, 50, 12]
    assert [panel.name[-2:] for panel in PANELS] == ["2a", "2b", "2c", "2d", "3a", "3b", "3c", "3d"]
    for panel, alpha in zip(PANELS, ("0.001", "0.0001", "1e-05", "1e-06") * 2, strict=True):
        assert panel.steps == 1_000_000
        names = [c.learner.partition(":")[0] for c in panel.claims]
        assert names == ["td", "perturbed_td", "etd", "tdc_as_published", "tdc"]
        assert all(f"alpha={alpha}" in c.learner for c in panel.claims)
        assert [c.says is None for c in panel.claims] == [False] * 4 + [True]
