"""Algorithms and problems of other packages: in lists, studies, certificates and pages."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import steadytd as st

learners, problems = (import_module(f"steadytd.{name}") for name in ("learners", "problems"))

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
BROKEN = {
    "nowhere": ("nowhere_at_all:law", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    "td": ("steadytd_plugin:decayed_td", "the library already uses this name"),
    "renamed": ("steadytd_plugin:decayed_td", "the law is called 'decayed_td'"),
    "a_number": ("math:pi", "it must be a law, made by @st.law, got float"),
}


def install(place: Path, package: str, points: dict[str, dict[str, str]]) -> None:
    """What pip leaves of a package: its metadata with the entry points."""
    info = place / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line
        for group, names in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def forget() -> None:
    for registry in (learners, problems):
        registry._plugged.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    forget()
    yield place
    forget()


@pytest.fixture
def example(site: Path) -> None:
    """The package of `examples/plugin`, installed."""
    about = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install(site, "steadytd_plugin_example", about["entry-points"])
    shutil.copy(EXAMPLE / "steadytd_plugin.py", site)


@pytest.mark.usefixtures("example")
def test_the_example_is_everywhere(tmp_path: Path) -> None:
    assert st.learners()["decayed_td"].startswith("TD with weight decay")
    assert st.problems()["two_cells"].startswith("Two cells")
    p = st.problem("two_cells", stay=0.25)
    (row,) = [r for r in st.certify(p).learners if r["learner"] == "decayed_td"]
    m = p.moments()
    w = np.linalg.solve(m.A() + 0.1 * np.eye(1), m.b())
    assert row["error"] == pytest.approx(p.error(w), rel=1e-12)
    study = {"problem": "two_cells", "steps": 200, "seeds": 2,
             "learners": [{"name": "decayed_td", "alpha": [0.01, 0.1]}]}  # fmt: skip
    found = st.study(study).run(out=tmp_path / "study")
    assert found.summary["algorithm"].unique().to_list() == ["decayed_td"]
    assert "decayed_td:alpha=0.1" in str(found)
    with pytest.raises(st.InputError, match="option of problem two_cells: 'stey'; did you mean"):
        st.problem("two_cells", stey=1)


def test_a_broken_one_is_named_and_the_rest_goes_on(site: Path) -> None:
    shutil.copy(EXAMPLE / "steadytd_plugin.py", site)
    values = {name: value for name, (value, _) in BROKEN.items()}
    install(site, "bad_package", {"steadytd.laws": values, "steadytd.problems": {"p": "math:pi"}})
    with pytest.warns(UserWarning) as said:
        assert set(st.learners()) == set(learners.built_in())
        assert set(st.problems()) == set(problems.built_in())
    texts = [str(one.message) for one in said]
    assert len(texts) == len(BROKEN) + 1
    for name, (_, reason) in BROKEN.items():
        (text,) = [text for text in texts if f"plug-in '{name}' of package 'bad_package'" in text]
        assert reason in text and text.endswith("Update or remove the package.")
    assert st.learner("td", alpha=0.1).law is learners.td.td
