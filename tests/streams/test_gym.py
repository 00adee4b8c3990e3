"""Streams from Gymnasium, against exact values, slow implementations and bad environments."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.learner import Learner
from steadytd.engine.reference import ReferenceLearner
from steadytd.features import feature_map
from steadytd.runs.gym_stream import GymStream, gym_stream, run_gym
from steadytd.runs.result import Result
from steadytd.runs.run import recording_points
from steadytd.streams import gymnasium_env, rollouts
from steadytd.streams.gymnasium_stream import Source, Steps, draw
from tests.support.cases import STEPS_OF_A_LAW, cases_of
from tests.support.slow_law import remembering

GAMMA, LIMIT = 0.9, 4
STATES, ACTIONS = 5, 2

rng = np.random.default_rng(7)
P = rng.dirichlet(np.ones(STATES + 1), size=(STATES, ACTIONS))  # the last column: termination
P[:, :, -1] *= 0.5
P /= P.sum(axis=2, keepdims=True)
R = rng.normal(size=(STATES, ACTIONS)) + 2.0
MU = rng.dirichlet(np.ones(ACTIONS) * 4, size=STATES)
PI = rng.dirichlet(np.ones(ACTIONS) * 2, size=STATES)
START = np.array([0.5, 0.5, 0.0, 0.0, 0.0])
SUMS = np.cumsum(P, axis=2)

P_PI = np.einsum("sa,sat->st", PI, P)[:, :STATES]
P_MU = np.einsum("sa,sat->st", MU, P)[:, :STATES]
R_PI = (PI * R).sum(axis=1)
V_PI = np.linalg.solve(np.eye(STATES) - GAMMA * P_PI, R_PI)


class Table(gymnasium.Env[Any, Any]):
    """Five states, two actions, probabilities as above."""

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(STATES)
        self.action_space = spaces.Discrete(ACTIONS)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.s = int(self.np_random.random() < START[1])
        return self.s, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        reward = float(R[self.s, action])
        u = self.np_random.random()
        s_next = int(np.searchsorted(SUMS[self.s, action], u, side="right"))
        ended = s_next >= STATES
        self.s = 0 if ended else s_next
        return self.s, reward, ended, False, {}


class Opaque(Table):
    """The same, but it holds something that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.simulator = iter(())


class Forgetful(Opaque):
    """Does not repeat an episode from its seed, but the whole walk from a new `resets`."""

    resets = itertools.count()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return super().reset(seed=next(Forgetful.resets))


def cut(make: Callable[[], Any] = Table, limit: int = LIMIT) -> Callable[[], Any]:
    return lambda: TimeLimit(make(), limit)


def behavior(obs: int) -> Floats:
    return np.asarray(MU[obs])


def target(obs: int) -> Floats:
    return np.asarray(PI[obs])


CUT = cut()


def stream(make: Callable[[], Any] = CUT, **settings: Any) -> GymStream:
    chosen: dict[str, Any] = {
        "behavior": behavior,
        "target": target,
        "features": "raw",
        "discount": GAMMA,
        "sample": 500,
        "states": 20,
        "rollouts": 2,
        **settings,
    }
    return gym_stream(make, **chosen)


def source(limit: int = LIMIT, gamma: float = GAMMA) -> Source:
    return Source(cut(limit=limit), behavior, (target,), gamma)


def run(s: GymStream, *learners: str, steps: int, seeds: int = 1, points: int = 2) -> Result:
    chosen = [st.learner(one) for one in learners]
    return run_gym(s, chosen, list(range(seeds)), recording_points(steps, points), 2)


def test_a_chunk_tells_what_happened() -> None:
    """Every transition, found again by playing the episodes' seeds and actions by hand."""
    walk = source().begin(3)
    chunk = walk.take(400)
    again = source().begin(3)
    env = cut()()
    chances = np.random.default_rng([1, 1, 3]).random(400)
    resets = np.random.default_rng([1, 2, 3])
    state, _ = env.reset(seed=int(resets.integers(2**31)))
    ends = cuts = 0
    fresh = False
    for i in range(400):
        assert chunk.obs[chunk.row[i]].tolist() == [state]
        action = 0 if chances[i] < MU[state, 0] else 1
        assert chunk.mu[i] == MU[state, action]
        assert chunk.pi[0, i] == PI[state, action]
        assert chunk.reward[i] == R[state, action]
        seen, _, terminated, truncated, _ = env.step(action)
        assert chunk.gamma_next[i] == (0.0 if terminated else GAMMA)
        state, fresh = seen, truncated and not terminated
        assert chunk.gamma_carried[i] == (0.0 if terminated or truncated else GAMMA)
        if terminated or truncated:
            state, _ = env.reset(seed=int(resets.integers(2**31)))
        arrived = state if terminated else seen  # termination is a step to the next start
        assert chunk.obs[chunk.row_next[i]].tolist() == [arrived]
        ends += terminated
        cuts += fresh
    assert min(ends, cuts) > 20
    assert again.take(400).obs.tobytes() == chunk.obs.tobytes()


def joined(parts: list[Steps]) -> list[Floats]:
    """What happened in several chunks, with features in place of rows."""
    names = ("reward", "gamma_next", "gamma_carried")
    return [
        np.concatenate([part.obs[part.row] for part in parts]),
        np.concatenate([part.obs[part.row_next] for part in parts]),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names),
        np.concatenate([part.pi[0] / part.mu for part in parts]),
    ]


def test_chunks_do_not_matter() -> None:
    one, many = source().begin(1), source().begin(1)
    whole = joined([one.take(300)])
    pieces = joined([many.take(n) for n in (1, 6, 1, 92, 3, 197)])
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(a, b)
    other = joined([source().begin(2).take(300)])
    assert not np.array_equal(whole[0], other[0])


def slow(learner: str, s: GymStream, steps: int, leak: bool = False, seed: int = 0) -> Floats:
    """td, etd or lstd with traces, step by step, traces emptied wherever an episode begins."""
    x, x_next, reward, gamma_next, carried, rho = joined([s.source.begin(seed).take(steps)])
    x, x_next = s.features(x), s.features(x_next)
    one = st.learner(learner)
    lam, alpha = float(one["lam"]), float(one.values.get("alpha", 0.0))
    d = x.shape[1]
    w, z, A, b = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.zeros(d)
    F = rho_prev = gamma = 0.0
    for i in range(steps):
        F = gamma * rho_prev * F + 1.0
        M = lam + (1 - lam) * F if one.name == "etd" else 1.0
        z = rho[i] * (gamma * lam * z + M * x[i])
        w = w + alpha * (reward[i] + gamma_next[i] * w @ x_next[i] - w @ x[i]) * z
        A += np.outer(z, x[i] - gamma_next[i] * x_next[i])
        b += reward[i] * z
        gamma, rho_prev = gamma_next[i] if leak else carried[i], rho[i]
    return np.asarray(np.linalg.solve(A, b)) if one.name == "lstd" else w


@pytest.mark.parametrize("limit", [1, LIMIT])
@pytest.mark.parametrize(
    "learner",
    ["td:alpha=0.01,lam=0.9", "etd:alpha=0.005,lam=0.5", "lstd:lam=0.9", "etd:alpha=0.01"],
)
def test_traces_do_not_leak_through_a_truncation(
    learner: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = stream(cut(limit=limit))
    found = run(s, learner, steps=300).weights(learner)[0]
    np.testing.assert_allclose(found, slow(learner, s, 300), rtol=1e-9)
    leaking = slow(learner, s, 300, leak=True)
    assert np.abs(found - leaking).max() > 1e-3 * np.abs(found).max()
    monkeypatch.setattr(
        "steadytd.runs.gym_stream.CHUNK", 7
    )  # an episode is often cut off at a chunk's end
    assert run(s, learner, steps=300).weights(learner)[0].tobytes() == found.tobytes()


def slow_weights(learner: Learner, s: GymStream, steps: int) -> Floats:
    """The weights, or for a law that is solved the system's solution, in plain NumPy."""
    (chunk,) = [s.source.begin(0).take(steps)]
    x, x_next, reward, gamma_next, carried, rho = joined([chunk])
    slow, (low, high) = ReferenceLearner(learner, np.zeros(s.n_features), True), s.sample.peaks[0]
    x, x_next = s.features(x), s.features(x_next)
    for i in range(steps):
        facts = {"reward": reward[i], "gamma_next": gamma_next[i], "rho": rho[i]}
        facts |= {"gamma_carried": carried[i]}
        facts |= {"pi": chunk.pi[0, i], "mu": chunk.mu[i], "interest": 1.0}
        slow.update(x[i], x_next[i], facts | {"peak_min": low, "peak_max": high})
    return slow.reported


@pytest.mark.slow
def test_every_law_on_a_stream_that_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain NumPy, and the same bits whatever the chunks."""
    learners = [x for x in [*STEPS_OF_A_LAW, *cases_of(remembering)] if x.law.of_discounted_states]
    s = stream(cut(limit=3))
    whole = st.run(s, learners, steps=200, seeds=[0], points=2)
    monkeypatch.setattr(
        "steadytd.runs.gym_stream.CHUNK", 7
    )  # an episode is often cut off at a chunk's end
    chunks = st.run(s, learners, steps=200, seeds=[0], points=2)
    for learner in learners:
        found = whole.weights(str(learner))
        assert found.tobytes() == chunks.weights(str(learner)).tobytes()
        np.testing.assert_allclose(found[0], slow_weights(learner, s, 200), rtol=1e-9, atol=1e-11)


def exact_weights(features: Floats, lam: float) -> Floats:
    """The fixed point of lstd on episodes of at most LIMIT steps, traces emptied between them.

    With y_t(s) = E[(gamma lam z_{t-1} + x_t) 1{s_t = s}], and E[rho | s] = 1, the sums of an
    episode are A = sum_t sum_s y_t(s) (x(s) - gamma sum_s' P_pi(s, s') x(s'))'.
    """
    d = features.shape[1]
    A, b = np.zeros((d, d)), np.zeros(d)
    visits, y = START, START[:, None] * features
    ahead = features - GAMMA * P_PI @ features
    for _ in range(LIMIT):
        A += y.T @ ahead
        b += y.T @ R_PI
        visits = visits @ P_MU
        y = GAMMA * lam * P_PI.T @ y + visits[:, None] * features
    return np.asarray(np.linalg.solve(A, b))


@pytest.mark.slow
def test_lstd_reaches_the_exact_fixed_point() -> None:
    """Within 4.5 standard errors over 20 seeds: it fails by chance once in 1,000 times."""
    s = stream()
    result = run(s, "lstd", "lstd:lam=0.8", steps=3000, seeds=20)
    x = s.features(np.arange(STATES)[:, None])
    for name, lam in (("lstd", 0.0), ("lstd:lam=0.8", 0.8)):
        weights, exact = result.weights(name), exact_weights(x, lam)
        stderr = weights.std(axis=0, ddof=1) / np.sqrt(20)
        assert (np.abs(weights.mean(axis=0) - exact) < 4.5 * stderr).all()
        assert (stderr < 0.03 * np.abs(exact).max()).all()
        aligned = exact_weights(np.eye(STATES), lam)
        np.testing.assert_allclose(aligned, V_PI, rtol=1e-9)  # a feature per state has no bias
    apart = np.abs(exact_weights(x, 0.8) - exact_weights(x, 0.0))
    assert apart.max() > 0.05  # the two fixed points are not the same anyway


def exact_check(s: GymStream) -> None:
    truth = s.truth
    states = truth.obs[:, 0].astype(int)
    assert len(set(states.tolist())) == STATES
    off = (truth.value[0] - V_PI[states]) / truth.stderr[0]
    assert np.abs(off).max() < 4.5
    assert 0.6 < off.std() < 1.6  # the standard errors are neither too small nor too large


def test_monte_carlo_values_are_right() -> None:
    """From copied states, through the time limit of four steps."""
    s = stream(rollouts=150, states=40)
    assert all(visit.snapshot is not None for visit in s.sample.visits)
    exact_check(s)
    assert s.truth is s.truth
    np.testing.assert_allclose(
        s.truth.resolution, np.sqrt((s.truth.stderr**2).mean(axis=1)), rtol=1e-12
    )


@pytest.mark.slow
def test_monte_carlo_by_replay() -> None:
    s = stream(cut(Opaque), rollouts=150, states=40)
    assert all(visit.snapshot is None for visit in s.sample.visits)
    exact_check(s)


def test_monte_carlo_by_the_users_function() -> None:
    def restore(env: Any, obs: int) -> None:
        env.unwrapped.s = obs

    Forgetful.resets = itertools.count()
    exact_check(stream(cut(Forgetful), rollouts=150, states=40, restore=restore))
    with pytest.raises(st.InputError, match=r"does not reproduce an episode.* give restore="):
        _ = stream(cut(Forgetful)).truth


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1"])
def test_classic_control_is_put_back(name: str) -> None:
    env = gymnasium.make(name)
    env.reset(seed=1)
    for action in (0, 1, 0):
        env.step(action)
    kept = gymnasium_env.snapshot(env)
    assert kept is not None
    ahead = [env.step(a % 2)[0] for a in range(8)]
    env.reset(seed=2)
    for _ in range(2):  # a snapshot may be used again
        gymnasium_env.restore_snapshot(env, kept)
        np.testing.assert_array_equal([env.step(a % 2)[0] for a in range(8)], ahead)
    env.close()


def test_a_state_changed_in_place_is_put_back() -> None:
    class Counting(Table):
        def reset(self, **given: Any) -> tuple[int, dict[str, Any]]:
            self.counts, self.taken = np.zeros(2), [np.zeros(2)]
            return super().reset(**given)

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            self.counts[action] += 1
            self.taken[0][action] += 1
            self.path = [*getattr(self, "path", []), action]
            return super().step(action)

    env = Counting()
    env.reset(seed=1)
    env.step(1)
    kept = gymnasium_env.snapshot(env)
    assert kept is not None
    for _ in range(2):
        gymnasium_env.restore_snapshot(env, kept)
        assert env.counts.tolist() == env.taken[0].tolist() == [0, 1]
        assert env.path == [1]
        env.step(0)


def test_wrappers_are_put_back_too() -> None:
    env = gymnasium.wrappers.FrameStackObservation(gymnasium.make("CartPole-v1"), 3)
    env.reset(seed=1)
    env.step(0)
    kept = gymnasium_env.snapshot(env)
    assert kept is not None
    ahead = env.step(1)[0]
    env.reset(seed=2)
    gymnasium_env.restore_snapshot(env, kept)
    np.testing.assert_array_equal(env.step(1)[0], ahead)
    env.close()


def test_same_seed_same_bits() -> None:
    learners = ["td:alpha=0.01,lam=0.5", "tdc:alpha=0.01", "lstd", "td:alpha=0.02"]
    one = run(stream(), *learners, steps=500, seeds=2, points=6)
    two = run(stream(), *learners, steps=500, seeds=2, points=6)
    assert one.errors.tobytes() == two.errors.tobytes()
    assert one.final_weights.tobytes() == two.final_weights.tobytes()
    alone = run(stream(), learners[3], steps=500, seeds=2, points=6)
    assert alone.errors[0].tobytes() == one.errors[3].tobytes()
    other = run(stream(seed=1), *learners, steps=500, seeds=2, points=6)
    assert not np.array_equal(one.errors, other.errors)
    assert not np.array_equal(one.errors[:, 0], one.errors[:, 1])


def test_points_at_the_end_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(stream(), "td:alpha=0.01,lam=0.5", "lstd", steps=500, points=11)
    monkeypatch.setattr("steadytd.runs.gym_stream.CHUNK", 50)
    pieces = run(stream(), "td:alpha=0.01,lam=0.5", "lstd", steps=500, points=11)
    assert whole.errors.tobytes() == pieces.errors.tobytes()
    assert len(np.unique(whole.errors)) > 15


def test_errors_are_those_of_the_visited_states() -> None:
    s = stream(states=30)
    r = run(s, "td:alpha=0.05", "lstd", steps=5000, points=11)
    assert r.steps.tolist() == list(range(0, 5001, 500))
    for i, name in enumerate(("td:alpha=0.05", "lstd")):
        found = s.values(r.weights(name)[0])
        by_hand = s.features(s.truth.obs) @ r.weights(name)[0]
        np.testing.assert_allclose(found, by_hand)
        error = np.sqrt(np.mean((by_hand - s.truth.value[0]) ** 2))
        assert r.errors[i, 0, -1] == pytest.approx(error, rel=1e-12)
        assert r.errors[i, 0, 0] == pytest.approx(np.sqrt(np.mean(s.truth.value[0] ** 2)))
    assert r.curves.columns == ["learner", "seed", "step", "error"]
    assert r.summary["final"].to_list() == r.errors[:, 0, -1].tolist()
    assert r.problem is s
    assert s.name == "Table"
    with pytest.raises(st.InputError, match="a stream and has no exact model"):
        _ = r.task


def test_several_targets_at_once() -> None:
    both = stream(target=[target, [0.3, 0.7]], states=10)
    alone = stream(target=[0.3, 0.7], states=10)
    assert (both.n_policies, alone.n_policies) == (2, 1)
    weights = run(both, "td:alpha=0.05,lam=0.5", steps=400).weights("td:alpha=0.05,lam=0.5")
    assert weights.shape == (1, 2, 2)
    second = run(alone, "td:alpha=0.05,lam=0.5", steps=400).weights("td:alpha=0.05,lam=0.5")
    assert weights[:, 1].tobytes() == second.tobytes()
    assert both.truth.value.shape == (2, 10)


def test_sparse_features_run_as_dense_ones() -> None:
    s = stream(features="onehot")
    r = run(s, "td:alpha=0.1,lam=0.7", steps=300)
    np.testing.assert_allclose(
        r.weights("td:alpha=0.1,lam=0.7")[0], slow("td:alpha=0.1,lam=0.7", s, 300), rtol=1e-9
    )


def test_a_fitted_map_is_used_as_it_is() -> None:
    f = feature_map("raw").fit([[0.0], [10.0]])
    assert stream(features=f).features is f


def test_peaks_are_those_of_the_policies() -> None:
    (low, high) = stream(sample=2000).sample.peaks[0]
    assert (low, high) == (np.maximum(PI, MU).min(), np.maximum(PI, MU).max())


def test_a_flat_error_on_a_stream_is_flat_and_nothing_more(tmp_path: Path) -> None:
    """A large penalty holds the values near 0: the curve rests at an error that lstd has not."""
    s = stream()
    r = run(s, "perturbed_td:alpha=0.002,eta=10", "lstd", steps=3000, seeds=2, points=101)
    stuck, solved = r.errors[:, :, -1].mean(axis=1)
    assert stuck > 2.0 * solved and stuck > 0.7 * r.errors[0, 0, 0]
    flat = "flat; no model to compare with"
    assert r.outcomes[0] == [flat] * 2 and r.summary["outcome"][0] == flat
    page = r.report(tmp_path / "page.html").read_text()
    for text in (" ".join(str(r).split()), repr(r), page.partition("Overflowed: a weight")[0]):
        assert "flat" in text and "ettled" not in text.replace("not settled", "")
    r.save(tmp_path / "kept")
    assert st.load_result(tmp_path / "kept").summary["outcome"][0] == flat


def test_progress_counts_learner_updates() -> None:
    seen: list[tuple[int, int]] = []
    learners = [st.learner("td:alpha=0.1"), st.learner("lstd")]
    points = recording_points(5000, 2)
    run_gym(stream(), learners, [0, 1], points, 1, lambda done, total: seen.append((done, total)))
    assert seen == [(8192, 20000), (10000, 20000), (18192, 20000), (20000, 20000)]


def test_draw_is_by_inversion() -> None:
    chances = [0.25, 0.0, 0.5, 0.25]
    assert [draw(chances, u) for u in (0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999)] == [
        0,
        0,
        2,
        2,
        3,
        3,
    ]
    assert draw([0.5, 0.5 - 1e-9, 0.0], 1 - 1e-12) == 1  # rounding never gives an impossible action


def test_observations_become_vectors() -> None:
    class Shaped(Table):
        def __init__(self, space: spaces.Space[Any]) -> None:
            super().__init__()
            self.observation_space = space

    box = gymnasium_env.vectoriser(Shaped(spaces.Box(0, 1, (2, 2))))
    assert box([[1, 2], [3, 4]]).tolist() == [1, 2, 3, 4]
    pair = spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1, (1,))])
    assert gymnasium_env.vectoriser(Shaped(pair))((2, np.array([0.5]))).tolist() == [0, 0, 1, 0.5]
    with pytest.raises(st.InputError, match="cannot be made vectors"):
        gymnasium_env.vectoriser(Shaped(spaces.Sequence(spaces.Discrete(3))))


def test_the_old_name_of_the_discount_means_the_same() -> None:
    assert stream(discount=None, gamma=0.5).discount == stream(discount=0.5).discount == 0.5
    assert stream(discount=None).discount == 0.99


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(st.InputError, match=r"pip install 'steadytd\[gym\]'"):
        gym_stream("CartPole-v1", behavior=[0.5, 0.5], target=[0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"behavior": [0.5, 0.6]}, r"behavior policy must give 2 probabilities.*\[0.5, 0.6\]"),
        ({"behavior": [0.5, 0.25, 0.25]}, "must give 2 probabilities"),
        ({"behavior": [-0.5, 1.5]}, "must give 2 probabilities"),
        ({"target": lambda obs: None}, "target policy must give 2 probabilities.* got None"),
        ({"target": [np.nan, 1.0]}, "target policy must give 2 probabilities"),
        ({"behavior": [1.0, 0.0]}, "takes action 1 with probability .* behaviour policy never"),
        ({"discount": 1.5}, "discount must be between 0 and 1, got 1.5"),
        ({"discount": "0.9"}, "discount must be between 0 and 1, got '0.9'"),
        ({"gamma": 0.5}, "discount = 0.9 and gamma = 0.5 are the same number; leave out gamma"),
        ({"states": 501}, "states must be at most sample = 500, got 501"),
        ({"states": 0}, "states must be a whole number >= 1, got 0"),
        ({"rollouts": 1}, "rollouts must be a whole number >= 2, got 1"),
        ({"sample": 1.5}, "sample must be a whole number >= 1, got 1.5"),
        ({"horizon": 0}, "horizon must be a whole number >= 1, got 0"),
        ({"features": "rfb:3"}, "did you mean 'rbf'"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_settings(change: dict[str, Any], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        stream(**change)


def test_bad_environments() -> None:
    class Broken(Table):
        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return self.s, float("nan"), False, False, {}

    with pytest.raises(st.InputError, match=r"Gymnasium cannot make 'CartPoel-v1': .*CartPole"):
        stream("CartPoel-v1")  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="a function that makes one"):
        stream(Table())  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="must be a Discrete space that starts at 0, got Box"):
        stream("Pendulum-v1")  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="reward at step 0 is nan"):
        stream(Broken)


def test_endless_rollouts_without_discount() -> None:
    class Endless(Table):
        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return self.s, 1.0, False, False, {}

    s = stream(cut(Endless), discount=1.0, horizon=50)
    with pytest.raises(st.InputError, match="one did not within 50 steps"):
        _ = s.truth
    assert rollouts.default_horizon(1.0) == 100_000
    assert rollouts.default_horizon(0.0) == 1
    assert 0.9 ** rollouts.default_horizon(0.9) <= 1e-4 < 0.9 ** (rollouts.default_horizon(0.9) - 1)


def test_learners_that_do_not_fit() -> None:
    with pytest.raises(st.InputError, match=r"learners run on a problem, .* got 3"):
        st.run(3, "td:alpha=0.1", steps=10)  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="eta=auto needs a known model, which a Gymnasium"):
        run(stream(), "perturbed_td:alpha=0.1,eta=auto", steps=10)
    with pytest.raises(st.InputError, match="gq learns action values"):
        run(stream(), "gq:alpha=0.1", steps=10)
