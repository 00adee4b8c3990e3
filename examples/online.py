"""One learner on a live stream: update, predict, save, load, go on."""

import tempfile
from pathlib import Path

import numpy as np

import steadytd as st

rng = np.random.default_rng(0)
agent = st.learner("perturbed_td", alpha=0.05, eta=0.1).start(n_features=4)

# A random walk on a ring of four cells; the behaviour goes left or right evenly, the target policy
# goes right with probability 0.9; a reward for passing from cell 3 to cell 0.
cell = 0
features = np.eye(4)
for _ in range(5_000):
    right = rng.random() < 0.5
    following = (cell + (1 if right else -1)) % 4
    rho = (0.9 if right else 0.1) / 0.5
    reward = 1.0 if right and following == 0 else 0.0
    agent.update(features[cell], reward, features[following], rho=rho, gamma=0.9)
    cell = following
print("values of the four cells after", agent.step, "updates:", agent.w.round(2))

with tempfile.TemporaryDirectory() as folder:
    path = agent.save(Path(folder) / "agent.npz")
    again = st.load_learner(path)
    assert np.array_equal(again.w, agent.w)
    assert again.step == agent.step
