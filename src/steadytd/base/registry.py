"""Registries of laws and problems: what a package lists, what others add, a file of the user's.

Other packages announce theirs by entry points:

    [project.entry-points."steadytd.laws"]
    my_td = "my_package:my_td"

A plug-in that cannot be used is named once, in a warning, with its package and the reason; all else
works as if it were not installed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from steadytd.base.errors import InputError, unknown


def registered(kind: str, name: str, known: Collection[str], remedy: str) -> str:
    """The name as it is registered; capital letters make no difference.

    >>> registered("learner", "Perturbed_TD", ["td", "perturbed_td"], "")
    'perturbed_td'
    """
    written = name.strip()
    if written in known:
        return written
    found = {one.lower(): one for one in known}.get(written.lower())
    if found is None:
        raise unknown(kind, written, known, remedy)
    return found


def plugins(
    group: str, taken: Collection[str], check: Callable[[str, object], object]
) -> dict[str, object]:
    """The objects of a group's entry points, by name.

    `check(name, loaded)` returns the object to register, or raises ValueError with the rule that
    was broken. The library's own names are in `taken`.
    """
    found: dict[str, object] = {}
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        try:
            if point.name in taken:
                raise ValueError("the library already uses this name; choose another")
            if point.name in found:
                raise ValueError("another package already uses this name")
            if not point.name.isidentifier():
                raise ValueError("a name must be letters, digits and _")
            found[point.name] = check(point.name, point.load())
        except Exception as error:  # whatever another package does, the rest goes on
            _warn(group, point, error)
    return found


def _warn(group: str, point: EntryPoint, error: Exception) -> None:
    package = "an unknown package" if point.dist is None else f"package '{point.dist.name}'"
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    warnings.warn(
        f"the plug-in '{point.name}' of {package} ({group}) cannot be used: {kind}{error}. "
        "Update or remove the package.",
        stacklevel=2,
    )


def module_of(path: str | Path) -> ModuleType:
    """The module of a Python file of the user's. The file is run, once as long as it is the same.

    As for a script, what stands beside it can be imported.
    """
    file = Path(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"there is no Python file '{file}' that can be read ({error.strerror})."
        ) from None
    return _run(file.resolve(), text)


@lru_cache(maxsize=64)
def _run(file: Path, text: bytes) -> ModuleType:
    name = f"laws_of_{file.stem}"
    module = ModuleType(name)
    vars(module)["__file__"] = str(file)
    sys.path.insert(0, str(file.parent))
    sys.modules[name] = module  # while it runs: a dataclass looks for its module
    try:
        exec(compile(text, str(file), "exec"), vars(module))
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"'{file}' cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
        del sys.modules[name]
    return module


class CallablePackage(ModuleType):
    """A package with a registry, and the function of the same name, as one object.

    `st.problems` and `st.learners` are functions by contract, and importing the packages gives
    `steadytd` attributes of the same names. As one object each is both, in whatever order things
    are imported.
    """

    listing: Callable[[], dict[str, str]]

    def __call__(self) -> dict[str, str]:
        """Every name with its one-line description."""
        return self.listing()


def make_callable(name: str, listing: Callable[[], dict[str, str]]) -> None:
    """Let the package `name`, which is being imported, be called."""
    package = sys.modules[name]
    package.__class__ = CallablePackage
    vars(package)["listing"] = listing
