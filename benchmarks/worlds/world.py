"""Finite worlds with exact truth: dynamics, two policies, and how logs are made.

The truth is solved, not sampled: v = (I - discount P_pi)^-1 r_pi. Dynamics are written as a
function of state and action that lists what can happen; the next state None ends the episode:

    @table(states=range(8), actions=3, first=(0, 1, 2))
    def pump(s, a):
        return [(probability, next state, reward), ...]

`worlds` adds policies and logs; it returns functions, so that a world is solved only when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOISE = 7.0  # standard deviations: no log has a reward beyond


class Dynamics(NamedTuple):
    """P [S, A, S'], mean reward r [S, A, S'], ends [S'] (an episode ends there), start [S], obs."""

    P: Floats
    r: Floats
    ends: NDArray[np.bool_]
    start: Floats
    obs: Floats  # [S, k]
    noise: float = 0.0  # standard deviation of the reward around its mean


@dataclass(frozen=True)
class World:
    """What a log is made of. `logged` are the behaviour's probabilities as the log states them."""

    dynamics: Dynamics
    mu: Floats
    pi: Floats
    discount: float
    features: str
    episodes: int  # rows where it is endless
    length: int = 10_000  # steps after which an episode is cut off
    endless: bool = False
    logged: Floats | None = None
    estimated: bool = False

    @property
    def behavior(self) -> str | None:
        """What `evaluate` is told."""
        return "estimate" if self.estimated else None

    @property
    def arguments(self) -> dict[str, Any]:
        """What `st.evaluate` is told besides the log."""
        return {"discount": self.discount, "features": self.features, "behavior": self.behavior}

    def without_probabilities(self) -> World:
        """The log states no probabilities; the target knows no more than the log shows."""
        obs = self.dynamics.obs
        same = (obs[:, None] == obs).all(axis=2)
        pi = same @ self.pi / same.sum(axis=1, keepdims=True)
        return replace(self, estimated=True, logged=None, pi=pi)

    @property
    def truths(self) -> dict[str, float]:
        """What each target is worth."""
        return {"pi": self.truth}

    def values(self, policy: Floats) -> Floats:
        """The value of every state under a policy, by solving Bellman's equation."""
        d = self.dynamics
        P = np.einsum("sa,sat->st", policy, d.P)
        r = np.einsum("sa,sat,sat->s", policy, d.P, d.r)
        v = np.linalg.solve(np.eye(len(P)) - self.discount * P * ~d.ends, r)
        return np.asarray(np.where(d.ends, 0.0, v))

    @cached_property
    def weights(self) -> Floats:
        """Where values are asked for: first states, or the states of an endless log."""
        return self.visits(self.mu) if self.endless else self.dynamics.start

    def visits(self, policy: Floats) -> Floats:
        """The stationary distribution of a policy."""
        P = np.einsum("sa,sat->st", policy, self.dynamics.P)
        system = np.vstack([np.eye(len(P)) - P.T, np.ones(len(P))])
        found = np.linalg.lstsq(system, np.append(np.zeros(len(P)), 1.0), rcond=None)[0]
        return np.asarray(np.maximum(found, 0.0) / np.maximum(found, 0.0).sum())

    @cached_property
    def rates(self) -> dict[str, float]:
        """Rewards per step in the long run, of the target and of "behavior"."""
        r = np.einsum("sat,sat->sa", self.dynamics.P, self.dynamics.r)
        policies = {"pi": self.pi, "behavior": self.mu}
        return {k: float(self.visits(p) @ (p * r).sum(axis=1)) for k, p in policies.items()}

    @cached_property
    def truth(self) -> float:
        """What the target is worth."""
        return float(self.weights @ self.values(self.pi))

    @cached_property
    def behavior_truth(self) -> float:
        """What the policy that made the log is worth."""
        return float(self.weights @ self.values(self.mu))

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward of a step; noise beyond NOISE deviations is left out."""
        d = self.dynamics
        can = (d.P > 0.0) & ~d.ends[:, None, None]
        reached = d.start > 0.0
        for _ in range(len(reached)):
            more = reached | can[reached].any(axis=(0, 1))
            if (more == reached).all():
                break
            reached = more
        possible = d.r[can & reached[:, None, None]]
        beyond = NOISE * d.noise
        return float(possible.min() - beyond), float(possible.max() + beyond)

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats, Floats]:
        d = self.dynamics
        return np.cumsum(self.weights), np.cumsum(self.mu, axis=1), np.cumsum(d.P, axis=2)

    def log(self, seed: int, whole: bool = False, streams: int = 1) -> Any:
        """A log as an Arrow table; `whole`: with the probabilities of every action.

        Where it is endless it is one stream, or so many that begin at first states.
        """
        c = self.columns(seed, streams)
        d, s, a = self.dynamics, c["s"], c["action"]
        obs, after = d.obs[s], d.obs[c["s_next"]]
        stated = self.mu if self.logged is None else self.logged
        cut = c["truncated"]
        table = {
            "episode_id": c["episode_id"], "t": c["t"], "obs": lists(obs), "action": a,
            "reward": c["reward"], "terminated": c["terminated"], "truncated": cut,
            "next_obs": lists(after, ~cut),
            "target_prob_pi": self.pi[s, a],
        }  # fmt: skip
        if not self.estimated:
            table["behavior_prob"] = np.minimum(stated[s, a], 1.0)
        if whole:
            table["target_probs_pi"] = lists(self.pi[s])
            table["next_target_probs_pi"] = lists(self.pi[c["s_next"]], ~cut)
            if not self.estimated:
                table["behavior_probs"] = lists(stated[s])
        return pa.table(table)

    def columns(self, seed: int, streams: int = 1) -> dict[str, NDArray[Any]]:
        """The same as plain arrays, with states instead of observations."""
        rng = np.random.default_rng([seed, 7411])
        d = self.dynamics
        episodes, length = self.episodes, self.length
        cumulative = self._cumulative
        if self.endless:
            episodes, length = streams, self.episodes // streams
        if streams > 1:
            cumulative = np.cumsum(d.start), *cumulative[1:]
        found = _walk(rng, cumulative, d.ends, episodes, length)
        episode, t, s, a, after = (np.asarray(x) for x in found)
        terminated = d.ends[after]
        last = np.append(episode[1:] != episode[:-1], True)
        reward = d.r[s, a, after] + d.noise * rng.standard_normal(len(s))
        return {
            "episode_id": episode, "t": t, "s": s, "action": a, "reward": reward, "s_next": after,
            "terminated": terminated, "truncated": last & ~terminated,
        }  # fmt: skip


def lists(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> Any:
    """A matrix as an Arrow array of fixed-size lists."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    mask = None if null is None else pa.array(null)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=mask)


@numba.njit(cache=True)
def _walk(rng: Any, cumulative: Any, ends: Any, episodes: int, length: int) -> Any:
    """Episodes of the behaviour policy: rows of (episode, t, s, a, s')."""
    start, mu, P = cumulative
    size = 1024
    rows = np.empty((5, size), np.int64)
    n = 0
    for e in range(episodes):
        s = min(np.searchsorted(start, rng.random() * start[-1], side="right"), len(start) - 1)
        for t in range(length):
            a = min(np.searchsorted(mu[s], rng.random() * mu[s, -1], side="right"), len(mu[s]) - 1)
            u = rng.random() * P[s, a, -1]
            after = min(np.searchsorted(P[s, a], u, side="right"), len(start) - 1)
            if n == size:
                grown = np.empty((5, 2 * size), np.int64)
                for k in range(size):  # a slice takes Numba seconds to compile
                    for j in range(5):
                        grown[j, k] = rows[j, k]
                rows, size = grown, 2 * size
            rows[0, n], rows[1, n], rows[2, n], rows[3, n], rows[4, n] = e, t, s, a, after
            n += 1
            if ends[after]:
                break
            s = after
    return rows[:, :n]


Moves = Iterable[tuple[float, Any, float]]  # probability, next state or None (the end), reward
Policies = Callable[[Dynamics, float], tuple[Floats, Floats]]  # of dynamics and discount


def table(
    states: Iterable[Any],
    actions: int,
    first: Iterable[Any] | Mapping[Any, float],
    noise: float = 0.0,
    scale: float = 1.0,
) -> Callable[[Callable[..., Moves]], Callable[..., Dynamics]]:
    """Make dynamics of a function (state, action, more ...) that lists moves.

    Each different reward of a last step has an end of its own, so that logs show it. `first` are
    the first states, evenly or with weights; an observation is the state's numbers times `scale`.
    """
    states = list(states)
    weights = first if isinstance(first, Mapping) else dict.fromkeys(first, 1.0)

    def dynamics(moves: Callable[[Any, int], Moves]) -> Dynamics:
        listed = [
            (s, a, p, reward if to is None else to, to is None, reward)
            for s in states
            for a in range(actions)
            for p, to, reward in moves(s, a)
            if p
        ]
        ends = sorted({to for *_, to, end, _ in listed if end})
        at = {(False, s): i for i, s in enumerate(states)}
        at |= {(True, reward): len(states) + i for i, reward in enumerate(ends)}
        S = len(at)
        P, total = np.zeros((S, actions, S)), np.zeros((S, actions, S))
        for s, a, p, to, end, reward in listed:
            P[at[False, s], a, at[end, to]] += p
            total[at[False, s], a, at[end, to]] += p * reward
        r = np.divide(total, P, out=np.zeros(P.shape), where=P > 0.0)
        P[np.arange(len(states), S), :, np.arange(len(states), S)] = 1.0
        start = np.array([weights.get(s, 0.0) for s in states] + [0.0] * len(ends))
        obs = scale * np.array([np.atleast_1d(s) for s in states], dtype=float)
        obs = np.vstack([obs, np.full((len(ends), obs.shape[1]), -1.0)])
        return Dynamics(P, r, np.arange(S) >= len(states), start / start.sum(), obs, noise)

    def decorated(moves: Callable[..., Moves]) -> Callable[..., Dynamics]:
        return cache(lambda **more: dynamics(partial(moves, **more)))

    return decorated


def closing(d: Dynamics, end: float) -> Dynamics:
    """The same, but each step is the last one with probability `end`."""
    S, A = d.P.shape[:2]
    P, r = np.zeros((S + 1, A, S + 1)), np.zeros((S + 1, A, S + 1))
    P[:S, :, :S], P[:S, :, S], P[S, :, S] = d.P * (1.0 - end), end, 1.0
    r[:S, :, :S] = d.r
    r[:S, :, S] = np.einsum("sat,sat->sa", d.P, d.r)
    obs = np.vstack([d.obs, d.obs.min(axis=0) - 1.0])
    return Dynamics(P, r, np.append(d.ends, True), np.append(d.start, 0.0), obs, d.noise)


def worlds(
    name: str,
    make: Callable[[], Dynamics],
    discount: float,
    policies: Policies,
    *logs: str,
    stated: Callable[[Floats], Floats] | None = None,
    seen: int | None = None,
    estimated: bool = False,
    **more: Any,
) -> dict[str, Callable[[], World]]:
    """Functions that make worlds, by name, for logs like "raw 500" or "few: raw 50".

    A log has features and a number of episodes (rows where it is endless), and is called by its
    features if it has no name. `stated` makes the logged probabilities of the true ones, or they
    are not logged but `estimated`. The first `seen` numbers of each observation are logged.
    """

    def made(features: str, episodes: int) -> World:
        d = make()
        mu, pi = policies(d, discount)
        d = d._replace(obs=d.obs[:, :seen])
        logged = None if stated is None else stated(mu)
        world = World(d, mu, pi, discount, features, episodes, logged=logged, **more)
        return world.without_probabilities() if estimated else world

    found: dict[str, Callable[[], World]] = {}
    for log in logs:
        features, episodes = log.split()[-2:]
        label, colon, _ = log.rpartition(": ")
        called = f"{name} {label if colon else features}".strip()
        found[called] = partial(made, features, int(episodes))
    return found


def even(mu: list[float], pi: list[float]) -> Policies:
    """The same probabilities in every state."""
    return lambda d, _: (np.tile(mu, (len(d.P), 1)), np.tile(pi, (len(d.P), 1)))


def softer(
    behavior: float, target: float, explore: float, target_explore: float | None = None
) -> Policies:
    """Both are softmax of Q*, of some sharpness; the target explores half as much, if not said."""
    other = explore / 2 if target_explore is None else target_explore
    return lambda d, g: (soft(d, g, behavior, explore), soft(d, g, target, other))


def best_values(d: Dynamics, discount: float) -> Floats:
    """Q* [S, A] by value iteration."""
    mean = np.einsum("sat,sat->sa", d.P, d.r)
    goes_on = discount * d.P * ~d.ends
    q = np.zeros(mean.shape)
    for _ in range(5000):
        new = mean + goes_on @ q.max(axis=1)
        if np.abs(new - q).max() < 1e-9 * (1.0 + np.abs(new).max()):
            break
        q = new
    return np.asarray(q)


def soft(d: Dynamics, discount: float, sharp: float, explore: float = 0.0) -> Floats:
    """softmax(sharp Q* / spread of Q*), mixed with `explore` of the uniform policy."""
    q = best_values(d, discount)
    q = q - q.max(axis=1, keepdims=True)
    spread = q[~d.ends].min(axis=1)
    weight = np.exp(sharp * q / max(float(-spread.mean()), 1e-12))
    policy = weight / weight.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - explore) * policy + explore / q.shape[1])


def mixed(one: Floats, other: Floats, share: float) -> Floats:
    """(1 - share) one + share other."""
    return (1.0 - share) * one + share * other


def powered(policy: Floats, power: float) -> Floats:
    """policy^power, normalised: sharper (> 1) or flatter (< 1)."""
    found = policy**power
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def swapped(policy: Floats, one: int = 0, other: int = 1) -> Floats:
    """Two actions' probabilities exchanged."""
    found = policy.copy()
    found[:, [one, other]] = policy[:, [other, one]]
    return found


def shifted(policy: Floats, seed: int, size: float) -> Floats:
    """Each probability times exp(size x normal), normalised."""
    rng = np.random.default_rng(seed)
    found = policy * np.exp(size * rng.standard_normal(policy.shape))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
