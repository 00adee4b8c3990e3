"""The problems, one file each. The registry is the directory: `name.py` holds `make()`.

A file with `FAMILY = True` describes a family: `make(seed)` is a new instance for every seed, and
instances differ in the features `Phi` only. So the stream, the values and the start weights are
those of all instances alike.

Other packages add theirs by the entry point `steadytd.problems` (see `base.registry`).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from functools import cache
from types import ModuleType

from steadytd.base.errors import InputError, unknown
from steadytd.base.registry import make_callable, plugins
from steadytd.mdp.problem import Problem


@cache
def built_in() -> tuple[str, ...]:
    """The names of the library's own problems, in alphabetical order."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_"))


@cache
def _plugged() -> dict[str, ModuleType]:
    """The problems of other packages, by name: a module with `make`, or the function itself."""

    def check(name: str, loaded: object) -> ModuleType:
        if isinstance(loaded, ModuleType):
            if not callable(getattr(loaded, "make", None)):
                raise ValueError("the module must have a function `make` that returns a problem")
            return loaded
        if not callable(loaded):
            raise ValueError(f"it must be a function that returns a problem, got {loaded!r}")
        made = ModuleType(loaded.__module__, loaded.__doc__)
        vars(made).update(make=loaded, __file__=getattr(sys.modules.get(loaded.__module__),
                                                        "__file__", None))  # fmt: skip
        return made

    return {n: x for n, x in plugins("steadytd.problems", built_in(), check).items()
            if isinstance(x, ModuleType)}  # fmt: skip


def names() -> tuple[str, ...]:
    """The names of all problems, those of other packages too, in alphabetical order."""
    return tuple(sorted([*built_in(), *_plugged()]))


def module(name: str) -> ModuleType:
    """The module that defines a problem."""
    if name not in names():
        raise unknown("problem", name, names())
    if name in _plugged():
        return _plugged()[name]
    return importlib.import_module(f"{__name__}.{name}")


def is_family(name: str) -> bool:
    """Whether a problem has an instance for every seed.

    >>> is_family("collision"), is_family("baird")
    (True, False)
    """
    return bool(getattr(module(name), "FAMILY", False))


def problems() -> dict[str, str]:
    """Every problem's name with its one-line description."""
    return {name: (module(name).__doc__ or "").partition("\n")[0] for name in names()}


def problem(name: str, /, **options: object) -> Problem:
    """The problem registered under a name; options are those of its `make`.

    Of a family (`is_family`) this is instance 0, or with `seed=7` instance 7.

    >>> problem("three_state").d_mu.round(4)
    array([0.4545, 0.0909, 0.4545])
    """
    make = module(name).make
    known = list(inspect.signature(make).parameters)
    for option in options:
        if not known:
            raise InputError(f"problem {name} has no options, got {option}; leave it out.")
        if option not in known:
            raise unknown(f"option of problem {name}:", option, known)
    made: Problem = make(**options)
    return made


make_callable(__name__, problems)
