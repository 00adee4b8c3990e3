"""A run with many learners: found by any spelling, a summary of any mixture, no square cost."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.runs.result import standard_error


def step(reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float,
         alpha: float) -> float:  # fmt: skip
    return alpha * rho * (reward + gamma_next * w_x_next - w_x)


def test_weights_of_a_learner_in_any_spelling() -> None:
    own = st.law(writes={"w": "x"}, name="td")(step)  # the name of another law
    asked: list[str | Learner] = [
        "perturbed_td:alpha=1e-4,eta=auto",
        "td:alpha=0.1",
        st.learner(own, alpha=0.2),
    ]
    r = st.run("three_state", asked, steps=50, seeds=2)
    eta = r.learners[0]["eta"]
    same: list[str | Learner] = [
        "perturbed_td:alpha=1e-4,eta=auto",
        "perturbed_td: eta=auto, alpha=0.0001",
        f"perturbed_td:alpha=.0001,eta={eta!r},lam=0.0,power=0",
        str(r.learners[0]),
        st.learner("perturbed_td", alpha=1e-4, eta="auto"),
        r.learners[0],
    ]
    for spelling in same:
        assert r.weights(spelling).tobytes() == r.final_weights[0, :, 0].tobytes()
    assert r.weights("td:alpha=1e-1").tobytes() == r.final_weights[1, :, 0].tobytes()
    assert r.weights("td:alpha=2e-1").tobytes() == r.final_weights[2, :, 0].tobytes()
    assert len({r.final_weights[i].tobytes() for i in range(3)}) == 3  # it can tell
    with pytest.raises(st.InputError, match=r"unknown learner .*: 'td:alpha=0\.3'; did you"):
        r.weights("td:alpha=3e-1")
    with pytest.raises(st.InputError, match="unknown learner of this run: 'tdc:alpha=1'"):
        r.weights("tdc:alpha=1")
    with pytest.raises(st.InputError, match="unknown parameter of td: 'alpa'"):
        r.weights("td:alpa=1")


def test_given_twice_in_another_spelling() -> None:
    with pytest.raises(st.InputError, match=r"learner 'td:alpha=0\.1' is given twice; leave"):
        st.run("baird", ["td:alpha=0.1", "td:alpha=0.2", "td:alpha=1e-1"], steps=1)


def test_a_summary_of_many_learners_that_differ() -> None:
    """Numbers by hand; a hyper-parameter or a word may show up only after many rows."""
    learners = [st.learner("td", alpha=0.001 * (1 + i)) for i in range(150)]
    learners += [st.learner("td:alpha=9"), st.learner("etd_beta:alpha=0.001,beta=0.5")]
    learners += [st.learner("perturbed_td:alpha=0.01,eta=0.5,lam=0.5,penalty=outside")]
    r = st.run("three_state", learners, steps=3000, seeds=3, points=20)
    assert r.summary.columns[:4] == ["learner", "algorithm", "alpha", "lam"]
    assert r.summary["eta"].to_list() == [None] * 152 + [0.5]
    assert r.summary["penalty"].to_list() == [None] * 152 + ["outside"]
    assert r.summary["alpha"].to_list() == [learner["alpha"] for learner in learners]
    for i, row in enumerate(r.summary.iter_rows(named=True)):
        first = [int(n) for n in r.first_divergence[i] if n >= 0]
        auc, final = r.errors[i].mean(axis=1), r.errors[i, :, -1]
        assert row["learner"] == str(learners[i])
        assert row["auc"] == float(auc.mean()) and row["final"] == float(final.mean())
        assert (row["auc_stderr"], row["final_stderr"]) == (by_hand(auc), by_hand(final))
        assert (row["diverged"], row["first_divergence"]) == (len(first), min(first, default=None))
    assert r.summary["diverged"].max() == 3
    one = st.run("three_state", learners[:1], steps=10).summary
    assert one["auc_stderr"].to_list() == one["first_divergence"].to_list() == [None]


def by_hand(values: np.ndarray) -> float:
    if not np.isfinite(values).all():
        return float("inf")
    scale = float(np.abs(values).max())
    return float(scale * np.std(values / scale, ddof=1) / np.sqrt(len(values)))


def test_the_standard_error_of_extreme_values() -> None:
    assert standard_error(np.array([1.0])) is None
    assert standard_error(np.zeros(4)) == 0.0
    assert standard_error(np.array([1.0, np.inf])) == np.inf
    assert standard_error(np.array([1e200, 3e200])) == pytest.approx(1e200)  # no overflow


def test_texts_of_learners_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of many learners is linear: so many texts per learner, however many there are."""
    counted = 0

    def text(self: Learner) -> str:
        nonlocal counted
        counted += 1
        return self._text

    def texts(n: int) -> int:
        nonlocal counted
        learners = [st.learner("td", alpha=0.001 * (1 + i)) for i in range(n)]
        counted = 0
        r = st.run("baird", learners, steps=1)
        _ = r.summary, r.curves, [r.weights(learner) for learner in learners[:5]]
        return counted

    monkeypatch.setattr(Learner, "__str__", text)
    assert texts(200) <= 20 * 200
    assert texts(2000) <= 11 * texts(200)
