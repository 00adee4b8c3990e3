"""What the learners reduce to, as their documentation says: step for step on the same stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.engine.schedule import step_factors
from tests.support.cases import RandomStream, assert_same_bits, is_quick, off_policy_problem

STEPS = 500
ALPHA = 0.03
REWARD, GAMMA_NEXT, CARRIED, RHO, PI, MU, INTEREST = map(
    STEP_FACTS.index, ("reward", "gamma_next", "gamma_carried", "rho", "pi", "mu", "interest")
)
DISCOUNTS = [GAMMA_NEXT, CARRIED]
DECAYS = (0.0, 0.6, 1.0)

decays = pytest.mark.parametrize("lam", DECAYS)


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


def unchanged(facts: Floats) -> None:
    pass


def on_policy(facts: Floats) -> None:
    facts[RHO] = 1.0
    facts[PI] = facts[MU]


def no_choice(facts: Floats) -> None:
    """mu = 1 for the action taken, hence pi = 1 as well."""
    facts[RHO] = facts[PI] = facts[MU] = 1.0


def constant_discount(facts: Floats) -> None:
    facts[DISCOUNTS] = np.where(facts[DISCOUNTS] > 0.0, 0.8, 0.0)


def plain_interest(facts: Floats) -> None:
    facts[INTEREST] = 1.0


@pytest.fixture
def stream() -> RandomStream:
    return RandomStream(seed=20, steps=STEPS)


class Reduction(NamedTuple):
    """A learner that is another one on a changed stream, bit for bit or up to rounding.

    Where it is another one there only, they `differ` on the stream as it is.
    """

    learner: str
    same: str
    exact: bool = True
    change: Callable[[Floats], None] = unchanged
    differ: bool = False


# At every lam. "Up to rounding" is for the same factors in another order.
WITH_LAM = (
    Reduction("perturbed_td:eta=0,penalty=outside", "td:"),
    Reduction("perturbed_td:eta=0", "td:", exact=False),
    Reduction("tdc:ratio=1e-200", "td:"),  # the correction is far below a weight's last bit
    Reduction("tdc_as_published:weight=pi,ratio=2", "tdc:ratio=2", change=no_choice, differ=True),
    Reduction("tdc_as_published:ratio=2", "tdc:ratio=2", change=on_policy, differ=True),
    Reduction("tdrc:ratio=2.5,reg=0", "tdc:ratio=2.5"),
    Reduction("htd:ratio=2.5", "td:", change=on_policy, differ=True),
    Reduction("vtrace:", "td:", exact=False, change=on_policy),
    Reduction("etd_beta:beta=0.8", "etd:", change=constant_discount),  # beta is 0 at an end
    Reduction("etd_beta:beta=0", "td:", change=plain_interest),
    Reduction("perturbed_etd:eta=0.7,beta=0", "perturbed_td:eta=0.7", change=plain_interest),
    Reduction("perturbed_etd:eta=0,beta=0.5", "etd_beta:beta=0.5", exact=False),
    Reduction("ridge_td:ridge=0", "td:", exact=False),
)
OTHERS = (
    Reduction("perturbed_td:eta=0.7", "perturbed_td:eta=0.7,penalty=outside", exact=False),
    Reduction("etd:lam=1", "td:lam=1", change=plain_interest, differ=True),
    *(Reduction(f"{name}:", "td:", exact=False) for name in ("tree_backup", "vtrace", "abtd")),
    Reduction("cop_td:ratio=1e-200", "td:", exact=False),  # the learned ratio stays 1
    Reduction("ctdc:ratio=2,center=1e-200", "tdc:ratio=2", exact=False),  # the mean stays 0
    Reduction("nstep_td:n=1", "td:", exact=False),
    Reduction(f"nstep_td:n={STEPS}", "td:lam=1", exact=False),
    Reduction("target_td:copy=hard,t=1", "td:", exact=False),
    Reduction("target_td:copy=hard,t=1,ridge=0.4", "ridge_td:ridge=0.4", exact=False),
    Reduction("truncated_etd:n=0", "td:", exact=False, change=plain_interest),
    Reduction(f"truncated_etd:n={STEPS - 1}", "etd:", exact=False),
    Reduction("per_etd:b=1", "td:", exact=False, change=plain_interest),
    Reduction("true_online_td:", "td:", exact=False),
    Reduction("true_online_gtd:ratio=2", "tdc:ratio=2", exact=False),
    Reduction("true_online_etd:", "etd:", exact=False),
    Reduction(
        "true_online_etd:lam=1", "true_online_td:lam=1", exact=False, change=plain_interest
    ),
)  # fmt: skip


def with_more(text: str, **params: float) -> Learner:
    return st.learner(text, **{"alpha": ALPHA, **params})


def cases() -> list[Any]:
    """Both learners of every reduction; those are slow whose loops are for `make test-all` only."""
    found = []
    for one, lam in [*((r, lam) for r in WITH_LAM for lam in DECAYS), *((r, None) for r in OTHERS)]:
        more = {} if lam is None else {"lam": lam}
        pair = with_more(one.learner, **more), with_more(one.same, **more)
        slow = [] if all(map(is_quick, pair)) else [pytest.mark.slow]
        found.append(pytest.param(one, *pair, marks=slow, id=str(pair[0])))
    return found


@pytest.mark.parametrize(("reduction", "learner", "same"), cases())
def test_reductions(
    stream: RandomStream, reduction: Reduction, learner: Learner, same: Learner
) -> None:
    t = changed(stream, reduction.change)
    found, expected = weights(learner, stream, t), weights(same, stream, t)
    if reduction.exact:
        assert_same_bits(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    if reduction.differ:
        t = stream.transitions
        gap = weights(learner, stream, t) - weights(same, stream, t)
        assert np.abs(gap).max() > 0.01


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("implicit_td:lam=0.6", "td:lam=0.6"),
        ("implicit_tdc:ratio=2", "tdc:ratio=2"),
        ("true_online_td:lam=0.6", "td:lam=0.6"),
        ("true_online_etd:lam=0.6", "etd:lam=0.6"),
        ("true_online_gtd:lam=0.6,ratio=2", "tdc:lam=0.6,ratio=2"),
        ("pgtd2:lam=0.6,ratio=2.5", "gtd2:lam=0.6,ratio=2.5"),
    ],
)
def test_small_steps_lead_to_the_plain_learner(text: str, limit: str) -> None:
    """The difference is of second order: a tenth of alpha, a hundredth of the gap."""
    problem, gaps = off_policy_problem(6), []
    for alpha in (1e-4, 1e-5):
        pair = [st.learner(t, alpha=alpha) for t in (text, limit)]
        one, other = st.run(problem, pair, steps=50, seeds=[3], points=2).final_weights
        gaps.append(np.abs(one - other).max())
    assert gaps[0] > 1e-9
    assert 50.0 < gaps[0] / gaps[1] < 200.0


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


def test_the_penalties_differ_with_traces(stream: RandomStream) -> None:
    t = stream.transitions
    scaled, outside = (
        weights(st.learner("perturbed_td", alpha=ALPHA, eta=0.7, lam=0.6, penalty=p), stream, t)
        for p in ("scaled", "outside")
    )
    assert np.abs(scaled - outside).max() > 0.01


@decays
def test_tdc_as_published_without_a_weight_does_not_look_at_pi(
    stream: RandomStream, lam: float
) -> None:
    published = st.learner("tdc_as_published", alpha=ALPHA, ratio=2.5, lam=lam)
    on = weights(published, stream, changed(stream, on_policy))
    assert_same_bits(weights(published, stream, stream.transitions), on)


@decays
def test_the_regulariser_of_tdrc_matters(stream: RandomStream, lam: float) -> None:
    """But at lam = 1, where w does not depend on the second vector."""
    pair = (st.learner(f"tdrc:alpha={ALPHA},ratio=2.5,reg={reg}", lam=lam) for reg in (0, 1))
    one, other = (weights(learner, stream, stream.transitions) for learner in pair)
    gap = np.abs(one - other).max()
    assert gap == 0.0 if lam == 1.0 else gap > 0.01


def test_cop_td_begins_as_td(stream: RandomStream) -> None:
    """While u = 0 the learned ratio is 1: for the first step."""
    pair = st.learner("cop_td", alpha=ALPHA, ratio=2.5), st.learner("td", alpha=ALPHA)
    found, expected = (weights(learner, stream, stream.transitions) for learner in pair)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    assert np.abs(found - expected).max() > 0.01


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
