"""The loop of a Horde against the engine's slow loop, for every law."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.active import fits
from steadytd.engine.law import arguments
from steadytd.engine.step.layouts import active as layout
from steadytd.hordes import part
from steadytd.learners import algorithm
from tests.support.draws import thinned
from tests.support.hordes import Stream, asked, not_compiled, slow_weights, stream

W0 = np.random.default_rng(7).normal(size=10)


def texts() -> list[str]:
    """Every registered law with a step size, without and (where it has them) with traces.

    Of the average reward, which has no discount, `tests/mdp/test_average_reward.py` has one.
    """
    found = []
    for name in st.learners():
        law = algorithm(name)
        if law.block is not None or law.average_reward:
            continue
        more = {"ratio": "ratio=1", "eta": "eta=0.1", "ridge": "ridge=0.1", "beta": "beta=0.5"}
        given = [text for param, text in more.items() if param in law.params]
        lengths = [""]
        if law.traces and not law.windows:
            lengths += [f"{law.trace_param}=0.8"]
        for variant in law.variants or [""]:
            chosen = f"{law.variant_param}={variant}" if variant else ""
            parts = [",".join(filter(None, ["alpha=0.02", *given, lam, chosen])) for lam in lengths]
            found += [f"{name}:{text}" for text in parts]
    return found


def learned(text: str | st.Learner, seen: Stream) -> tuple[Floats, list[Floats]]:
    """The weights of some predictions, and those of the slow loop."""
    predictions = asked(text)
    h = st.horde(seen.x.shape[1], predictions, w0=W0[: seen.x.shape[1]])
    h.update_many(seen.x, seen.x_next, **seen.facts(policies=True))
    return h.w, [slow_weights(one, seen, W0) for one in predictions]


@pytest.mark.parametrize("text", thinned(texts(), 2))
def test_every_law_learns_what_the_slow_loop_learns(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit without trace vectors, unless a whole vector is scaled."""
    monkeypatch.setattr(part, "kernel", not_compiled)
    w, slow = learned(text, stream(60))
    law, traced = st.learner(text).law, st.learner(text).traced
    scaled = any(v in parts for v, parts in law.writes.items())
    for ours, theirs in zip(w, slow, strict=True):
        assert not np.array_equal(theirs, W0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
        if fits(st.learner(text)) and not traced and not scaled:
            assert ours.tobytes() == theirs.tobytes()


def test_texts_cover_every_structure() -> None:
    laws = {st.learner(text).law for text in texts() if st.learner(text).traced}
    assert len(texts()) > 40
    assert {len(law.traces) for law in laws} == {1, 2, 3}
    assert {len(law.vectors) for law in laws} == {1, 2}
    assert any(law.memory for law in laws)
    assert any("z_z" in arguments(law.update) for law in laws)
    fast = [x for x in map(st.learner, texts()) if fits(x)]
    assert 0.8 * len(texts()) < len(fast) < len(texts())


@st.law(
    writes={"w": ("z", "y", "x"), "h": ("y", "h", "x_next")},
    traces={
        "z": lambda rho, gamma, lam, w_x: (rho * gamma * lam, rho / (1.0 + abs(w_x))),
        "y": lambda rho_prev, gamma, lam, h_y, y_x_next: (
            -rho_prev * gamma * lam, 1.0 / (1.0 + abs(h_y) + abs(y_x_next))),
    },
    params={"lam": st.Param("trace decay", default=0.0, low=0.0, high=1.0)},
    memory={"F": lambda F, gamma, rho_prev, interest: gamma * rho_prev * F + interest},
)  # fmt: skip
def odd(reward, gamma_next, w_x, w_x_next, h_z, h_y, z_y, y_y, F, alpha):  # type: ignore[no-untyped-def]
    """Traces that depend on the weights, a negative decay, a vector that shrinks: all at once."""
    delta = reward + gamma_next * w_x_next - w_x
    step = alpha / (1.0 + F)
    w = step * delta, step * (h_z - h_y), -step * z_y / (1.0 + abs(y_y))
    return w, (step * delta, -0.1, step * h_y)


@pytest.mark.parametrize("lam", [0.0, 0.9])
def test_a_law_of_ones_own(lam: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "kernel", not_compiled)
    w, slow = learned(st.learner(odd, alpha=0.05, lam=lam), stream(80, seed=3))
    for ours, theirs in zip(w, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def wild(steps: int, seed: int) -> Stream:
    """Ratios up to 1,000 and down to 0.001, with long and short episodes."""
    rng = np.random.default_rng(seed)
    calm = stream(steps, seed=seed, share=0.4)
    pi = 10.0 ** rng.uniform(-3.0, 0.0, size=calm.pi.shape)
    mu = 10.0 ** rng.uniform(-3.0, 0.0, size=calm.mu.shape)
    ends = rng.random(steps) < 0.1
    return calm._replace(pi=pi, mu=mu, terminated=ends, truncated=np.zeros(steps, dtype=bool))


@pytest.mark.parametrize("seed", thinned([0, 1], 2))
def test_ratios_up_to_a_thousand(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces that rise and fall by many orders of magnitude."""
    monkeypatch.setattr(part, "kernel", not_compiled)
    seen = wild(300, seed)
    w, slow = learned("tdc:alpha=1e-9,ratio=1,lam=1", seen)
    for ours, theirs in zip(w, slow, strict=True):
        assert np.isfinite(theirs).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


def up_and_down(steps: int) -> Stream:
    """Ratios of 1,000 and 0.001 in turn, without an end of an episode."""
    never = np.zeros(steps, dtype=bool)
    x = np.eye(10)[np.minimum(np.arange(steps + 1), 1 + np.arange(steps + 1) % 9)]
    up = np.arange(steps)[:, None] % 4 < 2
    return stream(steps)._replace(
        x=x[:-1], x_next=x[1:], discounts=np.ones((steps, 2)), terminated=never, truncated=never,
        pi=np.where(up, 1.0, 0.001) * np.ones(3), mu=np.where(up, 0.001, 1.0) * np.ones(3),
    )  # fmt: skip


def test_a_trace_that_rises_and_falls_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ring turns many times, and the first entry never decays: it moves from row to row."""
    monkeypatch.setattr(part, "kernel", not_compiled)
    w, slow = learned("td:alpha=1e-9,lam=1", up_and_down(80))
    for ours, theirs in zip(w[:3], slow[:3], strict=True):  # the last has a discount of 0.8
        assert abs(theirs[0] - W0[0]) > 1e-4
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


def in_turn(steps: int, features: int) -> Stream:
    """One feature in every step, all of them in a drawn order, again and again; all ratios 1."""
    order = np.random.default_rng(0).permutation(features)
    x = np.eye(features)[order[np.arange(steps + 1) % features]]
    never, ones = np.zeros(steps, dtype=bool), np.ones((steps, 3))
    return stream(steps)._replace(
        x=x[:-1], x_next=x[1:], discounts=ones[:, :2], terminated=never, truncated=never,
        pi=ones, mu=ones,
    )  # fmt: skip


def test_the_ring_is_settled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """At lam = 0.5 a row is open for 14 steps, and a feature comes back when it is settled.

    So 14 features are due with every row, and at most half of them in one step: no step is long.
    """
    monkeypatch.setattr(part, "kernel", not_compiled)
    seen = in_turn(400, 160)
    one = st.prediction("td:alpha=0.1,lam=0.5", cumulant=0, policy="behavior", discount=1.0)
    h = st.horde(160, [one])
    (own,) = h._lanes
    settled = []
    for t in range(400):
        before = own.lanes.row_of.copy()
        h.update(seen.x[t], seen.x_next[t], seen.cumulants[t])
        settled.append(int(((own.lanes.row_of != before) & (seen.x[t] == 0.0)).sum()))
    assert sum(settled) > 200
    assert max(settled) <= 7
    slow = slow_weights(one, seen, np.zeros(160))
    np.testing.assert_allclose(h.w[0], slow, rtol=1e-11, atol=1e-12)


def test_a_factor_that_leaves_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector that shrinks as a whole: its factor goes into the vector every seven steps."""
    monkeypatch.setattr(part, "kernel", not_compiled)
    low, gone, _ = layout.LIMITS["float64"]
    monkeypatch.setitem(layout.LIMITS, "float64", (low, gone, 0.5))
    for lam in (0.0, 0.9):
        w, slow = learned(st.learner(odd, alpha=0.05, lam=lam), stream(80, seed=3))
        for ours, theirs in zip(w, slow, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [1.0, 0.3])
def test_the_ring_over_many_steps(lam: float) -> None:
    """With lam = 1 and discount 1 nothing decays; with 0.3 a row is open for eight steps."""
    calm = stream(700, seed=5)
    never = np.zeros(700, dtype=bool)
    seen = calm._replace(terminated=never, truncated=never, discounts=np.ones((700, 2)),
                         pi=calm.mu if lam == 1.0 else calm.pi)  # fmt: skip
    w, slow = learned(f"tdc:alpha=0.001,ratio=1,lam={lam}", seen)
    for ours, theirs in zip(w, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
