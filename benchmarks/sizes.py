"""How long and how large the largest sizes are: `python benchmarks/sizes.py [CASE ...]`.

`targets`: a log of 2,000 rows with 2,000 targets, evaluated from Python. `page`: the same by the
command line with its page, without pictures (`--no-figures`): nobody looks at 2,000 of them.
`study`: a million configurations of `td` on `three_state`, ten steps each, by the command line.
Every case is a process of its own; memory is the largest that it ever held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, TARGETS, EPISODE = 2000, 2000, 20
STUDY = """problem = "three_state"
steps = 10
seeds = 1
confirm = { seeds = 0 }
[[learners]]
name = "td"
alpha = { linear = [0.000001, 1, 1000] }
lam = { linear = [0, 0.999, 1000] }
"""
PYTHON = "import steadytd as st; st.evaluate({!r}, discount=0.9)"
LIMITS = {"targets": (20, 1000), "page": (20, 1000), "study": (60, 1000)}


def main() -> None:
    asked = sys.argv[1:] or list(LIMITS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, study = write_log(folder / "log.parquet"), folder / "million.toml"
        study.write_text(STUDY)
        run = [sys.executable, "-m", "steadytd"]
        out = ["--out", str(folder / "out")]
        commands = {
            "targets": [sys.executable, "-c", PYTHON.format(str(log))],
            "page": [*run, "evaluate", str(log), "--discount", "0.9", *out, "--no-figures"],
            "study": [*run, "study", str(study), "--out", str(folder / "study")],
        }
        for case in asked:
            seconds, processor, megabytes = measured(commands[case])
            most = "at most {} s and {} MB".format(*LIMITS[case])
            print(f"{case}: {seconds:.1f} s, {processor:.1f} s of processor time, "
                  f"{megabytes:.0f} MB ({most})", flush=True)  # fmt: skip


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and MB of a command."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} has failed.")
    megabytes = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, megabytes


def write_log(path: Path) -> Path:
    """Episodes of 20 steps of noise, ratios between 0.8 and 1.25."""
    rng, at = np.random.default_rng(0), np.arange(ROWS)
    mu = rng.uniform(0.3, 0.7, ROWS)
    columns = {
        "episode_id": at // EPISODE,
        "t": at % EPISODE,
        "obs": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=2 * ROWS)), 2),
        "action": rng.integers(0, 2, ROWS),
        "reward": rng.normal(size=ROWS),
        "terminated": at % EPISODE == EPISODE - 1,
        "behavior_prob": mu,
    }
    for i in range(TARGETS):
        columns[f"target_prob_{i}"] = mu * rng.uniform(0.8, 1.25, ROWS)
    pq.write_table(pa.table(columns), path)
    return path


if __name__ == "__main__":
    main()
