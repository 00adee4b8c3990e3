"""Compiles loops in a second process, on a machine that has none of them yet.

Numba compiles one function at a time in a process, so a first run would leave all processors but
one idle. The other process begins with the driver, which all loops need, and then with the last
loop; this one compiles the loops from the first on. Whichever comes to a loop second finds it on
disk. If the other fails, nothing is lost but time.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadytd.base.files import cache_directory, file_name
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.learner import Learner
from steadytd.engine.rows import no_rows
from steadytd.engine.step.compile import kernel
from steadytd.learners import learner, names

_seen: set[str] = set()  # laws that were looked for in this process


def compile_beside(learners: Sequence[Learner]) -> bool:
    """Begin to compile loops that are not kept, if several; whether there is nothing kept.

    Another process knows the registered laws only. Each law is looked for once.
    """
    new = {one.name for one in learners} - _seen
    if not new:
        return False
    _seen.update(new)
    missing = {name for name in new & set(names()) if not _kept(name)}
    if len(missing) > 1 and (os.cpu_count() or 1) > 1:
        some = (x for x in learners if x.name in missing and x.law.block is None)
        loops = {(x.law, x.traced, x.averaged): str(x) for x in some}
        process = subprocess.Popen(
            [sys.executable, "-m", "steadytd.runs.ahead", json.dumps([*loops.values()][::-1])],
            cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(process.kill)  # it holds nothing that could be lost
        for loop in loops:
            kernel(*loop).loop  # noqa: B018  (asking for it compiles it)
        assert process.stdout is not None
        with process.stdout as said:
            said.readline()  # the driver is there, or the process has ended
    return missing == new


def _kept(name: str) -> bool:
    """Whether a loop of the law is kept, perhaps an older one."""
    return any(cache_directory().glob(f"steadytd_kernel_{file_name(name)}_*"))


def compile_driver(one: Learner) -> None:
    """Compile the driver for what a block gives it; without stops it enters no loop."""
    from steadytd.engine.step.driver import run

    def instead(own: object, steps: object, goal: object, plan: Any) -> None:
        stops, records, *rest = plan
        run(0, (0, 0), own, steps, goal, (stops[:0], records[:0], *rest))

    block = Block([one], np.zeros(1))
    block.kernel = instead
    no = np.zeros(0, dtype=np.int32)
    block.advance(no, np.zeros(0), Transitions(no, no, np.zeros((0, len(STEP_FACTS)))), no_rows())


def main(texts: list[str]) -> None:
    """Compile the driver, say so, and compile the loops of these learners; keep all of it."""
    learners = [learner(text) for text in texts]
    compile_driver(learners[0])
    print(flush=True)
    for one in learners:
        kernel(one.law, one.traced, one.averaged).loop  # noqa: B018


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
