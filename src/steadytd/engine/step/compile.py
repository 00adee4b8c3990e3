"""Compiles the loop of a law, and keeps it on disk so that the next process starts at once.

A loop is known by a hash of everything that it is made from: its source, the functions of the law
with all that they use, and the code of the engine's helpers (`base.identity`); `base.jit` adds the
versions and the processor. So a stale loop cannot be found. A law that cannot be seen through, or
that Numba could not find again, is compiled anew in every process. Why a user's law cannot be
compiled at all, `law_error` says in one sentence instead of the compiler's forty lines.
"""

from __future__ import annotations

import difflib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.files import file_name
from steadytd.base.identity import digest, modules
from steadytd.base.source import UnreadableError
from steadytd.engine import elementary
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Function, Law
from steadytd.engine.step.layouts.lanes import loop_source
from steadytd.engine.step.program import growth, law_functions

USED = ("steadytd.engine.step.driver",)  # by the loops
NAME = re.compile(r"NameError: name '(\w+)'")
GLOBAL = re.compile(r"Untyped global name '(\w+)'")
LINE = re.compile(r"^(?!Failed in|During|File|No implementation)\s*(\S.*)$", re.MULTILINE)
TRIAL = 0.5  # every argument of a trial call


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
    vars(module).update({name: jit.inner(_with_elementary(f)) for name, f in functions.items()})
    vars(module)["disjoint"] = numba_internals.disjoint()
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    own = getattr(module, "run", None)
    if stamp is None:
        jit.say_compiling(saved=False)
    else:
        jit.cached(own or module.enter, lambda: stamp)
    return own or Kernel(module)


def _with_elementary(function: Function) -> Function:
    """The function, with those of `elementary` that it calls in a form that compiled code calls."""
    from steadytd.base import jit

    outer = function.__globals__
    used = {
        name: jit.inner(outer[name])
        for name in function.__code__.co_names
        if getattr(outer.get(name), "__module__", "") == elementary.__name__
    }
    if not used:
        return function
    given = function.__code__, {**outer, **used}, function.__name__
    return FunctionType(*given, function.__defaults__, function.__closure__)


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


def law_error(law: Law, error: Exception) -> InputError:
    """The sentence: an unknown name, nothing returned, an array, the wrong number of numbers."""
    found = NAME.search(str(error))
    if found:
        known = (*STEP_FACTS, *CARRIED, *law.products, *law.all_params, *law.memory)
        close = difflib.get_close_matches(found[1], known, n=1)
        hint = f"; did you mean '{close[0]}', as an argument?" if close else "; define it."
        return InputError(f"law {law.name} uses '{found[1]}', which is not defined{hint}")
    found = GLOBAL.search(str(error))
    if found:
        return InputError(
            f"law {law.name} uses '{found[1]}', which cannot be compiled; a law works with "
            "numbers, math and plain functions of numbers."
        )
    wanted = ", ".join(f"{v}: {' and '.join(parts)}" for v, parts in law.writes.items())
    count = sum(map(len, law.writes.values()))
    numbers = "one number" if count == 1 else f"{count} numbers"
    rule = f"it must return {numbers}: the multiples of what it adds ({wanted})"
    returned = _trial(law)
    if returned is None:
        return InputError(f"law {law.name} returns nothing; {rule}. Is a `return` missing?")
    if isinstance(returned, np.ndarray):
        return InputError(
            f"law {law.name} returns an array of shape {returned.shape}; {rule}. Vectors are named "
            "in `writes`, and inner products are arguments, such as w_x."
        )
    given = len(list(_numbers(returned)))
    if given != count and isinstance(returned, float | int | tuple | np.number):
        return InputError(f"law {law.name} returns {given}; {rule}.")
    lines = LINE.findall(str(error)) or [str(error)]
    return InputError(
        f"law {law.name} cannot be compiled: {lines[0].strip().rstrip('.')}. Use numbers, math and "
        "plain Python only; see docs/laws.md."
    )


def _trial(law: Law) -> object:
    """What the law returns, called as plain Python; a text where that fails."""
    given = dict.fromkeys(inspect.signature(law.update).parameters, TRIAL)
    try:
        with np.errstate(all="ignore"):
            return law.update(**given)
    except Exception as error:  # whatever it is, the compiler's own sentence says more
        return str(error)


def _numbers(returned: object) -> Iterator[object]:
    if isinstance(returned, tuple | list):
        for one in returned:
            yield from _numbers(one)
    else:
        yield returned
