"""The walls between rooms: what import-linter's layers do not say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
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


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(folder: Path = ROOT) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            yield path, node


def test_no_two_classes_have_one_name() -> None:
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    twice = {name for name, times in names.items() if times > 1}
    assert twice == set()


# What a user writes by name: each option stands in `help` and in the editor's completion (rule 2).
OPTIONS = {
    "Problem.__init__", "OnlineLearner.update", "Horde.update", "Horde.update_many", "law",
    "evaluate", "greedy_gq", "gym_stream", "nonlinear",
}  # fmt: skip


def crowded() -> dict[str, str]:
    """Functions with more than seven parameters, and the room of each."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        tree = tree_of(path)
        owner = {
            id(f): c.name for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                own = [one.arg for one in given if one.arg not in ("self", "cls")]
                if len(own) > MOST_PARAMETERS:
                    name = ".".join(filter(None, (owner.get(id(node)), node.name)))
                    found[f"{path.relative_to(ROOT)} {name}"] = name
    return found


def test_no_function_has_more_than_seven_parameters() -> None:
    """But commands, whose parameters are their options, and laws, which name what they ask for."""
    functions = crowded()
    free = ("cli/", "learners/")
    left = {
        where for where, name in functions.items()
        if not where.startswith(free) and name not in OPTIONS
    }  # fmt: skip
    assert left == set()
    assert set(functions.values()) >= OPTIONS  # no exception that is not needed


def test_no_test_file_imports_another() -> None:
    """What tests share stands in `tests/support`."""
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^\s*(?:from|import) +tests\b.*\btest_\w+", text, re.M) == [], path.name


def test_tests_mirror_the_rooms() -> None:
    folder = Path(__file__).parents[1]
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    tested = {path.parent.name for path in folder.glob("*/test_*.py")}
    elsewhere = {"learners"}  # laws are tested by the engine's contract
    assert rooms - elsewhere == tested - {"project", "browser", "fuzz"}


def test_loops_are_compiled_without_the_development_tools() -> None:
    """`make kernels` runs while they are still being installed."""
    text = "import sys; sys.modules['pytest'] = None; import tests.support.compile_all"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
