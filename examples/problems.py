"""Problems: the built-in ones, your own, exact answers, saving and loading."""

import tempfile
from pathlib import Path

import numpy as np

import steadytd as st

for name, summary in st.problems().items():
    print(f"{name:19} {summary}")

p = st.problem("three_state")
print("stationary distribution", p.d_mu.round(4))
print("true values", p.v_pi)
print("error of w = (8, 8):", round(float(p.error([8.0, 8.0])), 4))

# Your own: a corridor of three states. Going right from the last one ends the episode: that is a
# transition back to the start with discount 0, and nothing else needs to be said about it.
P = np.zeros((3, 2, 3))
P[0, 0, 0] = P[1, 0, 0] = P[2, 0, 1] = 1.0  # left
P[0, 1, 1] = P[1, 1, 2] = P[2, 1, 0] = 1.0  # right
reward = np.zeros((3, 2))
reward[2, 1] = 1.0
gamma = np.full((3, 2, 3), 0.9)
gamma[2, 1, 0] = 0.0
corridor = st.Problem(
    name="corridor",
    P=P,
    r=reward,
    gamma=gamma,
    mu=np.full((3, 2), 0.5),
    pi=np.tile([0.1, 0.9], (3, 1)),
    Phi=np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]),
)
print("corridor's true values", corridor.v_pi.round(4))

with tempfile.TemporaryDirectory() as folder:
    path = corridor.save(Path(folder) / "corridor.npz")
    assert np.array_equal(st.load_problem(path).v_pi, corridor.v_pi)

try:
    st.Problem(name="bad", P=P * 1.5, r=0, gamma=0.9, mu=corridor.mu, pi=corridor.pi, Phi=np.eye(3))
except st.InputError as error:
    print("a clear error:", error)
