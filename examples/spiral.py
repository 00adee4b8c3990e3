"""The spiral of Tsitsiklis & Van Roy (1997): TD runs away, on-policy; TDC and GTD2 do not.

Three states in a ring, stay or go on with probability 1/2 each, rewards 0, discount 0.9. The value
function has one weight w: as w grows, the three values turn around in the plane of sum 0 and grow
by e^(0.05 w). TD follows the turn outwards. Its mean update is alpha 1573 e^(0.1 w) at every w, so
that the error is 72.6 / sqrt(1 - 157.3 alpha t) after t small steps. The projected Bellman error is
625 e^(0.1 w), and TDC and GTD2 descend it: w falls for ever, more and more slowly, and the values
go to 0, which is right.

a and b belong together: V turns only if b = -(Q a) / 0.866, Q = [[1, 3/2, 1/2], [1/2, 1, 3/2],
[3/2, 1/2, 1]]. The constants are sometimes quoted with b = (23.094, -98.15, 75.056), which goes
with a = (100, -30, -70): then the values do not turn evenly, and at discount 0.9 TD does not
diverge. Its mean update is negative everywhere, or has zeros if the ring is turned round.
"""

import sys

import numpy as np

import steadytd as st
from steadytd.base.arrays import Floats

A = np.array([100.0, -70.0, -30.0])
B = np.array([23.094, 75.056, -98.15])
TURN, GROW = 0.866, 0.05

RING = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]) / 2
SPIRAL = st.Problem(
    name="spiral",
    P=RING[:, None, :],
    r=0.0,
    gamma=0.9,
    mu=np.ones((3, 1)),
    pi=np.ones((3, 1)),
    Phi=np.eye(3),
)


def value(w: Floats, s: int) -> float:
    turned = A[s] * np.cos(TURN * w[0]) - B[s] * np.sin(TURN * w[0])
    return float(turned * np.exp(GROW * w[0]))


def gradient(w: Floats, s: int) -> Floats:
    turned = A[s] * np.cos(TURN * w[0]) - B[s] * np.sin(TURN * w[0])
    across = -TURN * (A[s] * np.sin(TURN * w[0]) + B[s] * np.cos(TURN * w[0]))
    return np.array([(GROW * turned + across) * np.exp(GROW * w[0])])


def hessian_vector(w: Floats, s: int, h: Floats) -> Floats:
    turned = A[s] * np.cos(TURN * w[0]) - B[s] * np.sin(TURN * w[0])
    across = -TURN * (A[s] * np.sin(TURN * w[0]) + B[s] * np.cos(TURN * w[0]))
    second = ((GROW**2 - TURN**2) * turned + 2 * GROW * across) * np.exp(GROW * w[0])
    return np.array([second * h[0]])


def spiral(rule: str, **settings: float) -> st.Curves:
    return st.nonlinear(
        rule,
        SPIRAL,
        value=value,
        gradient=gradient,
        hessian_vector=hessian_vector,
        w0=[0.0],
        alpha=settings["alpha"],
        ratio=settings.get("ratio", 1.0),
        steps=int(settings["steps"]),
        seed=int(settings.get("seed", 0)),
        points=6,
    )


if __name__ == "__main__":
    share = 1000 if "--quick" in sys.argv else 1  # few steps, to see that it runs
    for rule, alpha, steps in (
        ("td", 1e-8, 600_000),
        ("tdc", 1e-4, 500_000),
        ("gtd2", 1e-4, 500_000),
    ):
        found = spiral(rule, alpha=alpha, steps=steps // share)
        print(f"{rule}, alpha {alpha:g}: error of the values (all are 0)")
        for step, error in zip(found.steps, found.errors, strict=True):
            print(f"{step:9,d} steps {error:8.1f}")
