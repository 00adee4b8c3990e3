"""The walls between rooms: what import-linter's layers do not say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import steadytd

ROOT = Path(str(steadytd.__file__)).parent


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
