"""How long and how large the largest sizes are: `python benchmarks/sizes.py [CASE ...]`.

`targets`: a log of 2,000 rows with 2,000 targets, evaluated from Python. `page`: the same by the
command line with its page, without pictures (`--no-figures`): nobody looks at 2,000 of them.
`study`: a million configurations of `td` on `three_state`, ten steps each, by the command line.
`collision` and `rooms`: the published grids, 2,907 configurations x 50 runs x 20,000 steps with the
error every 100 steps, and 9,690 configurations x 8 policies x 50 runs x 50,000 steps (minutes).
Every case is a process of its own; memory is the largest that it ever held. `--quick` takes the
smallest sizes, to see that everything runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import steadytd as st

PYTHON = "import steadytd as st; st.evaluate({!r}, discount=0.9)"
MILLION = """problem = "three_state"
steps = 10
seeds = 1
confirm = {{ seeds = 0 }}
[[learners]]
name = "td"
alpha = {{ linear = [0.000001, 1, {n}] }}
lam = {{ linear = [0, 0.999, {n}] }}
"""
TWO = "ratio = { log2 = [-6, 8, 2] }\n"
GRIDS = {
    "td": "", "tdc": TWO, "gtd2": TWO, "htd": TWO, "pgtd2": TWO, "tdrc": TWO, "etd": "",
    "etd_beta": "beta = { linear = [0, 1, 6] }\n", "tree_backup": "", "vtrace": "", "abtd": "",
}  # fmt: skip
LAMS = {
    "collision": [0.1, 0.2, 0.3],
    "rooms": [0.1, 0.2, 0.3, 0.5, 0.75, 0.875, 0.9375, 0.96875, 0.984375, 1],
}
EPISODE = 20
LIMITS = {"targets": (20, 1000), "page": (20, 1000), "study": (60, 1000)}


class Size(NamedTuple):
    """Of the log; the side of the square grid; steps, seeds and values of lam of published ones."""

    rows: int = 2_000
    targets: int = 2_000
    side: int = 1_000
    collision: int = 20_000
    rooms: int = 50_000
    seeds: int = 50
    lams: int | None = None  # all


QUICK = Size(rows=400, targets=3, side=3, collision=20, rooms=20, seeds=1, lams=1)


def main() -> None:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join([*LIMITS, *LAMS]))
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    asked = parser.parse_args()
    unknown = set(asked.cases) - {*LIMITS, *LAMS}
    if unknown:
        parser.error(f"unknown case: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as name:
        for case in asked.cases or LIMITS:
            measure(case, QUICK if asked.quick else Size(), Path(name))


def measure(case: str, size: Size, folder: Path) -> None:
    """One line about a case."""
    note = "at most {} s and {} MB".format(*LIMITS[case]) if case in LIMITS else ""
    run = [sys.executable, "-m", "steadytd"]
    if case in ("targets", "page"):
        log = write_log(folder / "log.parquet", size)
        command = [sys.executable, "-c", PYTHON.format(str(log))]
        if case == "page":
            command = [*run, "evaluate", str(log), "--discount", "0.9", "--no-figures"]
            command += ["--out", str(folder / "page")]
    else:
        file = folder / f"{case}.toml"
        file.write_text(MILLION.format(n=size.side) if case == "study" else published(case, size))
        if case in LAMS:
            if size != QUICK:  # compile beforehand
                warm = folder / f"{case}_warm.toml"
                warm.write_text(published(case, QUICK))
                measured([*run, "study", str(warm), "--out", str(warm.with_suffix(""))])
            note = f"{st.study(file).spec.updates:,} learner-updates"
        command = [*run, "study", str(file), "--out", str(folder / case)]
    seconds, processor, megabytes = measured(command)
    print(f"{case}: {seconds:.1f} s, {processor:.1f} s of processor time, "
          f"{megabytes:.0f} MB ({note})", flush=True)  # fmt: skip


def published(problem: str, size: Size) -> str:
    """The published grid of a problem, without a rerun of the best."""
    steps, every = (size.collision, 100) if problem == "collision" else (size.rooms, 500)
    text = f'problem = "{problem}"\nsteps = {steps}\nseeds = {size.seeds}\n'
    text += f"every = {min(steps, every)}\nconfirm = {{ seeds = 0 }}\n"
    for name, more in GRIDS.items():
        decay = "zeta" if name == "abtd" else "lam"
        text += f'[[learners]]\nname = "{name}"\nalpha = {{ log2 = [-18, 0] }}\n'
        text += f"{decay} = {LAMS[problem][: size.lams]}\n{more}"
    return text


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and MB of a command."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} has failed.")
    megabytes = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, megabytes


def write_log(path: Path, size: Size) -> Path:
    """Episodes of 20 steps of noise, ratios between 0.8 and 1.25."""
    rng, at = np.random.default_rng(0), np.arange(size.rows)
    mu = rng.uniform(0.3, 0.7, size.rows)
    columns = {
        "episode_id": at // EPISODE,
        "t": at % EPISODE,
        "obs": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=2 * size.rows)), 2),
        "action": rng.integers(0, 2, size.rows),
        "reward": rng.normal(size=size.rows),
        "terminated": at % EPISODE == EPISODE - 1,
        "behavior_prob": mu,
    }
    for i in range(size.targets):
        columns[f"target_prob_{i}"] = mu * rng.uniform(0.8, 1.25, size.rows)
    pq.write_table(pa.table(columns), path)
    return path


if __name__ == "__main__":
    main()
