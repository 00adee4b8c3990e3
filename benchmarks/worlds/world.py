"""A world with exact truth: finite dynamics, two policies, and how its logs are made.

All of these worlds are finite, so the truth is solved, not sampled: v = (I - discount P_pi)^-1 r_pi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Probabilities = Literal["right", "estimated", "wrong"]
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
    def probabilities(self) -> Probabilities:
        """Right, estimated from the log, or wrong."""
        if self.estimated:
            return "estimated"
        return "right" if self.logged is None else "wrong"

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
        d = self.dynamics
        if not self.endless:
            return d.start
        P = np.einsum("sa,sat->st", self.mu, d.P)
        system = np.vstack([np.eye(len(P)) - P.T, np.ones(len(P))])
        found = np.linalg.lstsq(system, np.append(np.zeros(len(P)), 1.0), rcond=None)[0]
        return np.asarray(np.maximum(found, 0.0) / np.maximum(found, 0.0).sum())

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

    def log(self, seed: int, whole: bool = False) -> Any:
        """A log as an Arrow table; `whole`: with the probabilities of every action."""
        c = self.columns(seed)
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

    def columns(self, seed: int) -> dict[str, NDArray[Any]]:
        """The same as plain arrays, with states instead of observations."""
        rng = np.random.default_rng([seed, 7411])
        d = self.dynamics
        episodes, length = (1, self.episodes) if self.endless else (self.episodes, self.length)
        found = _walk(rng, self._cumulative, d.ends, episodes, length)
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
