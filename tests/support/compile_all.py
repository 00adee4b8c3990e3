"""Compile every registered law's loop once, in two processes, before the workers of a test run.

    python -m tests.support.compile_all

Kept machine code is shared by all processes. Without this, the workers of a test run would compile
the same loops at the same time, each for itself.
"""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from steadytd.engine.choose import make_block
from tests.support.cases import CASES, RandomStream

PROCESSES = 2


def compile_case(number: int) -> str:
    """Take one step with a case of the contract tests."""
    case, stream = CASES[number], RandomStream(seed=0, steps=1)
    make_block([case], stream.w0).advance(
        stream.events, np.ones(1), stream.transitions, stream.rows
    )
    return str(case)


def main() -> None:
    """Compile what is not compiled yet."""
    spawn = get_context("spawn")
    # A compiler makes millions of objects: looking for garbage among them is a tenth of the time.
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn, initializer=gc.disable) as pool:
        done = list(pool.map(compile_case, range(len(CASES))))
    print(f"{len(done)} loops are compiled.")


if __name__ == "__main__":
    main()
