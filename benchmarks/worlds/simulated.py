"""Worlds with real-valued observations whose true values are found by simulation.

A world is a class with three short methods on arrays of n simultaneous episodes: `start`, `step`
and `policies`. A state is an array [k, n], one row per variable, so that a method can
unpack it: `level, price = s`. Probabilities are [A, n].

The true value of a policy is the mean return of `truth_episodes` simulated episodes without
cut-offs. Its variance is far below that of an estimate from one log. Values are stored in
`~/.cache/steadytd-worlds` (or the folder that STEADYTD_WORLDS names) under a digest of a sample of
the world, so that a changed world is simulated again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from benchmarks.worlds.world import lists
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Column = Any  # an array [n]: what NumPy's own types make of arithmetic on arrays
Step = tuple[Sequence[Column], Column, Column]  # next state, reward, whether the episode ends
Random = np.random.Generator

CHUNK = 20_000  # episodes that are simulated at a time
NEGLIGIBLE = 1e-4  # discounted to this, a reward no longer counts
RATE_STREAMS, RATE_STEPS = 5000, 2400  # of the simulation of a reward per step
BURN_IN = 400  # steps before an endless log begins


class Simulated:
    """A world with real-valued observations; subclasses say how it starts, moves and is steered."""

    discount: ClassVar[float] = 1.0
    episodes: ClassVar[int] = 300  # rows where it is endless
    length: ClassVar[int] = 10_000  # steps after which an episode of a log is cut off
    endless: ClassVar[bool] = False
    features: ClassVar[str] = "poly:2"
    hidden: ClassVar[int] = 0  # how many of the last state variables are not observed
    reward_range: ClassVar[tuple[float, float] | None] = None
    equal: ClassVar[tuple[str, ...]] = ()  # targets worth exactly as much as the behaviour
    truth_episodes: ClassVar[int] = 200_000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        """The first states of n episodes."""
        raise NotImplementedError

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        """One step of all episodes: next states, rewards, and which episodes end."""
        raise NotImplementedError

    def policies(self, x: Floats) -> dict[str, Floats]:
        """By name the probabilities [A, n] of "behavior", which makes the log, and of targets."""
        raise NotImplementedError

    @property
    def arguments(self) -> dict[str, Any]:
        """What `st.evaluate` is told besides the log."""
        return {"discount": self.discount, "features": self.features}

    def _seen(self, s: Floats) -> Floats:
        return s[: len(s) - self.hidden]

    def log(self, seed: int, episodes: int | None = None, streams: int = 1) -> Any:
        """A log as an Arrow table with `behavior_prob` and a `target_prob_<name>` per target.

        Where it is endless it is one stream, or so many that begin at first states.
        """
        rng = np.random.default_rng([seed, 7413])
        wanted = episodes or self.episodes
        n, length = (streams, wanted // streams) if self.endless else (wanted, self.length)
        s = np.stack(self.start(rng, n))
        if self.endless and streams == 1:
            s = self._warm(rng, s)
        index, parts = np.arange(n), []
        for t in range(length):
            x = self._seen(s)
            policies = self.policies(x)
            a = drawn_actions(rng, policies["behavior"])
            moved, reward, ended = self.step(rng, s, a)
            after = np.stack(moved)
            columns = {f"target_prob_{k}": taken(p, a) for k, p in policies.items()}
            columns["behavior_prob"] = columns.pop("target_prob_behavior")
            parts.append({
                "episode_id": index, "t": np.full(len(a), t), "obs": x.T, "action": a,
                "reward": reward, "terminated": ended, "truncated": ~ended & (t == length - 1),
                "next_obs": self._seen(after).T, **columns,
            })  # fmt: skip
            s, index = after[:, ~ended], index[~ended]
            if not len(index):
                break
        log: dict[str, Any] = {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}
        order = np.lexsort((log["t"], log["episode_id"]))
        log = {k: v[order] for k, v in log.items()}
        log["obs"], log["next_obs"] = lists(log["obs"]), lists(log["next_obs"], ~log["truncated"])
        return pa.table(log)

    def _warm(self, rng: Random, s: Floats) -> Floats:
        """States after the behaviour has run for long: where an endless log is evaluated."""
        for _ in range(BURN_IN):
            mu = self.policies(self._seen(s))["behavior"]
            s = np.stack(self.step(rng, s, drawn_actions(rng, mu))[0])
        return s

    def returns(self, policy: str, seed: int, n: int) -> Floats:
        """Discounted returns of n simulated episodes of a policy."""
        rng = np.random.default_rng([seed, 7414])
        s = np.stack(self.start(rng, n))
        if self.endless:
            s = self._warm(rng, s)
        total, index, factor = np.zeros(n), np.arange(n), 1.0
        while len(index) and factor > NEGLIGIBLE:
            p = self.policies(self._seen(s))[policy]
            after, reward, ended = self.step(rng, s, drawn_actions(rng, p))
            total[index] += factor * reward
            s, index = np.stack(after)[:, ~ended], index[~ended]
            factor *= self.discount
        return total

    @cached_property
    def rates(self) -> dict[str, float]:
        """Rewards per step in the long run, of every target and of "behavior": simulated."""
        found = {}
        for name in self.policies(self._seen(np.stack(self.start(np.random.default_rng(0), 2)))):
            rng, total = np.random.default_rng(7415), 0.0
            s = np.stack(self.start(rng, RATE_STREAMS))
            for t in range(RATE_STEPS):
                p = self.policies(self._seen(s))[name]
                after, reward, _ = self.step(rng, s, drawn_actions(rng, p))
                s = np.stack(after)
                total += reward.mean() * (t >= BURN_IN)
            found[name] = total / (RATE_STEPS - BURN_IN)
        return found

    @cached_property
    def simulated(self) -> dict[str, tuple[float, float]]:
        """Mean return and its standard error, of every target and of "behavior"."""
        path = _folder() / f"{type(self).__name__}-{self._digest()}.json"
        if path.exists():
            return {k: (m, e) for k, (m, e) in json.loads(path.read_text()).items()}
        found = {}
        for name in self.policies(self._seen(np.stack(self.start(np.random.default_rng(0), 2)))):
            chunks = range(self.truth_episodes // CHUNK)
            g = np.concatenate([self.returns(name, chunk, CHUNK) for chunk in chunks])
            found[name] = (float(g.mean()), float(g.std() / np.sqrt(len(g))))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(found))
        part.replace(path)
        return found

    def _digest(self) -> str:
        """Changes with anything that a short log shows, and with what truth is made of."""
        log = self.log(0, 500 if self.endless else 100).combine_chunks()
        digest = hashlib.sha256(f"{self.discount} {self.truth_episodes} {NEGLIGIBLE}".encode())
        for name in log.column_names:
            values = log[name].combine_chunks()
            flat = values.flatten() if pa.types.is_fixed_size_list(values.type) else values
            digest.update(np.round(flat.cast(pa.float64()).to_numpy(), 9).tobytes())
        return digest.hexdigest()[:16]

    @property
    def behavior_truth(self) -> float:
        """What the policy that makes the log is worth."""
        return self.simulated["behavior"][0]

    @property
    def truths(self) -> dict[str, float]:
        """What each target is worth."""
        found = {k: mean for k, (mean, _) in self.simulated.items() if k != "behavior"}
        return found | dict.fromkeys(self.equal, self.behavior_truth)


class OneStep(Simulated):
    """Every episode is one step: a context, an action, a reward."""

    episodes: ClassVar[int] = 1000
    truth_episodes: ClassVar[int] = 2_000_000

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        """The reward of an action in a context."""
        raise NotImplementedError

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        """The reward of a context; then the episode ends."""
        return list(s), self.reward(rng, s, a), np.ones(len(a), dtype=bool)


def soft(*scores: Floats | float, explore: float = 0.0) -> Floats:
    """Softmax over actions [A, n] of one score per action, mixed with the uniform policy."""
    z = np.stack(np.broadcast_arrays(*np.atleast_1d(*scores))).astype(float)
    weight = np.exp(z - z.max(axis=0))
    return np.asarray((1.0 - explore) * weight / weight.sum(axis=0) + explore / len(scores))


def mixed(share: float, one: Floats, other: Floats) -> Floats:
    """(1 - share) one + share other."""
    return (1.0 - share) * one + share * other


def drawn_actions(rng: Random, p: Floats) -> Ints:
    """One action per column of p [A, n]."""
    below = np.cumsum(p, axis=0)[:-1]
    return np.asarray((rng.random(p.shape[1]) > below).sum(axis=0))


def taken(p: Floats, a: Ints) -> Floats:
    """The probabilities of the actions taken."""
    return np.asarray(np.take_along_axis(p, a[None], axis=0)[0])


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z))."""
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


def turned(sin: Floats, cos: Floats, steps: int) -> tuple[Floats, Floats]:
    """An angle's sine and cosine after one of so many steps of a full turn."""
    angle = np.arctan2(sin, cos) + 2.0 * np.pi / steps
    return np.sin(angle), np.cos(angle)


def _folder() -> Path:
    named = os.environ.get("STEADYTD_WORLDS")
    return Path(named) if named else Path.home() / ".cache" / "steadytd-worlds"
