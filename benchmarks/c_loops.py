"""Compiles `loops.c` and calls it through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from ctypes import POINTER, c_double, c_int32, c_int64
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases import Stream
from numpy.typing import NDArray

from steadytd import Learner
from steadytd.base.arrays import Floats
from steadytd.engine.facts import STEP_FACTS

SOURCE = Path(__file__).with_name("loops.c")

# Two of the things that -O3 does make these loops slower: fusing the loops over features (up to
# three times at 64 lanes), and a call of memset for a few lanes. A C programmer who measures turns
# them off, so the comparison does too.
FLAGS = (
    *("-O3", "-march=native", "-shared", "-fPIC"),
    *("-fno-loop-unroll-and-jam", "-fno-tree-loop-distribute-patterns"),
)
COLUMNS = tuple(f"-D{name.upper()}={i}" for i, name in enumerate(STEP_FACTS))
CACHE_LINE = 64
LAWS = ("td", "perturbed_td", "tdc", "etd", "htd")

Longs = POINTER(c_int64)
Ints = POINTER(c_int32)
Doubles = POINTER(c_double)


class CStream(ctypes.Structure):
    _fields_ = (
        ("steps", c_int64),
        ("columns", c_int64),
        ("event", Ints),
        ("factor", Doubles),
        ("row", Ints),
        ("row_next", Ints),
        ("facts", Doubles),
    )


class CTable(ctypes.Structure):
    _fields_ = (
        ("first", Longs),
        ("length", Longs),
        ("offset", Longs),
        ("feature", Ints),
        ("value", Doubles),
    )


class CLoop:
    """One of the loops of `loops.c` with its own vectors."""

    def __init__(self, library: ctypes.CDLL, stream: Stream, learners: list[Learner]) -> None:
        first = learners[0]
        law, lanes, d = first.law, len(learners), len(stream.w0)
        vectors = len(law.vectors) + (len(law.traces) if first.traced else 0)
        self.stream = stream
        self.V = aligned_zeros((vectors, d, lanes))
        names = [name for name in ("alpha", *law.params) if first.traced or _used(law.name, name)]
        self.params = [aligned_zeros((lanes,)) for _ in names]
        for name, values in zip(names, self.params, strict=True):
            values[:] = [one[name] for one in learners]
        self.function: Callable[..., None] = library[law.name + "_traced" * first.traced]
        self.sizes = (lanes, d) if first.traced else (lanes,)
        self.arguments = self._arguments()
        self.reset()

    def _arguments(self) -> list[Any]:
        s = self.stream
        row, row_next, facts = s.transitions
        sizes = len(s.events), facts.shape[1]
        steps = CStream(*sizes, *pointers((s.events, s.factor, row, row_next, facts)))
        table = CTable(*pointers(s.rows))
        return [steps, table, *map(c_int64, self.sizes), *pointers((*self.params, *self.V))]

    def reset(self) -> None:
        self.V[:] = 0.0
        self.V[0] = self.stream.w0[:, None]

    def go(self) -> None:
        self.function(*self.arguments)

    def vectors(self) -> Floats:
        return self.V


def _used(law: str, name: str) -> bool:
    """Whether the loop without traces takes this hyper-parameter: most laws do not ask for lam."""
    return name != "lam" or law in ("tdc", "etd")


@cache
def compile_loops() -> ctypes.CDLL | None:
    """The library made from `loops.c`, or None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "loops.so"
        subprocess.run([gcc, *FLAGS, *COLUMNS, "-o", target, SOURCE], check=True)
        library = ctypes.CDLL(str(target))  # stays loaded when the file is gone
    for name in LAWS:
        library[name].restype = library[f"{name}_traced"].restype = None
    return library


def gcc_version() -> str | None:
    """The first line of `gcc --version`."""
    with suppress(OSError):
        done = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
        return done.stdout.partition("\n")[0]
    return None


def pointers(arrays: Iterable[NDArray[Any]]) -> list[Any]:
    """A C pointer to the first element of each array; the caller keeps the arrays alive."""
    kinds: dict[str, Any] = {"int32": Ints, "int64": Longs, "float64": Doubles}
    return [array.ctypes.data_as(kinds[array.dtype.name]) for array in arrays]


def aligned_zeros(shape: tuple[int, ...]) -> Floats:
    """Zeros that begin on a cache line, as a careful C programmer would allocate them."""
    size = int(np.prod(shape))
    room = np.zeros(size + CACHE_LINE // 8)
    begin = -room.ctypes.data % CACHE_LINE // 8
    return room[begin : begin + size].reshape(shape)
