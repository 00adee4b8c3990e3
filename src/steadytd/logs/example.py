"""A log to try things on: somebody walks a corridor of ten cells towards its last one.

Action 1 leads one cell to the right, 0 one to the left, each with chance 0.9 (else one stays).
A step costs 0.02; the last cell pays 1 and ends the episode, which begins in one of the first five
cells and is cut off after 100 steps. The policy that made the log goes right with chance 0.6; the
targets are `forward` (0.8) and `hesitant` (0.5).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steadytd.logs.write import write_log

DISCOUNT = 0.95  # with which it is evaluated
CELLS, EPISODES, LONGEST, MOVES = 10, 600, 100, 0.9
RIGHT, TARGETS = 0.6, {"forward": 0.8, "hesitant": 0.5}


def sample_log(path: str | Path, seed: int = 0) -> Path:
    """Write a log of 600 episodes with two target policies, to try `evaluate` on.

    >>> import tempfile
    >>> import steadytd as st
    >>> with tempfile.TemporaryDirectory() as place:
    ...     st.open_log(st.sample_log(f"{place}/log.parquet"), discount=0.95).targets
    ['forward', 'hesitant']
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, float]] = []
    for episode in range(EPISODES):
        cell = int(rng.integers(CELLS // 2))
        for t in range(LONGEST):
            action = int(rng.random() < RIGHT)
            moved = rng.random() < MOVES
            new = min(max(cell + (2 * action - 1) * moved, 0), CELLS - 1)
            ends = new == CELLS - 1
            reward = 1.0 if ends else -0.02
            cut = not ends and t == LONGEST - 1
            rows.append({
                "episode_id": episode, "t": t, "obs": cell, "next_obs": new, "action": action,
                "reward": reward, "terminated": ends, "truncated": cut,
            })  # fmt: skip
            cell = new
            if ends:
                break
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    taken = table["action"] == 1
    table["behavior_prob"] = np.where(taken, RIGHT, 1.0 - RIGHT)
    for name, right in TARGETS.items():
        table[f"target_prob_{name}"] = np.where(taken, right, 1.0 - right)
    table |= {name: table[name][:, None].astype(np.float64) for name in ("obs", "next_obs")}
    return write_log(path, table)
