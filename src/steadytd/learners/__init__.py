"""The algorithms, one file each. The registry is the directory: `name.py` holds the law `name`.

Other packages add theirs by the entry point `steadytd.laws` (see `base.registry`). A law in a file
of the user's is named `my.py:my_law`; the file is run.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from steadytd.base.errors import InputError, unknown
from steadytd.base.files import reading_arrays
from steadytd.base.numbers import whole
from steadytd.base.registry import make_callable, module_of, plugins, registered
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner, OnlineLearner
from steadytd.engine.settings import parse_params

# What an evaluation runs where no learner is named, in the order of its table.
EVALUATED = ("perturbed_lstd", "lstd", "perturbed_td", "tdc")
OWN = "A law of your own: the law itself in Python, or its file, my.py:my_law."
IN_FILE = re.compile(r"(.+?\.py)(?::(\w+)(?![\w=]))?(?::(.*))?", re.DOTALL)


@cache
def built_in() -> tuple[str, ...]:
    """The names of the library's own algorithms, in alphabetical order."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_"))


@cache
def _plugged() -> dict[str, Law]:
    """The algorithms of other packages, by name."""

    def check(name: str, loaded: object) -> Law:
        if not isinstance(loaded, Law):
            raise ValueError(f"it must be a law, made by @st.law, got {type(loaded).__name__}")
        if loaded.name != name:
            raise ValueError(
                f"the law is called '{loaded.name}'; give the entry point the same name"
            )
        return loaded

    return {n: x for n, x in plugins("steadytd.laws", built_in(), check).items()
            if isinstance(x, Law)}  # fmt: skip


def names() -> tuple[str, ...]:
    """The names of all algorithms, those of other packages too, in alphabetical order."""
    return tuple(sorted([*built_in(), *_plugged()]))


def algorithm(name: str, others: Collection[str] = ()) -> Law:
    """The law registered under a name; a message about an unknown one lists `others`, too."""
    found = registered("learner", name, [*names(), *others], OWN)
    if found in _plugged():
        return _plugged()[found]
    law: Law = getattr(importlib.import_module(f"{__name__}.{found}"), found)
    return law


class Written(NamedTuple):
    """A learner as text, in parts: the file, "" for a registered law; the law; its settings."""

    file: str
    law: str
    settings: str


def written(text: str) -> Written:
    """The parts of a learner's text.

    >>> written("td:alpha=0.1")
    Written(file='', law='td', settings='alpha=0.1')
    >>> written("laws/my.py:my_law:alpha=0.1")
    Written(file='laws/my.py', law='my_law', settings='alpha=0.1')
    """
    if found := IN_FILE.fullmatch(text.strip()):
        return Written(found[1], found[2] or "", found[3] or "")
    name, _, settings = text.partition(":")
    return Written("", name.strip(), settings)


def law_of(text: str, others: Collection[str] = ()) -> Law:
    """The law that a text names: a registered one, or one of a Python file, which is run."""
    parts = written(text)
    return law_in(parts.file, parts.law) if parts.file else algorithm(parts.law, others)


def law_in(path: str | Path, name: str) -> Law:
    """The law of a name that a Python file defines. The file is the user's own and is run."""
    found = {law.name: law for law in laws_in(path)}
    if name not in found:
        example = f"Write for instance {path}:{next(iter(found))}."
        raise unknown(f"law of '{path}':", name, found, example)
    return found[name]


def laws_in(path: str | Path) -> list[Law]:
    """The laws that a Python file defines. The file is the user's own and is run."""
    found = {id(x): x for x in vars(module_of(path)).values() if isinstance(x, Law)}
    own = [law for law in found.values() if not law.in_library]
    if not own:
        raise InputError(f"'{path}' defines no law; write one with @st.law (docs/laws.md).")
    return own


def learners() -> dict[str, str]:
    """Every algorithm's name with its one-line description."""
    return {name: algorithm(name).summary for name in names()}


def learner(algorithm_or_text: str | Law | Learner, /, **params: object) -> Learner:
    """A learner from a name and hyper-parameters, from text, or from a law of your own.

    The text may name a law in a Python file, which is run: `my.py:my_law:alpha=0.1`.

    >>> str(learner("perturbed_td", alpha=1e-4, eta=1.0))
    'perturbed_td:alpha=0.0001,eta=1'
    >>> learner("perturbed_td:alpha=1e-4,eta=1") == learner("perturbed_td", alpha=1e-4, eta=1)
    True
    """
    if isinstance(algorithm_or_text, Learner):
        return algorithm_or_text.replace(**params) if params else algorithm_or_text
    if isinstance(algorithm_or_text, Law):
        return Learner(algorithm_or_text, params)
    if not isinstance(algorithm_or_text, str):
        raise InputError(
            f"a learner is a string such as 'td:alpha=0.1', a law or a learner, got "
            f"{algorithm_or_text!r:.60}."
        )
    found = law_of(algorithm_or_text)
    settings = parse_params(found.name, written(algorithm_or_text).settings)
    twice = sorted(set(settings) & set(params))
    if twice:
        raise InputError(f"{found.name}: {twice[0]} is given in the text and as an argument.")
    return Learner(found, {**settings, **params})


def load_learner(path: str | Path, laws: Iterable[Law] = ()) -> OnlineLearner:
    """Read an online learner that `save` wrote. Name your own laws in `laws`."""
    with reading_arrays(Path(path), "learner") as file:
        settings = json.loads(str(file["settings"]))
        state = {name: file[name] for name in file.files if name != "settings"}
        text, step = str(settings["learner"]), whole("step", settings["step"], 0)
        n_features = state["V"].shape[1]
    online = saved_learner(text, laws).start(n_features=n_features)
    online.restore(state, step)
    return online


def saved_learner(text: str, laws: Iterable[Law]) -> Learner:
    """The learner of a text in a file; a law of the user's own is found in `laws` by its name.

    What a file says is never run.
    """
    name, _, rest = text.partition(":")
    own = {law.name: law for law in laws}
    return Learner(own[name] if name in own else algorithm(name), parse_params(name, rest))


make_callable(__name__, learners)
