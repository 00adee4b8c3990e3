"""Compiles the loop of a law, and keeps it on disk so that the next process starts at once.

A loop is known by a hash of everything that it is made from: its source, the functions of the law
with all that they use, and the code of the engine's helpers (`base.identity`); `base.jit` adds the
versions and the processor. So a stale loop cannot be found. A law that cannot be seen through, or
that Numba could not find again, is compiled anew in every process.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from functools import cache, cached_property
from types import ModuleType
from typing import Any

from steadytd.base.files import file_name
from steadytd.base.identity import digest, modules
from steadytd.base.source import UnreadableError
from steadytd.engine.law import Function, Law
from steadytd.engine.step.layouts.lanes import loop_source
from steadytd.engine.step.program import growth, law_functions

USED = ("steadytd.engine.step.driver",)  # by the loops


class Kernel:
    """The compiled loop of a law, with the driver that calls it; compiled when first called."""

    def __init__(self, module: ModuleType) -> None:
        self.enter, self.layout = module.enter, (module.SCRATCH, module.MEASURED)

    @cached_property
    def loop(self) -> int:
        """The loop as the driver takes it."""
        from steadytd.engine.step.driver import address

        return address(self.enter)

    def __call__(self, *given: object) -> None:
        """Take steps; see `driver.run`."""
        from steadytd.engine.step.driver import run

        run(self.loop, self.layout, *given)


@cache
def kernel(
    law: Law,
    traced: bool,
    averaged: bool = False,
    write: Callable[[Law, bool, bool], str] = loop_source,
) -> Any:
    """The compiled loop of a law (compiled when first called), with the source that `write` gives.

    A source with `enter` is called by the driver; one with `run` brings a driver of its own.
    """
    from steadytd.base import jit, numba_internals

    functions = {**law_functions(law), "growth": growth}
    source = write(law, traced, averaged)
    stamp = _stamp(source, functions)
    module = _module(law.name, source, stamp or digest(source))
    vars(module).update({name: jit.inner(f) for name, f in functions.items()})
    vars(module)["disjoint"] = numba_internals.disjoint()
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    own = getattr(module, "run", None)
    if stamp is None:
        jit.say_compiling(kept=False)
    else:
        jit.keep(own or module.enter, lambda: stamp)
    return own or Kernel(module)


def _stamp(source: str, functions: dict[str, Function]) -> str | None:
    """A hash of all that a loop is made from; None if it is not to be kept."""
    if any(inspect.getmodule(function) is None for function in functions.values()):
        return None
    try:
        return digest(source, functions, modules(*USED))
    except UnreadableError:
        return None


def _module(name: str, source: str, stamp: str) -> ModuleType:
    """An empty module for the source, which error messages may quote."""
    module = ModuleType(f"steadytd_kernel_{file_name(name)}_{stamp[:24]}")
    module.__file__ = f"<{module.__name__}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
    sys.modules[module.__name__] = module  # kept machine code looks it up by its name
    return module
