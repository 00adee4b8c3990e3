"""Three hundred predictions from one robot-like stream, live: sensors, tile coding, many discounts.

A small robot drives about a square pen with a lamp in one corner. Ten times per second it learns
what its sensors will do: soon or late (five discounts), if it goes on as now or if it did only one
thing (five policies). `python examples/horde.py FILE.png` also draws what it predicted.
"""

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import steadytd as st

Array = NDArray[Any]
SENSORS = ("front", "left", "back", "right", "light", "bump")
ACTIONS = ("forward", "turn left", "turn right", "stop")
DISCOUNTS = (0.0, 0.5, 0.8, 0.9, 0.95)
KEEP_ON = 0.7  # probability that the robot does again what it did last


def drive(steps: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """What the sensors read [steps + 1, 6], what was done, and how probable each action was."""
    place, heading, last = np.array([0.5, 0.5]), 0.0, 0
    seen, done, chances = [], [], []
    for _ in range(steps + 1):
        rays = heading + np.array([0.0, 0.5, 1.0, 1.5]) * np.pi
        ways = np.column_stack([np.cos(rays), np.sin(rays)]) + 1e-12
        to_wall = np.where(ways > 0, (1 - place) / ways, -place / ways).min(axis=1)
        lamp = np.array([1.0, 1.0]) - place
        light = np.exp(-2 * np.hypot(*lamp)) * (1 + ways[0] @ lamp / np.hypot(*lamp))
        bump = float(to_wall[0] < 0.05)
        seen.append([*(to_wall + 0.02 * rng.normal(size=4)), light + 0.02 * rng.normal(), bump])
        mu = np.full(4, (1 - KEEP_ON) / 4) + KEEP_ON * (np.arange(4) == last)
        last = int(rng.choice(4, p=mu))
        done.append(last)
        chances.append(mu[last])
        heading += {1: 0.3, 2: -0.3}.get(last, 0.0)
        if last == 0:
            place = np.clip(place + 0.03 * ways[0], 0.02, 0.98)
    return np.array(seen), np.array(done[:-1]), np.array(chances[:-1])


def tiles(seen: Array) -> tuple[Array, int]:
    """The numbers of the active tiles [steps, active], and how many tiles there are."""
    groups = [[i] for i in range(6)] + [[0, 1], [0, 3], [0, 4], [1, 3], [2, 4]]
    parts, total = [], 1  # tile 0 is always active
    for columns in groups:
        coding = st.feature_map("tiles:8x8").fit(seen[:, columns])
        active = coding.rows(seen[:, columns]).feature.reshape(len(seen), -1)
        parts.append(active + total)
        total += coding.n_features
    return np.hstack([np.zeros((len(seen), 1), dtype=np.int64), *parts]), total


parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("picture", nargs="?", help="where to draw what was predicted")
parser.add_argument("--quick", action="store_true", help="few steps, to see that it runs")
given = parser.parse_args()
STEPS, WATCHED = (400, 100) if given.quick else (8_000, 300)
rng = np.random.default_rng(0)
seen, done, mu = drive(STEPS, rng)
x, n_features = tiles(seen)
alpha = 0.1 / x.shape[1]
learners = [st.learner("tdc", alpha=alpha, ratio=0.1, lam=lam) for lam in (0.0, 0.8)]
asked = [
    st.prediction(learner, cumulant=sensor, policy=policy, discount=discount)
    for learner in learners
    for sensor in range(len(SENSORS))
    for policy in ("behavior", 0, 1, 2, 3)
    for discount in DISCOUNTS
]
asked.append(st.prediction("td:alpha=1", cumulant=4, policy=0, discount=0.95))  # far too fast
h = st.horde(n_features, asked)
rhos = (done[:, None] == np.arange(4)) / mu[:, None]  # each target policy does one thing only

# The log so far in one call, then live, one step at a time.
log = STEPS - WATCHED
begin = time.perf_counter()
h.update_many((x[:log], None), (x[1 : log + 1], None), seen[1 : log + 1], rhos[:log])
took = time.perf_counter() - begin
print(f"{len(h)} predictions of {n_features} features, {x.shape[1]} active, from {log} steps")
print(f"{log * len(h) / took / 1e6:.2f} million prediction-updates per second")

live = []
for t in range(log, STEPS):
    live.append(h.predict((x[t], None)))
    h.update((x[t], None), (x[t + 1], None), seen[t + 1], rhos[t])
predicted = np.array(live)


def returns(sensor: int, discount: float) -> Array:
    """What really came: the discounted sum of a sensor's readings, from each watched step on."""
    total, found = 0.0, []
    for reading in seen[:log:-1, sensor]:
        total = reading + discount * total
        found.append(total)
    return np.array(found)[::-1]


print("\nthe lamp, predicted by what the robot does anyway (lam = 0.8), against what came:")
rows = []
for discount in (0.5, 0.8, 0.9):
    i = asked.index(st.prediction(learners[1], cumulant=4, policy="behavior", discount=discount))
    came, said = returns(4, discount)[:-60], predicted[:-60, i]
    fit = np.corrcoef(came, said)[0, 1]
    print(f"  discount {discount}: correlation {fit:.2f}, mean {came.mean():.2f} against "
          f"{said.mean():.2f}")  # fmt: skip
    for kind, values in (("what came", came), ("predicted", said)):
        rows += [{"step": t / 10, "value": (1 - discount) * v, "kind": kind,
                  "discount": f"discount {discount}"} for t, v in enumerate(values)]  # fmt: skip

print("\nhealth of the predictions about the lamp if the robot only turned left:")
health = h.health().filter(cumulant=4, policy=1, learner=str(learners[1]))
print(health.select("discount", "error", "recent_error", "rupee"))
for warning in h.warnings:
    print("warning:", warning.text)

if given.picture:
    import altair as alt
    import polars as pl

    line = alt.Chart(pl.DataFrame(rows), width=230, height=150).mark_line(strokeWidth=1.5)
    line.encode(
        x=alt.X("step:Q", title="seconds"),
        y=alt.Y("value:Q", title="light (mean over the horizon)", scale=alt.Scale(zero=False)),
        color=alt.Color("kind:N", title=None),
        column=alt.Column("discount:N", title=None),
    ).save(given.picture, scale_factor=2)
