"""Paired decisions: their intervals, simultaneous levels, and how many more units would decide."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from steadytd.base.arrays import Floats
from steadytd.evaluation.curve import Curve
from steadytd.evaluation.decide import Difference, Side, best, compared
from steadytd.evaluation.rule import LAMS, LoggedReturns, select

UNITS = 500
RNG = np.random.default_rng(8)
SHARED = RNG.standard_normal(UNITS)  # of every return: it cancels
OWN = RNG.standard_normal((3, UNITS)) * 0.1


def log_of(scores: Floats) -> LoggedReturns:
    """A log whose rewards are too small to hide anything."""
    return LoggedReturns(scores, np.ones(len(scores)), (0.0, 1e-3), discount=1.0)


def side(name: str, apart: float, own: Floats, second: float = 0.0, **more: object) -> Side:
    """A target that is better by `apart`; the second feature map finds `second` more."""
    scores = np.tile(SHARED + apart + own, (4, 1))
    n = len(own)
    ones, none = np.tile(np.resize([0.9, 1.1], n), (4, 1)), np.zeros(4)
    curve = Curve(LAMS, scores, ones, none, none, np.ones(n), np.ones(4), 0.0)
    curve = replace(curve, **more)  # type: ignore[arg-type]
    other = replace(curve, scores=scores + second)
    return Side(name, select(curve, LOG, other), ())


LOG = log_of(SHARED)


def test_what_both_policies_share_cancels() -> None:
    found = compared(side("new", 0.1, OWN[0]), None, LOG)
    centred = OWN[0] - OWN[0].mean()
    k = (centred**2).sum() ** 2 / (centred**4).sum()
    degrees = min(2.0 * k / (1.0 - k / UNITS), UNITS - 1.0)
    half = t.ppf(0.975, degrees) * OWN[0].std(ddof=1) / math.sqrt(UNITS)
    assert found.difference == pytest.approx(0.1 + OWN[0].mean())
    assert (found.hi - found.lo) / 2 == pytest.approx(half, rel=1e-4)
    assert (found.decision, found.trusted, found.episodes_needed) == ("better", True, 0)
    assert compared(side("new", -0.1, OWN[0]), None, LOG).decision == "worse"
    assert compared(side("new", 0.0, OWN[0]), None, LOG).decision == "undecided"


def test_bias_of_both_targets_counts() -> None:
    one, other = side("one", 0.1, OWN[0], 0.02), side("other", 0.0, OWN[1], -0.03)
    alone, biased = (
        compared(a, b, LOG)
        for a, b in ((side("one", 0.1, OWN[0]), side("other", 0.0, OWN[1])), (one, other))
    )
    assert biased.hi - biased.lo == pytest.approx(alone.hi - alone.lo + 2 * 0.05)
    reverse = compared(other, one, LOG)
    assert (reverse.lo, reverse.hi) == pytest.approx((-biased.hi, -biased.lo))


def test_truncation_is_that_of_the_difference() -> None:
    cut = {"cut": np.full(4, 0.5), "value_at_cuts": np.full(4, 0.3)}
    log = replace(LOG, own_at_cuts=0.25)
    plain, cut_off = (
        compared(side("new", 0.1, OWN[0], 0.0, **more), None, log)
        for more in ({"value_at_cuts": np.full(4, 0.25)}, cut)
    )
    assert cut_off.hi - cut_off.lo == pytest.approx(plain.hi - plain.lo + 2 * 0.5 * 0.05)


def test_rare_outcomes_count_by_the_difference_of_weights() -> None:
    wide = replace(LOG, rewards=(0.0, 100.0), reward_values=2)
    data = wide
    as_logged = {"weights": np.ones((4, UNITS))}
    near, far = (
        compared(side("new", 0.1, OWN[0], 0.0, **more), None, data) for more in (as_logged, {})
    )
    assert near.decision == "better"
    assert (far.hi - far.lo) / 2 == pytest.approx(math.log(40.0) * 100.0 * 0.1 / UNITS)


def test_bonferroni() -> None:
    one, other = side("one", 0.1, OWN[0]), side("other", 0.0, OWN[1])
    levels = [compared(one, other, LOG, together) for together in (1, 3, 45)]
    assert [d.level for d in levels] == pytest.approx([0.95, 1 - 0.05 / 3, 1 - 0.05 / 45])
    widths = [d.hi - d.lo for d in levels]
    assert widths[0] < widths[1] < widths[2] < 2.0 * widths[0]


def test_how_many_more_units_would_decide() -> None:
    assert Difference(-1.0, 2.0, 0.0, 0.0).more(100) == 300  # chance falls with the square root
    assert Difference(1.0, 0.0, 2.0, 0.0).more(100) == 100  # what is rare with the number
    assert Difference(1.0, 1.0, 0.0, 0.5).more(100) == 300
    assert Difference(1.0, 0.1, 0.0, 1.0).more(100) is None
    assert Difference(0.0, 0.1, 0.0, 0.0).more(100) is None
    open_one = compared(side("new", 0.003, OWN[0] - OWN[0].mean()), None, LOG)
    assert open_one.decision == "undecided"
    half = (open_one.hi - open_one.lo) / 2
    expected = UNITS * ((half / open_one.difference) ** 2 - 1.0)
    assert open_one.episodes_needed == pytest.approx(expected, abs=1)
    assert "more episodes" in open_one.text


def test_what_only_checks_an_unbiased_estimate_falls_with_the_number_of_units() -> None:
    """DRL(1) without cut-offs has no bias: 4 times the units halve `chance` and the check."""
    assert Difference(1.0, 1.5, 0.0, 0.0, 0.5).more(100) == 300
    assert Difference(1.0, 0.0, 0.5, 0.0, 1.0).more(100) == 87  # u^2 - u = 0.5, and 100 (u^2 - 1)
    checked = compared(side("new", 0.01, OWN[0] - OWN[0].mean(), 0.02), None, LOG)
    half = (checked.hi - checked.lo) / 2
    assert checked.episodes_needed == pytest.approx(UNITS * ((half / 0.01) ** 2 - 1.0), abs=1)


def test_decisions_of_equal_policies_are_rarely_wrong() -> None:
    """No difference, 400 logs: at most 8 % are decided where 5 % are expected."""
    rng, wrong = np.random.default_rng(9), 0
    for _ in range(400):
        found = compared(side("new", 0.0, rng.standard_normal(UNITS)), None, LOG)
        wrong += found.decision != "undecided"
    assert 0 < wrong <= 32


def test_best_of_several() -> None:
    sides = [side(name, x, OWN[i]) for i, (name, x) in enumerate([("a", 0.0), ("b", 0.2)])]
    assert best(sides, LOG).target == "b"
    close = [*sides, side("c", 0.199, OWN[2])]
    found = best(close, LOG)
    assert found.target is None
    assert "3 simultaneous comparisons" in found.text
    doubtful = [*sides, side("c", 9.0, OWN[2])._replace(reasons=("weights_off",))]
    found = best(doubtful, LOG)
    assert (found.target, found.left_out, found.trusted) == ("b", ("c",), True)
    assert best(sides[:1], LOG).target is None


def test_sentences_name_the_interval_and_the_reasons() -> None:
    found = compared(side("new", 0.1, OWN[0])._replace(reasons=("beyond_log",)), None, LOG)
    assert found.text.startswith("new is better than the policy that made the log by 0.09")
    assert "95 % interval" in found.text
    assert found.text.endswith("Not trusted: beyond_log.")
    alike = side("new", 0.0, OWN[0] - OWN[0].mean())._replace(as_logged=True)
    assert "nothing to decide" in compared(alike, None, LOG).text
    biased = compared(side("new", 0.01, OWN[0], 1.0, cut=np.full(4, 0.01)), None, LOG)
    assert biased.episodes_needed is None
    assert "bias is larger" in biased.text
