"""The walls between rooms: what import-linter's layers do not say."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import steadytd

ROOT = Path(str(steadytd.__file__)).parent
MOST_MODULES = 12
ONE_FILE_EACH = {"learners", "problems"}  # one file per algorithm, one per problem
MOST_PARAMETERS = 7


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports, late and typing-only imports included."""
    graph = grimp.build_graph("steadytd", exclude_type_checking_imports=False, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def ring(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, if there are any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_a_ring_is_seen() -> None:
    assert ring({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(ring({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    assert "steadytd.logs.sources.choose" in imports()["steadytd.logs.log"]
    assert "steadytd.base.parallel" in imports()["steadytd.evaluation.evaluate"]


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert ring(imports()) == []


def packages() -> list[Path]:
    return sorted(path.parent for path in ROOT.rglob("__init__.py"))


@pytest.mark.parametrize("package", packages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_package_is_crowded(package: Path) -> None:
    if package.name not in ONE_FILE_EACH:
        modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, sorted(modules)


def nodes(folder: Path = ROOT) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


def test_no_two_classes_have_one_name() -> None:
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    twice = {name for name, times in names.items() if times > 1}
    assert twice == set()


@pytest.mark.parametrize(
    "folder", ["base", "logs", "features", "mdp", "evaluation/collect", "evaluation/behavior"]
)
def test_no_function_has_more_than_seven_parameters(folder: str) -> None:
    """But `Problem`, whose parameters are what a problem consists of."""
    for path, node in nodes(ROOT / folder):
        if isinstance(node, ast.FunctionDef) and (path.stem, node.name) != ("problem", "__init__"):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            own = [one.arg for one in given if one.arg not in ("self", "cls")]
            assert len(own) <= MOST_PARAMETERS, f"{path.name}: {node.name}({', '.join(own)})"


def test_no_test_file_imports_another() -> None:
    """What tests share stands in `tests/support`."""
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        assert [m for m in modules if m.startswith("tests.") and ".test_" in m] == [], path.name


def test_tests_mirror_the_rooms() -> None:
    folder = Path(__file__).parents[1]
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    tested = {path.parent.name for path in folder.glob("*/test_*.py")}
    assert rooms - {"learners"} == tested - {"project", "fuzz"}  # laws: engine's contract
