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
from functools import cache
from importlib import import_module
from types import ModuleType

from steadytd.base.files import file_name
from steadytd.base.identity import UnreadableError, digest, modules
from steadytd.engine.law import Function, Law
from steadytd.engine.loop.write import loop_source

KERNELS, HISTORY = "steadytd.engine.loop.kernels", "steadytd.engine.loop.history"
HELPERS = {
    **dict.fromkeys(
        ("Sought", "copy", "leaves_finite_range", "mark_diverged", "measure_all"), KERNELS
    ),
    **dict.fromkeys(("Late", "outside", "fold", "decay"), HISTORY),
}


@cache
def kernel(
    law: Law,
    traced: bool,
    averaged: bool = False,
    write: Callable[[Law, bool, bool], str] = loop_source,
) -> Function:
    """The compiled loop of a law (compiled when first called); see `loop_source` for the flags."""
    from steadytd.base import jit

    functions = law_functions(law)
    source = write(law, traced, averaged)
    helpers = {name: home for name, home in HELPERS.items() if f"{name}(" in source}
    stamp = _stamp(source, functions, sorted(set(helpers.values())))
    module = _module(law.name, source, stamp or digest(source))
    vars(module).update({name: getattr(import_module(h), name) for name, h in helpers.items()})
    vars(module).update({name: jit.not_kept(f) for name, f in functions.items()})
    vars(module)["Disjoint"] = jit.Disjoint
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    run: Function = module.run
    return run if stamp is None else jit.keep(run, lambda: stamp)


def law_functions(law: Law) -> dict[str, Function]:
    """The plain Python functions of a law under the names that its loop calls them by."""
    return {
        "update": law.update,
        **{f"trace_{name}": function for name, function in law.traces.items()},
        **{f"memory_{name}": f for name, f in law.memory.items() if f is not None},
        **{f"map_{name}": function for name, function in law.maps.items()},
    }


def _stamp(source: str, functions: dict[str, Function], helpers: list[str]) -> str | None:
    """A hash of all that a loop is made from; None if it is not to be kept."""
    if any(inspect.getmodule(function) is None for function in functions.values()):
        return None
    try:
        return digest(source, functions, modules(*helpers))
    except UnreadableError:
        return None


def _module(name: str, source: str, stamp: str) -> ModuleType:
    """An empty module for the source, which error messages may quote."""
    module = ModuleType(f"steadytd_kernel_{file_name(name)}_{stamp[:24]}")
    module.__file__ = f"<{module.__name__}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
    sys.modules[module.__name__] = module  # kept machine code looks it up by its name
    return module
