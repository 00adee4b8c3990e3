"""How long the published grids take: `python benchmarks/studies.py [--rooms] [--json]`.

Collision: 2,907 configurations x 50 runs x 20,000 steps, the error recorded every 100 steps. Rooms:
9,690 configurations x 8 policies x 50 runs x 50,000 steps. The kernels are compiled beforehand by a
run of one seed and few steps. Memory is the largest that the process ever held.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study

TWO = "ratio = { log2 = [-6, 8, 2] }\n"
GRIDS = {
    "td": "", "tdc": TWO, "gtd2": TWO, "htd": TWO, "pgtd2": TWO, "tdrc": TWO, "etd": "",
    "etd_beta": "beta = { linear = [0, 1, 6] }\n", "tree_backup": "", "vtrace": "", "abtd": "",
}  # fmt: skip
COLLISION = [0.1, 0.2, 0.3]
ROOMS = [0.1, 0.2, 0.3, 0.5, 0.75, 0.875, 0.9375, 0.96875, 0.984375, 1]


def published(problem: str, steps: int, every: int, lams: list[float], seeds: int = 50) -> Study:
    """The published grid of a problem, without a rerun of the best."""
    text = f'problem = "{problem}"\nsteps = {steps}\nseeds = {seeds}\nevery = {every}\n'
    text += "confirm = { seeds = 0 }\n"
    for name, more in GRIDS.items():
        decay = "zeta" if name == "abtd" else "lam"
        text += f'[[learners]]\nname = "{name}"\nalpha = {{ log2 = [-18, 0] }}\n'
        text += f"{decay} = {lams}\n{more}"
    return Study(parse_spec(text, problem))


def measured(problem: str, steps: int, every: int, lams: list[float]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as directory:
        published(problem, 100, 100, lams, seeds=1).run(out=Path(directory) / "warm")
        study = published(problem, steps, every, lams)
        begin = time.perf_counter()
        study.run(out=Path(directory) / "out")
        seconds = time.perf_counter() - begin
    return {
        "grid": problem,
        "configurations": study.spec.runs,
        "updates": study.spec.updates,
        "seconds": round(seconds, 1),
        "million_updates_per_second": round(study.spec.updates / seconds / 1e6),
        "memory_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", action="store_true", help="the Rooms grid too: minutes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured("collision", 20_000, 100, COLLISION)]
    if options.rooms:
        rows.append(measured("rooms", 50_000, 500, ROOMS))
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    for row in rows:
        print(", ".join(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
                        for key, value in row.items()))  # fmt: skip


if __name__ == "__main__":
    main()
