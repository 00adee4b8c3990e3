"""The promises of a Horde: the same bits whatever is together, in whatever order it is fed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.hordes import horde as rooms
from steadytd.hordes import part
from tests.support.helpers import by_two_threads
from tests.support.hordes import Stream, asked, not_compiled, slow_weights, stream
from tests.support.scope import everything

TRACED, PLAIN = "tdc:alpha=0.02,ratio=1,lam=0.8", "td:alpha=0.05,power=0.5,delay=10"
OFTEN = "td:alpha=0.02,lam=0.8" if not everything() else TRACED  # it takes long to compile
DIVERGING = OFTEN.replace("0.02", "1e150")
SLOW = "nstep_td:alpha=0.02,n=3"


def crowd(count: int = 400) -> list[st.HordePrediction]:
    """Two compiled loops of several blocks, a law without one, and a prediction that diverges."""
    texts = [OFTEN, PLAIN, OFTEN, SLOW]
    some = [
        st.prediction(texts[i % 4], cumulant=i % 2, policy=i % 3, discount_column=i % 2)
        for i in range(count)
    ]
    return [*some, st.prediction(DIVERGING, cumulant=0, policy=1, discount=0.9)]


def fed(h: st.Horde, seen: Stream, *, one_by_one: bool = False) -> st.Horde:
    if not one_by_one:
        h.update_many(seen.x, seen.x_next, **seen.facts())
        return h
    for t in range(len(seen.x)):
        facts: dict[str, Any] = {name: value[t] for name, value in seen.facts().items()}
        cut = facts.pop("truncated")
        facts["terminated"] = bool(facts["terminated"])
        h.update(seen.x[t], seen.x_next[t], **facts)
        if cut:
            h.end_episode()
    return h


def bits(h: st.Horde) -> dict[str, bytes]:
    """All that a Horde knows."""
    return {name: array.tobytes() for name, array in h._state().items()}


def test_one_step_of_td_by_hand() -> None:
    h = st.horde(2, [
        st.prediction("td:alpha=0.5", cumulant=1, policy=0, discount=0.25),
        st.prediction("td:alpha=0.5", cumulant=0, policy="behavior", discount_column=0),
    ], w0=[1.0, 2.0])  # fmt: skip
    delta = h.update([1.0, 1.0], [0.0, 2.0], [5.0, 3.0], rhos=[0.5], discounts=[0.5])
    assert delta.tolist() == [3.0 + 0.25 * 4.0 - 3.0, 5.0 + 0.5 * 4.0 - 3.0]
    assert h.w.tolist() == [[1.25, 2.25], [3.0, 4.0]]
    assert h.predict([2.0, 4.0]).tolist() == [2 * 1.25 + 4 * 2.25, 2 * 3.0 + 4 * 4.0]
    assert h.predict([[2.0, 4.0], [1.0, 0.0]])[:, 0].tolist() == [11.5, 1.25]
    assert (h.step, len(h), h.n_features) == (1, 2, 2)
    assert repr(h) == "<horde: 2 predictions on 2 features, 1 step>"


def test_many_steps_at_once_are_the_steps_one_by_one() -> None:
    seen = stream(300)
    many = fed(st.horde(10, crowd()), seen)
    live = fed(st.horde(10, crowd()), seen, one_by_one=True)
    assert bits(many) == bits(live)
    assert many.step == live.step == 300


def test_alone_as_in_a_crowd_even_beside_one_that_diverges() -> None:
    seen, predictions = stream(200, seed=1), crowd()
    together = fed(st.horde(10, predictions), seen)
    assert [one.blocks for one in together._lanes] == [2, 1]
    for i in (0, 1, 3, 33, 68, 69, 397, 398):
        alone = fed(st.horde(10, [predictions[i]]), seen)
        assert np.isfinite(alone.w).all()
        assert alone.w[0].tobytes() == together.weights(i).tobytes()
        assert alone.health()["rupee"][0] == together.health()["rupee"][i]
    assert not np.isfinite(together.weights(len(predictions) - 1)).all()


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "WORTH", 0)
    monkeypatch.setattr(rooms, "CHUNK", 16)
    found = [bits(fed(st.horde(10, crowd(), threads=n), stream(50))) for n in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


def pairs(matrix: Floats, active: int) -> tuple[Any, Any]:
    """The same features as (indices, values), in no order, with some values of 0."""
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random(matrix.shape) + 10.0 * (matrix == 0.0), axis=1)[:, :active]
    return order, np.take_along_axis(matrix, order, axis=1)


def test_sparse_features_are_dense_ones() -> None:
    seen = stream(60)
    dense = fed(st.horde(10, crowd()), seen)
    for form in (lambda m: pairs(m, 9), scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        h = st.horde(10, crowd())
        h.update_many(form(seen.x), form(seen.x_next), **seen.facts())
        assert bits(h) == bits(dense)
        np.testing.assert_array_equal(h.predict(form(seen.x[:4])), dense.predict(seen.x[:4]))
    h = st.horde(3, [st.prediction(PLAIN, cumulant=0, policy="behavior", discount=0.9)])
    assert h.update(([2, 0], None), ([1], None), [1.0]).tolist() == [1.0]
    assert h.w[0].tolist() == [0.05, 0.0, 0.05]


def test_without_traces_the_bits_are_those_of_an_online_learner() -> None:
    seen = stream(80)
    one = st.prediction(PLAIN, cumulant=1, policy=2, discount_column=1)
    h, online = st.horde(10, [one]), one.learner.start(10)
    for t in range(80):
        gamma = 0.0 if seen.terminated[t] else seen.discounts[t, 1]
        facts = {name: table[t] for name, table in seen.facts().items() if name != "truncated"}
        facts["terminated"] = bool(facts["terminated"])
        delta = h.update(seen.x[t], seen.x_next[t], **facts)
        same = online.update(
            seen.x[t], seen.cumulants[t, 1], seen.x_next[t], seen.rhos[t, 2], gamma
        )
        assert delta[0] == pytest.approx(same, rel=1e-12)  # NumPy sums in another order
    assert h.w[0].tobytes() == online.w.tobytes()


@pytest.mark.parametrize("text", [pytest.param(TRACED, marks=pytest.mark.slow), PLAIN])
def test_single_precision(text: str) -> None:
    """Within 2e-5 of the largest weight after 300 steps: 24 bits, of which scaled traces take 5."""
    seen = stream(300, seed=2)
    double = fed(st.horde(10, asked(text, 40)), seen)
    single = fed(st.horde(10, asked(text, 40), dtype="float32"), seen)
    worst = np.abs(single.w - double.w).max() / np.abs(double.w).max()
    assert 1e-9 < worst < 2e-5


def test_predictions_that_share_policy_discount_and_lam_share_a_trace() -> None:
    """The state of 128 predictions of one group is little more than their weights."""

    def state(policies: int, texts: tuple[str, ...] = (TRACED,), dtype: str = "float64") -> int:
        made = [
            st.prediction(texts[i % len(texts)], cumulant=i, policy=i % policies, discount=0.9)
            for i in range(128)
        ]
        return st.horde(1000, made, dtype=dtype).nbytes

    weights = 128 * 2 * 1000 * 8
    assert weights < state(1) < 1.05 * weights
    assert state(128) > 1.5 * weights
    assert 0.5 * weights < state(1, dtype="float32") < 0.55 * weights
    other = TRACED.replace("alpha=0.02", "alpha=0.03")
    assert state(1, (TRACED, other)) == state(1)  # another step size, the same trace


def test_save_and_go_on(tmp_path: Path) -> None:
    seen = stream(120)
    through = fed(st.horde(10, crowd()), seen)
    half = fed(st.horde(10, crowd()), seen.part(0, 50))
    path = half.save(tmp_path / "h.npz")
    again = st.load_horde(path)
    assert bits(again) == bits(half)
    assert again.predictions == half.predictions
    assert bits(fed(again, seen.part(50, 120))) == bits(through)
    assert (again.step, again.dtype) == (120, "float64")


@pytest.mark.parametrize("text", ["truncated_etd:alpha=0.001,n=2", "lstd", SLOW])
def test_laws_that_run_as_in_a_run_are_saved_whole(tmp_path: Path, text: str) -> None:
    """Their blocks keep more than weights; an online learner is the same block."""
    rng = np.random.default_rng(0)
    x = rng.random((41, 150)) * (rng.random((41, 150)) < 0.05)
    cumulants = rng.normal(size=(40, 1))
    asked = [st.prediction(text, cumulant=0, policy="behavior", discount=0.9)]
    through, half = st.horde(150, asked), st.horde(150, asked)
    through.update_many(x[:-1], x[1:], cumulants)
    half.update_many(x[:20], x[1:21], cumulants[:20])
    again = st.load_horde(half.save(tmp_path / "h.npz"))
    again.update_many(x[20:-1], x[21:], cumulants[20:])
    assert again.w.tobytes() == through.w.tobytes()
    alone = st.learner(text).start(150)  # the same block, one step at a time
    deltas = [alone.update(x[t], cumulants[t, 0], x[t + 1], 1.0, 0.9) for t in range(40)]
    assert alone.w.tobytes() == through.w[0].tobytes()
    assert np.isfinite(deltas).all()


@st.law(writes={"w": "x"}, params={"kappa": st.Param("a weight", default=1.0)})
def own(reward: float, w_x: float, alpha: float, kappa: float) -> float:
    """An average."""
    return alpha * kappa * (reward - w_x)


def test_loading_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "kernel", not_compiled)
    made = st.learner(own, alpha=0.5, kappa=0.5)
    h = st.horde(2, [st.prediction(made, cumulant=0, policy="behavior", discount=0.0)])
    h.update([1, 0], [0, 1], [4.0])
    path = h.save(tmp_path / "own.npz")
    with pytest.raises(st.InputError, match=r"^unknown learner 'own'"):
        st.load_horde(path)
    assert st.load_horde(path, laws=[own]).w.tolist() == [[1.0, 0.0]]
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(tmp_path / "less.npz", **{n: a for n, a in arrays.items() if n != "part0_V"})
    with pytest.raises(st.InputError, match=r"saved horde's 'part0_V' does not match these pre"):
        st.load_horde(tmp_path / "less.npz", laws=[own])
    older = json.loads(str(arrays["settings"])) | {"format": 1}
    np.savez(tmp_path / "older.npz", **arrays | {"settings": np.array(json.dumps(older))})
    with pytest.raises(st.InputError, match=r"older.npz' has format 1, this version reads 5; load"):
        st.load_horde(tmp_path / "older.npz", laws=[own])
    with pytest.raises(st.InputError, match=r"not a saved horde"):
        st.load_horde(st.learner("td:alpha=0.1").start(2).save(tmp_path / "learner.npz"))


def test_end_episode_is_a_cut_off() -> None:
    """Nothing of the old episode is in the traces of the next; its last step bootstraps."""
    seen = stream(40)
    never = np.zeros(40, dtype=bool)
    cut = seen._replace(terminated=never, truncated=np.arange(40) == 19)
    through = seen._replace(terminated=never, truncated=never)
    one = asked(OFTEN)[0]
    w = fed(st.horde(10, [one]), cut, one_by_one=True).w[0]
    np.testing.assert_allclose(w, slow_weights(one, cut, np.zeros(10)), rtol=1e-11, atol=1e-13)
    assert not np.allclose(w, fed(st.horde(10, [one]), through).w[0], rtol=1e-3)


def test_inputs_are_not_touched() -> None:
    seen = stream(20)
    before = [array.tobytes() for array in seen]
    fed(st.horde(10, crowd()), seen)
    assert [array.tobytes() for array in seen] == before


def test_two_threads_take_turns() -> None:
    """The step is always the same, so that their order does not count; 0.4 becomes 1e11 without."""
    made = [asked(OFTEN)[0], *(st.prediction(SLOW, cumulant=0, policy=1, discount=0.9),) * 60]
    one, two = (st.horde(10, made, threads=1) for _ in range(2))
    seen = stream(1)

    def work(h: st.Horde) -> None:
        for _ in range(300):
            fed(h, seen, one_by_one=True)

    by_two_threads(lambda: work(two))
    work(one)
    work(one)
    assert two.step == 600
    assert bits(two) == bits(one)
