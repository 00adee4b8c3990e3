"""Compiles loops in a second process, on a machine that has none of them yet.

Numba compiles one function at a time in a process, so a first run would leave all processors but
one idle. The other process begins with the last loop; whichever comes to a loop second finds it on
disk. If it fails, nothing is lost but time.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from steadytd.base.files import cache_directory, file_name
from steadytd.engine.learner import Learner


def compile_beside(learners: Sequence[Learner]) -> bool:
    """Begin to compile the learners' loops, if none is kept; whether there is much to compile."""
    if any(_kept(learner.name) for learner in learners):
        return False
    if (os.cpu_count() or 1) < 2:
        return True
    texts = [str(learner) for learner in learners][::-1]
    process = subprocess.Popen(
        [sys.executable, "-m", "steadytd.reproduction.ahead", json.dumps(texts)],
        cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    atexit.register(process.kill)  # it holds nothing that could be lost
    return True


def _kept(name: str) -> bool:
    """Whether a loop of the law is kept, perhaps an older one."""
    return any(cache_directory().glob(f"steadytd_kernel_{file_name(name)}_*"))


def main(texts: list[str]) -> None:
    """Compile the loops of these learners and keep them."""
    from steadytd.engine.loop.compile import kernel
    from steadytd.learners import learner

    for one in map(learner, texts):
        kernel(one.law, one.traced, one.averaged).loop  # noqa: B018  (asking for it compiles it)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
