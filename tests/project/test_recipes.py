"""The recipes of the documentation: run as they stand, their answers against the truth."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8"),
    re.M | re.S,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A directory with the three files, and the functions of the script that made them."""
    place, script = tmp_path_factory.mktemp("recipes"), str(ROOT / "examples" / "recipes.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, str(place / "results")])
        return place, runpy.run_path(script, run_name="__main__")


def run(block: str, place: Path, patch: pytest.MonkeyPatch) -> Any:
    """The evaluation that a recipe makes; it has at most 15 lines."""
    assert len([line for line in block.splitlines() if line.strip()]) <= 15
    patch.chdir(place)
    names: dict[str, Any] = {}
    exec(compile(block, "recipe", "exec"), names)
    return names["e"]


def test_requests(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, script = made
    e = run(BLOCKS[0], place, monkeypatch)
    truth = script["requests_truth"]()
    quality, cost = (e.rewards[name].compare("rule") for name in ("quality", "cost"))
    assert quality.lo < truth["quality"] < quality.hi and quality.decision == "better"
    assert cost.lo < -truth["cost"] < cost.hi
    assert (place / "results" / "requests_cost.html").stat().st_size > 10_000


def test_sessions(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, script = made
    e = run(BLOCKS[1], place, monkeypatch)
    truth = script["sessions_truth"]()
    orders, spent = (e.rewards[name].compare("to_new") for name in ("orders", "spent"))
    assert orders.lo < truth["orders"] < orders.hi and orders.decision == "better"
    assert spent.lo < -truth["spent"] < spent.hi and spent.decision == "better"
    assert e.log.unit == "user_id" and e.segments is not None
    assert (place / "results" / "sessions.html").stat().st_size > 10_000


def test_ward(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, script = made
    e = run(BLOCKS[2], place, monkeypatch)
    found = e.compare("rule")
    assert found.lo < script["ward_truth"](0.9) < found.hi
    assert found.decision == "better"
    assert (place / "results" / "ward.html").stat().st_size > 10_000
