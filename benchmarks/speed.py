"""How fast the engine is, next to C and NumPy on the same machine in the same minute.

Every figure is a ratio of times that were measured side by side, best of several, because seconds
measured on one machine say nothing about another. Run it with `make bench`; `--only` names one
measurement, `--json` prints one document instead of tables. `--quick` takes the smallest sizes: it
shows that everything runs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from benchmarks import jax_scan, measurements, traces
from benchmarks.c_loops import FLAGS, compile_loops, gcc_version
from benchmarks.figures import Group, verdict
from benchmarks.timing import FULL, QUICK, ROUGH, Effort

NO_GCC = "gcc is not installed, so the comparison with C is left out."


def main() -> None:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="the smallest sizes, to see that it runs"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", choices=MEASUREMENTS, help="one measurement")
    parser.add_argument("--jax", default=sys.executable, help="an interpreter that has JAX")
    asked = parser.parse_args()
    console = Console(stderr=asked.json)
    groups = []
    with console.status("measuring") as status:
        for name, measure in MEASUREMENTS.items():
            if asked.only not in (None, name):
                continue
            status.update(f"measuring: {name}")
            jax = {"python": asked.jax} if name == "jax" else {}
            groups.append(measure(QUICK if asked.quick else FULL, **jax))
            if not asked.json:
                console.print(groups[-1].table(judged=not asked.quick), "")
    said = ROUGH if asked.quick else verdict(groups)
    if asked.json:
        document = {
            "machine": machine(),
            "quick": asked.quick,
            "groups": [group.document() for group in groups],
            "verdict": said,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        console.print(said)


def with_c(measure: Callable[[ctypes.CDLL, Effort], Group], effort: Effort) -> Group:
    """A comparison with C, or the reason why there is none."""
    library = compile_loops()
    if library is None:
        return Group("Against the same loop in C", ("ours", "C", "ours / C"), notes=[NO_GCC])
    return measure(library, effort)


MEASUREMENTS: dict[str, Callable[..., Group]] = {
    "start": measurements.start,  # first: a child's peak memory is at least that of its parent
    "c": partial(with_c, measurements.against_c),
    "family": partial(with_c, measurements.family_against_c),
    "numpy": measurements.against_numpy,
    "threads": measurements.threads,
    "steps": measurements.flat_in_steps,
    "features": measurements.linear_in_features,
    "traces": traces.against_vectors,
    "large": traces.over_features,
    "jax": jax_scan.measure,
    "learners": measurements.per_learner,
}


def machine() -> dict[str, object]:
    """What decides the numbers, and nothing that tells whose machine it is."""
    return {
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "gcc": gcc_version(),
        "gcc_flags": FLAGS,
    }


if __name__ == "__main__":
    main()
