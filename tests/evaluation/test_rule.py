"""The rule of the interval: closed forms on made-up curves, and coverage on simulated ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from steadytd.base.arrays import Floats
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.intervals import standard_error
from steadytd.evaluation.rule import (
    LAMS,
    LEVEL,
    LoggedReturns,
    clipped,
    rare_outcome,
    rule_of_three,
    sampling_error,
    select,
)

UNITS = 400


def curve(
    shifts: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0),
    spreads: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    weights: Floats | None = None,
    noise: Floats | None = None,
    **more: object,
) -> Curve:
    """J(lam) = 5 + shift; scores spread around it, the same ones at every lam."""
    z = np.resize([1.0, -1.0], UNITS) if noise is None else noise
    n = len(z)
    scores = 5.0 + np.array(shifts)[:, None] + np.array(spreads)[:, None] * z
    w = np.resize([0.9, 1.1], n) if weights is None else weights
    made = Curve(
        LAMS, scores, np.tile(w, (4, 1)), np.zeros(4), np.zeros(4), np.ones(n), np.ones(4), 0.0
    )
    return replace(made, **more)  # type: ignore[arg-type]


def returns(n: int = UNITS, **more: object) -> LoggedReturns:
    """Returns of 4.5 and 5.5, rewards of many values between 0 and 1."""
    made = LoggedReturns(np.resize([4.5, 5.5], n), np.ones(n), (0.0, 1.0))
    return replace(made, **more)  # type: ignore[arg-type]


def test_three_terms_by_hand() -> None:
    one = curve((0.3, 0.3, 0.3, 0.3), (0.1, 0.2, 0.3, 0.4), cut=np.full(4, 0.2))
    one = replace(one, value_at_cuts=np.full(4, 3.0))
    found = select(one, returns(), curve((0.1, 0.1, 0.1, 0.1)))
    se = 0.1 * math.sqrt(1.0 / (UNITS - 1))  # equal distances: all units count
    assert found.lam == 0.5
    assert found.value == pytest.approx(5.3)
    assert found.sampling == pytest.approx(t.ppf(0.975, UNITS - 1) * se, rel=1e-6)
    assert found.bias == pytest.approx(0.2)
    assert found.truncation == pytest.approx(0.5 * 0.2 * 0.5, rel=2e-3)  # 1/2 C sd(returns)
    half = found.sampling + found.bias + found.truncation
    assert (found.lo, found.hi) == pytest.approx((5.3 - half, 5.3 + half))
    little = replace(one, value_at_cuts=np.full(4, 0.01))
    assert select(little, returns(), one).truncation == pytest.approx(0.005)


def test_higher_lam_and_second_map_bound_the_bias() -> None:
    rising = curve((0.0, 0.2, 0.3, 0.35), (0.1, 9.0, 12.0, 15.0))
    assert select(rising, returns(), rising).bias == pytest.approx(0.35)
    assert select(rising, returns(), curve((0.5, 0.2, 0.3, 0.35))).bias == pytest.approx(0.5)
    unsupported = replace(rising, weights=rising.weights * np.array([[1.0], [1.0], [1.0], [3.0]]))
    assert select(unsupported, returns(), rising).bias == pytest.approx(0.3)


def test_of_supported_lam_the_shortest_interval_is_selected() -> None:
    biased = curve((3.0, 0.0, 0.0, 0.0), (0.1, 1.0, 2.0, 4.0))
    assert select(biased, returns(), biased).lam == 0.8
    assert [c.lam for c in select(biased, returns(), biased).candidates] == list(LAMS)
    assert select(biased, returns(one_step=True), biased).lam == 1.0


@pytest.mark.parametrize(
    ("weights", "code"),
    [
        (np.where(np.arange(UNITS) < 50, UNITS / 50, 0.0), "few_effective"),
        (np.full(UNITS, 1.2), "weights_off"),
        (np.full(UNITS, 0.8), "weights_off"),
    ],
)
def test_support_by_weights(weights: Floats, code: str) -> None:
    one = curve(weights=weights)
    found = select(one, returns(), one)
    assert found.failures == (code,)
    assert not found.supported
    assert not any(c.failures == () for c in found.candidates)


def test_what_is_cut_off_may_be_missing_in_the_weights() -> None:
    one = curve(weights=np.full(UNITS, 0.8), cut=np.full(4, 0.25))
    assert select(one, returns(), one).supported


def test_other_reasons_not_to_trust() -> None:
    one = curve()
    assert select(replace(one, negative=0.11), returns(), one).failures == ("beyond_log",)
    equal = curve(spreads=(0.0,) * 4)
    assert "same_scores" in select(equal, returns(rewards=(1.0, 1.0)), equal).failures
    unknown = replace(one, scores=np.full_like(one.scores, np.nan))
    assert select(unknown, returns(), None).failures == ("no_value",)


def test_a_bias_that_nothing_checks_is_not_trusted() -> None:
    only_low = curve()
    heavy = np.where(np.arange(UNITS) < 20, UNITS / 20, 0.0)
    weights = np.stack([only_low.weights[0], heavy, heavy, heavy])
    only_low = replace(only_low, weights=weights)
    alone = select(only_low, returns())
    assert (alone.lam, alone.failures) == (0.5, ("unchecked_bias",))
    assert select(only_low, returns(), curve()).supported
    assert select(curve(), returns()).supported  # lam = 1 checks the others


def test_rule_of_three() -> None:
    assert rule_of_three() == pytest.approx(-math.log(0.025))
    probability = rule_of_three() / 1000
    assert (1.0 - probability) ** 1000 == pytest.approx(0.025, rel=0.01)
    w = np.where(np.arange(UNITS) < 100, 4.0, 0.0)
    log = returns(rewards=(-1.0, 2.0))
    assert rare_outcome(w, log) == pytest.approx(3.0 * 4.0 / UNITS)  # sum w^2 / n = 4
    one_large = np.append(np.ones(UNITS - 1), 9.0)
    assert rare_outcome(one_large, replace(log, reward_values=2)) == pytest.approx(27.0 / UNITS)
    stated = replace(log, stated=(-1.0, 9.0))
    assert rare_outcome(one_large, stated) == pytest.approx(90.0 / UNITS)
    lasting = replace(stated, horizon=3, discount=0.5)
    assert rare_outcome(one_large, lasting) == pytest.approx(1.75 * 90.0 / UNITS)
    assert rare_outcome(one_large, replace(stated, stretches=True)) == 0.0


def test_a_stated_range_widens_the_interval_to_what_may_be_missing() -> None:
    one = curve(spreads=(0.01,) * 4)
    plain, stated = (select(one, returns(stated=r), one) for r in (None, (0.0, 100.0)))
    assert stated.hi - stated.lo > 20.0 * (plain.hi - plain.lo)
    assert stated.sampling == pytest.approx(rule_of_three() * 100.0 * 1.1 / UNITS)


def test_values_are_clipped_to_what_rewards_allow() -> None:
    assert returns(discount=0.9).allowed == pytest.approx((0.0, 10.0))
    assert returns(rewards=(-2.0, -1.0), discount=0.9).allowed == pytest.approx((-20.0, -1.0))
    assert returns(rewards=(1.0, 2.0), discount=0.9, continuing=True).allowed == pytest.approx(
        (10.0, 20.0)
    )
    assert returns().allowed == (0.0, math.inf)
    assert returns(one_step=True, stated=(-1.0, 3.0)).allowed == (-1.0, 3.0)
    assert returns(stated=(-1.0, 3.0), horizon=4).allowed == (-4.0, 12.0)
    assert clipped(0.4, 0.5, returns(one_step=True)) == pytest.approx((0.0, 0.9))
    assert clipped(7.0, 0.5, returns(one_step=True)) == (1.0, 1.0)
    wide = curve(spreads=(90.0,) * 4)
    found = select(wide, returns(discount=0.9), wide)
    assert (found.lo, found.hi) == pytest.approx((0.0, 10.0))


def test_more_units_shorten_and_more_noise_widens() -> None:
    rng = np.random.default_rng(4)
    widths = []
    for n, spread in ((400, 1.0), (1600, 1.0), (1600, 2.0)):
        one = curve(spreads=(spread,) * 4, noise=rng.standard_normal(n))
        found = select(one, returns(n), one)
        widths.append(found.hi - found.lo)
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.2)
    assert widths[2] == pytest.approx(2.0 * widths[1], rel=0.2)
    e = rng.standard_normal(100)
    assert sampling_error(e, level=0.99) > sampling_error(e) > norm.ppf(0.975) * standard_error(e)


@pytest.mark.parametrize("kind", ["normal", "weighted"])
def test_coverage_on_simulated_influences(kind: str) -> None:
    """2,000 samples of 150 units: 95 % within 2 % (normal), at least 92 % (log-normal weights)."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2000, 150))
    if kind == "weighted":
        x = (x + 1.0) * np.exp(rng.standard_normal(x.shape) - 0.5) - 1.0
    mean = x.mean(axis=1)
    e = (x - mean[:, None]) / 150
    inside = np.mean([abs(m) <= sampling_error(row) for m, row in zip(mean, e, strict=True)])
    if kind == "normal":
        assert abs(inside - LEVEL) < 0.02
    else:
        assert 0.92 < inside < 0.98


def test_correlated_stretches_are_joined() -> None:
    """An AR(1) of 0.9: the error of 200 stretches alone is 4 times too small."""
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((500, 300))
    for k in range(1, 300):
        noise[:, k] += 0.9 * noise[:, k - 1]
    x = noise[:, 100:]
    e = (x - x.mean(axis=1)[:, None]) / 200
    pairs = list(zip(x.mean(axis=1), e, strict=True))
    joined, alone = (
        np.mean([abs(m) <= sampling_error(row, stretches) for m, row in pairs])
        for stretches in (True, False)
    )
    assert alone < 0.5
    assert joined > 0.75


def test_effective_degrees_of_freedom() -> None:
    """Few units that decide the error have a larger quantile."""
    e = np.append(np.full(98, 1e-3), [1.0, -1.0])
    two = t.ppf(0.975, 4.0 / (1.0 - 2.0 / 100.0)) * standard_error(e)
    assert sampling_error(e) == pytest.approx(two, rel=1e-3)
    assert sampling_error(e, True) >= t.ppf(0.975, 1.0) * standard_error(e) * 0.999
