"""A log of CartPole by two behaviour policies, four target policies, and what those are worth.

    python examples/cartpole_log.py [results/cartpole_log.parquet] [--episodes 600]

Writes the log, and beside it the true values (`..._truth.json`) from rollouts of every target.
Every second episode is played by one of two mixtures, one careless and one able; an episode is cut
off after 200 steps. The value of a policy is the discounted number of steps that the pole stays up,
from Gymnasium's start states, without a limit of time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import steadytd as st

if importlib.util.find_spec("gymnasium") is None:
    raise SystemExit("this example needs Gymnasium; install it with: pip install 'steadytd[gym]'")

DISCOUNT = 0.95
LIMIT = 200  # steps of a logged episode; 0.004 % of a return's weight is still to come then
ROLLOUTS = 4000

Array = NDArray[Any]
Policy = Callable[[Array], Array]  # observations [n, 4] -> probabilities of a push to the right [n]


def towards(strength: float, care: float = 0.0) -> Policy:
    """Push to where the pole leans, the likelier the more it leans; `care` keeps to the middle."""

    def right(obs: Array) -> Array:
        place, speed, angle, turning = obs.T
        lean = angle + 0.3 * turning + care * (0.5 * place + speed)
        return np.asarray(1.0 / (1.0 + np.exp(-strength * lean)))

    return right


def mixture(random: float, policy: Policy) -> Policy:
    """A coin toss with probability `random`, else the policy."""
    return lambda obs: 0.5 * random + (1.0 - random) * policy(obs)


TARGETS = {
    "random": towards(0.0),
    "soft5": towards(5.0),
    "good": towards(10.0, care=0.1),
    "against": towards(-2.0),  # pushes the wrong way: nothing like it was ever played
}
BEHAVIORS = (mixture(0.3, towards(5.0)), mixture(0.2, towards(10.0)))


def of_action(right: Array, action: Array) -> Array:
    """The probability of the action taken."""
    return np.where(action == 1, right, 1.0 - right)


def play(policy: Policy, episodes: int, limit: int, seed: int) -> dict[str, Array]:
    """Episodes side by side, as columns sorted by episode and t."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", episodes, "vector_entry_point", max_episode_steps=limit)
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    alive = np.arange(episodes)
    steps = []
    for t in range(limit):
        action = (rng.random(episodes) < policy(obs)).astype(np.int64)
        after, reward, terminated, truncated, _ = env.step(action)
        columns = (action, reward, terminated, truncated & ~terminated, obs, after)
        steps.append([alive, np.full(len(alive), t), *(column[alive] for column in columns)])
        alive = alive[~(terminated | truncated)[alive]]
        obs = after
        if not len(alive):
            break
    env.close()
    joined = [np.concatenate(column) for column in zip(*steps, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    names = ("episode_id", "t", "action", "reward", "terminated", "truncated", "obs", "next_obs")
    return {name: column[order] for name, column in zip(names, joined, strict=True)}


def truth(policy: Policy, rollouts: int, seed: int) -> tuple[float, float]:
    """Mean discounted return and its standard error; what is left after the last step is 1e-4."""
    horizon = math.ceil(math.log(1e-4) / math.log(DISCOUNT))
    c = play(policy, rollouts, horizon, seed)
    returns = np.bincount(c["episode_id"], weights=DISCOUNT ** c["t"] * c["reward"])
    return float(returns.mean()), float(returns.std(ddof=1) / math.sqrt(rollouts))


def make(
    path: Path, episodes: int = 600, seed: int = 0, limit: int = LIMIT
) -> dict[str, dict[str, float]]:
    """Write the log and the truth; return the truth."""
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    first, second = BEHAVIORS
    even = np.arange(episodes) % 2 == 0
    c = play(lambda obs: np.where(even, first(obs), second(obs)), episodes, limit, seed)
    obs, action = c["obs"], c["action"]
    mixed = np.where(even[c["episode_id"]], first(obs), second(obs))

    def lists(values: Array, mask: Array | None = None) -> Any:
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(
            flat, 4, mask=None if mask is None else pa.array(mask)
        )

    columns = {
        "episode_id": c["episode_id"],
        "t": c["t"],
        "obs": lists(obs),
        "action": action,
        "reward": c["reward"],
        "next_obs": lists(c["next_obs"], ~c["truncated"]),  # elsewhere it is the next row's obs
        "terminated": c["terminated"],
        "truncated": c["truncated"],
        "behavior_prob": of_action(mixed, action),
    }
    columns |= {f"target_prob_{n}": of_action(p(obs), action) for n, p in TARGETS.items()}
    st.write_log(path, columns)
    found = {}
    for name, policy in TARGETS.items():
        value, stderr = truth(policy, ROLLOUTS, seed + 1_000_000)
        found[name] = {"value": value, "stderr": stderr}
    text = json.dumps({"discount": DISCOUNT, "rollouts": ROLLOUTS, "truth": found}, indent=2)
    path.with_name(path.stem + "_truth.json").write_text(text + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="results/cartpole_log.parquet", type=Path)
    parser.add_argument("--episodes", default=600, type=int)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--limit", default=LIMIT, type=int, help="Steps of a logged episode.")
    given = parser.parse_args()
    for name, row in make(given.path, given.episodes, given.seed, given.limit).items():
        print(f"{name:8} is worth {row['value']:6.3f} (standard error {row['stderr']:.3f})")
    print(f"{given.path}: {given.path.stat().st_size / 1e6:.1f} MB")
