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
from steadytd.learners import names

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
            cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(process.kill)  # it holds nothing that could be lost
    return missing == new


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
