"""What a study uses that is not registered: problems and laws of the user's own.

A study's text names a problem by the file that it was saved to (`mine.npz`) and a law by its Python
file (`my.py:my_law`), both seen from the study file; the Python file is run. A study from Python
has the objects themselves: its text then names a problem as the file that its results will hold,
and a law by its name alone. Results hold the problems, never code: who reads them names the laws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from steadytd.base.errors import InputError
from steadytd.base.files import file_name
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, law_in, names, written
from steadytd.mdp.problem import Problem, load_problem
from steadytd.problems import is_saved
from steadytd.problems import problem as make_problem

PLACE = "problems"  # where a directory of results holds the problems of the user's own


class Own:
    """Problems by the text that names them, and laws by their names; filled as a study is read.

    `folder` is that of the study file; without it no Python file is run. `saved` is where results
    hold the problems.
    """

    def __init__(
        self, folder: Path | None = None, saved: Path | None = None, laws: Iterable[Law] = ()
    ) -> None:
        self.folder, self.saved = folder, saved
        self.problems: dict[str, Problem] = {}
        self.laws = {law.name: law for law in laws}
        self.files: dict[str, Path] = {}  # of the laws that come from files

    def problem(self, text: str, options: Mapping[str, Any]) -> Problem:
        """The problem that a study's text names."""
        if not is_saved(text) or options:
            return make_problem(text, **options)
        if text not in self.problems:
            place = self.folder or Path()
            path = place / text if self.saved is None else self.saved / file_name(text)
            self.problems[text] = load_problem(path)
        return self.problems[text]

    def law(self, text: str) -> Law:
        """The law that a study's text names."""
        parts = written(text)
        if parts.law in self.laws:
            return self.laws[parts.law]
        if not parts.file and (self.saved is None or parts.law.lower() in names()):
            return algorithm(parts.law)
        if self.folder is None:
            raise InputError(
                f"the law '{parts.law}' is not registered, and results hold no code; name your "
                f"own: load_study(DIR, laws=[{parts.law}]), or steadytd report DIR --law "
                f"{parts.file or 'FILE.py'}."
            )
        path = self.folder / parts.file
        found = self.add_law(law_in(path, parts.law))
        self.files[found.name] = path
        return found

    def add_law(self, law: Law) -> Law:
        """A law of the user's; what a study writes tells laws apart by their names."""
        if law.name in names() and law is not algorithm(law.name):
            raise InputError(
                f"a law of your own has the name '{law.name}' of a registered one; rename it."
            )
        if self.laws.get(law.name, law) is not law:
            raise InputError(f"two laws of this study are called '{law.name}'; rename one.")
        if law.name not in names():
            self.laws[law.name] = law
        return law

    def add_problem(self, label: str, problem: Problem) -> str:
        """A problem of the user's; the text that names it from now on."""
        text = f"{label}.npz"
        if self.problems.get(text, problem) is not problem:
            raise InputError(f"two problems are called '{label}'; give one a label.")
        self.problems[text] = problem
        return text

    def write(self, place: Path) -> None:
        """Write the problems into a directory of results."""
        for text, problem in self.problems.items():
            problem.save(place / file_name(text))


def study_text(content: Mapping[str, object], own: Own) -> str:
    """A dictionary as the text of a study file, in which axes that are ranges come last.

    Its problems, laws and learners go into `own`.
    """
    try:
        plain = _plain(content)
        for one, several, made in (
            ("problem", "problems", _problem),
            ("learner", "learners", _learner),
        ):
            if isinstance(content.get(one), Problem | Law | Learner):
                del plain[one]
                plain[several] = [made(content[one], own)]
            if isinstance(content.get(several), list | tuple):
                plain[several] = [made(x, own) for x in _flat(content[several])]
        return tomli_w.dumps(plain)
    except (TypeError, AttributeError) as error:
        raise InputError(
            "a study's keys must be strings, its values numbers, strings, lists, dictionaries, "
            f"problems, laws or learners ({error}), got {content!r:.80}."
        ) from None


def _flat(entries: Any) -> list[Any]:
    """A list in which lists, such as those of `steadytd.grid`, may stand."""
    inner = ([*x] if isinstance(x, list | tuple) else [x] for x in entries)
    return [one for several in inner for one in several]


def _problem(entry: Any, own: Own) -> Any:
    if isinstance(entry, Problem):
        entry = {"name": entry}
    if isinstance(entry, Mapping) and isinstance(entry.get("name"), Problem):
        problem = entry["name"]
        label = str(entry.get("label") or problem.name)
        entry = {**entry, "name": own.add_problem(label, problem), "label": label}
    return _plain(entry)


def _learner(entry: Any, own: Own) -> Any:
    if isinstance(entry, Learner):
        own.add_law(entry.algorithm)
        return str(entry)
    if isinstance(entry, Law):
        return own.add_law(entry).name
    if isinstance(entry, Mapping) and isinstance(entry.get("name"), Law):
        entry = {**entry, "name": own.add_law(entry["name"]).name}
    return _plain(entry)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, ranges, tuples and paths as TOML has them."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value
