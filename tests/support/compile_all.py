"""Compile what many tests use, in two processes, before the workers of a test run.

    python -m tests.support.compile_all

Kept machine code is shared by all processes. Without this, the workers of a test run would compile
the same loops at the same time, each for itself. It is every registered law's loop, the sums over
a log, a learner with many features, and a Horde.
"""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import steadytd as st
from steadytd.engine.active import make_block
from tests.support.cases import CASES, RandomStream

PROCESSES = 2


def compile_case(number: int) -> str:
    """Take one step with a case of the contract tests."""
    case, stream = CASES[number], RandomStream(seed=0, steps=1)
    make_block([case], stream.w0).advance(
        stream.events, np.ones(1), stream.transitions, stream.rows
    )
    return str(case)


def compile_evaluation() -> None:
    """Evaluate a small log."""
    with TemporaryDirectory() as folder:
        log = st.sample_log(Path(folder) / "log.parquet")
        learners = ["lstd", "lsetd", "drl", "snpdis", "td:alpha=0.001"]
        st.evaluate(log, discount=0.95, learners=learners, threads=1)


def compile_more() -> None:
    """Take a step with many features, and one with a Horde."""
    x = np.eye(200)
    st.learner("td:alpha=0.05,lam=0.8").start(200).update(x[0], 1.0, x[1], rho=1.0, gamma=0.9)
    learners = "td:alpha=0.02,lam=0.8", "td:alpha=0.05"
    some = [st.prediction(one, cumulant=0, policy=0, discount=0.9) for one in learners]
    st.horde(200, some).update(x[0], x[1], [1.0], rhos=[1.0])


def main() -> None:
    """Compile what is not compiled yet."""
    spawn = get_context("spawn")
    # A compiler makes millions of objects: looking for garbage among them is a tenth of the time.
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn, initializer=gc.disable) as pool:
        other = [pool.submit(compile_evaluation)]
        pool.submit(compile_case, 0).result()  # all loops share what the first one compiles
        other.append(pool.submit(compile_more))
        done = list(pool.map(compile_case, range(1, len(CASES))))
        for one in other:
            one.result()
    print(f"{len(done) + 1} loops and more are compiled.")


if __name__ == "__main__":
    main()
