"""The walls between rooms: what import-linter's layers do not say."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

import steadytd

ROOT = Path(str(steadytd.__file__)).parent


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
