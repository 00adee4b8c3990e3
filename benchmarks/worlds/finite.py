"""How finite worlds are written: a function of state and action that lists what can happen.

    @table(states=range(8), actions=3, first=(0, 1, 2))
    def pump(s, a):
        return [(probability, next state, reward), ...]

The next state None ends the episode. `worlds` adds policies and logs; it returns functions, so that
a world is solved only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats, World

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

    def decorated(moves: Callable[..., Moves]) -> Callable[..., Dynamics]:
        @cache
        def dynamics(**more: float) -> Dynamics:
            return _table(partial(moves, **more), states, actions, first, noise, scale)

        return dynamics

    return decorated


def _table(
    moves: Callable[[Any, int], Moves],
    states: list[Any],
    actions: int,
    first: Iterable[Any] | Mapping[Any, float],
    noise: float,
    scale: float,
) -> Dynamics:
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
    weights = first if isinstance(first, Mapping) else dict.fromkeys(first, 1.0)
    start = np.array([weights.get(s, 0.0) for s in states] + [0.0] * len(ends))
    obs = scale * np.array([np.atleast_1d(s) for s in states], dtype=float)
    obs = np.vstack([obs, np.full((len(ends), obs.shape[1]), -1.0)])
    return Dynamics(P, r, np.arange(S) >= len(states), start / start.sum(), obs, noise)


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
