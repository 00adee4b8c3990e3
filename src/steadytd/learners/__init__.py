"""The algorithms, one file each. The registry is the directory: `name.py` holds the law `name`.

Other packages add theirs by the entry point `steadytd.laws` (see `base.registry`).
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from steadytd.base.errors import InputError, unknown
from steadytd.base.files import reading_arrays
from steadytd.base.numbers import whole
from steadytd.base.registry import make_callable, plugins
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner, OnlineLearner
from steadytd.engine.settings import parse_params

# What an evaluation runs where no learner is named, in the order of its table.
EVALUATED = ("perturbed_lstd", "lstd", "perturbed_td", "tdc")


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


def algorithm(name: str) -> Law:
    """The law registered under a name."""
    if name not in names():
        raise unknown("learner", name, names())
    if name in _plugged():
        return _plugged()[name]
    found: Law = getattr(importlib.import_module(f"{__name__}.{name}"), name)
    return found


def learners() -> dict[str, str]:
    """Every algorithm's name with its one-line description."""
    return {name: algorithm(name).summary for name in names()}


def learner(algorithm_or_text: str | Law | Learner, /, **params: object) -> Learner:
    """A learner from a name and hyper-parameters, from text, or from a law of your own.

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
    name, _, rest = algorithm_or_text.partition(":")
    found = algorithm(name.strip())
    written = parse_params(found.name, rest)
    twice = sorted(set(written) & set(params))
    if twice:
        raise InputError(f"{found.name}: {twice[0]} is given in the text and as an argument.")
    return Learner(found, {**written, **params})


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
    """The learner of a text in a file; a law of the user's own is found in `laws` by its name."""
    name, _, rest = text.partition(":")
    own = {law.name: law for law in laws}
    return Learner(own[name], parse_params(name, rest)) if name in own else learner(text)


make_callable(__name__, learners)
