"""A release: one version everywhere, a changelog that fits on a screen, and a wheel that works."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import steadytd as st

ROOT = Path(__file__).parents[2]
MOST_LINES = 60


def test_every_file_names_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = project["version"]
    (released,) = re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert version == st.__version__
    assert f"\nversion: {version}\n" in citation
    assert re.findall(r"^## (.*)$", changes, re.MULTILINE)[0] == f"{version} ({released})"
    assert f"steadytd-{version}-py3-none-any.whl" in (ROOT / "README.md").read_text()


def test_each_version_has_a_short_changelog() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert all(len(text.splitlines()) < MOST_LINES for text in versions)


@pytest.mark.slow
def test_the_wheel_works_without_a_clone(tmp_path: Path) -> None:
    """`pip install .` into an empty directory, with the dependencies of this environment.

    It needs the build backend, as every install from source.
    """
    has_pip = importlib.util.find_spec("pip") is not None
    pip = [sys.executable, "-m", "pip"] if has_pip else ["uv", "pip"]
    site = str(tmp_path / "site")
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--target", site, str(ROOT)], check=True
    )
    env = {**os.environ, "PYTHONPATH": site}

    def python(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip

    assert python("-c", "import steadytd as st; print(st.__file__)").startswith(site)
    shown = python("-m", "steadytd", "reproduce", "--figure", "1", "--runs", "2", "--no-figures")
    assert "rows agree with theory" in " ".join(shown.split())
    assert "next: steadytd report results/quick" in python("-m", "steadytd", "study", "quick")
