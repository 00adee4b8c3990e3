"""What are new policies worth, from a log of others? Evaluate the CartPole log, compare with truth.

    python examples/cartpole_log.py results/cartpole_log.parquet
    python examples/evaluate_log.py results/cartpole_log.parquet

The log is made first if it is not there, with `--quick` a small one.
"""

from __future__ import annotations

import argparse
import json
import runpy
from pathlib import Path

import numpy as np

import steadytd as st

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("path", nargs="?", default="results/cartpole_log.parquet", type=Path)
parser.add_argument("--quick", action="store_true")
given = parser.parse_args()
path = given.path
if not path.exists():
    make = runpy.run_path(str(Path(__file__).with_name("cartpole_log.py")))["make"]
    make(path, episodes=40 if given.quick else 600)
truth = json.loads(path.with_name(path.stem + "_truth.json").read_text(encoding="utf-8"))

e = st.evaluate(path, discount=truth["discount"], features="rbf:60")

for target, r in e.recommended.items():
    known = truth["truth"][target]
    reach = 2.0 * known["stderr"]
    holds = r.lo - reach <= known["value"] <= r.hi + reach
    print(
        f"{target:8} {r.value:6.2f} ({r.lo:.2f} to {r.hi:.2f}) by {r.learner:4}  "
        f"truth {known['value']:6.2f}, {'inside' if holds else 'outside'}  "
        f"{'trusted' if r.trusted else 'warnings: ' + ', '.join(r.warnings)}"
    )

print(e.values.select("target", "learner", "value", "lo", "hi", "stable", "eta", "recommended"))
print(e.overlap.select("target", "ess_step_share", "ess_trajectory", "rho_max", "zero_share"))
print(e.stability.select("target", "td_stable", "eta_pd", "eta_pd_lo", "eta_pd_hi"))
for warning in e.warnings:
    if warning.level == "warning":
        print(warning)

# The value function predicts on new observations, and can be kept.
v = e.value_function("soft5")
upright, leaning = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.15, 0.5]
print(f"{v.learner} for soft5: upright {v.predict(upright)[0]:.2f}", end=", ")
print(f"leaning {v.predict(leaning)[0]:.2f}")
file = v.save(path.with_name("soft5.npz"))
again = st.load_value_function(file)
assert np.array_equal(again.predict([upright, leaning]), v.predict([upright, leaning]))
