"""Overflowed, growing or settled: the words against their definition, on drawn problems."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.runs.outcome import Forecast, ended, forecast, outcome, why
from steadytd.studies.results import best_rows
from tests.support.draws import seeds as some_seeds
from tests.support.draws import thinned
from tests.support.realised import drawn

NOT = "not settled"
LEARNERS = ["td:alpha=0.05", "perturbed_td:alpha=0.05,eta=0.5", "tdc:alpha=0.05,ratio=1",
            "etd:alpha=0.02", "gtd2:alpha=0.5,ratio=1"]  # fmt: skip


def by_hand(p: Problem, learner: Learner, errors: Floats, overflowed: bool, steps: int) -> str:
    """The definition, word by word, with eigenvalues and a linear solve of its own."""
    if overflowed or not np.isfinite(errors[-1]):
        return "overflowed"
    assert learner.law.expectation is not None
    numbers = {k: v for k, v in learner.values.items() if not isinstance(v, str)}
    e = learner.law.expectation(p.moments(), numbers)
    Q = np.linalg.svd(p.Phi, full_matrices=False)[2][: np.linalg.matrix_rank(p.Phi)].T
    blocks = np.kron(np.eye(len(e.g) // p.n_features), Q)
    M, g = blocks.T @ e.M @ blocks, blocks.T @ e.g
    stable = np.linalg.eigvals(M).real.min() > 0.0
    reference = [errors[0], p.error(np.zeros(p.n_features))]
    if stable:
        reference.append(p.error((blocks @ np.linalg.solve(M, g))[: p.n_features]))
    tenth = len(errors) // 10
    rising = sum(errors[-tenth:]) > sum(errors[-2 * tenth : -tenth])
    if errors[-1] > 10.0 * max(reference) or (rising and not stable):
        return "growing"
    if sum(errors[-tenth:]) / tenth > 2.0 * max(reference):
        return NOT
    counted = steps - filled(p, learner)
    return "settled" if stable and way_left(p, learner, M, g, blocks, counted) <= 0.05 else NOT


def filled(p: Problem, learner: Learner) -> int:
    """The steps that ETD's follow-on trace needs to fill, one by one; the others have none."""
    if learner.name != "etd":
        return 0
    r = np.abs(np.linalg.eigvals(np.einsum("sa,sat->st", p.pi, p.P * p.gamma))).max()
    return int(np.ceil(sum(r**t for t in range(1, 5000))))


def way_left(
    p: Problem, learner: Learner, M: Floats, g: Floats, blocks: Floats, steps: int
) -> float:
    """Distance of the mean values from the fixed point's over that of the first, step by step."""
    y, aim = blocks.T @ np.append(p.w0, np.zeros(len(blocks) - len(p.w0))), np.linalg.solve(M, g)

    def distance() -> float:
        return float(np.sqrt(p.d_mu @ (p.Phi @ (blocks @ (y - aim))[: p.n_features]) ** 2))

    first = distance()
    for _ in range(steps):
        y = y + float(learner.values["alpha"]) * (g - M @ y)
    return distance() / first


@some_seeds(5, 90)
def test_the_words_are_what_they_are_defined_to_be(seeds: range) -> None:
    seen = set()
    for seed in seeds:
        p = drawn(("off_policy", "chain", "constant")[seed % 3], seed)
        r = st.run(p, LEARNERS, steps=2000, seeds=2, points=101)
        for i, learner in enumerate(r.learners):
            for j in range(2):
                gone = bool(r.first_divergence[i, j] >= 0)
                word = by_hand(p, learner, r.errors[i, j], gone, 2000)
                assert r.outcomes[i][j] == word, (seed, str(learner))
                seen.add(word)
        order = ["overflowed", "growing", NOT, "settled"]
        worst = [min(words, key=order.index) for words in r.outcomes]
        assert r.summary["outcome"].to_list() == worst
        assert r.summary["growing"].to_list() == [words.count("growing") for words in r.outcomes]
    assert seen >= {"growing", "settled", NOT}


@some_seeds(20, 120)
def test_what_is_unstable_or_on_its_way_is_never_said_to_have_settled(seeds: range) -> None:
    """Short and long runs: the sentence says which, and what it says of many more steps is true."""
    said = set()
    for seed in seeds:
        plain = drawn(("off_policy", "chain", "constant")[seed % 3], seed)
        start = 3.0 * np.random.default_rng(seed).normal(size=plain.n_features)
        p = Problem(name="drawn", P=plain.P, r=plain.r, gamma=plain.gamma, mu=plain.mu, pi=plain.pi,
                    Phi=plain.Phi, w0=start)  # fmt: skip
        r = st.run(p, ["td:alpha=0.01", "tdc:alpha=1e-4"], steps=(30, 300)[seed % 2], seeds=3)
        text = str(r)
        span = np.linalg.svd(p.Phi)[2][: np.linalg.matrix_rank(p.Phi)]
        for learner, words in zip(r.learners, r.outcomes, strict=True):
            assert learner.law.expectation is not None
            e = learner.law.expectation(p.moments(), {"ratio": 1.0, "lam": 0.0})
            blocks = np.kron(np.eye(len(e.g) // p.n_features), span)
            rates = np.linalg.eigvals(blocks @ e.M @ blocks.T)
            (reason,) = re.findall(rf"{learner}: not settled in .*?: (.*)", text) or [""]
            assert bool(reason) == (NOT in words)
            if rates.real.min() < 0.0:
                assert "settled" not in words
                assert reason in ("", "unstable by the certificate: its mean update grows.")
                assert np.abs(1.0 - 0.01 * rates).max() > 1.0  # and so it does
                said |= set(words)
            else:
                assert not reason or reason.startswith("by the mean update, ")
    assert said == {"growing", NOT}


@pytest.mark.parametrize("seed", thinned(range(6), 6))
def test_settled_runs_are_where_the_mean_update_leads(seed: int) -> None:
    """Many runs of drawn problems: those that settled are, in the mean, close to the fixed point.

    The mean weights of 200 runs are at most 0.15 of the way from it: a twentieth that may be left,
    four standard errors of the mean, and as much again for what successive states have in common
    at these step sizes. Traces that have yet to fill and averages that lag behind were called
    settled before.
    """
    rng = np.random.default_rng(seed)
    plain = drawn(("chain", "constant")[seed % 2], seed)
    p = Problem(name="drawn", P=plain.P, r=plain.r, gamma=0.98, mu=plain.mu, pi=plain.mu,
                Phi=np.abs(rng.normal(size=(len(plain.P), 1))) + 0.2, w0=[5.0])  # fmt: skip
    learners = ["etd:alpha=0.006", "etd:alpha=0.003", "td:alpha=0.02,average=1", "td:alpha=0.02",
                "td:alpha=0.003,lam=0.95"]  # fmt: skip
    settled = 0
    for steps in (50, 100, 200, 400, 1000, 3000):
        r = st.run(p, learners, steps=steps, seeds=200, points=21)
        for i, learner in enumerate(r.learners):
            if set(r.outcomes[i]) != {"settled"}:
                continue
            settled += 1
            end = st.certify(p).fixed_point(learner.replace(average=0))
            w = r.weights(learner).reshape(200, -1)[:, 0]
            left = abs(w.mean() - end[0]) - 4.0 * w.std() / np.sqrt(200.0)
            assert left <= 0.15 * abs(p.w0[0] - end[0]), (steps, str(learner))
    assert settled


def test_a_run_that_swings_has_not_settled() -> None:
    """Its mean update is at its fixed point, and its error is several times that of the start."""
    c, large = st.certify("three_state"), "perturbed_td:alpha=0.26,eta=0.5"
    found = forecast(c.problem, st.learner(large), 5000)
    assert found.stable and found.left is not None and found.left < 1e-6
    r = st.run("three_state", large, steps=5000, seeds=40)
    after = r.errors[0][:, -(r.errors.shape[2] // 10) :].mean(axis=1)
    for word, error in zip(r.outcomes[0], after, strict=True):
        assert (word == "settled") == (error <= 20.0) or word == "growing"  # predicting zero has 10
    assert {"settled", NOT} <= set(r.outcomes[0])
    assert "it fluctuates around its fixed point (error" in str(r)


@some_seeds(3, 60)
def test_what_is_said_of_large_steps_is_true(seeds: range) -> None:
    """Large steps of every kind: "too large" only where the mean step of the law itself grows.

    implicit_td takes smaller steps than it says, and was told that its step size is too large.
    """
    said = []
    for seed in seeds:
        p = drawn(("constant", "transition")[seed % 2], seed)
        rng, c = np.random.default_rng(seed), st.certify(p)
        for law in ("td", "implicit_td", "tdc", "true_online_td", "perturbed_td:eta=0.5"):
            alpha = 10.0 ** rng.uniform(-0.5, 1.5)
            learner = st.learner(f"{law}{',' if ':' in law else ':'}alpha={alpha:.3g}")
            reason = why(
                np.linspace(2.0, 1.0, 101), forecast(p, learner, int(rng.choice([10, 30])))
            )
            assert "one of its modes does not decay" not in reason
            if "the step size is too large" in reason:
                said.append(learner.name)
                assert float(learner.values["alpha"]) > c.largest_alpha(learner)
    assert said and not {"implicit_td", "true_online_td"} & set(said)


def test_an_error_that_moves_is_shown_to_move() -> None:
    """Numbers that differ in the fifth digit, and a mode that neither grows nor decays."""
    moves = np.linspace(48.525, 48.515, 101)
    before, after = re.findall(r"[\d.]+(?= in the)", why(moves, Forecast(None)))
    assert float(before) > float(after)
    assert why(moves, Forecast(False)).endswith("one of its modes does not decay")


def test_theory_decides_where_the_errors_do_not() -> None:
    """Near a pole the fixed point itself is far away: who goes there is not growing."""
    c = st.certify("three_state")
    far = forecast(c.problem, st.learner("perturbed_td", alpha=0.1, eta=0.42), 10**6)
    assert far.stable and far.error > 150.0 and far.left == pytest.approx(0.0, abs=1e-6)
    assert far.error == pytest.approx(c.path([0.42])["error"][0])
    rises = np.linspace(1.0, 2.0, 101)
    towards = 0.9 * far.error * (rises - 1.0) + 10.0
    assert outcome(towards, False, 10.0, lambda: far) == "settled"
    assert outcome(towards, False, 10.0, lambda: Forecast(True, 9.0)) == "growing"
    r = st.run("baird", "td:alpha=0.0001", steps=5000, points=101)  # unstable, and not far yet
    assert 5.0 * r.errors[0, 0, 0] > r.errors[0, 0, -1] and r.outcomes == [["growing"]]

    def theory() -> Forecast:
        return Forecast(None)

    for errors in (rises, rises[::-1]):  # nothing is known, and it moves as at the beginning
        assert outcome(errors, False, 1.0, theory) == NOT
    assert outcome(np.exp(-np.linspace(0.0, 9.0, 101)), False, 1.0, theory) == "settled"
    assert outcome(11.0 * rises**5 / 32, False, 1.0, theory) == "growing"


def test_overflow_and_words_for_reading() -> None:
    r = st.run("theta2theta", "td:alpha=5", steps=5000, seeds=2)
    assert r.outcomes == [["overflowed", "overflowed"]] and r.summary["diverged"][0] == 2
    assert "overflowed in both runs, first at step" in str(r)
    assert ended(["growing", "settled"]) == "growing 1 of 2"


def test_a_family_is_judged_by_the_instance_of_each_seed(tmp_path: Path) -> None:
    r = st.run("collision", ["td:alpha=0.05", "etd:alpha=0.5"], steps=3000, seeds=4, points=101)
    assert r.family == "collision"
    for i, learner in enumerate(r.learners):
        for j, seed in enumerate(r.seeds):
            p = st.problem("collision", seed=seed)
            gone = bool(r.first_divergence[i, j] >= 0)
            assert r.outcomes[i][j] == by_hand(p, learner, r.errors[i, j], gone, 3000)
    r.save(tmp_path / "kept")
    again = st.load_result(tmp_path / "kept")
    assert (again.family, again.outcomes) == (r.family, r.outcomes)


@pytest.mark.parametrize("word", ["settled", NOT, "growing"])
def test_studies_use_the_same_words(word: str, tmp_path: Path) -> None:
    text = {"growing": "td:alpha=0.001", NOT: "tdc:alpha=0.01",
            "settled": "perturbed_td:alpha=0.01,eta=1"}[word]  # fmt: skip
    one = st.learner(text)
    learners = [{"name": one.name, "alpha": one["alpha"]} | ({"eta": 1.0} if "eta" in text else {})]
    study = {"problem": "baird", "steps": 4000, "seeds": 3, "every": 40, "confirm": {"seeds": 0}}
    (row,) = best_rows(st.study({**study, "learners": learners}).run(out=tmp_path / "s"))
    r = st.run("baird", one, steps=4000, seeds=3, points=101)
    assert row["outcome"] == r.summary["outcome"][0] == word
    assert row["final"] == pytest.approx(r.summary["final"][0], rel=1e-5)


def test_features_that_are_all_zero() -> None:
    """Nothing is learned: the weights, and with them the error, stay where they began."""
    p = st.problem("three_state")
    zero = st.Problem(
        name="zero", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=np.zeros_like(p.Phi)
    )
    found = st.run(zero, ["td:alpha=0.05", "tdc:alpha=0.05,ratio=1"], steps=100, seeds=2)
    assert found.outcomes == [["settled"] * 2] * 2
    assert str(found).count("settled") == 2
    assert np.ptp(found.errors) == 0.0
