"""A package that can be called: it lists what is in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType


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
