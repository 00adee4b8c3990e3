"""MountainCar: the value of pumping energy, learnt from a driver who often does something else.

The target policy pushes in the direction in which the car moves (one step in ten at random); the
behaviour policy does so only half of the time. Episodes are cut off after 200 steps: learners
bootstrap through that, and the true values are those of the drive without a time limit.
"""

import importlib.util
import sys
from typing import Any

import steadytd as st

if importlib.util.find_spec("gymnasium") is None:
    raise SystemExit("this example needs Gymnasium; install it with: pip install 'steadytd[gym]'")


def pumping(noise: float) -> Any:
    """Push the way the car moves; with probability `noise`, push at random."""

    def policy(obs: Any) -> list[float]:
        chances = [noise / 3] * 3
        chances[2 if obs[1] >= 0.0 else 0] += 1.0 - noise
        return chances

    return policy


if __name__ == "__main__":
    quick = "--quick" in sys.argv  # few steps, to see that it runs
    stream = st.gym_stream(
        "MountainCar-v0",
        behavior=pumping(0.5),
        target=pumping(0.1),
        features="rbf:50",
        discount=0.99,
        sample=500 if quick else 4_000,
        states=4 if quick else 50,
        rollouts=2 if quick else 10,
    )
    truth = stream.truth
    print(f"{stream.name}, {stream.n_features} features ({stream.features})")
    print(f"true values from {truth.value.min():.1f} to {truth.value.max():.1f},", end=" ")
    print(f"each known to about {truth.resolution[0]:.1f}")

    result = st.run(
        stream,
        [
            "td:alpha=0.05",
            "td:alpha=0.01,lam=0.9",
            "tdrc:alpha=0.05",
            "perturbed_td:alpha=0.05,eta=0.003",
            "lstd:lam=0.7,ridge=0.1",
        ],
        steps=200 if quick else 20_000,
        seeds=2,
        points=5,
    )
    print(f"\n{'error after steps':36}" + "".join(f"{step:9,d}" for step in result.steps))
    for learner, errors in zip(result.learners, result.errors.mean(axis=1), strict=True):
        print(f"{learner!s:36}" + "".join(f"{error:9.2f}" for error in errors))
