"""Many learners on one small dense problem, next to JAX's vmapped scan: one core, doubles.


1,000 step sizes, 200,000 steps. Ours is a whole call of `steadytd.run`, which draws the stream as
well; JAX is given the stream, and neither's compilation counts. Both take turns, and both must
come to the same weights. Times are those of the processor, so that other programs disturb little.
JAX is not part of this project: `benchmarks/speed.py --only jax --jax PYTHON` names an interpreter
that has it. Where there is none, a note says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from benchmarks import cases
from benchmarks.figures import Figure, Group
from benchmarks.timing import QUICK, Effort

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.facts import columns

STATES, ACTIONS, GAMMA = 50, 3, 0.9
LAWS, SIZES = ("td", "tdc"), (8, 16)
LAYOUTS = {"vmap": "vmapped scan", "rows": "laid out by hand"}
FLAGS = "--xla_cpu_multi_thread_eigen=false"
NANO = 1e9


class Size(NamedTuple):
    """How many learners take how many steps."""

    learners: int = 1_000
    steps: int = 200_000

    @property
    def alphas(self) -> Floats:
        return np.geomspace(1e-5, 1e-3, self.learners)


def dense_problem(d: int) -> st.Problem:
    """A random problem whose features are all active, and rho is never 0."""
    rng = np.random.default_rng(d)
    return st.Problem(
        name="dense",
        P=rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS)),
        r=rng.normal(size=(STATES, ACTIONS, STATES)),
        gamma=GAMMA,
        mu=rng.dirichlet(np.full(ACTIONS, 3.0), size=STATES),
        pi=rng.dirichlet(np.full(ACTIONS, 3.0), size=STATES),
        Phi=rng.normal(size=(STATES, d)) / np.sqrt(d),
        w0=np.zeros(d),
    )


def save_stream(problem: st.Problem, size: Size, path: Path) -> None:
    """What JAX is given: the steps that seed 0 of our run takes."""
    stream = cases.stream_of(problem, size.steps)
    (row, row_next, facts), events = stream.transitions, stream.events
    reward, gamma, rho = columns(facts[events], "reward", "gamma_next", "rho").T
    np.savez(
        path, Phi=problem.Phi, alphas=size.alphas, row=row[events], row_next=row_next[events],
        reward=reward, gamma=gamma, rho=rho,
    )  # fmt: skip


def ours(problem: st.Problem, law: str, size: Size) -> tuple[float, Floats]:
    """The processor's seconds of a run on one thread, and its weights [d, learners]."""
    learners = st.grid(law, alpha=size.alphas.tolist())
    begin = time.process_time()
    result = st.run(problem, learners, steps=size.steps, points=2, threads=1)
    return time.process_time() - begin, result.final_weights[:, 0].reshape(size.learners, -1).T


@contextmanager
def jax_side(python: str, path: Path, law: str, layout: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that measures JAX whenever a line is sent to it."""
    side = Path(__file__).with_name("jax_side.py")
    with subprocess.Popen(
        [python, str(side), str(path), law, layout], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "XLA_FLAGS": FLAGS},
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        try:
            if not process.stdout.readline():
                raise RuntimeError(f"JAX did not run the scan of {law}.")
            yield process.stdin, process.stdout
        finally:
            process.stdin.close()


def compare(python: str, law: str, d: int, effort: Effort) -> list[Figure]:
    """All sides in turns, the best time of each; `python` has JAX."""
    problem, size = dense_problem(d), size_of(effort)
    _, weights = ours(problem, law, size)  # compiles
    best, other = np.inf, dict.fromkeys(LAYOUTS.values(), np.inf)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.npz"
        save_stream(problem, size, path)
        for layout, name in LAYOUTS.items():
            with jax_side(python, path, law, layout) as (ask, answer):
                if not np.allclose(np.load(f"{path}.npy"), weights, rtol=1e-6, atol=1e-9):
                    raise RuntimeError(f"{law}: JAX and we come to different weights.")
                for _ in range(effort.repeats):
                    best = min(best, ours(problem, law, size)[0])
                    ask.write("go\n")
                    ask.flush()
                    other[name] = min(other[name], float(answer.readline()))
    unit = NANO / (size.steps * size.learners)
    return [
        Figure(f"{law}, d = {d}: {name}", best * unit, taken * unit, taken / best)
        for name, taken in other.items()
    ]


def size_of(effort: Effort) -> Size:
    return Size(16, 1_000) if effort is QUICK else Size()


def has_jax(python: str) -> bool:
    """Whether an interpreter has JAX."""
    asked = [python, "-c", "import jax"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def against_jax(effort: Effort, python: str = sys.executable) -> Group:
    """The comparison; one line says where there is no JAX."""
    learners = size_of(effort).learners
    group = Group(
        f"{learners:,} step sizes on a dense problem, one core (ns per learner-update)",
        ("ours", "other", "other / ours"),
    )
    if not has_jax(python):
        group.notes = ["JAX is not installed, so the comparison with it is left out."]
        return group
    for law in LAWS:
        for d in SIZES:
            group.figures += compare(python, law, d, effort)
    return group


def on_one_core() -> Any:
    """Keep this process, and those that it starts, on one core; return the cores it had."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    return cores


def measure(effort: Effort, python: str = sys.executable) -> Group:
    """The comparison on one core."""
    cores = on_one_core()
    try:
        return against_jax(effort, python)
    finally:
        if cores is not None:
            os.sched_setaffinity(0, cores)
