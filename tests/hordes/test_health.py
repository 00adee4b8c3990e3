"""Health: against closed forms and plain loops; every sentence is true."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.hordes import part
from steadytd.hordes.health import DIRECTIONS, LONG, RATE, RECENT, directions
from tests.support.draws import seeds
from tests.support.hordes import not_compiled, stream
from tests.support.scope import everything

STILL = "td:alpha=1e-300"  # learns nothing: its weights stay where they are


def chain(steps: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Features of a walk among five states, rewards, and the five states' features."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(5, 3))
    states = rng.integers(5, size=steps + 1)
    return Phi[states], rng.normal(size=5)[states[:-1]], Phi


def test_rupee_is_the_root_of_the_projected_bellman_error() -> None:
    """Of still weights, at lam = 0: sqrt(g' G^-1 g) with g = mean(delta x), G = mean(x x')."""
    x, reward, _ = chain(20_000)
    w0 = np.array([1.0, -2.0, 0.5])
    one = st.prediction(STILL, cumulant=0, policy="behavior", discount=0.5)
    h = st.horde(3, [one], w0=w0)
    h.update_many(x[:-1], x[1:], reward[:, None])
    delta = reward + 0.5 * x[1:] @ w0 - x[:-1] @ w0
    g, G = delta @ x[:-1] / len(delta), x[:-1].T @ x[:-1] / len(delta)
    assert h.health()["rupee"][0] == pytest.approx(np.sqrt(g @ np.linalg.solve(G, g)), rel=0.2)
    solved = np.linalg.solve(x[:-1].T @ (x[:-1] - 0.5 * x[1:]), x[:-1].T @ reward)
    there = st.horde(3, [one], w0=solved)
    there.update_many(x[:-1], x[1:], reward[:, None])
    assert there.health()["rupee"][0] < 0.1 * h.health()["rupee"][0]


def test_health_against_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios, traces, discounts and cuts, on hashed directions."""
    if not everything():  # nine seconds of compiling
        monkeypatch.setattr(part, "kernel", not_compiled)
    seen = stream(150, features=20, seed=4)
    one = st.prediction("td:alpha=0.02,lam=0.7", cumulant=1, policy=2, discount_column=1)
    h = st.horde(20, [one])
    place, sign = directions(20)
    g, u, z = (np.zeros(DIRECTIONS) for _ in range(3))
    recent = long = last = longest = horizon = most = 0.0
    for t in range(150):
        facts = {n: table[t] for n, table in seen.facts().items() if n != "truncated"}
        facts["terminated"] = bool(facts["terminated"])
        (delta,) = h.update(seen.x[t], seen.x_next[t], **facts)
        x = np.zeros(DIRECTIONS)
        np.add.at(x, place, sign * seen.x[t])
        z = seen.rhos[t, 2] * (last * 0.7 * z + x)
        longest = max(longest, float(x @ x))
        g = g + RATE / longest * (delta * z - (g @ x) * x)
        u = u + (delta * z - u) / min(t + 1, LONG)
        recent += (abs(delta) - recent) / min(t + 1, RECENT)
        long += (abs(delta) - long) / min(t + 1, LONG)
        horizon = 1.0 + last * horizon
        most = max(most, horizon)
        last = 0.0 if seen.terminated[t] or seen.truncated[t] else seen.discounts[t, 1]
        if seen.truncated[t]:
            h.end_episode()
    row = h.health().row(0, named=True)
    assert row["limit"] == pytest.approx(2.0 * np.abs(seen.cumulants[:, 1]).max() * most, rel=1e-6)
    assert row["rupee"] == pytest.approx(np.sqrt(abs(g @ u)), rel=1e-3)
    assert (row["recent_error"], row["error"]) == pytest.approx((recent, long), rel=1e-12)
    assert (row["learner"], row["policy"], row["discount"]) == (str(one.learner), 2, None)


def test_directions_are_spread_and_fixed() -> None:
    place, sign = directions(6065)
    counts = np.bincount(place, minlength=DIRECTIONS)
    assert counts.min() > 600 and abs(sign.sum()) < 300
    assert np.array_equal(directions(100)[0], place[:100])
    assert directions(3)[0].tolist() == [0, 1, 2]


def numbers(text: str) -> list[float]:
    plain = text.replace(",", "")
    return [float(x) for x in re.findall(r"(?<![\w=.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", plain)]


def test_a_sentence_for_each_prediction_that_goes_wrong() -> None:
    """x = 1 leads to x' = 2: TD's weight is multiplied by 1 + alpha (2 gamma - 1) in each step."""
    alphas = (1e-3, 1e-2, 1.0)
    h = st.horde(1, [
        st.prediction(f"td:alpha={a}", cumulant=0, policy="behavior", discount=g)
        for a in alphas for g in (0.4, 0.9)
    ], w0=[1.0])  # fmt: skip
    first: dict[int, int] = {}
    errors: list[Floats] = []
    for step in range(1, 2001):
        delta = h.update([1.0], [2.0], [0.0])
        errors.append(np.abs(delta))
        for i in np.flatnonzero(~np.isfinite(delta)).tolist():
            first.setdefault(i, step)
    found = {(f.code, int(f.target)): f for f in h.warnings}
    assert set(found) == {("prediction_diverged", 5), ("prediction_grows", 3)}
    gone, grows = found["prediction_diverged", 5], found["prediction_grows", 3]
    assert f"at step {first[5]}. Other" in gone.text and str(h.predictions[5]) in gone.text
    assert h.health()["diverged_at"].to_list() == [None] * 5 + [first[5]]
    recent = long = 0.0
    for n, error in enumerate(np.array(errors)[:, 3], start=1):
        recent += (error - recent) / min(n, 100)
        long += (error - long) / min(n, 1000)
    shown = numbers(grows.text.partition("grows")[2])
    assert shown == pytest.approx([recent, 100, long, 1000], rel=0.01)
    assert recent > 4 * long
    assert h.health()["growing"].to_list() == [False, False, False, True, False, False]
    assert h.health()["error"][5] == np.inf


def test_errors_may_be_finite_again_where_other_features_are_active() -> None:
    one = st.prediction("td:alpha=1", cumulant=0, policy="behavior", discount=0.9)
    h = st.horde(2, [one], w0=[1.0, 0.0])
    steps = 0
    while np.isfinite(h.update([1.0, 0.0], [2.0, 0.0], [0.0])).all():
        steps += 1
    assert h.update(([1], None), ([1], None), [0.5]).tolist() == [0.5]
    (said,) = [f.text for f in h.warnings]
    assert f"first became infinite or undefined at step {steps + 1}" in said


@pytest.mark.parametrize(("alpha", "steps"), [(1.0, 300), (0.3, 600), (3e-3, 60_000)])
def test_numbers_that_no_cumulant_explains_are_called_growing(alpha: float, steps: int) -> None:
    """However fast or slowly they grew: a mean of 100 steps need not be four of 1,000 above it."""
    h = st.horde(1, [
        st.prediction(f"td:alpha={alpha}", cumulant=0, policy="behavior", discount=g)
        for g in (0.4, 0.9)
    ], w0=[1.0])  # fmt: skip
    ones = np.ones((steps, 1))
    h.update_many(ones, 2.0 * ones, 0.0 * ones)
    frame = h.health()
    assert 1e40 < h.w[1, 0] < np.inf and frame["diverged_at"].to_list() == [None, None]
    assert frame["growing"].to_list() == [False, True] and frame["rupee"][1] == np.inf
    assert [f.code for f in h.warnings] == ["prediction_grows"]


def test_health_is_of_all_steps_whenever_it_is_asked_for() -> None:
    """Live or many at once, and whatever the caller does with the errors that a step returns."""
    given = [st.prediction("td:alpha=0.1,lam=0.5", cumulant=0, policy="behavior", discount=0.9)]
    x, reward, _ = chain(30)
    looked, left, many = (st.horde(3, given * 300, threads=2) for _ in range(3))
    for t in range(30):
        looked.update(x[t], x[t + 1], reward[t : t + 1])
        looked.health()
        left.update(x[t], x[t + 1], reward[t : t + 1])[:] = np.nan  # the caller's own array
        if t == 10:
            looked.end_episode()
            left.end_episode()
    cut = np.arange(30) == 10
    many.update_many(x[:-1], x[1:], reward[:, None], truncated=cut)
    assert (many.health()["error"] > 0.0).all()
    assert left.health().equals(many.health()) and looked.health().equals(many.health())


DISCOUNTS = (0.0, 0.5, 0.9, 0.99)


def drawn_stream(seed: int, steps: int) -> tuple[Floats, dict[str, Any]]:
    """States of a drawn chain, one feature each, and facts: a target policy, two cumulants.

    The second cumulant is rare: about one step in 300 brings it.
    """
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(4, 12)), 2
    P = rng.dirichlet(np.full(states, 0.5), size=(states, actions))
    mu, pi = rng.dirichlet(np.full(actions, 3.0), size=(2, states))
    s = np.zeros(steps + 1, dtype=int)
    ratio = np.ones(steps)
    for t in range(steps):
        a = int(rng.random() < mu[s[t], 1])
        ratio[t] = pi[s[t], a] / mu[s[t], a]
        s[t + 1] = rng.choice(states, p=P[s[t], a])
    often = rng.normal(size=states)[s[:-1]] + rng.normal(size=steps)
    rare = 5.0 * (rng.random(steps) < 1 / 300)
    facts = {"cumulants": np.stack([often, rare], axis=1), "rhos": ratio[:, None]}
    return np.eye(states)[s], facts


@seeds(6, 200)
def test_no_warning_for_learners_that_are_well(seeds: range) -> None:
    """One feature per state, so TD is stable on-policy and off-policy; 20 looks at each stream.

    Their values stay within the returns, so no look may warn: the allowed rate of false alarms
    is 0. (A recent mean of four times the long one alone was no sign: rare cumulants make it.)
    """
    jumps = 0
    for seed in seeds:
        x, facts = drawn_stream(seed, 4000)
        h = st.horde(x.shape[1], [
            st.prediction("td:alpha=0.1", cumulant=c, policy=p, discount=g)
            for c in (0, 1) for p in ("behavior", 0) for g in DISCOUNTS
        ])  # fmt: skip
        for begin in range(0, 4000, 200):
            part = {name: table[begin : begin + 200] for name, table in facts.items()}
            h.update_many(x[begin : begin + 200], x[begin + 1 : begin + 201], **part)
            assert [f.text for f in h.warnings] == []
            frame = h.health()
            jumps += int((frame["recent_error"] > 4.0 * frame["error"]).sum())
    assert jumps > 0


@pytest.mark.parametrize("rate", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("discount", [0.6, 0.9, 0.99])
def test_a_prediction_that_went_wrong_is_named_however_slowly(rate: float, discount: float) -> None:
    """x = 1 leads to x' = 2, and TD's weight grows by `rate` a step, to some 10^5 cumulants."""
    alpha = rate / (2.0 * discount - 1.0)
    one = st.prediction(f"td:alpha={alpha}", cumulant=0, policy="behavior", discount=discount)
    h = st.horde(1, [one], w0=[1.0])
    steps = int(12.0 / rate)
    ones = np.ones((steps, 1))
    h.update_many(ones, 2.0 * ones, np.random.default_rng(0).uniform(-1.0, 1.0, (steps, 1)))
    recent, limit = h.health()["recent_error"][0], h.health()["limit"][0]
    assert recent > 1e4 and limit == pytest.approx(2.0 / (1.0 - discount), rel=0.01)
    assert [f.code for f in h.warnings] in (["prediction_large"], ["prediction_grows"])
    still = {1e-4, 1e-3} & {rate}  # too slow for the two means to lie apart
    assert not still or h.warnings[0].code == "prediction_large"


def test_a_prediction_that_is_stuck_at_a_large_error_is_named() -> None:
    """Beside one that is well: its sentence has the numbers of the frame."""
    x, facts = drawn_stream(3, 1000)
    asked = [st.prediction(text, cumulant=0, policy="behavior", discount=0.9)
             for text in (STILL, "td:alpha=0.9")]  # fmt: skip
    h = st.horde(x.shape[1], asked, w0=np.arange(x.shape[1]) * 1e4)
    h.update_many(x[:-1], x[1:], **facts)
    (found,) = h.warnings
    row = h.health().row(0, named=True)
    assert (found.code, found.target) == ("prediction_large", "0")
    shown = numbers(found.text.partition(") is ")[2])
    largest = np.abs(facts["cumulants"][:, 0]).max()
    assert shown == pytest.approx([row["recent_error"], 100, row["limit"], largest, 10], rel=0.01)
    assert h.health()["growing"].to_list() == [False, False]
