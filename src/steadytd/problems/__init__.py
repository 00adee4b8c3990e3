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
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import from_text
from steadytd.base.registry import make_callable, plugins, registered
from steadytd.engine.settings import parse_params
from steadytd.mdp.problem import Problem, load_problem

OWN = "A problem of your own: the problem itself in Python, or a file that it saved, mine.npz."


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
    """The module that defines a problem; its options may follow the name."""
    found = registered("problem", name.partition(":")[0], names(), OWN)
    if found in _plugged():
        return _plugged()[found]
    return importlib.import_module(f"{__name__}.{found}")


def is_saved(text: str) -> bool:
    """Whether a text names a file with a saved problem.

    >>> is_saved("mine.npz"), is_saved("baird")
    (True, False)
    """
    return text.strip().lower().endswith(".npz")


def is_family(text: str) -> bool:
    """Whether a problem has an instance for every seed.

    >>> is_family("collision"), is_family("collision:seed=7"), is_family("baird")
    (True, False, False)
    """
    if is_saved(text) or "seed" in _options(text):
        return False
    return bool(getattr(module(text), "FAMILY", False))


def _options(text: str) -> dict[str, Any]:
    """The options behind a problem's name, as numbers where they are."""
    name, _, rest = text.partition(":")
    options: dict[str, Any] = dict(parse_params(f"problem {name}", rest))
    for key, value in options.items():
        with suppress(ValueError):  # other options are texts
            options[key] = from_text(value)
    return options


def problems() -> dict[str, str]:
    """Every problem's name with its one-line description."""
    return {name: (module(name).__doc__ or "").partition("\n")[0] for name in names()}


def problem(text: str, /, **options: object) -> Problem:
    """The problem registered under a name, with its options, or a saved one (.npz).

    Of a family (`is_family`) this is instance 0, or with `seed=7` instance 7. The command line's
    text is understood too: `problem("random_mdp:states=10,seed=1")`.

    >>> problem("three_state").d_mu.round(4)
    array([0.4545, 0.0909, 0.4545])
    """
    if is_saved(text):
        if options:
            raise InputError(f"'{text}' is a saved problem and has no options; leave them out.")
        return load_problem(text.strip())
    make, name = module(text).make, text.partition(":")[0].strip()
    given = _options(text)
    if twice := sorted(given.keys() & options.keys()):
        raise InputError(f"problem {name}: {twice[0]} is given in the text and as an argument.")
    known = list(inspect.signature(make).parameters)
    for option in given | options:
        if not known:
            raise InputError(f"problem {name} has no options, got {option}; leave it out.")
        if option not in known:
            raise unknown(f"option of problem {name}:", option, known)
    made: Problem = make(**given, **options)
    return made


make_callable(__name__, problems)
