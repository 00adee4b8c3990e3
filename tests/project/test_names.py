"""No room knows a learner by name: what it must know is asked of the law."""

from __future__ import annotations

import ast
from pathlib import Path

import steadytd
from steadytd.learners import names

SOURCE = Path(steadytd.__file__).parent
MAY_NAME = ("learners", "reproduction", "cli")  # the registry, the paper's experiments, examples
ALLOWED = {
    "evaluation/estimators/solved.py": {"lstd"},  # the reference estimator's own name
    "runs/nonlinear.py": {"td", "tdc", "gtd2"},  # its own rules, for functions that are not linear
    "theory/analysis.py": {"perturbed_td"},  # the penalty that a certificate is about
    "theory/cures.py": {"nstep_td", "target_td", "truncated_etd"},  # cures with closed forms here
}


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
    paths = (path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")))
    free = tuple(f"{room}/" for room in MAY_NAME)
    return [path for path in paths if not path.startswith(free)]


def test_no_learner_is_known_by_name() -> None:
    found = {path: named((SOURCE / path).read_text(encoding="utf-8")) for path in checked()}
    assert {path: some for path, some in found.items() if some} == ALLOWED


def test_names_are_seen() -> None:
    assert named('"""td"""\nNAMES = {"td": 1, "other": f"{x} etd", "tdc.": 2}\n') == {"td"}
    assert len(checked()) > 100
    assert "evaluation/values.py" in checked()
