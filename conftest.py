"""How tests are found, those of the tests' modules and the examples in the package's own."""

from __future__ import annotations

import gc
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from tests.support import portable

portable.prepare()

ROOT = Path(__file__).parent
GARBAGE = 20_000  # new objects between two looks for garbage: tests make few rings of them


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Modules and tests live as long as the process: no need to look for garbage among them."""
    gc.disable()
    try:
        if is_second_worker(session.config):
            import_backwards()
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE)
        gc.enable()


def is_second_worker(config: pytest.Config) -> bool:
    """Whether this is one of the processes that run the whole suite, and not the first."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return worker != "gw0" and config.args_source is config.ArgsSource.TESTPATHS


def import_backwards() -> None:
    """Import all test files from the last to the first.

    In a fresh clone pytest writes byte code of every test file, which takes half of the time of
    looking for tests. Two workers that go the same way both do all of it; so they meet half-way.
    """
    for file in sorted((ROOT / "tests").glob("*/test_*.py"), reverse=True):
        if file.parent.name != "browser":
            import_module(f"tests.{file.parent.name}.{file.stem}")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """A module without `>>>` has no examples: no need to look for them in all of its objects."""
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf-8"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found
