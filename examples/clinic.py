"""A ward made up for a tutorial: is a new dosing policy better than what the doctors do?

    python examples/clinic.py [results/clinic.parquet] [--patients 400] [--careless]

A patient has a severity (0 to 4) and a toxicity (0 to 3), and gets dose 0, 1 or 2 each day. A dose
fights the illness and adds toxicity, which wears off. At severity 0 patients go home (+1); the
sicker and the more poisoned they are, the likelier they die (-1); every day costs 0.01. The ward is
small enough that the value of every policy can be solved for exactly, which no real ward allows.

`--careless` writes probabilities of a dosing table that the doctors do not follow.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import steadytd as st

DISCOUNT = 0.98
SEVERITIES, TOXICITIES, DOSES = 5, 4, 3
STATES = SEVERITIES * TOXICITIES
HOME, DEAD = STATES, STATES + 1  # where episodes end

Array = NDArray[Any]


def _moved(level: int, up: float, down: float, top: int) -> dict[int, float]:
    """The next level: one up, one down, or the same."""
    chances: dict[int, float] = {}
    for wanted, chance in ((level + 1, up), (level - 1, down), (level, 1.0 - up - down)):
        to = min(max(wanted, 0), top)
        chances[to] = chances.get(to, 0.0) + chance
    return chances


def dynamics() -> Array:
    """P[state, dose, next state]; state = severity * 4 + toxicity, then home and dead."""
    P = np.zeros((STATES, DOSES, STATES + 2))
    for severity in range(SEVERITIES):
        for toxicity in range(TOXICITIES):
            s = severity * TOXICITIES + toxicity
            die = 0.004 * severity**2 + 0.03 * (toxicity == 3)
            for dose in range(DOSES):
                P[s, dose, DEAD] = die
                ill = _moved(severity, 0.25 - 0.08 * dose, 0.12 + 0.16 * dose, SEVERITIES - 1)
                harm = _moved(toxicity, 0.28 * dose, 0.45 - 0.15 * dose, TOXICITIES - 1)
                for i, p in ill.items():
                    for j, q in harm.items():
                        to = HOME if i == 0 else i * TOXICITIES + j
                        P[s, dose, to] += (1.0 - die) * p * q
    return P


def dosing(base: float, by_severity: float, by_toxicity: float) -> Array:
    """Probabilities of the doses [state, dose]: a soft choice around a wanted dose."""
    severity, toxicity = np.divmod(np.arange(STATES), TOXICITIES)
    wanted = base + by_severity * severity - by_toxicity * toxicity
    chance = np.exp(-1.2 * (np.arange(DOSES) - wanted[:, None]) ** 2)
    kept = 0.9 * chance / chance.sum(axis=1, keepdims=True) + 0.1 / DOSES
    return np.asarray(kept)


DOCTORS = dosing(0.6, 0.2, 0.1)
TARGETS = {
    "guideline": dosing(0.8, 0.3, 0.5),  # dose by severity, and stop as soon as it harms
    "sparing": dosing(0.55, 0.2, 0.15),  # nearly what the doctors do, a little less
    "early": dosing(1.6, 0.2, 0.0),  # much, whatever it does
}


def rewards() -> Array:
    """The reward of each next state."""
    return np.append(np.full(STATES, -0.01), [1.0, -1.0])


def start() -> Array:
    """Patients come with severity 2 or 3, and no toxicity."""
    chances = np.zeros(STATES)
    chances[[2 * TOXICITIES, 3 * TOXICITIES]] = 0.5
    return chances


def truth(policy: Array) -> float:
    """The exact value: v = r + discount P v over the states of the ward."""
    P = np.einsum("sa,sat->st", policy, dynamics())
    v = np.linalg.solve(np.eye(STATES) - DISCOUNT * P[:, :STATES], P @ rewards())
    return float(start() @ v)


def play(policy: Array, patients: int, seed: int) -> dict[str, Array]:
    """Patients side by side, as columns sorted by patient and day."""
    rng, P, gain = np.random.default_rng(seed), dynamics().cumsum(axis=2), rewards()
    who = np.arange(patients)
    state = rng.choice(STATES, size=patients, p=start())
    steps, day = [], 0
    while len(who):
        dose = (rng.random(len(who))[:, None] > policy[state].cumsum(axis=1)[:, :-1]).sum(axis=1)
        after = (rng.random(len(who))[:, None] > P[state, dose][:, :-1]).sum(axis=1)
        steps.append((who, np.full(len(who), day), state, dose, gain[after], after >= STATES))
        who, state, day = who[after < STATES], after[after < STATES], day + 1
    columns = [np.concatenate(column) for column in zip(*steps, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    names = ("episode_id", "t", "state", "action", "reward", "terminated")
    return {name: column[order] for name, column in zip(names, columns, strict=True)}


def make(path: Path, patients: int = 400, seed: int = 0, careless: bool = False) -> None:
    """Write the log, with all probabilities of the doctors and of every target."""
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    log = play(DOCTORS, patients, seed)
    state = log.pop("state")

    def lists(values: Array) -> Any:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])

    said = dosing(0.6, 0.4, 0.1) if careless else DOCTORS
    columns: dict[str, Any] = {
        **log,
        "obs": lists(np.stack(np.divmod(state, TOXICITIES), axis=1).astype(float)),
        "truncated": np.zeros(len(state), dtype=bool),
        "behavior_prob": said[state, log["action"]],
        "behavior_probs": lists(said[state]),
    }
    columns |= {f"target_probs_{name}": lists(pi[state]) for name, pi in TARGETS.items()}
    st.write_log(path, columns)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="results/clinic.parquet", type=Path)
    parser.add_argument("--patients", default=400, type=int)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--careless", action="store_true")
    given = parser.parse_args()
    make(given.path, given.patients, given.seed, given.careless)
    for name, policy in {"doctors": DOCTORS, **TARGETS}.items():
        print(f"{name:9} is worth {truth(policy):6.3f}")
