"""The walls between rooms that import-linter does not see; no room knows a learner by name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import steadytd
from steadytd.learners import names

ROOT = Path(str(steadytd.__file__)).parent
MAY_NAME = ("learners", "reproduction", "cli")  # the registry, the paper's experiments, examples
ALLOWED = {
    "evaluation/estimators.py": {"lstd"},  # the reference estimator's own name
    "runs/nonlinear.py": {"td", "tdc", "gtd2"},  # its own rules, for functions that are not linear
    "theory/cures.py": {"nstep_td", "target_td", "truncated_etd"},  # cures with theorems
}


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


def named(source: str) -> set[str]:
    """The learners' names among the string constants of a module, docstrings left out."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    }
    return found & set(names())


def checked() -> list[str]:
    paths = (path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py")))
    free = tuple(f"{room}/" for room in MAY_NAME)
    return [path for path in paths if not path.startswith(free)]


def test_no_learner_is_known_by_name() -> None:
    found = {path: named((ROOT / path).read_text(encoding="utf-8")) for path in checked()}
    assert {path: some for path, some in found.items() if some} == ALLOWED


def test_names_are_seen() -> None:
    assert named('"""td"""\nNAMES = {"td": 1, "other": f"{x} etd", "tdc.": 2}\n') == {"td"}
    assert len(checked()) > 100
    assert "evaluation/values.py" in checked()
