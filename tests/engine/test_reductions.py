"""What the learners reduce to, as their documentation says: step for step on the same stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.engine.schedule import step_factors
from tests.support.cases import RandomStream, assert_same_bits

STEPS = 500
ALPHA = 0.03
REWARD, GAMMA_NEXT, CARRIED, RHO, PI, MU, INTEREST = map(
    STEP_FACTS.index, ("reward", "gamma_next", "gamma_carried", "rho", "pi", "mu", "interest")
)
DISCOUNTS = [GAMMA_NEXT, CARRIED]

decays = pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
# of laws whose loops without trace vectors are compiled for `make test-all` only
decays_of_traces = pytest.mark.parametrize(
    "lam", [pytest.param(lam, marks=[] if lam else [pytest.mark.slow]) for lam in [0.0, 0.6, 1.0]]
)


def changed(stream: RandomStream, change: Callable[[Floats], None]) -> Transitions:
    """The stream's transitions with other facts: `change` writes into the columns [fact, event]."""
    facts = stream.transitions.facts.copy()
    change(facts.T)
    return stream.transitions._replace(facts=facts)


def weights(learner: Learner, stream: RandomStream, transitions: Transitions) -> Floats:
    """The weights after every step: [step, feature]."""
    block = Block([learner], stream.w0)
    history = []
    for t in range(STEPS):
        factor = step_factors(t, 1, float(learner["power"]), float(learner["delay"]))
        block.advance(stream.events[t : t + 1], factor, transitions, stream.rows)
        history.append(block.V[0, :, 0].copy())
    result = np.stack(history)
    assert np.isfinite(result).all()
    assert np.abs(result[-1] - stream.w0).max() > 0.01
    return result


def on_policy(facts: Floats) -> None:
    facts[RHO] = 1.0
    facts[PI] = facts[MU]


def constant_discount(facts: Floats) -> None:
    facts[DISCOUNTS] = np.where(facts[DISCOUNTS] > 0.0, 0.8, 0.0)


def plain_interest(facts: Floats) -> None:
    facts[INTEREST] = 1.0


@pytest.fixture
def stream() -> RandomStream:
    return RandomStream(seed=20, steps=STEPS)


@decays
def test_perturbed_td_outside_without_penalty_is_td(stream: RandomStream, lam: float) -> None:
    perturbed = st.learner("perturbed_td", alpha=ALPHA, eta=0.0, lam=lam, penalty="outside")
    td = st.learner("td", alpha=ALPHA, lam=lam)
    t = stream.transitions
    assert_same_bits(weights(perturbed, stream, t), weights(td, stream, t))


@decays
def test_perturbed_td_scaled_without_penalty_is_td(stream: RandomStream, lam: float) -> None:
    """Bit for bit but for the trace: rho (gamma lam) is not (rho gamma) lam in the last bit."""
    perturbed = st.learner("perturbed_td", alpha=ALPHA, eta=0.0, lam=lam)
    td = st.learner("td", alpha=ALPHA, lam=lam)
    t = stream.transitions
    found, expected = weights(perturbed, stream, t), weights(td, stream, t)
    if lam in (0.0, 1.0):
        assert_same_bits(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@decays
@pytest.mark.parametrize("eta", [0.25, 1.7])
def test_perturbed_td_is_td_on_another_problem(
    stream: RandomStream, lam: float, eta: float
) -> None:
    """Discount gamma/(1 + eta), reward r/(1 + eta), step size alpha (1 + eta)."""

    def shrink(facts: Floats) -> None:
        facts[REWARD] /= 1 + eta
        facts[DISCOUNTS] /= 1 + eta

    schedule = {"power": 0.5, "delay": 100.0}
    perturbed = st.learner("perturbed_td", alpha=ALPHA, eta=eta, lam=lam, **schedule)
    td = st.learner("td", alpha=ALPHA * (1 + eta), lam=lam, **schedule)
    found = weights(perturbed, stream, stream.transitions)
    expected = weights(td, stream, changed(stream, shrink))
    # A few roundings a step, and the update does not amplify them over these 500 steps.
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)
    plain = weights(td, stream, stream.transitions)
    assert np.abs(found - plain).max() > 0.01 * scale


def test_the_penalties_agree_without_traces(stream: RandomStream) -> None:
    t = stream.transitions
    scaled, outside = (
        weights(st.learner("perturbed_td", alpha=ALPHA, eta=0.7, penalty=p), stream, t)
        for p in ("scaled", "outside")
    )
    np.testing.assert_allclose(scaled, outside, rtol=0, atol=1e-12 * np.abs(scaled).max())


def test_the_penalties_differ_with_traces(stream: RandomStream) -> None:
    t = stream.transitions
    scaled, outside = (
        weights(st.learner("perturbed_td", alpha=ALPHA, eta=0.7, lam=0.6, penalty=p), stream, t)
        for p in ("scaled", "outside")
    )
    assert np.abs(scaled - outside).max() > 0.01


def test_etd_with_full_traces_is_td(stream: RandomStream) -> None:
    t = changed(stream, plain_interest)
    etd, td = (st.learner(name, alpha=ALPHA, lam=1.0) for name in ("etd", "td"))
    assert_same_bits(weights(etd, stream, t), weights(td, stream, t))
    with_interest = weights(etd, stream, stream.transitions)
    assert np.abs(with_interest - weights(td, stream, t)).max() > 0.01


@decays
def test_td_on_policy_is_the_textbook(stream: RandomStream, lam: float) -> None:
    """With rho = 1: z = gamma lam z + x, w += alpha (r + gamma' w.x' - w.x) z."""
    t = changed(stream, on_policy)
    found = weights(st.learner("td", alpha=ALPHA, lam=lam), stream, t)
    w, z, gamma = stream.w0, np.zeros_like(stream.w0), 0.0
    for step, e in enumerate(stream.events):
        x, x_next = stream.Phi[t.row[e]], stream.Phi[t.row_next[e]]
        reward, gamma_next = t.facts[e, REWARD], t.facts[e, GAMMA_NEXT]
        z = gamma * lam * z + x
        w = w + ALPHA * (reward + gamma_next * w @ x_next - w @ x) * z
        gamma = t.facts[e, CARRIED]
        np.testing.assert_allclose(found[step], w, rtol=1e-11, atol=1e-12)


@decays
def test_tdc_with_a_vanishing_second_step_size_is_td(stream: RandomStream, lam: float) -> None:
    """With ratio = 1e-200 the correction is far below the last bit of a weight."""
    t = stream.transitions
    tdc = st.learner("tdc", alpha=ALPHA, ratio=1e-200, lam=lam)
    td = st.learner("td", alpha=ALPHA, lam=lam)
    assert_same_bits(weights(tdc, stream, t), weights(td, stream, t))


@decays
def test_tdc_as_published_is_tdc_only_without_a_choice(stream: RandomStream, lam: float) -> None:
    """mu = 1 for the action taken, hence pi = 1 as well."""

    def no_choice(facts: Floats) -> None:
        facts[RHO] = facts[PI] = facts[MU] = 1.0

    published = st.learner("tdc_as_published", alpha=ALPHA, ratio=2.5, lam=lam, weight="pi")
    tdc = st.learner("tdc", alpha=ALPHA, ratio=2.5, lam=lam)
    t = changed(stream, no_choice)
    assert_same_bits(weights(published, stream, t), weights(tdc, stream, t))
    t = stream.transitions
    assert np.abs(weights(published, stream, t) - weights(tdc, stream, t)).max() > 0.01


@decays
def test_tdc_as_published_without_a_weight_is_tdc_of_the_behaviour_policy(
    stream: RandomStream, lam: float
) -> None:
    """On policy it is TDC; off policy it does not look at pi at all."""

    def on_policy(facts: Floats) -> None:
        facts[RHO], facts[PI] = 1.0, facts[MU]

    published = st.learner("tdc_as_published", alpha=ALPHA, ratio=2.5, lam=lam)
    tdc = st.learner("tdc", alpha=ALPHA, ratio=2.5, lam=lam)
    t = changed(stream, on_policy)
    assert_same_bits(weights(published, stream, t), weights(tdc, stream, t))
    assert_same_bits(weights(published, stream, stream.transitions), weights(tdc, stream, t))
    gap = weights(tdc, stream, stream.transitions) - weights(tdc, stream, t)
    assert np.abs(gap).max() > 0.01


@decays
def test_tdrc_without_its_regulariser_is_tdc(stream: RandomStream, lam: float) -> None:
    tdrc = st.learner("tdrc", alpha=ALPHA, ratio=2.5, reg=0.0, lam=lam)
    tdc = st.learner("tdc", alpha=ALPHA, ratio=2.5, lam=lam)
    t = stream.transitions
    assert_same_bits(weights(tdrc, stream, t), weights(tdc, stream, t))
    with_it = weights(tdrc.replace(reg=1.0), stream, t)
    gap = np.abs(with_it - weights(tdc, stream, t)).max()
    assert gap == 0.0 if lam == 1.0 else gap > 0.01  # at lam = 1 the second vector has no say


@decays_of_traces
def test_htd_on_policy_is_td(stream: RandomStream, lam: float) -> None:
    htd = st.learner("htd", alpha=ALPHA, ratio=2.5, lam=lam)
    td = st.learner("td", alpha=ALPHA, lam=lam)
    t = changed(stream, on_policy)
    assert_same_bits(weights(htd, stream, t), weights(td, stream, t))
    t = stream.transitions
    assert np.abs(weights(htd, stream, t) - weights(td, stream, t)).max() > 0.01


@decays_of_traces
def test_vtrace_on_policy_is_td(stream: RandomStream, lam: float) -> None:
    """In another order of the same factors, hence to rounding."""
    vtrace, td = (st.learner(name, alpha=ALPHA, lam=lam) for name in ("vtrace", "td"))
    t = changed(stream, on_policy)
    found, expected = weights(vtrace, stream, t), weights(td, stream, t)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow  # as above
@pytest.mark.parametrize("name", ["tree_backup", "vtrace", "abtd"])
def test_without_traces_the_cut_ones_are_td(stream: RandomStream, name: str) -> None:
    t = stream.transitions
    found = weights(st.learner(name, alpha=ALPHA), stream, t)
    expected = weights(st.learner("td", alpha=ALPHA), stream, t)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@decays_of_traces
def test_etd_beta_at_beta_gamma_is_etd(stream: RandomStream, lam: float) -> None:
    """With one discount, but for the ends of episodes, where beta counts as 0."""
    t = changed(stream, constant_discount)
    etd_beta = st.learner("etd_beta", alpha=ALPHA, beta=0.8, lam=lam)
    etd = st.learner("etd", alpha=ALPHA, lam=lam)
    assert_same_bits(weights(etd_beta, stream, t), weights(etd, stream, t))


@decays_of_traces
def test_without_a_follow_on_trace_etd_is_td(stream: RandomStream, lam: float) -> None:
    """lam + (1 - lam) is 1 in floating point for these lam, hence bit for bit."""
    t = changed(stream, plain_interest)
    etd_beta = st.learner("etd_beta", alpha=ALPHA, beta=0.0, lam=lam)
    td = st.learner("td", alpha=ALPHA, lam=lam)
    assert_same_bits(weights(etd_beta, stream, t), weights(td, stream, t))
    perturbed_etd = st.learner("perturbed_etd", alpha=ALPHA, eta=0.7, beta=0.0, lam=lam)
    perturbed_td = st.learner("perturbed_td", alpha=ALPHA, eta=0.7, lam=lam)
    assert_same_bits(weights(perturbed_etd, stream, t), weights(perturbed_td, stream, t))


@decays_of_traces
def test_perturbed_etd_without_penalty_is_etd_beta(stream: RandomStream, lam: float) -> None:
    """To rounding: rho (gamma lam) is not (rho gamma) lam in the last bit."""
    t = stream.transitions
    perturbed = st.learner("perturbed_etd", alpha=ALPHA, eta=0.0, beta=0.5, lam=lam)
    etd_beta = st.learner("etd_beta", alpha=ALPHA, beta=0.5, lam=lam)
    found, expected = weights(perturbed, stream, t), weights(etd_beta, stream, t)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@decays_of_traces
def test_pgtd2_approaches_gtd2_with_small_steps(stream: RandomStream, lam: float) -> None:
    """The look ahead is of second order in alpha: a tenth of alpha, a hundredth of the gap."""
    gaps = []
    for alpha in (1e-3, 1e-4):
        pair = []
        for name in ("pgtd2", "gtd2"):
            block = Block([st.learner(name, alpha=alpha, ratio=2.5, lam=lam)], stream.w0)
            block.advance(stream.events[:50], np.ones(50), stream.transitions, stream.rows)
            pair.append(block.V.copy())
        gaps.append(np.abs(pair[0] - pair[1]).max())
    assert gaps[0] > 1e-7
    assert 50.0 < gaps[0] / gaps[1] < 200.0


def test_cop_td_begins_as_td(stream: RandomStream) -> None:
    """While u = 0 the learned ratio is 1: for the first step, and for good if u learns nothing."""
    td = st.learner("td", alpha=ALPHA)
    idle = st.learner("cop_td", alpha=ALPHA, ratio=1e-200)
    t = stream.transitions
    expected = weights(td, stream, t)
    found = weights(idle, stream, t)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    learning = weights(st.learner("cop_td", alpha=ALPHA, ratio=2.5), stream, t)
    np.testing.assert_allclose(learning[0], expected[0], rtol=1e-14)
    assert np.abs(learning - expected).max() > 0.01


def test_discounted_cop_td_at_g_zero_is_td_once_settled(stream: RandomStream) -> None:
    """With a constant feature, c(s) = 1 everywhere is where the ratio stays at g = 0."""
    stream.Phi[:, 0] = 1.0
    stream.rows = sparse_rows(stream.Phi)
    blocks = [
        Block([st.learner(text)], stream.w0)
        for text in (f"discounted_cop_td:alpha={ALPHA},g=0", f"td:alpha={ALPHA}")
    ]
    blocks[0].V[1, 0] = 1.0
    for block in blocks:
        block.advance(stream.events, np.ones(STEPS), stream.transitions, stream.rows)
    assert_same_bits(blocks[0].V[1, :, 0], np.array([1.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(blocks[0].V[0], blocks[1].V[0], rtol=1e-12, atol=1e-12)


@decays
def test_gtd2_and_tdc_share_their_second_vector(stream: RandomStream, lam: float) -> None:
    """h has the same update: it is the same as long as w is, that is after one step from h = 0."""
    pair = [
        Block([st.learner(name, alpha=ALPHA, ratio=2.5, lam=lam)], stream.w0)
        for name in ("gtd2", "tdc")
    ]
    for block in pair:
        block.advance(stream.events[:1], np.ones(1), stream.transitions, stream.rows)
    assert np.abs(pair[0].V[1]).max() > 0.0
    assert_same_bits(pair[0].V[1], pair[1].V[1])
