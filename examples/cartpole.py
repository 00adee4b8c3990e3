"""CartPole: how long will the pole stay up under a simple rule, judged by a clumsy player's games.

The target policy pushes the cart to the side on which the pole leans (one step in ten at random).
It does not look at speeds, so the pole falls after a while. The behaviour policy plays at random
half of the time. Three feature maps see the same games. Bumps and tiles are bounded; polynomials
are not, and with them TD's steps are too long wherever the pole falls fast: it runs away. LSTD,
which takes no steps, is not harmed.
"""

import importlib.util
import sys
from typing import Any

import steadytd as st

if importlib.util.find_spec("gymnasium") is None:
    raise SystemExit("this example needs Gymnasium; install it with: pip install 'steadytd[gym]'")


def leaning(noise: float) -> Any:
    """Push towards the lean of the pole; with probability `noise`, push at random."""

    def policy(obs: Any) -> list[float]:
        towards = 1.0 - noise / 2
        return [1.0 - towards, towards] if obs[2] > 0.0 else [towards, 1.0 - towards]

    return policy


if __name__ == "__main__":
    quick = "--quick" in sys.argv  # few steps, to see that it runs
    for features in ("rbf:50", "tiles:8x3", "poly:3"):
        stream = st.gym_stream(
            "CartPole-v1",
            behavior=leaning(0.5),
            target=leaning(0.1),
            features=features,
            discount=0.95,
            sample=500 if quick else 4_000,
            states=4 if quick else 40,
            rollouts=2 if quick else 10,
        )
        truth = stream.truth
        result = st.run(
            stream,
            ["td:alpha=0.01", "tdrc:alpha=0.01", "lstd:ridge=0.1"],
            steps=200 if quick else 10_000,
            points=3,
        )
        print(
            f"\n{features} ({stream.n_features} features), true values {truth.value.min():.1f} to "
            f"{truth.value.max():.1f}, each known to about {truth.resolution[0]:.1f}"
        )
        for row in result.summary.iter_rows(named=True):
            gone = row["first_divergence"]
            shown = f"{row['final']:.3g}" if gone is None else f"overflowed at step {gone:,d}"
            print(f"  {row['learner']:20} error {shown}")
