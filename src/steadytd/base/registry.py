"""Registries of laws and problems: a package that lists what is in it, and what others add.

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
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType


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
