from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steadytd import InputError, OnlineLearner, Param, law, learner, load_learner
from steadytd.base.arrays import Floats
from tests.support.helpers import by_two_threads, rewritten

STATE = ("V", "Z", "M", "carry", "diverged")
TEXTS = (
    "td:alpha=0.05",
    "td:alpha=0.05,lam=0.8,power=0.5,delay=10",
    "perturbed_td:alpha=0.03,eta=0.3,penalty=outside",
    "etd:alpha=0.01,lam=0.5",
    "tdc_as_published:alpha=0.02,lam=0.5,h0=1,weight=pi",
    "td:alpha=0.05,average=1",
)


@law(
    writes={"w": "x", "h": ("x", "x_next")},
    params={"kappa": Param("a weight", default=1.0)},
    memory={"count": lambda count: count + 1.0},
)
def own(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float, alpha: float,
    kappa: float, count: float,
) -> tuple[float, tuple[float, float]]:  # fmt: skip
    """A law that nobody needs: two vectors and a counter, so that there is something to save."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * (delta + kappa * h_x) / count, (alpha * delta, -alpha * h_x)


def transitions(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Random transitions of 3 features; one in eight ends an episode."""
    rng = np.random.default_rng(seed)
    return [
        {
            "x": rng.normal(size=3),
            "reward": float(rng.normal()),
            "x_next": rng.normal(size=3),
            "gamma": 0.0 if rng.random() < 0.125 else 0.9,
            "pi": float(rng.uniform(0.1, 1.0)),
            "mu": float(rng.uniform(0.2, 1.0)),
            "interest": float(rng.uniform(0.0, 2.0)),
        }
        for _ in range(n)
    ]


def feed(online: OnlineLearner, steps: list[dict[str, Any]]) -> list[float]:
    return [online.update(**step) for step in steps]


def simple(**changes: Any) -> dict[str, Any]:
    """Arguments of an update; rho = 1 unless the changes give it, or pi and mu."""
    given = {"x": [1.0, 0.0], "reward": 1.0, "x_next": [0.0, 1.0], "gamma": 0.99, **changes}
    return given if {"pi", "mu", "rho"} & set(changes) else {"rho": 1.0, **given}


# Learning and asking


def test_one_step_of_td_by_hand() -> None:
    a = learner("td:alpha=0.5").start(n_features=2, w0=[1.0, 2.0])
    delta = a.update([1.0, 1.0], reward=3.0, x_next=[0.0, 2.0], rho=0.5, gamma=0.25)
    assert delta == 3.0 + 0.25 * 4.0 - 3.0
    assert a.w.tolist() == [1.25, 2.25]
    assert a.predict([2.0, 4.0]) == 2 * 1.25 + 4 * 2.25
    assert (a.step, a.diverged) == (1, False)


def test_averaging_by_hand() -> None:
    """The learner shows the mean of its weights after 1, 2, ... steps, and learns as without."""
    last, mean = (learner(f"td:alpha=0.05,average={n}").start(3, w0=[1, 2, 3]) for n in (0, 1))
    assert mean.w.tolist() == [1.0, 2.0, 3.0]
    seen = []
    for step in transitions(10):
        assert mean.update(**step) == last.update(**step)
        seen.append(last.w)
        np.testing.assert_allclose(mean.w, np.mean(seen, axis=0), rtol=1e-13)
        assert mean.predict([1, 0, 0]) == mean.w[0]
    assert not np.allclose(mean.w, last.w)


def test_pi_and_mu_give_rho() -> None:
    by_rho, by_policies = (learner("td:alpha=0.5").start(2) for _ in range(2))
    by_rho.update(**simple(rho=0.25 / 0.5))
    by_policies.update(**simple(pi=0.25, mu=0.5))
    by_policies_first = by_policies.w.tolist()
    assert by_rho.w.tolist() == by_policies_first == [0.25, 0.0]


def test_forgetting_rho_or_gamma_is_an_error() -> None:
    """A default would make an off-policy learner on-policy without a word."""
    a = learner("td:alpha=1").start(2, w0=[0.0, 1.0])
    with pytest.raises(
        InputError, match=r"^td needs rho, the importance ratio .* pass rho=\.\.\., "
    ):
        a.update([1, 0], 0, [0, 1], gamma=0.9)
    with pytest.raises(InputError, match=r"^gamma, .*, is missing; pass gamma=\.\.\. to update"):
        a.update([1, 0], 0, [0, 1], rho=1.0)
    with pytest.raises(InputError, match=r"^rho must be pi/mu = 0\.5, got 1; give rho, or pi and"):
        a.update([1, 0], 0, [0, 1], rho=1.0, gamma=0.9, pi=0.25, mu=0.5)
    assert a.step == 0
    a.update([1, 0], 0, [0, 1], rho=0.5, gamma=0.9, pi=0.25, mu=0.5)
    assert a.w.tolist() == [0.45, 1.0]


def test_a_law_that_does_not_use_rho_needs_none() -> None:
    free, given = (learner(own, alpha=0.1).start(2) for _ in range(2))
    for rho in (0.2, 3.0):
        free.update([1.0, 0.5], 1.0, [0.0, 1.0], gamma=0.9)
        given.update([1.0, 0.5], 1.0, [0.0, 1.0], rho=rho, gamma=0.9)
    assert free.w.tobytes() == given.w.tobytes()
    assert [own.needs_ratio, *(learner(t).law.needs_ratio for t in TEXTS)] == [False] + [True] * 6


def test_weights_are_a_copy_and_inputs_untouched() -> None:
    w0 = np.array([1.0, 2.0])
    a = learner("td:alpha=0.5").start(2, w0=w0)
    a.w[0] = 99.0
    x, x_next = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    a.update(x, 1.0, x_next, rho=1.0, gamma=0.5)
    assert a.w.tolist() == [1.5, 2.0]
    assert (w0.tolist(), x.tolist(), x_next.tolist()) == ([1, 2], [1, 0], [0, 1])


def test_learners_do_not_share_their_state() -> None:
    made = learner("td:alpha=0.5")
    a, b = made.start(2), made.start(2)
    a.update(**simple())
    assert (a.w.tolist(), b.w.tolist()) == ([0.5, 0.0], [0.0, 0.0])


def test_divergence_is_noted_without_a_warning() -> None:
    a = learner("td:alpha=1e200").start(1, w0=[1.0])
    seen = []
    for _ in range(3):
        a.update([2.0], 0.0, [4.0], rho=1.0, gamma=0.9)
        seen.append((bool(np.isfinite(a.w[0])), a.diverged))
    assert seen == [(True, False), (False, True), (False, True)]
    assert not math.isfinite(a.predict([1.0]))


# Episodes


@pytest.mark.parametrize("how", ["discount 0", "end_episode", "not at all"])
@pytest.mark.parametrize("text", ["td:alpha=0.1,lam=0.9", "etd:alpha=0.1,lam=0.9", "etd:alpha=0.1"])
def test_the_end_of_an_episode_resets_the_traces(text: str, how: str) -> None:
    """Then the next update is that of a fresh learner with the same weights; else it is not."""
    last = {**transitions(1, seed=2)[0], "interest": 1.0}
    steps = [{**step, "gamma": 0.9} for step in transitions(6, seed=1)]
    steps[-1]["gamma"] = 0.0 if how == "discount 0" else 0.9
    old = learner(text).start(3)
    feed(old, steps)
    fresh = learner(text).start(3, w0=old.w)
    if how == "end_episode":
        old.end_episode()
    assert old.w.tolist() == fresh.w.tolist() and old.step == 6
    assert old.update(**last) == fresh.update(**last)
    assert (old.w.tolist() == fresh.w.tolist()) == (how != "not at all")


def test_a_cut_is_saved(tmp_path: Path) -> None:
    a = learner("td:alpha=0.1,lam=0.9").start(3)
    feed(a, [{**step, "gamma": 0.9} for step in transitions(6, seed=1)])
    a.end_episode()
    b = load_learner(a.save(tmp_path / "a.npz"))
    (last,) = transitions(1, seed=2)
    assert a.update(**last) == b.update(**last)
    assert a.w.tobytes() == b.w.tobytes()


def test_discount_zero_does_not_look_ahead() -> None:
    """The step that ends an episode learns its reward alone, whatever x_next is."""
    a = learner("td:alpha=0.5").start(2, w0=[0.0, 100.0])
    assert a.update([1, 0], 3.0, [0, 1], rho=1.0, gamma=0.0) == 3.0
    assert a.w.tolist() == [1.5, 100.0]


# Files


@pytest.mark.parametrize("text", TEXTS)
def test_going_on_after_load(tmp_path: Path, text: str) -> None:
    """Saved and loaded in the middle of an episode: the same bits as never saved."""
    before, after = transitions(25, seed=3), transitions(25, seed=4)
    before[-1]["gamma"] = 0.9
    through, stopped = (learner(text).start(3, w0=[0.1, -0.2, 0.3]) for _ in range(2))
    deltas = feed(through, before + after)
    feed(stopped, before)
    path = stopped.save(tmp_path / "a.npz")
    assert path == tmp_path / "a.npz"
    assert [f.name for f in tmp_path.iterdir()] == ["a.npz"]
    resumed = load_learner(path)
    assert (resumed.learner, resumed.n_features, resumed.step) == (stopped.learner, 3, 25)
    assert resumed.w.tobytes() == stopped.w.tobytes()
    assert feed(resumed, after) == deltas[25:]
    assert resumed.w.tobytes() == through.w.tobytes()
    assert resumed.step == 50
    for name in STATE:
        assert _part(resumed, name).tobytes() == _part(through, name).tobytes()


def _part(online: OnlineLearner, name: str) -> Floats:
    found: Floats = getattr(online.block, name)
    return found


def test_saving_changes_nothing(tmp_path: Path) -> None:
    a, b = (learner("etd:alpha=0.01,lam=0.5").start(3) for _ in range(2))
    for step in transitions(10):
        a.update(**step)
        b.update(**step)
        b.save(tmp_path / "b.npz")
    assert a.w.tobytes() == b.w.tobytes()


def test_own_laws(tmp_path: Path) -> None:
    through, stopped = (learner(own, alpha=0.1, kappa=0.5).start(3) for _ in range(2))
    steps = transitions(20)
    feed(through, steps)
    feed(stopped, steps[:10])
    path = stopped.save(tmp_path / "own.npz")
    resumed = load_learner(path, laws=[own])
    assert str(resumed.learner) == "own:alpha=0.1,kappa=0.5"
    assert resumed.learner.algorithm is own
    feed(resumed, steps[10:])
    assert resumed.w.tobytes() == through.w.tobytes()
    with pytest.raises(InputError, match=r"^unknown learner 'own'. Known: "):
        load_learner(path)


# What is refused


def refused(text: str = "td:alpha=0.1", **changes: Any) -> str:
    """The message for a bad update, after which nothing has changed."""
    a = learner(text).start(n_features=2, w0=[1.0, 2.0])
    with pytest.raises(InputError) as caught:
        a.update(**simple(**changes))
    assert (a.step, a.w.tolist()) == (0, [1.0, 2.0])
    return str(caught.value)


@pytest.mark.parametrize("name", ["x", "x_next"])
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ([1.0], " must be a vector of 2 features, got shape (1,)."),
        ([1.0, 2.0, 3.0], " must be a vector of 2 features, got shape (3,)."),
        ([[1.0, 2.0]], " must be a vector of 2 features, got shape (1, 2)."),
        (1.0, " must be a vector of 2 features, got shape ()."),
        ([1.0, math.nan], " must be finite numbers, got nan at [1]."),
        ([-math.inf, 1.0], " must be finite numbers, got -inf at [0]."),
        (["a", "b"], " must be numbers (could not convert string to float: 'a')."),
    ],
)
def test_bad_features(name: str, value: Any, rule: str) -> None:
    assert refused(**{name: value}) == name + rule
    if name == "x":
        with pytest.raises(InputError) as caught:
            learner("td:alpha=0.1").start(2).predict(value)
        assert str(caught.value) == name + rule


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": math.nan}, "reward must be a finite number, got nan."),
        ({"reward": math.inf}, "reward must be a finite number, got inf."),
        ({"reward": "much"}, "reward must be a number, got 'much'."),
        ({"reward": None}, "reward must be a number, got None."),
        ({"rho": -0.5}, "rho must be a finite number >= 0, got -0.5."),
        ({"rho": math.nan}, "rho must be a finite number >= 0, got nan."),
        ({"rho": math.inf}, "rho must be a finite number >= 0, got inf."),
        ({"gamma": 1.5}, "gamma must be from 0 to 1, got 1.5."),
        ({"gamma": -0.5}, "gamma must be from 0 to 1, got -0.5."),
        ({"gamma": math.nan}, "gamma must be from 0 to 1, got nan."),
        ({"interest": math.inf}, "interest must be a finite number >= 0, got inf."),
        ({"interest": -1}, "interest must be a finite number >= 0, got -1."),
        ({"pi": 0.5}, "give both pi and mu (probabilities of the action taken), or neither."),
        ({"mu": 0.5}, "give both pi and mu (probabilities of the action taken), or neither."),
        ({"pi": 1.5, "mu": 0.5}, "pi must be from 0 to 1, got 1.5."),
        ({"pi": -0.1, "mu": 0.5}, "pi must be from 0 to 1, got -0.1."),
        ({"pi": 0.5, "mu": 1.1}, "mu must be from 0 to 1, got 1.1."),
        ({"pi": math.nan, "mu": 1.0}, "pi must be from 0 to 1, got nan."),
        (
            {"pi": 0.5, "mu": 0.0},
            "mu must be > 0: it is the probability of an action that was taken.",
        ),
    ],
)
def test_bad_facts(changes: dict[str, Any], message: str) -> None:
    assert refused(**changes) == message


def test_a_law_that_needs_the_policies() -> None:
    assert refused("tdc_as_published:alpha=0.1,weight=pi") == (
        "tdc_as_published needs pi and mu, the probabilities of the action taken; "
        "pass pi=..., mu=... to update."
    )
    a = learner("tdc_as_published:alpha=0.1,weight=pi").start(2)
    assert a.update(**simple(pi=0.5, mu=0.25)) == 1.0
    assert a.w[0] == pytest.approx(0.1 * 0.5 * 1.0)  # weighted by pi, not by rho = 2


@pytest.mark.parametrize("n_features", [0, -1, 2.5, "3", None])
def test_bad_number_of_features(n_features: Any) -> None:
    with pytest.raises(InputError) as caught:
        learner("td:alpha=0.1").start(n_features)
    assert str(caught.value) == f"n_features must be a whole number >= 1, got {n_features!r}."


@pytest.mark.parametrize(
    ("w0", "message"),
    [
        ([1.0], "w0 must be a vector of 2 features, got shape (1,)."),
        ([1.0, math.inf], "w0 must be finite numbers, got inf at [1]."),
    ],
)
def test_bad_start_weights(w0: list[float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        learner("td:alpha=0.1").start(2, w0)
    assert str(caught.value) == message


def saved(tmp_path: Path, **changes: Any) -> Path:
    """A saved learner in which some entries were changed, or with None left out."""
    path = learner("td:alpha=0.1,lam=0.5").start(2).save(tmp_path / "a.npz")
    return rewritten(path, changes)


def test_load_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nothing.npz"
    with pytest.raises(InputError) as caught:
        load_learner(path)
    assert str(caught.value) == f"there is no file '{path}'."


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY\x01\x00"])
def test_load_garbage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_learner(path)
    assert str(caught.value).startswith(f"'{path}' is not a saved learner (")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": None}, "is not a saved learner"),
        ({"V": None}, "is not a saved learner"),
        ({"settings": np.array("{")}, "is not a saved learner"),
        ({"settings": np.array("{}")}, "is not a saved learner"),
        ({"V": np.array([object()])}, "Object arrays cannot be loaded when allow_pickle=False"),
        ({"Z": np.zeros((1, 3, 1))}, "the saved learner's 'Z' does not fit td:alpha=0.1,lam=0.5."),
        ({"V": np.zeros((2, 2, 1))}, "the saved learner's 'V' does not fit td:alpha=0.1,lam=0.5."),
        (
            {"settings": np.array(json.dumps({"learner": "td:alpha=0.1", "step": 0}))},
            "the saved learner's 'Z' does not fit td:alpha=0.1.",
        ),
        (
            {"settings": np.array(json.dumps({"learner": "tdd:alpha=0.1", "step": 0}))},
            "unknown learner 'tdd'; did you mean 'td'?",
        ),
        (
            {"settings": np.array(json.dumps({"learner": "td:alpha=-1", "step": 0}))},
            "td: alpha (step size) must be > 0, got -1.",
        ),
    ],
)
def test_load_wrong_content(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_learner(saved(tmp_path, **changes))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("step", "change", "message"),
    [
        (1e30, {}, r"step must be a whole number >= 0"),
        (-1, {}, r"step must be a whole number >= 0, got -1"),
        (1.5, {}, r"step must be a whole number >= 0, got 1.5"),
        (True, {}, r"step must be a whole number >= 0, got True"),
        (0, {"V": "text"}, r"'V' must hold numbers, got <U"),
        (0, {"V": "nan"}, r"weights that are not finite, but is not marked as diverged"),
        (0, {"diverged": "text"}, r"'diverged' must hold numbers"),
        (0, {"diverged": "nan"}, r"'diverged' must hold finite numbers"),
        (0, {"carry": "nan"}, r"'carry' must hold finite numbers"),
    ],
)
def test_a_damaged_saved_learner(
    step: object, change: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = learner("td:alpha=0.1").start(2).save(tmp_path / "a.npz")
    with np.load(path) as file:
        state = dict(file)
    settings = json.loads(str(state["settings"]))
    state["settings"] = np.array(json.dumps({**settings, "step": step}))
    for name, kind in change.items():
        state[name] = state[name].astype(str) if kind == "text" else state[name] * np.nan
    np.savez(path, **state)
    with pytest.raises(InputError, match=message):
        load_learner(path)


def test_a_diverged_learner_is_saved_and_read(tmp_path: Path) -> None:
    a = learner("td:alpha=1e200").start(1)
    for _ in range(5):
        a.update([1.0], reward=1.0, x_next=[2.0], rho=1.0, gamma=0.9)
    assert a.diverged
    assert load_learner(a.save(tmp_path / "a.npz")).diverged


def test_the_td_error_where_traces_are_kept_scaled() -> None:
    """From 128 features on the weights of the active features are put together from parts."""
    rng = np.random.default_rng(0)
    online = learner("td:alpha=0.05,lam=0.8").start(150)
    x = rng.random((31, 150)) * (rng.random((31, 150)) < 0.05)
    for t in range(30):
        w = online.w
        expected = 1.0 + 0.9 * x[t + 1] @ w - x[t] @ w
        delta = online.update(x[t], 1.0, x[t + 1], rho=1.0, gamma=0.9)
        assert delta == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_two_threads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    running = learner("td", alpha=0.1).start(2)
    take, busy = running._live.take, threading.Lock()

    def alone(*given: Any) -> Floats:
        assert busy.acquire(blocking=False), "two threads are in an update"
        found = take(*given)
        busy.release()
        return found

    def work() -> None:
        for _ in range(300):
            running.update([1.0, 0.0], 1.0, [0.0, 1.0], rho=1.0, gamma=0.9)

    monkeypatch.setattr(running._live, "take", alone)
    by_two_threads(work)
    assert running.step == 600
