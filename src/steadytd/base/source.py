"""The source text of our modules, what they import, and which library an object belongs to.

`base.identity` hashes these texts. The list of modules is read from the import statements, so a
module that is split or added is never forgotten.
"""

from __future__ import annotations

import ast
import importlib.util
import os.path
import site
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from steadytd.base.errors import InputError

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
NUMERICAL = ("numpy", "scipy", "numba", "llvmlite")


class UnreadableError(InputError):
    """Something that a result depends on cannot be read."""


@cache
def closure(name: str) -> tuple[str, ...]:
    """A module of ours and all modules of ours that it imports, directly or not, sorted.

    Late imports count, those for type checkers do not. A package counts where something is imported
    from it, not where it only contains a module.

    >>> closure("steadytd.base.arrays")
    ('steadytd.base.arrays',)
    """
    found, waiting = {name}, [name]
    while waiting:
        new = {one for one in imports_of(waiting.pop()) if is_ours(one)} - found
        found |= new
        waiting += new
    return tuple(sorted(found))


def versions(packages: set[str]) -> dict[str, str]:
    """The versions of Python and of the numerical libraries among `packages`."""
    from importlib import metadata  # late: it takes a tenth of the time of `import steadytd`

    some = packages | ({"llvmlite"} if "numba" in packages else set())
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    return found | {name: metadata.version(name) for name in NUMERICAL if name in some}


def file_of(name: str) -> Path | None:
    """The file of a module of ours; None if there is none."""
    path = os.path.join(ROOT, *name.split(".")[1:])  # noqa: PTH118  (asked for a thousand times)
    options = (f"{path}/__init__.py", f"{path}.py")
    return next((Path(file) for file in options if os.path.isfile(file)), None)  # noqa: PTH113


def is_ours(name: str) -> bool:
    """Whether a module is one of ours, with a file."""
    return name.partition(".")[0] == PACKAGE and file_of(name) is not None


def text_of(name: str) -> str:
    """The text of a module of ours."""
    file = file_of(name)
    if file is None:
        raise UnreadableError(
            f"the source of the module {name} is missing, so changes to it cannot be detected; "
            "install steadytd with its sources."
        )
    return file.read_text(encoding="utf-8")


# Python 3.11 counts the depth of a tree for all threads together, so our threads take turns.
_PARSING = threading.Lock()
ATTEMPTS = 20  # other libraries parse in threads of their own, and do not wait for ours


def parsed(text: str) -> ast.Module:
    """The syntax tree of a module's text, parsed again where another thread disturbed the count."""
    with _PARSING:
        for _ in range(ATTEMPTS):
            with suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


@cache
def imports_of(name: str) -> frozenset[str]:
    """What a module of ours imports at run time: modules of ours, and top packages of others."""
    file = file_of(name)
    package = name if file is not None and file.stem == "__init__" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in _running(parsed(text_of(name))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            found.update((base, *(f"{base}.{alias.name}" for alias in node.names)))
    others = {one.partition(".")[0] for one in found} - {PACKAGE}
    return frozenset({one for one in found if is_ours(one)} | others)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those that only a type checker sees."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inside = getattr(node, part, [])
            waiting += inside if isinstance(inside, list) else []  # a lambda's body is one value


@cache
def library_of(module: str) -> str | None:
    """The library that a module belongs to, with its version; None for ours and the user's own."""
    top = module.partition(".")[0]
    if top == PACKAGE:
        return None
    if top in sys.stdlib_module_names:
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    found = sys.modules.get(top)
    file = Path(str(getattr(found, "__file__", None) or "/")).resolve()
    if not any(file.is_relative_to(place) for place in _library_places()):
        return None
    version = getattr(found, "__version__", None)
    if not isinstance(version, str):
        from importlib import metadata

        try:
            version = metadata.version(top)
        except metadata.PackageNotFoundError:
            return None
    return f"{top} {version}"


@cache
def _library_places() -> tuple[Path, ...]:
    paths = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    places = (*paths, *site.getsitepackages(), site.getusersitepackages())
    return tuple(Path(place).resolve() for place in places)
