"""The documentation's snippets run, in order, one namespace per page, and print what is shown."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steadytd.report.learner_pages import learner_pages
from steadytd.report.live import live

DOCS = Path(__file__).parents[2] / "docs"


def load(name: str) -> ModuleType:
    """A tool of the documentation; they import each other by their names."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


TOOL, LIVING = load("run_snippets"), load("living")
# laws are compiled, many figures drawn, or other pages show the same calls
SLOW = (
    "theory", "deadly_triad", "gallery", "own_law", "tutorial_logs", "gymnasium", "policy_from_log",
)  # fmt: skip
RUNNABLE = [page for page in sorted(DOCS.rglob("*.md")) if TOOL.snippets(page)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in RUNNABLE],
    ids=[p.stem for p in RUNNABLE],
)
def test_snippets_print_and_draw_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails because a number has changed for good: `python docs/run_snippets.py`."""
    for name in ("docs", "examples"):
        (tmp_path / name).symlink_to(DOCS.parent / name)
    monkeypatch.chdir(tmp_path)  # some write files
    text = page.read_text(encoding="utf-8")
    results = TOOL.run(page)
    shown = [snippet.shown for snippet in TOOL.snippets(page)]
    assert [printed for printed, _ in results] == shown
    for number, (_, chart) in enumerate(results, 1):
        path = TOOL.picture(page, number)
        assert path.with_suffix(".json").is_file() == (chart is not None)
        if chart is not None:
            assert f"images/{path.name})" in text
            assert_same(described(chart), json.loads(path.with_suffix(".json").read_text()))


def described(chart: Any) -> Any:
    found = LIVING.described_for_pages(chart)
    return {**found, "config": None}  # the style is the pages' own, which tests do not use


def assert_same(made: Any, kept: Any) -> None:
    """Equal but for rounding, on the whole: every mark, every axis, every number of the data."""
    if isinstance(made, dict):
        made.pop("config", None)
        kept.pop("config", None)
        assert list(made) == list(kept)
        for a, b in zip(made.values(), kept.values(), strict=True):
            assert_same(a, b)
    elif isinstance(made, list):
        assert len(made) == len(kept)
        for a, b in zip(made, kept, strict=True):
            assert_same(a, b)
    elif isinstance(made, float | int):
        assert made == pytest.approx(kept, rel=1e-3, abs=1e-9)
    else:
        assert made == kept


@pytest.mark.parametrize("name", LIVING.NOTEBOOKS)
def test_a_notebook_is_the_page(name: str) -> None:
    """Its code is what the test above runs, its outputs are what that compares; format 4.5."""
    page = DOCS / "tutorials" / f"{name}.md"
    made = json.loads(dict(LIVING.notebooks())[f"{name}.ipynb"])
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in made["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", i) for i in ids)
    for cell in made["cells"]:
        extra = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | extra
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    shown = TOOL.snippets(page)
    assert len(code) == len(shown) >= 4
    charts = 0
    for i, (cell, snippet) in enumerate(zip(code, shown, strict=True), 1):
        source, chart = "".join(cell["source"]), TOOL.picture(page, i).is_file()
        body = snippet.code.removeprefix("# runs\n").rstrip("\n")
        assert source == body + ("\nchart" if chart else "")
        printed = [o for o in cell["outputs"] if o["output_type"] == "stream"]
        assert "".join(line for o in printed for line in o["text"]) == snippet.shown
        drawn = [o["data"] for o in cell["outputs"] if o["output_type"] == "execute_result"]
        assert len(drawn) == chart
        charts += chart
        assert all("<svg" in "".join(d["image/svg+xml"]) and d[LIVING.VEGA] for d in drawn)
    assert charts >= 1  # a person wants to see something
    words = "".join(line for cell in made["cells"] for line in cell["source"])
    assert words.startswith("# ") and ".md)" not in words and "<iframe" not in words


def test_the_code_of_a_notebook_runs() -> None:
    """From its file alone, in order, in one namespace, without this project's tools."""
    made = json.loads(dict(LIVING.notebooks())["policy_from_log.ipynb"])
    names: dict[str, Any] = {}
    for cell in made["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["same"].predict([4.0]) == names["v"].predict([4.0])


@pytest.mark.slow
def test_the_drawn_examples_of_learners_are_those_of_their_pages() -> None:
    tool = load("write_learner_pages")
    names = tool.drawn_names(learner_pages())
    assert set(names) == {"gq", "lstd", "lsetd", "perturbed_lstd"}
    for name in names:
        kept = json.loads(tool.picture(name).with_suffix(".json").read_text(encoding="utf-8"))
        assert_same(described(tool.example(name).plot()), kept)


def test_the_theory_has_its_counterexamples() -> None:
    page = DOCS / "theory.md"
    assert page in RUNNABLE
    assert len(TOOL.snippets(page)) >= 4
    text = page.read_text(encoding="utf-8")
    assert text.replace("±", "").isascii()  # formulas are LaTeX
    for code in ("sign_reversal", "unstable_etas", "eta_hurwitz"):
        assert code in text


def test_every_marked_block_is_found() -> None:
    """A block that is marked but not closed, or indented, would silently not run."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        marked = len(re.findall(r"^\s*# runs\s*$", text, re.MULTILINE))
        assert marked == len(TOOL.snippets(page)), page.name
        outputs = len(re.findall(r"^```output$", text, re.MULTILINE))
        assert outputs == sum(bool(snippet.shown) for snippet in TOOL.snippets(page)), page.name


def test_a_changed_number_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n# runs\nx = 2\nprint(x)\n```\n\n```output\n3\n```\n")
    ((printed, chart),) = TOOL.run(page)
    assert (printed, chart, TOOL.snippets(page)[0].shown) == ("2\n", None, "3\n")
    TOOL.rewrite(page)
    assert TOOL.snippets(page)[0].shown == "2\n"
    page.write_text("```python\n# runs\nprint('word ' * 40)\n```\n")
    assert max(len(line) for line in TOOL.run(page)[0][0].splitlines()) <= TOOL.WIDTH


def test_panels_keep_the_numbers_that_they_show() -> None:
    import altair as alt

    rows = [{"x": 0.5, "y": 2.0, "unused": 1.0}]
    one = alt.Chart(alt.InlineData(values=rows)).mark_point().encode(x="x:Q", y="y:Q")
    (kept,) = LIVING.described_for_pages(one | one)["datasets"].values()
    assert kept == [{"x": 0.5, "y": 2}]


def test_a_long_table_is_kept_as_one_text() -> None:
    import altair as alt

    rows = [{"step": i, "error": i / 7} for i in range(LIVING.MANY + 1)]
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line().encode(x="step:Q", y="error:Q")
    spec = LIVING.described_for_pages(chart)
    (text,) = LIVING.compact(spec)["datasets"].values()
    assert text.startswith("step,error\n0,0\n1,0.14286\n")
    assert live("x", LIVING.compact(spec)).data == live("x", spec).data


def test_a_notebook_names_the_version_of_its_charts() -> None:
    import altair as alt

    made = json.loads(dict(LIVING.notebooks())["ten_minutes.ipynb"])
    kinds = {kind for cell in made["cells"] for one in cell.get("outputs", [])
             for kind in one.get("data", {}) if "vegalite" in kind}  # fmt: skip
    assert kinds == {f"application/vnd.vegalite.{alt.SCHEMA_VERSION.split('.')[0]}+json"}


def test_figures_of_results_live_where_their_description_is_kept() -> None:
    """All figures of Collision are drawn by the page; a reader without a script has pictures."""
    text = (DOCS / "results" / "collision.md").read_text(encoding="utf-8")
    kinds = ("curves", "overview", "sensitivity_perturbed_td")
    assert all(f"(collision_{kind}.svg)" in text for kind in kinds)
    alive = LIVING.with_figures(text, "results/collision")
    assert ".svg)" not in alive and '"perturbed_td"' in alive
    assert alive.count('class="live') == len(kinds)
    plain = re.findall(r'<noscript>.*?<img src="../_static/(\w+\.svg)" alt="[^"]+">', alive)
    assert plain == [f"collision_{kind}.svg" for kind in kinds]
    assert set(plain) < LIVING.pictures().keys()
    assert LIVING.with_figures(text, "results/elsewhere/collision") == text
